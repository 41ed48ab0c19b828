//! Errors of function calls.

use syntax::Diagnostic;

/// Reason why a call of a function failed.
#[derive(Clone, Debug, PartialEq)]
pub enum CallError {
    /// An argument is wrong: its position (from 0) and what is wrong with it.
    Argument(usize, String),
    /// The call as a whole failed.
    Failed(String),
    /// There is no such function, or it cannot be called here.
    Unknown(Diagnostic),
}

impl CallError {
    pub(crate) fn failed(message: impl Into<String>) -> CallError {
        CallError::Failed(message.into())
    }

    pub(crate) fn argument(position: usize, message: impl Into<String>) -> CallError {
        CallError::Argument(position, message.into())
    }
}

impl From<cty::ops::OpError> for CallError {
    fn from(error: cty::ops::OpError) -> CallError {
        CallError::Failed(error.detail.trim_start_matches("Error during operation: ").to_owned())
    }
}
