//! The JSON form of values and types, as the plugin protocol, the state file and the plan's JSON use it.

use crate::msgpack::CodecError;
use crate::{Type, Value};

/// Writes a known value (marks ignored) of this type.
pub fn to_json(_value: &Value, _ty: &Type) -> Result<serde_json::Value, CodecError> {
    todo!()
}

/// Reads a value of this type; where the type is `any` the JSON carries `{"value":…,"type":…}`.
pub fn from_json(_json: &serde_json::Value, _ty: &Type) -> Result<Value, CodecError> {
    todo!()
}

/// Writes plain JSON without type wrappers: what `jsonencode` and `output -json` contain.
pub fn to_simple_json(_value: &Value) -> Result<serde_json::Value, CodecError> {
    todo!()
}

/// The type a JSON document has by itself (objects, tuples, primitives; null is dynamic) and its value: what
/// `jsondecode` gives.
#[must_use]
pub fn from_simple_json(_json: &serde_json::Value) -> Value {
    todo!()
}

/// The text of a JSON document as Go's encoder writes it: `<`, `>`, `&`, U+2028 and U+2029 escaped.
#[must_use]
pub fn to_text(_json: &serde_json::Value, _indent: Option<usize>) -> String {
    todo!()
}

/// The JSON form of a type: `"string"`, `["list","string"]`, `["object",{…}]`.
#[must_use]
pub fn type_to_json(_ty: &Type) -> serde_json::Value {
    todo!()
}

/// Reads the JSON form of a type.
pub fn type_from_json(_json: &serde_json::Value) -> Result<Type, String> {
    todo!()
}
