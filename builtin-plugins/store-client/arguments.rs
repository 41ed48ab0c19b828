//! Arguments of a store, from the configuration or the environment.

use monoform_sdk::{Attr, env};

/// Returns the text of an argument. If the configuration does not set it, returns the value of the first environment variable that is set.
/// `None` if neither is set, or if the text is empty.
#[must_use]
pub fn text(value: &Attr<String>, variables: &[&str]) -> Option<String> {
    let given = match value.known() {
        Some(text) => Some(text.clone()),
        None => env::first(variables),
    };
    // An empty text in the configuration overrides the variables, too.
    given.filter(|text| !text.is_empty())
}

/// Returns the mistakes in the arguments for the object names of a bucket, as pairs of argument and message. The messages are Terraform's.
#[must_use]
pub fn layout_problems(prefix: &str, key: &str) -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    if prefix.starts_with('/') || prefix.starts_with("./") {
        found.push(("prefix", "prefix must not start with '/' or './'."));
    }
    if key.starts_with('/') || key.ends_with('/') {
        found.push(("key", "key can not start and end with '/'."));
    }
    found
}
