//! Schemas: the content of blocks, and the role of each attribute in validation and planning.
//!
//! Authors write expressions made of [`required`], [`optional`], [`computed`] and [`block`] inside [`model!`](crate::model!);
//! [`Schema::of`] collects them. Each schema is compiled once, when it is first used ([`Compiled`]), so that no call converts it again. An
//! invalid schema (such as a default of the wrong type, or a rule about an attribute that does not exist) is refused when the host requests
//! the schemas. The error lists all problems with their paths.

mod compiled;
mod declare;
mod names;
pub(crate) mod shape;

pub use self::compiled::Compiled;
#[doc(hidden)]
pub use self::compiled::CompiledMember;
pub(crate) use self::compiled::LazySchema;
pub use self::declare::{
    BlockBuilder, ComputedBlock, IntoMember, NestedAttribute, block, computed, nested, optional, required,
};
pub use self::names::intern;
pub use self::shape::{Attribute, Block, Member, Nested, NestedBlock, Nesting, Schema, Text};
