//! Verbs for operations, shared by progress lines and the stream.

use addrs::program::Mode;
use engine::events::EphemeralAction;
use engine::plan::Action;

/// Verbs for an operation while it runs and after it.
pub(crate) struct Words {
    pub(crate) begins: &'static str,
    pub(crate) work: &'static str,
}

/// Returns the verbs for the operation on an object; `None` for actions that are not one operation, such as a replacement
/// or forgetting.
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

/// Returns the verbs for the operation on an ephemeral resource.
pub(crate) fn ephemeral_words(action: EphemeralAction) -> Words {
    let in_opentofu = Mode::current().is_opentofu();
    let (begins, work) = match action {
        EphemeralAction::Open if in_opentofu => ("Opening", "Open"),
        EphemeralAction::Renew if in_opentofu => ("Renewing", "Renew"),
        EphemeralAction::Close if in_opentofu => ("Closing", "Close"),
        EphemeralAction::Open => ("Opening", "Opening"),
        EphemeralAction::Renew => ("Renewing", "Renewal"),
        EphemeralAction::Close => ("Closing", "Closing"),
    };
    Words { begins, work }
}

/// Formats an object's identifier for display after its address; empty if there is none.
pub(crate) fn bracketed(id: Option<&(String, String)>) -> String {
    id.map(|(name, value)| format!(" [{name}={value}]")).unwrap_or_default()
}
