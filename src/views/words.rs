//! The words for operations that both progress lines and the stream say.

use engine::events::EphemeralAction;
use engine::plan::Action;

/// The words for an operation: while it runs, and when it is complete.
pub(crate) struct Words {
    pub(crate) begins: &'static str,
    pub(crate) work: &'static str,
}

/// The words for the operation on an object; none for actions that are carried out as others.
pub(crate) fn words(action: Action) -> Option<Words> {
    let (begins, work) = match action {
        Action::Create => ("Creating", "Creation"),
        Action::Update => ("Modifying", "Modifications"),
        Action::Delete => ("Destroying", "Destruction"),
        Action::Read => ("Reading", "Read"),
        _ => return None,
    };
    Some(Words { begins, work })
}

/// The words for the operation on an ephemeral resource.
pub(crate) fn ephemeral_words(action: EphemeralAction) -> Words {
    let (begins, work) = match action {
        EphemeralAction::Open => ("Opening", "Opening"),
        EphemeralAction::Renew => ("Renewing", "Renewal"),
        EphemeralAction::Close => ("Closing", "Closing"),
    };
    Words { begins, work }
}

/// The identifier of an object behind its address, if it has one.
pub(crate) fn bracketed(id: Option<&(String, String)>) -> String {
    id.map(|(name, value)| format!(" [{name}={value}]")).unwrap_or_default()
}
