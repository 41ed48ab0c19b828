//! The environment of a plugin: settings that may come from variables in place of the configuration.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the one module of plugins that reads the environment"
)]

use system::{Os, paths};

/// The value of a variable; `None` if it is not set, empty, or no valid Unicode.
#[must_use]
pub fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The value of the first of these variables that is set and not empty.
#[must_use]
pub fn first(names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| var(name))
}

/// The user's home directory as the environment has it: `HOME`, or `USERPROFILE` on Windows.
#[must_use]
pub fn home() -> Option<String> {
    var(Os::CURRENT.home_variable())
}

/// The path with a leading `~` replaced by the home directory, where that is known.
#[must_use]
pub fn expand_home(path: &str) -> std::path::PathBuf {
    // `~user` stays as it is: it is the home of somebody else.
    match (path.strip_prefix('~'), home()) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with(|c| paths::is_separator(Os::CURRENT, c)) => {
            format!("{home}{rest}").into()
        }
        _ => path.into(),
    }
}
