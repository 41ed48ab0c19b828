//! Schemas: the content of blocks, and the role of each attribute in validation and planning.
//!
//! Authors write expressions made of [`required`], [`optional`], [`computed`] and [`block`] inside
//! [`model!`](crate::model!); [`Schema::of`] collects them. The schema of a type is compiled once ([`Compiled`]), when a
//! call first uses the type. A schema that cannot work (a default of the wrong type, a rule about an attribute that does not
//! exist) is refused when a host or a test asks for the schemas, with all errors and their paths.

mod compiled;
mod declare;
mod names;
pub(crate) mod shape;

pub use self::compiled::Compiled;
pub(crate) use self::compiled::LazySchema;
#[doc(hidden)]
pub use self::compiled::{CompiledMember, Described};
pub use self::declare::{
    BlockBuilder, ComputedBlock, IntoMember, NestedAttribute, block, computed, nested, optional, required,
};
pub use self::names::intern;
pub use self::shape::{Attribute, Block, Member, Nested, NestedBlock, Nesting, Schema, Text};
