//! Failures that need no further report.

use lang::scope::EvaluationError;

/// Mark of an error that has been reported as a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported;

impl From<Reported> for EvaluationError {
    fn from(_: Reported) -> EvaluationError {
        EvaluationError::Reported
    }
}
