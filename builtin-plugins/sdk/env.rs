//! The environment of a plugin: settings that may come from variables instead of the configuration.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the one module of plugins that reads the environment"
)]

use system::{Os, paths};

/// Returns the value of a variable; `None` if it is unset, empty, or not Unicode.
#[must_use]
pub fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the value of the first of these variables that is set and not empty.
#[must_use]
pub fn first(names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| var(name))
}

/// Returns the user's home directory: `HOME`, or `USERPROFILE` on Windows.
#[must_use]
pub fn home() -> Option<String> {
    var(Os::CURRENT.home_variable())
}

/// Replaces a leading `~` by the home directory, if that is known.
#[must_use]
pub fn expand_home(path: &str) -> std::path::PathBuf {
    // `~user` is not replaced: it is the home directory of another user.
    match (path.strip_prefix('~'), home()) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with(|c| paths::is_separator(Os::CURRENT, c)) => {
            format!("{home}{rest}").into()
        }
        _ => path.into(),
    }
}
