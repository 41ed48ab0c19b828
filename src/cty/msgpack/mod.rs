//! The msgpack form of values, as the plugin protocol uses it.
//!
//! The form depends on the type: where that is `any`, a value is wrapped together with its type. Unknown values are
//! extensions, with what is known about them inside.

mod decode;
mod encode;

pub use decode::decode;
pub(crate) use decode::{map_of, uniform};
#[cfg(feature = "serde_json")]
pub(crate) use encode::as_type;
pub use encode::encode;

use crate::{Path, Step};

/// Why bytes are not a value of the type, or a value cannot be written.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", describe(.path, .message))]
pub struct CodecError {
    /// Where inside the value.
    pub path: Path,
    /// What is wrong there.
    pub message: String,
}

fn describe(path: &Path, message: &str) -> String {
    if path.0.is_empty() {
        message.to_owned()
    } else {
        format!("{path}: {message}")
    }
}

impl CodecError {
    pub(crate) fn new(message: impl Into<String>) -> CodecError {
        CodecError {
            path: Path::root(),
            message: message.into(),
        }
    }

    /// The same error, seen from one step further up. The path is made on the way back, so that it costs nothing where
    /// there is no error.
    pub(crate) fn under(mut self, step: Step) -> CodecError {
        self.path.0.insert(0, step);
        self
    }
}

/// How deep values may be nested: text that nests deeper is an attack or a mistake, and would exhaust the stack.
pub(crate) const MAX_DEPTH: usize = 128;

/// The extension code of an unknown value about which something is known.
const REFINED: u8 = 12;
/// How long the description of an unknown value may be, in bytes.
const MAX_REFINEMENT_BYTES: usize = 1024;

/// The keys in the description of an unknown value.
mod refinement {
    pub const NULLNESS: i64 = 1;
    pub const PREFIX: i64 = 2;
    pub const NUMBER_MIN: i64 = 3;
    pub const NUMBER_MAX: i64 = 4;
    pub const LENGTH_MIN: i64 = 5;
    pub const LENGTH_MAX: i64 = 6;
}

#[cfg(test)]
mod tests;
