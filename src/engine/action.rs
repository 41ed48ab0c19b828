//! Actions of a plan on one object.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Action {
    /// No change.
    NoOp,
    /// Create a new object.
    Create,
    /// Read a data source during apply.
    Read,
    /// Update the object in place.
    Update,
    /// Destroy the object.
    Delete,
    /// Replace: destroy the old object, then create the new one.
    DeleteThenCreate,
    /// Replace: create the new object, then destroy the old one.
    CreateThenDelete,
    /// Remove the object from the state without destroying it.
    Forget,
    /// Replace: create the new object, then remove the old one from the state without destroying it.
    CreateThenForget,
}

impl Action {
    /// Returns the name of the action in JSON documents and in text. All three kinds of replacement have the same name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Action::NoOp => "no-op",
            Action::Create => "create",
            Action::Read => "read",
            Action::Update => "update",
            Action::Delete => "delete",
            Action::DeleteThenCreate | Action::CreateThenDelete | Action::CreateThenForget => "replace",
            Action::Forget => "forget",
        }
    }

    /// Returns the steps of the action in their order: two for a replacement.
    #[must_use]
    pub fn steps(&self) -> &[Action] {
        match self {
            Action::DeleteThenCreate => &[Action::Delete, Action::Create],
            Action::CreateThenDelete => &[Action::Create, Action::Delete],
            Action::CreateThenForget => &[Action::Create, Action::Forget],
            one => std::slice::from_ref(one),
        }
    }

    /// Returns true if a new object takes the place of the old one.
    #[must_use]
    pub fn is_replace(self) -> bool {
        matches!(
            self,
            Action::DeleteThenCreate | Action::CreateThenDelete | Action::CreateThenForget
        )
    }

    /// Returns true if an object leaves the state without being destroyed.
    #[must_use]
    pub fn forgets(self) -> bool {
        matches!(self, Action::Forget | Action::CreateThenForget)
    }
}
