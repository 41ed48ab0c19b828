//! Arguments: Go-style flags in front of clap.
//!
//! Terraform's flags have one dash or two (`-out=p`, `--out p`), take their value after `=` or as the next argument, and end at the first
//! argument that is not a flag. Boolean flags take a value only after `=`. [`normalise`] converts such arguments into the form that clap
//! parses, according to the declarations of the command. It finds every mistake itself, so that messages show flags as the user wrote them.

pub mod flags;
pub mod groups;
pub mod help;
pub mod operation;
pub mod words;

use clap::Command;
use syntax::content::suggest;

/// Error about the arguments of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageError {
    pub summary: String,
    pub detail: String,
}

impl UsageError {
    /// Returns the error about a flag that cannot be parsed.
    pub fn flag(detail: impl Into<String>) -> UsageError {
        UsageError {
            summary: "Failed to parse command-line flags".into(),
            detail: detail.into(),
        }
    }

    /// Returns an error with its own summary, unlike [`UsageError::flag`].
    pub fn new(summary: impl Into<String>, detail: impl Into<String>) -> UsageError {
        UsageError {
            summary: summary.into(),
            detail: detail.into(),
        }
    }
}

/// Name of a flag that other commands have and this command refuses, with the reason.
pub type Refused = (&'static str, &'static str);

/// Converts arguments into the form that clap knows: `--name=value` for flags, then `--`, then the rest.
pub fn normalise(command: &Command, refused: &[Refused], arguments: &[String]) -> Result<Vec<String>, UsageError> {
    let mut out = vec![command.get_name().to_owned()];
    let mut rest = arguments.iter();
    let mut positional: Vec<String> = Vec::new();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            positional.extend(rest.cloned());
            break;
        }
        // A single hyphen means standard input. No flags are recognized after the first positional argument.
        let Some(flag) = argument.strip_prefix('-').filter(|f| !f.is_empty()) else {
            positional.push(argument.clone());
            positional.extend(rest.cloned());
            break;
        };
        let flag = flag.strip_prefix('-').unwrap_or(flag);
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (flag, None),
        };
        if name.is_empty() || name.starts_with('-') {
            return Err(UsageError::flag(format!("bad flag syntax: {argument}")));
        }
        // Refused flags are checked first: some are declared by a group of flags that the command uses.
        if let Some((_, why)) = refused.iter().find(|(refused, _)| *refused == name) {
            return Err(UsageError::new(
                "Option not supported",
                format!("The option -{name} is not supported here: {why}"),
            ));
        }
        let Some(declared) = command.get_arguments().find(|a| a.get_long() == Some(name)) else {
            let known = command.get_arguments().filter_map(clap::Arg::get_long);
            let hint = match name {
                "chdir" => format!(
                    ". It is a global option, which goes before the command: -chdir={} {}",
                    value.as_deref().unwrap_or("DIR"),
                    command.get_name()
                ),
                _ => suggest(name, known)
                    .map(|near| format!(". Did you mean -{near}?"))
                    .unwrap_or_default(),
            };
            return Err(UsageError::flag(format!(
                "flag provided but not defined: -{name}{hint}"
            )));
        };
        let value = if flags::is_switch(declared) {
            let text = value.unwrap_or_else(|| "true".into());
            match gotext::boolean(&text) {
                Some(value) => value.to_string(),
                None if flags::takes_words(declared) => text,
                None => {
                    let why = format!("invalid boolean value \"{text}\" for -{name}: parse error");
                    return Err(UsageError::flag(why));
                }
            }
        } else {
            match value.or_else(|| rest.next().cloned()) {
                Some(value) => value,
                None => return Err(UsageError::flag(format!("flag needs an argument: -{name}"))),
            }
        };
        check(declared, name, &value)?;
        out.push(format!("--{name}={value}"));
    }
    if !positional.is_empty() {
        out.push("--".into());
        out.append(&mut positional);
    }
    Ok(out)
}

/// Checks the value of a flag that only takes certain values: a limit, a duration, or keywords.
fn check(arg: &clap::Arg, name: &str, text: &str) -> Result<(), UsageError> {
    let fits = match arg.get_id().as_str() {
        "parallelism" => match text.parse::<i64>() {
            // As in Terraform: a negative number has an error of its own, and 0 means the default.
            Ok(count) if count < 0 => {
                return Err(UsageError::new(
                    "Invalid parallelism value",
                    format!(
                        "The option -{name} has the value {text}, which is not the number of operations that may run at a time. It takes a \
                         positive number; 0 means the default."
                    ),
                ));
            }
            Ok(_) => true,
            Err(_) if groups::Parallelism::parse(text).is_some() => true,
            Err(_) if text.contains(['=', ',']) || text.starts_with("auto") => {
                return Err(UsageError::new(
                    "Invalid parallelism value",
                    format!(
                        "The option -{name} has the value {text}, which is no limit. It takes a number, \"auto\", \"auto:2-60\" with bounds, and \
                         limits of single providers such as aws=40,github=2, with a comma between them."
                    ),
                ));
            }
            Err(_) => false,
        },
        "refresh" if flags::takes_words(arg) => return check_refresh(text),
        "run-parallelism" => text.parse::<usize>().is_ok_and(|count| count > 0),
        "lock-timeout" => gotext::duration::parse(text).is_some(),
        _ => true,
    };
    if fits {
        return Ok(());
    }
    // This is the wording of Go's flag package. Wrappers search for it.
    Err(UsageError::flag(format!(
        "invalid value \"{text}\" for flag -{name}: parse error"
    )))
}

fn check_refresh(text: &str) -> Result<(), UsageError> {
    if groups::Refresh::parse(text).is_some() {
        return Ok(());
    }
    Err(match text.strip_prefix("older-than") {
        Some(age) => UsageError::new(
            "Invalid age",
            format!(
                "The option -refresh=older-than takes a time such as 30m or 12h, and not \"{}\". What was not read for that time is \
                 read.",
                age.trim_start_matches('=')
            ),
        ),
        None => UsageError::flag(format!("invalid boolean value \"{text}\" for -refresh: parse error")),
    })
}

#[cfg(test)]
mod tests {
    use super::flags::{Flags, FromFlags};
    use super::groups::{ModeFlags, OperationFlags, VariableFlags};
    use super::*;

    struct Out;

    impl FromFlags for Out {
        fn read(flags: &mut Flags<'_>) -> Out {
            flags.value("out", "PATH", "");
            flags.positional();
            Out
        }
    }

    fn run(arguments: &[&str]) -> Result<Vec<String>, String> {
        let command = Command::new("plan")
            .args(flags::declare::<ModeFlags>())
            .args(flags::declare::<VariableFlags>())
            .args(flags::declare::<OperationFlags>())
            .args(flags::declare::<Out>());
        let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
        normalise(&command, &[("generate-config-out", "it comes later.")], &arguments)
            .map(|list| list[1..].to_vec())
            .map_err(|e| e.detail)
    }

    #[test]
    fn one_dash_or_two_and_values_behind_either() {
        assert_eq!(
            run(&["-out=p", "--out", "q", "-var", "a=b=c"]).unwrap(),
            ["--out=p", "--out=q", "--var=a=b=c"]
        );
    }

    #[test]
    fn switches_take_no_following_argument() {
        assert_eq!(
            run(&["-refresh=F", "-destroy", "x", "-out=p"]).unwrap(),
            ["--refresh=false", "--destroy=true", "--", "x", "-out=p"]
        );
    }

    #[test]
    fn flags_end_at_two_dashes() {
        assert_eq!(run(&["-destroy", "--", "-x"]).unwrap(), ["--destroy=true", "--", "-x"]);
        assert_eq!(run(&["-"]).unwrap(), ["--", "-"]);
    }

    #[test]
    fn usage_errors_name_flags_with_one_dash() {
        assert_eq!(run(&["--foo"]).unwrap_err(), "flag provided but not defined: -foo");
        assert_eq!(
            run(&["-taget=x"]).unwrap_err(),
            "flag provided but not defined: -taget. Did you mean -target?"
        );
        assert_eq!(
            run(&["-chdir=d"]).unwrap_err(),
            "flag provided but not defined: -chdir. It is a global option, which goes before the command: -chdir=d plan"
        );
        assert_eq!(run(&["-out"]).unwrap_err(), "flag needs an argument: -out");
        assert_eq!(
            run(&["-refresh=x"]).unwrap_err(),
            "invalid boolean value \"x\" for -refresh: parse error"
        );
        assert_eq!(run(&["-refresh=changed"]).unwrap(), ["--refresh=changed"]);
        assert_eq!(run(&["-refresh=older-than=90m"]).unwrap(), ["--refresh=older-than=90m"]);
        for wrong in [
            "-refresh=older-than",
            "-refresh=older-than=",
            "-refresh=older-than=0s",
            "-refresh=older-than=1",
        ] {
            assert!(run(&[wrong]).unwrap_err().contains("such as 30m"), "{wrong}");
        }
        assert_eq!(
            run(&["-parallelism=x"]).unwrap_err(),
            "invalid value \"x\" for flag -parallelism: parse error"
        );
        assert_eq!(run(&["-parallelism=0"]).unwrap(), ["--parallelism=0"]);
        assert_eq!(run(&["-parallelism=auto,aws=3"]).unwrap(), ["--parallelism=auto,aws=3"]);
        assert!(run(&["-parallelism=aws=x"]).unwrap_err().contains("is no limit"));
        assert!(run(&["-parallelism=-1"]).unwrap_err().contains("the value -1"));
        assert_eq!(
            run(&["-lock-timeout=5"]).unwrap_err(),
            "invalid value \"5\" for flag -lock-timeout: parse error"
        );
        assert_eq!(run(&["-=x"]).unwrap_err(), "bad flag syntax: -=x");
        assert!(
            run(&["-generate-config-out=f"])
                .unwrap_err()
                .contains("it comes later.")
        );
    }
}
