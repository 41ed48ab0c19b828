//! Arguments of a store: from the configuration, or else from the environment.

use monoform_sdk::{Attr, env};

/// The text of an argument, or else of the first variable that is set; `None` if it is empty.
#[must_use]
pub fn text(value: &Attr<String>, variables: &[&str]) -> Option<String> {
    let given = match value.known() {
        Some(text) => Some(text.clone()),
        None => env::first(variables),
    };
    given.filter(|text| !text.is_empty())
}

/// The mistakes in where a bucket has its states, by argument. The sentences are Terraform's.
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
