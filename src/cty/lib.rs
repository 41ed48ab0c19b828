//! Types and values of the configuration language.
//!
//! All crates share these: a [`Type`], a [`Value`] of that type, and a [`Path`] into it. A value may be *null*
//! (deliberately absent) or *unknown* (not computed yet, possibly with [`Refinements`], facts that are certain
//! already). It may carry [`Marks`] (sensitive, ephemeral) that follow it through every operation.
//!
//! Three properties hold everywhere:
//! - A value is cheap to clone: text and collections are shared.
//! - A value knows its type, its marks and whether anything inside it is unknown or marked, all in constant time:
//!   the constructors compute those once. See [`Value`].
//! - Nothing here panics on input of a user, a file or a plugin: operations return a result.
//!
//! Where to begin: [`types`] and [`value`]; then [`ops`] (operators), [`mod@convert`] (conversion and unification),
//! [`defaults`] (of optional attributes), and the two codecs, [`msgpack`] and [`json`], which write exactly what the
//! plugin protocol and the state file contain.

mod codec;
pub mod convert;
pub mod defaults;
pub mod json;
pub mod marks;
pub mod msgpack;
pub mod number;
pub mod ops;
pub mod path;
pub mod refine;
pub mod set;
#[cfg(test)]
mod testing;
mod text;
pub mod types;
pub mod value;

pub use convert::{ConvertError, convert, unify};
pub use defaults::Defaults;
pub use marks::{Deprecation, Marks};
pub use number::Number;
pub use path::{Path, Step};
pub use refine::Refinements;
pub use types::{ObjectType, Type};
pub use value::{Kind, Value};
