//! Identities that sign requests: an API key with its ID, or a token with the key of its session.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use monoform_sdk::{Diagnostic, Diagnostics};
use serde_json::Value as Json;
use store_client::oauth::{PrivateKey, now};

/// Number of seconds before its expiry at which a token counts as expired.
const HEADROOM: i64 = 300;

/// Key that signs requests, and its ID.
#[derive(Clone)]
pub(crate) struct Identity {
    pub key_id: String,
    pub key: Arc<PrivateKey>,
    /// Expiry in seconds since 1970; `None` if the identity does not expire.
    pub ends: Option<i64>,
}

impl Identity {
    /// Creates the identity of a token.
    pub fn of_token(token: &str, key: PrivateKey) -> Identity {
        Identity {
            key_id: format!("ST${}", token.trim()),
            key: Arc::new(key),
            ends: end_of(token.trim()),
        }
    }

    pub fn holds(&self) -> bool {
        self.ends.is_none_or(|end| end - HEADROOM > now())
    }
}

/// Returns the expiry of a JWT; `None` if it has none or cannot be read.
fn end_of(token: &str) -> Option<i64> {
    let claims = URL_SAFE_NO_PAD
        .decode(token.split('.').nth(1)?.trim_end_matches('='))
        .ok()?;
    serde_json::from_slice::<Json>(&claims).ok()?["exp"].as_i64()
}

pub(crate) fn problem(detail: impl Into<String>) -> Diagnostics {
    Diagnostic::error("No valid credentials found", detail).into()
}
