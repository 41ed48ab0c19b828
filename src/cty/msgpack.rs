//! The msgpack form of values, as the plugin protocol uses it.

use crate::{Path, Type, Value};

/// Why bytes are not a value of the type, or a value cannot be written.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct CodecError {
    /// Where inside the value.
    pub path: Path,
    /// What is wrong there.
    pub message: String,
}

/// Writes a value, converted to this type already, marks removed already.
pub fn encode(_value: &Value, _ty: &Type) -> Result<Vec<u8>, CodecError> {
    todo!()
}

/// Reads a value of this type.
pub fn decode(_bytes: &[u8], _ty: &Type) -> Result<Value, CodecError> {
    todo!()
}
