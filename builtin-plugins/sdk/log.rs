//! Secrets in log lines.
//!
//! Events are written with `tracing`, and each line of a call has the fields of the call (`tf_rpc`, `tf_req_id`, `tf_resource_type` and
//! others) and of the author's own spans around it. A task that a call spawns has them, too, if it is spawned with
//! `.in_current_span()`.
//!
//! Secrets are declared once, usually when the provider is configured, and are hidden in all later lines:
//!
//! ```
//! use monoform_sdk::log::{mask_fields, mask_texts};
//!
//! mask_fields(["token", "authorization"]);
//! mask_texts(["s3cr3t"]);
//! ```

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

/// Text in place of a secret.
pub const MASK: &str = "***";

static FIELDS: RwLock<BTreeSet<String>> = RwLock::new(BTreeSet::new());
static TEXTS: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Hides the values of fields with these names in all later lines, whatever their values are.
pub fn mask_fields<T: Into<String>>(names: impl IntoIterator<Item = T>) {
    let mut fields = FIELDS.write().unwrap_or_else(PoisonError::into_inner);
    fields.extend(names.into_iter().map(Into::into));
}

/// Hides these texts wherever they occur in all later lines: in messages and in values of fields.
pub fn mask_texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) {
    let mut all = TEXTS.write().unwrap_or_else(PoisonError::into_inner);
    for text in texts.into_iter().map(Into::into) {
        // An empty text occurs everywhere, so replacing it would garble every line and hide no secret.
        if !text.is_empty() && !all.contains(&text) {
            all.push(text);
        }
    }
    // Longer texts first: a secret that contains another one is hidden as a whole.
    all.sort_by_key(|text| std::cmp::Reverse(text.len()));
}

/// Returns true if the values of fields with this name are hidden.
#[doc(hidden)]
pub fn is_masked(field: &str) -> bool {
    FIELDS.read().unwrap_or_else(PoisonError::into_inner).contains(field)
}

/// Returns the text with each hidden text replaced by [`MASK`].
#[doc(hidden)]
pub fn masked(text: &str) -> Cow<'_, str> {
    let mut out = Cow::Borrowed(text);
    for secret in TEXTS.read().unwrap_or_else(PoisonError::into_inner).iter() {
        if out.contains(secret) {
            out = Cow::Owned(out.replace(secret, MASK));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_fields_are_hidden() {
        mask_fields(["log_test_token"]);
        mask_texts(["log-test-abc", "", "log-test-abc-def"]);
        assert!(is_masked("log_test_token") && !is_masked("log_test_name"));
        assert_eq!(masked("x log-test-abc-def y log-test-abc"), "x *** y ***");
        assert_eq!(masked("nothing"), "nothing");
    }
}
