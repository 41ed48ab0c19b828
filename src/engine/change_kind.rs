//! Kinds of planned changes: the categories that the totals of a plan count and that guards allow or forbid.

use addrs::Mode;

use crate::plan::{Action, ResourceChange};

/// A kind of planned change. A replacement is one kind, whichever object comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// An object is imported, without any other change.
    Import,
    Create,
    /// A data source is read during apply.
    Read,
    Update,
    Replace,
    Delete,
    /// An object leaves the state and is not destroyed.
    Forget,
}

impl ChangeKind {
    /// All kinds, in the order of summaries.
    pub const ALL: [ChangeKind; 7] = [
        ChangeKind::Import,
        ChangeKind::Create,
        ChangeKind::Read,
        ChangeKind::Update,
        ChangeKind::Replace,
        ChangeKind::Delete,
        ChangeKind::Forget,
    ];

    /// Returns the kind of a change; `None` if the object stays as it is, and for a data source that leaves the state.
    #[must_use]
    pub fn from_change(change: &ResourceChange) -> Option<ChangeKind> {
        Some(match change.action {
            Action::NoOp if change.importing.is_some() => ChangeKind::Import,
            Action::NoOp => return None,
            Action::Create => ChangeKind::Create,
            Action::Read => ChangeKind::Read,
            Action::Update => ChangeKind::Update,
            // A data source that leaves the state is not an object that the user loses, so it is not counted.
            Action::Delete if change.address.resource.resource.mode == Mode::Data => return None,
            Action::Delete => ChangeKind::Delete,
            Action::DeleteThenCreate | Action::CreateThenDelete | Action::CreateThenForget => ChangeKind::Replace,
            Action::Forget => ChangeKind::Forget,
        })
    }

    /// Returns the word for the kind on the command line and in documents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ChangeKind::Import => "import",
            ChangeKind::Create => "create",
            ChangeKind::Read => "read",
            ChangeKind::Update => "update",
            ChangeKind::Replace => "replace",
            // The totals of a plan use this word.
            ChangeKind::Delete => "destroy",
            ChangeKind::Forget => "forget",
        }
    }

    /// Returns the kind with this name. `delete` is the word of Terraform's JSON documents for `destroy`.
    #[must_use]
    pub fn parse(word: &str) -> Option<ChangeKind> {
        match word {
            "delete" => Some(ChangeKind::Delete),
            _ => ChangeKind::ALL.into_iter().find(|kind| kind.as_str() == word),
        }
    }
}
