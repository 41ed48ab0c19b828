//! Schemas: the shape of configuration blocks and of provider objects.
//!
//! [`shape`] has the data: blocks, attributes, nesting. [`derived`] caches the implied type and other derived values. [`marking`] applies
//! sensitive and write-only attributes to values, [`deprecation`] deprecations. [`IdentitySchema`] is the schema of a resource type's
//! identities. Schemas come from providers, or are part of Terraform's language.
//!
//! Start with [`Schema`] and [`BlockSchema`].

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
