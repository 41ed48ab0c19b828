//! Environment variables of the command line, read once at the start.
//!
//! | Variable | Meaning |
//! | --- | --- |
//! | `TF_CLI_ARGS`, `TF_CLI_ARGS_<command>` | additional arguments, inserted after the command's name |
//! | `TF_DATA_DIR` | replaces `.terraform` |
//! | `TF_WORKSPACE` | the workspace |
//! | `TF_VAR_<name>` | the value of a root input variable |
//! | `TF_INPUT` | `0` or `false`: never ask |
//! | `NO_COLOR` | not empty: no colours |
//! | `COMP_LINE`, `COMP_POINT` | a line to be completed, and the position of the cursor in it |
//! | `TF_IN_AUTOMATION` | not empty: no hints about what to do next, and no live area |
//! | `MONOFORM_PROGRESS` | `off`, `0` or `false`: no live area, and no progress lines in the log of a CI job |
//! | `MONOFORM_STRICT_ADDRESSES` | not `0`: addresses of targets and replacements that match nothing are errors |
//! | `MONOFORM_MAX_ELEMENTS` | limit of the instances of a `count`, the numbers of a `range` and the elements of a `for` expression |
//! | `MONOFORM_MODE` | `terraform`, `opentofu` or `monoform`: the tool whose behaviour the program has, whatever name it was called by |
//! | `TERM` | `dumb` or empty: the terminal can have no live area |
//! | `TF_LOG`, `TF_LOG_CORE`, `TF_LOG_PROVIDER`, `TF_LOG_PROVIDER_<NAME>` | how much to log |
//! | `TF_LOG_PATH` | the file to append the log to |
//! | `TF_STATE_PERSIST_INTERVAL` | interval, in whole seconds, in which the results of an apply are saved; 0.1 s if not set. Large states are saved less often, so that writing takes at most 5 % of the time |
//! | `OPENTOFU_STATEFILE_PROVIDER_ADDRESS_TRANSLATION` | `0`: the mode of OpenTofu reads states of Terraform with its addresses of providers |
//! | `TF_CLI_CONFIG_FILE`, `TERRAFORM_CONFIG`, `TF_PLUGIN_CACHE_DIR`, `TF_REATTACH_PROVIDERS`, … | for the search for plugins, which reads them from [`Environment`] |

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use addrs::program::{MODE_VARIABLE, Mode};
use files::Environment;
use syntax::{Diagnostic, Diagnostics};
use views::status::Sections;

/// Environment of the process, with methods for the variables that only the command line reads.
#[derive(Clone, Debug, Default)]
pub struct Env(Environment);

impl From<Environment> for Env {
    fn from(environment: Environment) -> Env {
        Env(environment)
    }
}

impl Deref for Env {
    type Target = Environment;

    fn deref(&self) -> &Environment {
        &self.0
    }
}

impl Env {
    /// Returns the additional arguments of a command (`state list`), the specific ones before the general ones.
    #[must_use]
    pub fn arguments(&self, command: &str) -> [(String, Option<&str>); 2] {
        let specific = format!("TF_CLI_ARGS_{}", command.replace([' ', '-'], "_"));
        let general = "TF_CLI_ARGS".to_owned();
        [specific, general].map(|name| {
            let value = self.get(&name);
            (name, value)
        })
    }

    /// Returns the limit of elements and instances, if it is set to a number.
    #[must_use]
    pub fn max_elements(&self) -> Option<u64> {
        self.get("MONOFORM_MAX_ELEMENTS")?.parse().ok()
    }

    /// Returns diagnostics about variables with invalid values.
    #[must_use]
    pub fn problems(&self) -> Diagnostics {
        let limit = self.get("MONOFORM_MAX_ELEMENTS").filter(|value| !value.is_empty());
        let wrong = limit.filter(|_| self.max_elements().is_none());
        let problem = |text| Diagnostic::error("Invalid environment variable", text);
        let of_limit = wrong.map(|value| {
            problem(format!(
                "The value of MONOFORM_MAX_ELEMENTS, \"{value}\", is not a whole number. The default limits are used."
            ))
        });
        let mode = self.get(MODE_VARIABLE);
        let of_mode = mode.filter(|mode| Mode::from_name(mode).is_none()).map(|mode| {
            problem(format!(
                "The value of {MODE_VARIABLE}, \"{mode}\", is not a mode. The modes are \"monoform\", \"opentofu\" and \
                 \"terraform\". The mode of the program's name is used."
            ))
        });
        of_limit.into_iter().chain(of_mode).collect()
    }

    #[must_use]
    pub fn data_dir(&self) -> &str {
        self.get("TF_DATA_DIR").unwrap_or(".terraform")
    }

    /// Returns the workspace in `TF_WORKSPACE`, if the variable is set.
    #[must_use]
    pub fn workspace(&self) -> Option<&str> {
        self.get("TF_WORKSPACE")
    }

    /// Returns the values of root input variables, by name without the prefix.
    #[must_use]
    pub fn variables(&self) -> BTreeMap<String, String> {
        let named = |(name, value): (&String, &String)| Some((name.strip_prefix("TF_VAR_")?.to_owned(), value.clone()));
        self.all().iter().filter_map(named).collect()
    }

    /// Returns true unless `TF_INPUT` forbids questions.
    #[must_use]
    pub fn input(&self) -> bool {
        // These are the spellings of false that Go's ParseBool accepts.
        !matches!(
            self.get("TF_INPUT"),
            Some("0" | "f" | "F" | "false" | "FALSE" | "False")
        )
    }

    /// Returns true if `NO_COLOR` is set (no-color.org).
    #[must_use]
    pub fn no_color(&self) -> bool {
        self.get("NO_COLOR").is_some()
    }

    /// Returns true if `MONOFORM_STRICT_ADDRESSES` is set and not `0`: addresses of targets and replacements that match nothing are errors.
    #[must_use]
    pub fn strict_addresses(&self) -> bool {
        self.get("MONOFORM_STRICT_ADDRESSES").is_some_and(|value| value != "0")
    }

    /// Returns true if `TF_IN_AUTOMATION` is set: hints for the user are left out.
    #[must_use]
    pub fn in_automation(&self) -> bool {
        self.get("TF_IN_AUTOMATION").is_some()
    }

    /// Returns true if a terminal may have a live area. A log on the terminal excludes the area, because its lines would break the drawing.
    #[must_use]
    pub fn progress(&self) -> bool {
        let able = self.get("TERM").is_some_and(|terminal| terminal != "dumb");
        let logs = |name: &str| self.get(name).is_some_and(|level| !level.eq_ignore_ascii_case("off"));
        let logged = ["TF_LOG", "TF_LOG_CORE", "TF_LOG_PROVIDER"].into_iter().any(logs);
        let on_terminal = logged && self.get("TF_LOG_PATH").is_none();
        !self.progress_off() && able && !on_terminal && !self.in_automation()
    }

    /// Returns true if `MONOFORM_PROGRESS` switches off the live area and the progress lines without a terminal.
    #[must_use]
    pub fn progress_off(&self) -> bool {
        matches!(self.get("MONOFORM_PROGRESS"), Some("off" | "0" | "false"))
    }

    /// Returns the CI system, if its log can have sections that are folded.
    #[must_use]
    pub fn log_sections(&self) -> Option<Sections> {
        let is_set = |name| self.get(name) == Some("true");
        match (is_set("GITHUB_ACTIONS"), is_set("GITLAB_CI")) {
            (true, _) => Some(Sections::GitHub),
            (_, true) => Some(Sections::GitLab),
            _ => None,
        }
    }

    /// Returns the interval in which results of an apply are saved, and a warning if the setting is invalid.
    #[must_use]
    pub fn persist_interval(&self) -> (Duration, Option<Diagnostic>) {
        const NAME: &str = "TF_STATE_PERSIST_INTERVAL";
        // Terraform waits 20 seconds. Less is enough here: the journal already makes results durable, and the snapshot only serves
        // others who read the state.
        let usual = Duration::from_millis(100);
        match self.get(NAME).map(|text| (text, text.trim().parse::<u32>())) {
            None => (usual, None),
            Some((_, Ok(seconds))) => (Duration::from_secs(seconds.into()), None),
            Some((text, Err(_))) => {
                let warning = Diagnostic::warning(
                    "Invalid state persist interval",
                    format!(
                        "The environment variable {NAME} is \"{text}\", which is not a whole number of seconds. It is \
                         ignored."
                    ),
                );
                (usual, Some(warning))
            }
        }
    }

    /// Returns the interval for states in stores. There every write is a request, so the variable cannot make it shorter than 20 seconds,
    /// which is Terraform's default.
    pub fn persist_interval_of_stores(&self) -> (Duration, Option<Diagnostic>) {
        let (interval, warning) = self.persist_interval();
        (interval.max(Duration::from_secs(20)), warning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        Environment::read(pairs.iter().map(|(k, v)| ((*k).into(), (*v).into()))).into()
    }

    #[test]
    fn variables_lose_their_prefix_and_empty_settings_count_as_absent() {
        let env = env(&[
            ("TF_VAR_a", "1"),
            ("TF_VAR_b", ""),
            ("TF_DATA_DIR", ""),
            ("TF_INPUT", "0"),
        ]);
        assert_eq!(
            env.variables(),
            BTreeMap::from([("a".into(), "1".into()), ("b".into(), String::new())])
        );
        assert_eq!(env.data_dir(), ".terraform");
        assert!(!env.input());
    }

    #[test]
    fn specific_arguments_come_before_general_ones() {
        let env = env(&[("TF_CLI_ARGS", "-a"), ("TF_CLI_ARGS_force_unlock", "-b")]);
        let found = env.arguments("force-unlock").map(|(_, v)| v.map(str::to_owned));
        assert_eq!(found, [Some("-b".to_owned()), Some("-a".to_owned())]);
    }

    #[test]
    fn a_live_area_needs_a_terminal_that_a_person_watches() {
        let with = |pairs: &[(&str, &str)]| env(&[&[("TERM", "xterm")], pairs].concat()).progress();
        assert!(with(&[]));
        assert!(with(&[("TF_LOG", "off")]) && with(&[("TF_LOG", "trace"), ("TF_LOG_PATH", "log")]));
        assert!(!with(&[("MONOFORM_PROGRESS", "off")]));
        assert!(!with(&[("TF_IN_AUTOMATION", "1")]));
        assert!(!with(&[("TF_LOG", "trace")]) && !with(&[("TF_LOG_PROVIDER", "info")]));
        assert!(!env(&[]).progress() && !env(&[("TERM", "dumb")]).progress());
    }

    #[test]
    fn the_persist_interval_is_whole_seconds_or_warned_of() {
        let interval = |text: &str| {
            let (interval, warning) = env(&[("TF_STATE_PERSIST_INTERVAL", text)]).persist_interval();
            (interval.as_millis(), warning.is_some())
        };
        assert_eq!(
            ["", "0", "5", "20", "-1", "1.5", "soon"].map(interval),
            [
                (100, false),
                (0, false),
                (5000, false),
                (20_000, false),
                (100, true),
                (100, true),
                (100, true)
            ]
        );
    }
}
