//! Errors of function calls.

use syntax::Diagnostic;

/// Reason why a call of a function failed.
#[derive(Clone, Debug, PartialEq)]
pub enum CallError {
    /// An argument is invalid: its position (from 0) and a description.
    Argument(usize, String),
    /// The call as a whole failed, with a description.
    Failed(String),
    /// The function does not exist, or cannot be called here.
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
    // Diagnostics of calls begin with an introduction of their own, so that of the operation is removed.
    fn from(error: cty::ops::OpError) -> CallError {
        CallError::Failed(error.detail.trim_start_matches("Error during operation: ").to_owned())
    }
}
