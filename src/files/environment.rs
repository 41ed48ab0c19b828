//! Environment variables. Only `main` reads the variables of the process, and passes them on, so that tests can use other variables.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use system::{CliPaths, Os, Surroundings, Tool};

#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<String, String>);

impl<M: Into<BTreeMap<String, String>>> From<M> for Environment {
    fn from(variables: M) -> Environment {
        Environment(variables.into())
    }
}

impl Environment {
    /// Collects the variables of the process. Variables that are not Unicode are dropped, unless their names begin with `MONOFORM_`.
    pub fn read(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Environment {
        let text = |(name, value): (OsString, OsString)| {
            let name = name.into_string().ok()?;
            let value = match value.into_string() {
                // Dropping a setting of this program could turn off a check. The invalid value is reported where it is used.
                Err(value) if name.starts_with("MONOFORM_") => value.to_string_lossy().into_owned(),
                value => value.ok()?,
            };
            Some((name, value))
        };
        Environment(variables.into_iter().filter_map(text).collect())
    }

    /// Returns all variables, including empty ones.
    #[must_use]
    pub fn all(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// Returns the value of a variable; `None` if it is unset or empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.find(Os::CURRENT, name).filter(|value| !value.is_empty())
    }

    /// Returns the value of a variable by the rules of a system: Windows ignores the case of names. `None` if it is unset.
    fn find(&self, os: Os, name: &str) -> Option<&str> {
        let exact = self.0.get(name);
        let similar = || self.0.iter().find(|(known, _)| os.same_variable(known, name));
        exact.or_else(|| Some(similar()?.1)).map(String::as_str)
    }

    /// Returns the user's home directory; `None` if it is not known.
    #[must_use]
    pub fn home(&self) -> Option<PathBuf> {
        #[expect(clippy::disallowed_methods, reason = "without HOME, the system knows the directory")]
        self.get(Os::CURRENT.home_variable())
            .map(PathBuf::from)
            .or_else(std::env::home_dir)
    }

    /// Returns the paths of the user's CLI configuration for a tool (Terraform or OpenTofu); `None` if the home directory is
    /// not known.
    #[must_use]
    pub fn cli_configuration(&self, tool: Tool) -> Option<CliPaths> {
        let home = self.home();
        let surroundings = Surroundings {
            home: home.as_deref(),
            variable: &|name| self.get(name).map(str::to_owned),
            exists: &Path::exists,
        };
        Os::CURRENT.cli_configuration(tool, surroundings)
    }

    /// Replaces `$NAME` and `${NAME}` by the rules of Go's `os.Expand`. Unset variables are replaced by nothing, and their names are
    /// returned as the second result.
    #[must_use]
    pub fn expand(&self, text: &str) -> (String, Vec<String>) {
        let mut out = String::with_capacity(text.len());
        let mut missing = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            let (name, tail) = reference(after);
            match name {
                None => out.push('$'),
                Some("") => {}
                Some(name) => match self.find(Os::CURRENT, name) {
                    Some(value) => out.push_str(value),
                    None => missing.push(name.to_owned()),
                },
            }
            rest = tail;
        }
        out.push_str(rest);
        (out, missing)
    }
}

/// Splits the text after a `$` into the name of a variable and the rest. The name is `None` if the `$` is literal, and empty for
/// text that Go drops: `${}`, and a `${` that is not closed.
fn reference(text: &str) -> (Option<&str>, &str) {
    if let Some(inner) = text.strip_prefix('{') {
        let (name, tail) = inner.split_once('}').unwrap_or(("", inner));
        return (Some(name), tail);
    }
    // Special shell parameters have names of one character.
    let end = match text.starts_with(|c: char| "*#$@!?-".contains(c) || c.is_ascii_digit()) {
        true => 1,
        false => text
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(text.len()),
    };
    let (name, tail) = text.split_at(end);
    (Some(name).filter(|name| !name.is_empty()), tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_in_both_forms() {
        let environment = Environment::from([("HOME".to_owned(), "/h".to_owned())]);
        assert_eq!(environment.expand("$HOME/x${HOME}y$HOME").0, "/h/x/hy/h");
        assert_eq!(environment.expand("$ a $/x$"), ("$ a $/x$".to_owned(), vec![]));
        assert_eq!(environment.expand("$NO/x"), ("/x".to_owned(), vec!["NO".to_owned()]));
    }

    #[test]
    fn unusual_references_are_those_of_go() {
        let variables = [("HOME", "/h"), ("1", "one"), ("$", "dollar")];
        let environment = Environment::from(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
        for (text, expanded) in [
            ("a${}b", "ab"),
            ("${}$HOME", "/h"),
            ("${", ""),
            ("a${HOME", "aHOME"),
            ("$1x", "onex"),
            ("${1}x", "onex"),
            ("$$x", "dollarx"),
            ("${$}", "dollar"),
            ("$é", "$é"),
        ] {
            assert_eq!(environment.expand(text), (expanded.to_owned(), vec![]), "{text}");
        }
        assert_eq!(environment.expand("$10").1, Vec::<String>::new());
        assert_eq!(environment.expand("$-x${HOME }").1, ["-", "HOME "]);
    }

    #[test]
    fn names_differ_by_case_but_on_windows() {
        let environment = Environment::from([("Path".to_owned(), "/p".to_owned()), ("x".to_owned(), "1".to_owned())]);
        assert_eq!(environment.find(Os::Windows, "PATH"), Some("/p"));
        assert_eq!(environment.find(Os::Unix, "PATH"), None);
        assert_eq!(environment.find(Os::Unix, "Path"), Some("/p"));
    }
}
