//! Error value for failures that have been reported already.

use lang::scope::EvaluationError;

/// Error value of a function that has already reported its failure as a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported;

impl From<Reported> for EvaluationError {
    fn from(_: Reported) -> EvaluationError {
        EvaluationError::Reported
    }
}
