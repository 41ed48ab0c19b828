//! Schemas: the shape of configuration blocks and of the objects that a provider stores.
//!
//! [`shape`] has the data: blocks, attributes, nesting, and the type that a schema implies. [`marking`] applies what a schema
//! says about sensitive and write-only attributes to values. A schema is data: where it comes from (a provider, the language
//! itself) is not known here.
//!
//! Where to begin: [`Schema`] and [`BlockSchema`].

pub mod marking;
mod shape;

pub use shape::{
    AttributeSchema, AttributeType, BlockSchema, Description, ImpliedType, NestedBlock, NestedObject, Nesting, Schema,
};
