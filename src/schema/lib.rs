//! Schemas: the shape of configuration blocks and of the objects that a provider stores.
//!
//! [`shape`] has the data: blocks, attributes, nesting, and the type that a schema implies. [`marking`] applies
//! sensitive and write-only attributes of a schema to values, [`deprecation`] what it deprecates. [`IdentitySchema`] is
//! that of the identities of a resource type. A schema is data, whether it comes from a provider or
//! from the language itself.
//!
//! Where to begin: [`Schema`] and [`BlockSchema`].

pub mod deprecation;
mod identity;
pub mod marking;
mod shape;

pub use identity::{IdentityAttribute, IdentitySchema};
pub use shape::{
    AttributeSchema, AttributeType, BlockSchema, Description, ImpliedType, NestedBlock, NestedObject, Nesting, Schema,
};
