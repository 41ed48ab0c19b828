//! The msgpack form of values in the plugin protocol.
//!
//! The form depends on the type: a value of type `any` is wrapped together with its own type. Unknown values are
//! extensions that contain their refinements.

mod decode;
mod encode;

pub use decode::decode;
pub(crate) use decode::{map_of, uniform};
#[cfg(feature = "serde_json")]
pub(crate) use encode::as_type;
pub use encode::encode;

use crate::{Path, Step};

/// A failure to decode bytes as a value of a type, or to encode a value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", describe(.path, .message))]
pub struct CodecError {
    /// Path inside of the value.
    pub path: Path,
    /// Description of the error.
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

    /// Adds a step at the beginning of the path. The path is built while the error returns, so that it costs nothing
    /// without an error.
    pub(crate) fn under(mut self, step: Step) -> CodecError {
        self.path.0.insert(0, step);
        self
    }
}

/// Depth limit of values. Deeper nesting is an attack or a mistake, and would exhaust the stack.
pub(crate) const MAX_DEPTH: usize = 128;

/// Extension code of an unknown value with refinements.
const REFINED: u8 = 12;
/// Limit on the encoded refinements of an unknown value, in bytes.
const MAX_REFINEMENT_BYTES: usize = 1024;

/// Keys of the encoded refinements.
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
