//! The built-in functions.
//!
//! Each function is a row of a table: its parameters with what they take, its result type, and its body. What happens
//! with null, unknown, dynamically typed and marked arguments is decided by the flags of the parameters, in one place:
//! [`call`]. A body sees only what its flags let through.

use syntax::Diagnostic;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq)]
pub enum CallError {
    /// An argument is wrong: its position (from 0) and what is wrong with it.
    Argument(usize, String),
    /// The call as a whole failed.
    Failed(String),
    /// There is no such function, or it cannot be called here.
    Unknown(Diagnostic),
}
