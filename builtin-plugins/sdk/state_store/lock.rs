//! Errors of taking a lock.

pub use locks::LockInfo;

use crate::diag::{Diagnostic, Diagnostics};

/// Reason why a lock could not be taken.
#[derive(Clone, Debug)]
pub enum LockError {
    /// Another program has the lock. If the holder is known, the host tries again until its lock timeout.
    Held {
        /// Lock info of the holder, if the store has it.
        holder: Option<Box<LockInfo>>,
        /// The message for the user.
        message: String,
    },
    /// The request failed for another reason.
    Failed(Diagnostics),
}

impl LockError {
    /// Creates the error for a lock that another program has.
    #[must_use]
    pub fn held(holder: Option<LockInfo>, message: impl Into<String>) -> LockError {
        LockError::Held {
            holder: holder.map(Box::new),
            message: message.into(),
        }
    }

    /// Returns the diagnostics for the user, without the lock info of the holder.
    #[must_use]
    pub fn into_diagnostics(self) -> Diagnostics {
        match self {
            LockError::Held { message, .. } => Diagnostic::error("Error acquiring the state lock", message).into(),
            LockError::Failed(problems) => problems,
        }
    }
}

impl From<Diagnostics> for LockError {
    fn from(problems: Diagnostics) -> LockError {
        LockError::Failed(problems)
    }
}

impl From<Diagnostic> for LockError {
    fn from(problem: Diagnostic) -> LockError {
        LockError::Failed(problem.into())
    }
}
