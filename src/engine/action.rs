//! What a plan does to one object.

use serde::{Deserialize, Serialize};

/// The action on one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Action {
    /// No change.
    NoOp,
    /// Create.
    Create,
    /// Read a data source during apply.
    Read,
    /// Update in place.
    Update,
    /// Destroy.
    Delete,
    /// Replace: destroy the old object, then create the new one.
    DeleteThenCreate,
    /// Replace: create the new object, then destroy the old one.
    CreateThenDelete,
    /// Remove from the state without destroying.
    Forget,
}

impl Action {
    /// Whether the old object is destroyed and a new one created.
    #[must_use]
    pub fn is_replace(self) -> bool {
        matches!(self, Action::DeleteThenCreate | Action::CreateThenDelete)
    }
}
