//! The operators of the language on values: unknown operands, refinements and marks included.

use crate::Value;

/// Why an operation on values failed. The text is a sentence without the final stop, to be put after a location.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct OpError(pub String);

/// The language's `==`: unknown where an operand's answer is open.
#[must_use]
pub fn equals(_a: &Value, _b: &Value) -> Value {
    todo!()
}
/// `!`.
pub fn not(_a: &Value) -> Result<Value, OpError> {
    todo!()
}
/// `&&` without short circuit.
pub fn and(_a: &Value, _b: &Value) -> Result<Value, OpError> {
    todo!()
}
/// `||` without short circuit.
pub fn or(_a: &Value, _b: &Value) -> Result<Value, OpError> {
    todo!()
}
/// `-x`.
pub fn negate(_a: &Value) -> Result<Value, OpError> {
    todo!()
}
/// `+`.
pub fn add(_a: &Value, _b: &Value) -> Result<Value, OpError> {
    todo!()
}
/// `-`.
pub fn subtract(_a: &Value, _b: &Value) -> Result<Value, OpError> {
    todo!()
}
/// `*`.
pub fn multiply(_a: &Value, _b: &Value) -> Result<Value, OpError> {
    todo!()
}
/// `/`.
pub fn divide(_a: &Value, _b: &Value) -> Result<Value, OpError> {
    todo!()
}
/// `%`.
pub fn modulo(_a: &Value, _b: &Value) -> Result<Value, OpError> {
    todo!()
}
/// `<`.
pub fn less_than(_a: &Value, _b: &Value) -> Result<Value, OpError> {
    todo!()
}
/// `<=`.
pub fn less_or_equal(_a: &Value, _b: &Value) -> Result<Value, OpError> {
    todo!()
}
/// `>`.
pub fn greater_than(_a: &Value, _b: &Value) -> Result<Value, OpError> {
    todo!()
}
/// `>=`.
pub fn greater_or_equal(_a: &Value, _b: &Value) -> Result<Value, OpError> {
    todo!()
}
/// `x[key]` on lists, tuples, maps and objects.
pub fn index(_collection: &Value, _key: &Value) -> Result<Value, OpError> {
    todo!()
}
/// `x.name` on objects and maps.
pub fn get_attribute(_object: &Value, _name: &str) -> Result<Value, OpError> {
    todo!()
}
/// The number of elements, as the `length` function counts (collections and structural types; not strings).
pub fn length(_collection: &Value) -> Result<Value, OpError> {
    todo!()
}
