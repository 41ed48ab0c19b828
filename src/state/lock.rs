//! Keeping others out of a state while it is in use.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Who holds a lock, and what for: the contents of the file beside a locked state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct LockInfo {
    /// The name of the lock: a UUID.
    #[serde(rename = "ID")]
    pub id: String,
    /// What the holder does, such as `OperationTypeApply`.
    pub operation: String,
    /// More about it, in words.
    pub info: String,
    /// `user@host`.
    pub who: String,
    /// The version of the holder.
    pub version: String,
    /// When the lock was taken, by RFC 3339.
    pub created: String,
    /// The state file.
    pub path: String,
}

/// Why a lock could not be had.
#[derive(Clone, Debug)]
pub struct LockHeld {
    /// The state file.
    pub path: PathBuf,
    /// Who holds it, if that is known.
    pub info: Option<LockInfo>,
}

impl fmt::Display for LockHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "The state file {} is in use by another program.",
            self.path.display()
        )
    }
}
