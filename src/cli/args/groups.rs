//! Groups of flags that several commands have.

use std::time::Duration;

use config::values::VariableFlag;
use engine::lanes::{Bounds, Limit};

use crate::args::flags::{Flags, FromFlags, IGNORE_REMOTE_VERSION};

const PARALLELISM: usize = 10;

/// `-parallelism`: limits of the operations that run at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parallelism {
    /// Limit that is shared by all providers without a limit of their own.
    pub number: usize,
    /// Bounds of an adaptive limit (`auto`) that each provider not in `listed` gets for itself; `None` if these providers share `number`.
    pub others: Option<Limit>,
    /// Limits of single providers, by local name or source address.
    pub listed: Vec<(String, Limit)>,
}

impl Default for Parallelism {
    fn default() -> Parallelism {
        Parallelism {
            number: PARALLELISM,
            others: None,
            listed: Vec::new(),
        }
    }
}

impl Parallelism {
    /// Reads the value of the flag; `None` if it is invalid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Parallelism> {
        if let Ok(number) = text.parse::<i64>() {
            // Zero is the default, as in Terraform. Negative numbers are refused before they come here.
            let number = usize::try_from(number).ok().filter(|n| *n > 0);
            return Some(Parallelism {
                number: number.unwrap_or(PARALLELISM),
                ..Parallelism::default()
            });
        }
        let mut out = Parallelism::default();
        let mut others = None;
        for part in text.split(',') {
            match part.split_once('=') {
                Some((name, limit)) if !name.is_empty() => out.listed.push((name.to_owned(), limit_of(limit)?)),
                None if others.is_none() => others = Some(limit_of(part)?),
                _ => return None,
            }
        }
        match others {
            Some(Limit::Fixed(number)) => out.number = number,
            Some(Limit::Auto(_)) => out.others = others,
            None => {}
        }
        Some(out)
    }

    /// Returns true if the limit is one number for all providers together.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.others.is_none() && self.listed.is_empty()
    }
}

/// Parses a limit: a number, `auto`, or `auto:LOWEST-HIGHEST`; `None` if the text is invalid.
fn limit_of(text: &str) -> Option<Limit> {
    let number = |text: &str| text.parse::<usize>().ok().filter(|n| *n > 0);
    let Some(bounds) = text.strip_prefix("auto") else {
        return number(text).map(Limit::Fixed);
    };
    if bounds.is_empty() {
        return Some(Limit::Auto(Bounds::default()));
    }
    let (lowest, highest) = bounds.strip_prefix(':')?.split_once('-')?;
    let (lowest, highest) = (number(lowest)?, number(highest)?);
    (lowest <= highest).then_some(Limit::Auto(Bounds { lowest, highest }))
}

impl FromFlags for Parallelism {
    fn read(flags: &mut Flags<'_>) -> Parallelism {
        let text = flags.value_or(
            "parallelism",
            "N",
            "10",
            "How many operations may run at a time: a number; \"auto\" for a limit for each provider that adapts to how fast it answers, or \
             \"auto:2-60\" with bounds; and limits of single providers, such as aws=40,github=2.",
        );
        // The text is valid: `args::normalise` has refused invalid values.
        Parallelism::parse(&text).unwrap_or_default()
    }
}

/// `-input`: returns true if the user may be prompted.
pub fn input(flags: &mut Flags<'_>) -> bool {
    flags.switch("input", true, "Do not ask for values of variables that are missing.")
}

/// `-refresh`: the objects that a plan reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Refresh {
    #[default]
    Everything,
    Nothing,
    /// Objects that change, and the objects from which their changed values come.
    Changed,
    /// Objects whose last read is older than this duration.
    OlderThan(Age),
}

/// A duration, with its text from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Age {
    pub text: String,
    pub time: Duration,
}

impl Refresh {
    /// Reads the value of the flag; `None` if it is invalid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Refresh> {
        Some(match text {
            "true" => Refresh::Everything,
            "false" => Refresh::Nothing,
            "changed" => Refresh::Changed,
            _ => {
                let text = text.strip_prefix("older-than=")?;
                let time = gotext::duration::parse(text).filter(|time| !time.is_zero())?;
                let text = text.to_owned();
                Refresh::OlderThan(Age { text, time })
            }
        })
    }
}

pub fn refresh(flags: &mut Flags<'_>) -> Refresh {
    let text = flags.words(
        "refresh",
        "true",
        "PART",
        "What to read before planning: \"false\" for nothing, so that the plan is made of the state as it is; \"changed\" for the objects \
         whose configuration has changed, what their new values come from, and the data sources that they use; \"older-than=1h\" for \
         what was not read for that time.",
    );
    // The text is valid: `args::normalise` has refused invalid values.
    Refresh::parse(&text).unwrap_or_default()
}

/// `-state` of a command that only reads the state.
pub fn state_to_read(flags: &mut Flags<'_>) -> Option<String> {
    flags.value(
        "state",
        "PATH",
        "The state file to read, in place of the working directory's.",
    )
}

/// `-ignore-remote-version`, whose value is in the session.
pub fn ignore_remote_version(flags: &mut Flags<'_>) {
    flags.switch(
        IGNORE_REMOTE_VERSION,
        false,
        "Go on even if a remote workspace is set to another version.",
    );
}

pub fn platforms(flags: &mut Flags<'_>) -> Vec<String> {
    flags.values(
        "platform",
        "OS_ARCH",
        "A platform to get packages for: \"linux_amd64\". May be given many times; without it, this machine's.",
    )
}

#[derive(Debug, Default)]
pub struct ModeFlags {
    pub destroy: bool,
    pub refresh_only: bool,
    pub refresh: Refresh,
    pub replace: Vec<String>,
    pub targets: TargetFlags,
    pub invoke: Vec<String>,
}

impl FromFlags for ModeFlags {
    fn read(flags: &mut Flags<'_>) -> ModeFlags {
        ModeFlags {
            destroy: flags.switch(
                "destroy",
                false,
                "Plan to destroy all objects that the configuration manages.",
            ),
            refresh_only: flags.switch(
                "refresh-only",
                false,
                "Plan only to update the state to what the objects are now.",
            ),
            refresh: refresh(flags),
            replace: flags.values(
                "replace",
                "ADDRESS",
                "Replace this resource instance in any case. May be given many times.",
            ),
            targets: TargetFlags::read(flags),
            invoke: flags.values(
                "invoke",
                "ADDRESS",
                "Invoke this action, and do nothing else but refresh what it refers to.",
            ),
        }
    }
}

/// Flags that limit a plan to a part of the configuration, and `-strict-addresses`.
#[derive(Debug, Default)]
pub struct TargetFlags {
    pub target: Vec<String>,
    pub target_file: Vec<String>,
    pub exclude: Vec<String>,
    pub exclude_file: Vec<String>,
    pub strict: bool,
}

impl FromFlags for TargetFlags {
    fn read(flags: &mut Flags<'_>) -> TargetFlags {
        TargetFlags {
            target: flags.values(
                "target",
                "ADDRESS",
                "Work only on this module or resource, and what it depends on. May be given many times.",
            ),
            target_file: flags.values(
                "target-file",
                "PATH",
                "The same for each address in this file, one a line; # begins a comment.",
            ),
            exclude: flags.values(
                "exclude",
                "ADDRESS",
                "Leave out this module or resource, and what depends on it. May be given many times.",
            ),
            exclude_file: flags.values(
                "exclude-file",
                "PATH",
                "The same for each address in this file, one a line; # begins a comment.",
            ),
            strict: flags.switch(
                "strict-addresses",
                false,
                "Fail if an address of -target or -replace matches nothing, rather than warn. The environment variable \
                 MONOFORM_STRICT_ADDRESSES=1 does the same.",
            ),
        }
    }
}

/// `-var` and `-var-file` in the order of the command line.
///
/// A command only declares these flags. It gets their values, read once for the whole invocation, from `Session::set_variables`.
#[derive(Debug, Default, PartialEq)]
pub struct VariableFlags(pub Vec<VariableFlag>);

impl FromFlags for VariableFlags {
    fn read(flags: &mut Flags<'_>) -> VariableFlags {
        let values = flags.indexed_values(
            "var",
            "'NAME=VALUE'",
            "Set the value of an input variable. May be given many times.",
        );
        let files = flags.indexed_values(
            "var-file",
            "PATH",
            "Read the values of input variables from this file. May be given many times.",
        );
        let values = values.into_iter().map(|(i, text)| (i, VariableFlag::Var(text)));
        let files = files.into_iter().map(|(i, path)| (i, VariableFlag::File(path)));
        let mut all: Vec<_> = values.chain(files).collect();
        // Of repeated settings of a variable, the last one on the command line takes effect, whichever of the two flags it uses.
        all.sort_by_key(|(i, _)| *i);
        VariableFlags(all.into_iter().map(|(_, flag)| flag).collect())
    }
}

/// Flags of the commands that plan.
#[derive(Debug, Default)]
pub struct OperationFlags {
    pub lock: LockFlags,
    pub parallelism: Parallelism,
    pub input: bool,
}

impl FromFlags for OperationFlags {
    fn read(flags: &mut Flags<'_>) -> OperationFlags {
        let out = OperationFlags {
            lock: LockFlags::read(flags),
            parallelism: Parallelism::read(flags),
            input: input(flags),
        };
        flags.json_stream();
        flags.json_into();
        flags.concise();
        flags.compact_warnings("Show warnings that are not accompanied by errors by their summaries only.");
        out
    }
}

pub fn suppress_forget_errors(flags: &mut Flags<'_>) -> bool {
    flags.switch(
        "suppress-forget-errors",
        false,
        "In OpenTofu mode: no error at the end of a destroy run that has forgotten objects instead of destroying them. In the \
         other modes, that is never an error.",
    )
}

/// Flags that limit which plans are applied without approval. Their values are not parsed yet; `Guards::new` does that.
#[derive(Clone, Debug)]
pub struct GuardFlags {
    pub auto_approve: String,
    pub max_destroy: Option<String>,
}

impl FromFlags for GuardFlags {
    fn read(flags: &mut Flags<'_>) -> GuardFlags {
        GuardFlags {
            auto_approve: flags.switch_with_words(
                "auto-approve",
                "KINDS",
                "Skip interactive approval of the plan before applying. With a list of kinds of changes, such as \
                 =create,update, or with =safe (nothing is replaced, destroyed or forgotten, and no action invoked), only for \
                 a plan that has no others.",
            ),
            max_destroy: flags.value(
                "max-destroy",
                "N",
                "Refuse a plan that destroys more objects than this, those that are replaced included.",
            ),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockFlags {
    /// Time limit for acquiring the lock; `None` to work without a lock.
    pub timeout: Option<Duration>,
}

impl FromFlags for LockFlags {
    fn read(flags: &mut Flags<'_>) -> LockFlags {
        let lock = flags.switch(
            "lock",
            true,
            "Work without holding the state's lock: dangerous if others may work on the same state.",
        );
        let timeout = flags.value_or(
            "lock-timeout",
            "DURATION",
            "0s",
            "How long to try again for the lock, such as 30s.",
        );
        LockFlags {
            // The text is valid: `args::normalise` has refused invalid values.
            timeout: lock.then(|| gotext::duration::parse(&timeout).unwrap_or_default()),
        }
    }
}

/// Flags for the files of a local state: the one that is read, the one that is written, and the backup.
#[derive(Clone, Debug, Default)]
pub struct StateFlags {
    pub state: Option<String>,
    pub out: Option<String>,
    pub backup: Option<String>,
}

impl FromFlags for StateFlags {
    fn read(flags: &mut Flags<'_>) -> StateFlags {
        StateFlags {
            state: state_to_read(flags),
            out: flags.value("state-out", "PATH", "The state file to write, if it is another."),
            backup: flags.value(
                "backup",
                "PATH",
                "Where to keep a copy of the state as it was; \"-\" for no copy.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{flags, normalise};

    #[test]
    fn variables_are_in_the_order_of_the_command_line() {
        let command = clap::Command::new("plan").args(flags::declare::<VariableFlags>());
        let arguments = ["-var", "a=1", "-var-file=f", "-var=a=-2"].map(str::to_owned);
        let normal = normalise(&command, &[], &arguments).unwrap();
        let matches = command.try_get_matches_from(normal).unwrap();
        assert_eq!(
            flags::read::<VariableFlags>(&matches).0,
            [
                VariableFlag::Var("a=1".into()),
                VariableFlag::File("f".into()),
                VariableFlag::Var("a=-2".into())
            ]
        );
        assert!(!flags::compact_warnings(&matches));
    }

    #[test]
    fn parallelism_is_one_number_or_limits_of_providers() {
        let read = |text: &str| Parallelism::parse(text);
        assert_eq!(read("0"), Some(Parallelism::default()));
        assert_eq!(read("40").unwrap().number, 40);
        let auto = read("auto").unwrap();
        assert!(!auto.is_plain() && auto.others == Some(Limit::Auto(Bounds::default())));
        let listed = read("aws=40,20,integrations/github=auto:1-5").unwrap();
        assert_eq!((listed.number, listed.others), (20, None));
        let bounds = Bounds { lowest: 1, highest: 5 };
        assert_eq!(
            listed.listed,
            [
                ("aws".to_owned(), Limit::Fixed(40)),
                ("integrations/github".to_owned(), Limit::Auto(bounds))
            ]
        );
        for wrong in [
            "",
            "x",
            "aws=",
            "aws=0",
            "=3",
            "auto:5-1",
            "auto:0-3",
            "auto:",
            "auto,5",
            "aws=1,,",
            "automatic",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn defaults_hold_for_flags_that_are_not_written() {
        let command = clap::Command::new("plan").args(flags::declare::<OperationFlags>());
        let matches = command.try_get_matches_from(["plan"]).unwrap();
        let read = flags::read::<OperationFlags>(&matches);
        assert_eq!(read.lock.timeout, Some(Duration::ZERO));
        assert_eq!(read.parallelism, Parallelism::default());
        assert!(read.input);
    }
}
