//! What a command was given, read from clap's matches.

use std::time::Duration;

use clap::ArgMatches;
use config::values::VariableFlag;

use crate::args::flags;

/// The arguments of a command. A flag the command does not declare counts as not given.
#[derive(Debug)]
pub struct Given(pub ArgMatches);

impl Given {
    /// Whether a switch is on.
    #[must_use]
    pub fn on(&self, name: &str) -> bool {
        self.0
            .try_get_one::<bool>(name)
            .ok()
            .flatten()
            .copied()
            .unwrap_or_default()
    }

    /// The value of a flag.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.try_get_one::<String>(name).ok().flatten().map(String::as_str)
    }

    /// The values of a flag or positional argument.
    #[must_use]
    pub fn values(&self, name: &str) -> Vec<String> {
        self.0
            .try_get_many::<String>(name)
            .ok()
            .flatten()
            .map(|v| v.cloned().collect())
            .unwrap_or_default()
    }

    /// Whether a flag was written, whatever its value.
    #[must_use]
    pub fn written(&self, name: &str) -> bool {
        self.0.try_contains_id(name).unwrap_or_default()
            && self.0.value_source(name) == Some(clap::parser::ValueSource::CommandLine)
    }

    /// How many operations may run at a time.
    #[must_use]
    pub fn parallelism(&self) -> usize {
        let number = self
            .value("parallelism")
            .and_then(|v| v.parse::<i64>().ok())
            .unwrap_or(10);
        usize::try_from(number).ok().filter(|n| *n > 0).unwrap_or(10)
    }

    /// How long to try for the lock; `None` for no lock at all.
    #[must_use]
    pub fn lock(&self) -> Option<Duration> {
        self.on("lock")
            .then(|| self.value("lock-timeout").and_then(flags::duration).unwrap_or_default())
    }

    /// `-var` and `-var-file` in the order they were written.
    #[must_use]
    pub fn variables(&self) -> Vec<VariableFlag> {
        let list = |name: &str, make: fn(String) -> VariableFlag| -> Vec<(usize, VariableFlag)> {
            if self.0.try_contains_id(name).is_err() {
                return Vec::new();
            }
            let places = self.0.indices_of(name).into_iter().flatten();
            places.zip(self.values(name).into_iter().map(make)).collect()
        };
        let mut all = list("var", VariableFlag::Var);
        all.extend(list("var-file", VariableFlag::File));
        all.sort_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, flag)| flag).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_keep_the_order_of_the_command_line() {
        let command = flags::variables(flags::command("plan", ""));
        let arguments = ["-var", "a=1", "-var-file=f", "-var=a=-2"].map(str::to_owned);
        let normal = crate::args::normalise(&command, &[], &arguments).unwrap();
        let given = Given(command.try_get_matches_from(normal).unwrap());
        assert_eq!(
            given.variables(),
            [
                VariableFlag::Var("a=1".into()),
                VariableFlag::File("f".into()),
                VariableFlag::Var("a=-2".into())
            ]
        );
        assert!(!given.on("no-color"));
        assert!(!given.on("unheard-of"));
    }
}
