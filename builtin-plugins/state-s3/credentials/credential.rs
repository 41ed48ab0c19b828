//! Credentials, and errors about them.

use http::aws::Credential;
use jiff::Timestamp;
use monoform_sdk::{Diagnostic, Diagnostics};

const SUMMARY: &str = "No valid credential sources found";

/// Builds the error for missing or unusable credentials.
pub(crate) fn problem(detail: impl Into<String>) -> Diagnostics {
    Diagnostic::error(SUMMARY, detail).into()
}

/// Parses a time in a JSON answer.
pub(super) fn expiry(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

pub(super) fn credential(access: &str, secret: &str, token: Option<&str>, expires: Option<Timestamp>) -> Credential {
    Credential {
        access_key_id: access.to_owned(),
        secret_access_key: secret.to_owned(),
        session_token: token.filter(|token| !token.is_empty()).map(str::to_owned),
        expires_in: expires.and_then(|at| reqsign_core::time::Timestamp::from_second(at.as_second()).ok()),
    }
}
