//! Arguments of a store, from the configuration or else from the environment.

use monoform_sdk::{Attr, env};

/// Returns the text of an argument, or else of the first environment variable that is set; `None` if it is empty.
#[must_use]
pub fn text(value: &Attr<String>, variables: &[&str]) -> Option<String> {
    let given = match value.known() {
        Some(text) => Some(text.clone()),
        None => env::first(variables),
    };
    // An empty text in the configuration hides the variables, too.
    given.filter(|text| !text.is_empty())
}

/// Returns the mistakes in the object names of a bucket, by argument. The sentences are Terraform's.
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
