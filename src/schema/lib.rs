//! Schemas: the shape of configuration blocks and of the objects that a provider stores.
//!
//! [`shape`] has the data: blocks, attributes, nesting. [`derived`] computes and caches the type that a schema
//! implies, and more. [`marking`] applies sensitive and write-only attributes of a schema to values, [`deprecation`] what it deprecates. [`IdentitySchema`] is
//! that of the identities of a resource type. A schema is data, whether it comes from a provider or
//! from the language itself.
//!
//! Where to begin: [`Schema`] and [`BlockSchema`].

#![allow(missing_docs, reason = "an internal crate: names and types say the rest")]

mod computed;
pub mod deprecation;
mod derived;
mod identity;
pub mod marking;
mod shape;

pub use derived::Derived;
pub use identity::{IdentityAttribute, IdentitySchema};
pub use shape::{
    AttributeSchema, AttributeType, BlockSchema, Description, ImpliedType, NestedBlock, NestedObject, Nesting, Schema,
};
