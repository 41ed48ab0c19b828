//! Why a lock could not be had.

pub use locks::LockInfo;

use crate::{Diagnostic, Diagnostics};

/// Why a lock could not be had.
#[derive(Clone, Debug)]
pub enum LockError {
    /// Somebody else has it. It is worth trying again later if it is known who that is.
    Held {
        /// Who has it, if that is known.
        holder: Option<Box<LockInfo>>,
        /// What to tell the person.
        message: String,
    },
    /// Something else went wrong.
    Failed(Diagnostics),
}

impl LockError {
    /// Somebody has the lock.
    #[must_use]
    pub fn held(holder: Option<LockInfo>, message: impl Into<String>) -> LockError {
        LockError::Held {
            holder: holder.map(Box::new),
            message: message.into(),
        }
    }

    /// The messages for a person, the holder not among them.
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
