//! The flags commands share, declared once.

use std::time::Duration;

use clap::{Arg, ArgAction, Command};

/// A command with the flags that all have.
#[must_use]
pub fn command(name: &'static str, about: &'static str) -> Command {
    let command = Command::new(name)
        .about(about)
        .disable_help_flag(true)
        .disable_version_flag(true);
    command.arg(switch(
        "no-color",
        false,
        "If specified, output won't contain any color.",
    ))
}

/// A flag that is true or false. The help of one that is true by default says what it does when it is false, since that is
/// how it is written.
#[must_use]
pub fn switch(name: &'static str, default: bool, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .help(help)
        .num_args(0..=1)
        .require_equals(true)
        .action(ArgAction::Set)
        .overrides_with(name)
        .default_value(if default { "true" } else { "false" })
        .value_parser(clap::value_parser!(bool))
}

/// Whether a flag is true or false.
#[must_use]
pub fn is_switch(arg: &Arg) -> bool {
    arg.is_require_equals_set()
}

/// A flag with a value; the last one counts.
#[must_use]
pub fn value(name: &'static str, placeholder: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(placeholder)
        .help(help)
        .action(ArgAction::Set)
        .overrides_with(name)
        .allow_hyphen_values(true)
}

/// A flag with a value that may be given many times.
#[must_use]
pub fn values(name: &'static str, placeholder: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(placeholder)
        .help(help)
        .action(ArgAction::Append)
        .allow_hyphen_values(true)
}

/// Positional arguments, at least and at most so many.
#[must_use]
pub fn positional(command: Command, name: &'static str) -> Command {
    command.arg(
        Arg::new(name)
            .num_args(0..)
            .action(ArgAction::Append)
            .allow_hyphen_values(true),
    )
}

/// Checks the form of a value that is not any text.
pub fn check(arg: &Arg, text: &str) -> Result<(), &'static str> {
    let fits = match arg.get_id().as_str() {
        "parallelism" => text.parse::<i64>().is_ok(),
        "lock-timeout" => duration(text).is_some(),
        _ => true,
    };
    if fits { Ok(()) } else { Err("parse error") }
}

/// What to plan, and with which values.
#[must_use]
pub fn planning(command: Command) -> Command {
    variables(modes(command))
}

/// What kind of plan.
#[must_use]
pub fn modes(command: Command) -> Command {
    let command = command
        .arg(switch(
            "destroy",
            false,
            "Plan to destroy all objects that the configuration manages.",
        ))
        .arg(switch(
            "refresh-only",
            false,
            "Plan only to update the state to what the objects are now.",
        ))
        .arg(switch(
            "refresh",
            true,
            "Plan with the state as it is, without reading the objects first.",
        ))
        .arg(values(
            "replace",
            "ADDRESS",
            "Replace this resource instance in any case. May be given many times.",
        ));
    targeting(command)
}

/// Which part of the configuration.
#[must_use]
pub fn targeting(command: Command) -> Command {
    command
        .arg(values(
            "target",
            "ADDRESS",
            "Work only on this module or resource, and what it depends on. May be given many times.",
        ))
        .arg(values(
            "target-file",
            "PATH",
            "The same for each address in this file, one a line; # begins a comment.",
        ))
        .arg(values(
            "exclude",
            "ADDRESS",
            "Leave out this module or resource, and what depends on it. May be given many times.",
        ))
        .arg(values(
            "exclude-file",
            "PATH",
            "The same for each address in this file, one a line; # begins a comment.",
        ))
}

/// The values of the root module's input variables.
#[must_use]
pub fn variables(command: Command) -> Command {
    command
        .arg(values(
            "var",
            "'NAME=VALUE'",
            "Set the value of an input variable. May be given many times.",
        ))
        .arg(values(
            "var-file",
            "PATH",
            "Read the values of input variables from this file. May be given many times.",
        ))
}

/// How to work.
#[must_use]
pub fn operation(command: Command) -> Command {
    locking(command)
        .arg(value("parallelism", "N", "How many operations may run at a time.").default_value("10"))
        .arg(switch(
            "input",
            true,
            "Do not ask for values of variables that are missing.",
        ))
        .arg(switch(
            "json",
            false,
            "Tell what goes on as JSON, one object a line, and ask nothing.",
        ))
        .arg(switch(
            "compact-warnings",
            false,
            "Show warnings that are not accompanied by errors by their summaries only.",
        ))
}

/// Locking.
#[must_use]
pub fn locking(command: Command) -> Command {
    command
        .arg(switch(
            "lock",
            true,
            "Work without holding the state's lock: dangerous if others may work on the same state.",
        ))
        .arg(
            value(
                "lock-timeout",
                "DURATION",
                "How long to try again for the lock, such as 30s.",
            )
            .default_value("0s"),
        )
}

/// Where a local state is, for commands that write it.
#[must_use]
pub fn local_state(command: Command) -> Command {
    command
        .arg(value(
            "state",
            "PATH",
            "The state file to read, in place of the working directory's.",
        ))
        .arg(value("state-out", "PATH", "The state file to write, if it is another."))
        .arg(value(
            "backup",
            "PATH",
            "Where to keep a copy of the state as it was; \"-\" for no copy.",
        ))
}

/// A length of time as Go writes it: `300ms`, `1m30s`, `1.5h`, `0`.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .filter(|n| *n > 0)?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        rest = &rest[end..];
        total += number * unit;
    }
    let time = Duration::try_from_secs_f64(total).ok()?;
    Some(if negative { Duration::ZERO } else { time })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_as_go_writes_them() {
        for (text, millis) in [
            ("0", 0),
            ("0s", 0),
            ("1m30s", 90_000),
            ("1.5h", 5_400_000),
            ("300ms", 300),
            ("-5s", 0),
        ] {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "5", "s", "1x", "1s2", "-"] {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }
}
