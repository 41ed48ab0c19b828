//! Flags, each declared and read by one call.
//!
//! A struct of arguments implements [`FromFlags`]: its `read` calls [`Flags`] once for each flag. The same function runs twice:
//! to declare the flags to clap, and to read their values from clap's matches. The name of a flag is therefore written once, and
//! commands use fields of their struct.

use clap::{Arg, ArgAction, ArgMatches};
use views::plan::{Format, Verbosity};

use crate::args::UsageError;

const POSITIONAL: &str = "args";

/// Arguments of a command, or a group of flags that several commands have.
pub trait FromFlags: Sized {
    /// Reads each flag by one call of a method of `flags`, in the order of the help text.
    fn read(flags: &mut Flags<'_>) -> Self;
}

/// One pass over the flags of a command. It either declares them to clap or reads their values; [`FromFlags::read`] works the same for
/// both.
#[derive(Debug)]
pub struct Flags<'m>(Pass<'m>);

#[derive(Debug)]
enum Pass<'m> {
    Declare(Vec<Arg>),
    Read(&'m ArgMatches),
}

/// Returns the declarations of the arguments of a command.
#[must_use]
pub fn declare<A: FromFlags>() -> Vec<Arg> {
    let mut flags = Flags(Pass::Declare(Vec::new()));
    A::read(&mut flags);
    match flags.0 {
        Pass::Declare(declared) => declared,
        Pass::Read(_) => Vec::new(),
    }
}

/// Returns the arguments of a command, from clap's matches for the arguments of [`declare`].
#[must_use]
pub fn read<A: FromFlags>(matches: &ArgMatches) -> A {
    A::read(&mut Flags(Pass::Read(matches)))
}

impl<'m> Flags<'m> {
    /// In the declaring pass, records the declaration and returns `None`. In the reading pass, returns clap's matches.
    fn pass(&mut self, declaration: impl FnOnce() -> Arg) -> Option<&'m ArgMatches> {
        match &mut self.0 {
            Pass::Declare(declared) => {
                declared.push(declaration());
                None
            }
            Pass::Read(matches) => Some(matches),
        }
    }

    /// Declares or reads a boolean flag. If the default is true, the help text describes the effect of false, since
    /// users write the flag only for that.
    pub fn switch(&mut self, name: &'static str, default: bool, help: &'static str) -> bool {
        self.explicit_switch(name, default, help).unwrap_or(default)
    }

    /// Declares or reads a boolean flag; `None` if it is not among the arguments.
    pub fn explicit_switch(&mut self, name: &'static str, default: bool, help: &'static str) -> Option<bool> {
        let matches = self.pass(|| switch(name, default, help))?;
        let explicit = matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine);
        matches
            .try_get_one::<bool>(name)
            .ok()
            .flatten()
            .copied()
            .filter(|_| explicit)
    }

    /// Declares or reads a boolean flag that also takes keywords after `=`, such as `-auto-approve=safe`. Returns its value as typed, or
    /// "false" if the flag is not set.
    pub fn switch_with_words(&mut self, name: &'static str, placeholder: &'static str, help: &'static str) -> String {
        self.words(name, "false", placeholder, help)
    }

    /// Like [`Flags::switch_with_words`], with another default.
    pub fn words(
        &mut self,
        name: &'static str,
        default: &'static str,
        placeholder: &'static str,
        help: &'static str,
    ) -> String {
        let declaration = || {
            switch(name, default == "true", help)
                .value_name(placeholder)
                .value_parser(clap::value_parser!(String))
        };
        let found = self
            .pass(declaration)
            .and_then(|matches| matches.try_get_one::<String>(name).ok().flatten().cloned());
        found.unwrap_or_else(|| default.to_owned())
    }

    /// Declares or reads a flag with a value; `None` if it is not set. The last occurrence counts.
    pub fn value(&mut self, name: &'static str, placeholder: &'static str, help: &'static str) -> Option<String> {
        let matches = self.pass(|| value(name, placeholder, help))?;
        matches.try_get_one::<String>(name).ok().flatten().cloned()
    }

    /// Declares or reads a flag with a value that has a default.
    pub fn value_or(
        &mut self,
        name: &'static str,
        placeholder: &'static str,
        default: &'static str,
        help: &'static str,
    ) -> String {
        let found = self
            .pass(|| value(name, placeholder, help).default_value(default))
            .and_then(|matches| matches.try_get_one::<String>(name).ok().flatten().cloned());
        found.unwrap_or_else(|| default.to_owned())
    }

    /// Declares or reads a flag with a value that may occur many times.
    pub fn values(&mut self, name: &'static str, placeholder: &'static str, help: &'static str) -> Vec<String> {
        let indexed = self.indexed_values(name, placeholder, help).into_iter();
        indexed.map(|(_, value)| value).collect()
    }

    /// Declares or reads a flag that may occur many times. Each value has its index among all arguments.
    pub fn indexed_values(
        &mut self,
        name: &'static str,
        placeholder: &'static str,
        help: &'static str,
    ) -> Vec<(usize, String)> {
        let Some(matches) = self.pass(|| valued(name, placeholder, help).action(ArgAction::Append)) else {
            return Vec::new();
        };
        let indices = matches.indices_of(name).into_iter().flatten();
        indices.zip(many(matches, name)).collect()
    }

    /// Declares or reads the positional arguments. The command checks their number.
    pub fn positional(&mut self) -> Vec<String> {
        let declaration = || {
            Arg::new(POSITIONAL)
                .num_args(0..)
                .action(ArgAction::Append)
                // A value may begin with a hyphen; `normalise` has put all flags before "--".
                .allow_hyphen_values(true)
        };
        self.pass(declaration)
            .map(|matches| many(matches, POSITIONAL))
            .unwrap_or_default()
    }
}

fn many(matches: &ArgMatches, name: &str) -> Vec<String> {
    let values = matches.try_get_many::<String>(name).ok().flatten();
    values.map(|values| values.cloned().collect()).unwrap_or_default()
}

/// Declares `-no-color`, which every command has. The command line is searched for it before the command is known.
#[must_use]
pub fn no_color() -> Arg {
    switch("no-color", false, "If specified, output won't contain any color.")
}

const SUMMARY: &str = "summary";

const SHOW_SENSITIVE: &str = "show-sensitive";

const CONCISE: &str = "concise";

const FORMAT: &str = "format";

const VERBOSITY: &str = "verbosity";

const COMPACT_WARNINGS: &str = "compact-warnings";

const JSON_INTO: &str = "json-into";

/// Name of the flag `-ignore-remote-version` of commands that write states without a plan. Its value is in the session.
pub const IGNORE_REMOTE_VERSION: &str = "ignore-remote-version";

impl Flags<'_> {
    /// Declares `-compact-warnings`, whose value is in the session: see [`compact_warnings`].
    pub fn compact_warnings(&mut self, help: &'static str) {
        self.switch(COMPACT_WARNINGS, false, help);
    }

    /// Declares `-summary` and `-verbosity` of a command that shows a plan, whose values are in the session: see [`summary`] and
    /// [`verbosity`].
    pub fn summary(&mut self) {
        self.switch(
            SUMMARY,
            false,
            "Show of the plan only what is replaced and destroyed, and counts of the rest by module and type.",
        );
        self.value_or(
            VERBOSITY,
            "LEVEL",
            "normal",
            "Extent of the plan: \"brief\" for one line an object, with the attributes that change or force its replacement; \"normal\"; \
             \"full\" with unchanged attributes. On a terminal, \"normal\" shows of long texts what differs.",
        );
    }

    /// Declares `-format` of a command that shows a plan, whose value is in the session: see [`plan_format`].
    pub fn plan_format(&mut self) {
        self.value_or(
            FORMAT,
            "FORMAT",
            "text",
            "Show the plan as \"text\", or as \"markdown\" for a comment on a pull request: at most 60,000 bytes.",
        );
    }

    /// Declares `-show-sensitive` of a command that shows values, whose value is in the session: see [`show_sensitive`].
    pub fn show_sensitive(&mut self) {
        self.switch(
            SHOW_SENSITIVE,
            false,
            "Show sensitive values, which are hidden otherwise. They are then wherever the output goes.",
        );
    }

    /// Declares `-concise` of a command that reports progress, whose value is in the session: see [`concise`].
    pub fn concise(&mut self) {
        self.switch(
            CONCISE,
            false,
            "Leave out the lines on what begins, goes on and is complete, such as \"Refreshing state...\".",
        );
    }

    /// Declares `-json-into`, whose value is in the session: see [`json_into`].
    pub fn json_into(&mut self) {
        self.value(
            JSON_INTO,
            "PATH",
            "Write JSON into this file, beside the text: what -json would print, or the messages as a stream. The file is \
             private to you, and is replaced.",
        );
    }

    /// Declares `-json` of a command that prints a stream. It takes effect before flags are parsed, since mistakes in them are
    /// reported in the stream.
    pub fn json_stream(&mut self) {
        self.switch(
            "json",
            false,
            "Tell what goes on as JSON, one object a line, and ask nothing.",
        );
    }
}

/// Returns the value of `-json-into`; `None` if the flag is not set, or the command does not have it.
#[must_use]
pub fn json_into(matches: &ArgMatches) -> Option<&str> {
    matches
        .try_get_one::<String>(JSON_INTO)
        .ok()
        .flatten()
        .map(String::as_str)
}

/// Returns true if `-compact-warnings` is set; false for commands without the flag.
#[must_use]
pub fn compact_warnings(matches: &ArgMatches) -> bool {
    is_set(matches, COMPACT_WARNINGS)
}

/// Returns true if `-summary` is set; false for commands without the flag.
#[must_use]
pub fn summary(matches: &ArgMatches) -> bool {
    is_set(matches, SUMMARY)
}

/// Returns the value of `-verbosity`: how much of a plan is shown.
///
/// # Errors
/// The level is unknown.
pub fn verbosity(matches: &ArgMatches) -> Result<Verbosity, UsageError> {
    let text = matches.try_get_one::<String>(VERBOSITY).ok().flatten();
    match text.map(String::as_str) {
        None | Some("normal") => Ok(Verbosity::Normal),
        Some("brief") => Ok(Verbosity::Brief),
        Some("full") => Ok(Verbosity::Full),
        Some(other) => Err(UsageError::new(
            "Invalid verbosity",
            format!("There is no level \"{other}\". The option -verbosity takes \"brief\", \"normal\" or \"full\"."),
        )),
    }
}

/// Returns the plan format that `-format` selects. Commands without this flag, and commands whose `-format` is not about plans, use
/// text.
///
/// # Errors
/// The format is unknown.
pub fn plan_format(matches: &ArgMatches) -> Result<Format, UsageError> {
    // Only commands that show plans have both of these flags.
    let has_plan = matches.try_contains_id(SUMMARY).is_ok();
    let text = matches
        .try_get_one::<String>(FORMAT)
        .ok()
        .flatten()
        .filter(|_| has_plan);
    match text.map(String::as_str) {
        None | Some("text") => Ok(Format::Text),
        Some("markdown") => Ok(Format::Markdown),
        Some(other) => Err(UsageError::new(
            "Invalid format",
            format!("There is no format \"{other}\". The option -format takes \"text\" or \"markdown\"."),
        )),
    }
}

/// Returns true if `-show-sensitive` is set; false for commands without the flag.
#[must_use]
pub fn show_sensitive(matches: &ArgMatches) -> bool {
    is_set(matches, SHOW_SENSITIVE)
}

/// Returns true if `-concise` is set; false for commands without the flag.
#[must_use]
pub fn concise(matches: &ArgMatches) -> bool {
    is_set(matches, CONCISE)
}

/// Returns the first flag that is set and affects only human-readable output, such as `-concise`. Together with `-json`, it is an error.
#[must_use]
pub fn for_people(matches: &ArgMatches) -> Option<&'static str> {
    let markdown = plan_format(matches) == Ok(Format::Markdown);
    let other = verbosity(matches).is_ok_and(|level| level != Verbosity::Normal);
    [SHOW_SENSITIVE, CONCISE]
        .into_iter()
        .find(|name| is_set(matches, name))
        .or(markdown.then_some(FORMAT))
        .or(other.then_some(VERBOSITY))
}

fn is_set(matches: &ArgMatches, name: &str) -> bool {
    matches.try_get_one::<bool>(name).ok().flatten() == Some(&true)
}

/// Returns the value of `-ignore-remote-version`; `None` for commands without the flag.
#[must_use]
pub fn ignore_remote_version(matches: &ArgMatches) -> Option<bool> {
    matches
        .try_get_one::<bool>(IGNORE_REMOTE_VERSION)
        .ok()
        .flatten()
        .copied()
}

fn switch(name: &'static str, default: bool, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .help(help)
        .num_args(0..=1)
        .require_equals(true)
        .action(ArgAction::Set)
        // A flag may be repeated, for example in TF_CLI_ARGS; the last one counts.
        .overrides_with(name)
        .default_value(if default { "true" } else { "false" })
        .value_parser(clap::value_parser!(bool))
}

/// Returns true if a flag is boolean.
#[must_use]
pub fn is_switch(arg: &Arg) -> bool {
    arg.is_require_equals_set()
}

/// Returns true if a boolean flag also takes keywords (see [`Flags::switch_with_words`]).
#[must_use]
pub fn takes_words(arg: &Arg) -> bool {
    is_switch(arg) && arg.get_value_names().is_some()
}

/// Returns the declaration of a flag with a value. Callers add what happens if the flag is repeated: the last value counts, or all do.
fn valued(name: &'static str, placeholder: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(placeholder)
        .help(help)
        // A value such as that of -var may begin with a hyphen.
        .allow_hyphen_values(true)
}

fn value(name: &'static str, placeholder: &'static str, help: &'static str) -> Arg {
    valued(name, placeholder, help)
        .action(ArgAction::Set)
        .overrides_with(name)
}
