//! The commands: one file each, and the table that lists them.

mod apply;
mod force_unlock;
mod init;
mod operation;
mod output;
mod plan;
mod providers;
mod show;
mod state;
mod validate;
mod version;
pub mod workdir;

use std::sync::Arc;

use plugins::builtin::Builtins;
use plugins::cli_config::CliConfig;
use syntax::{Diagnostics, SourceMap};

use crate::args::Refused;
use crate::args::matches::Given;
use crate::env::Env;
use crate::ui::Ui;
use crate::views;

/// What every command is given.
pub struct App {
    /// The environment.
    pub env: Env,
    /// Where output goes.
    pub ui: Arc<Ui>,
    /// The plugins that are part of the executable.
    pub builtins: Builtins,
    /// The working directory before `-chdir`.
    pub cwd: String,
    /// The name the program was called by, for hints.
    pub program: &'static str,
    /// What the CLI configuration files say.
    pub cli_config: CliConfig,
}

impl App {
    /// Shows problems.
    pub fn report(&self, diagnostics: &Diagnostics, sources: &SourceMap, compact: bool) {
        views::diagnostics::show(&self.ui, diagnostics, sources, compact);
    }

    /// Shows problems that no file has anything to do with.
    pub fn complain(&self, diagnostics: impl Into<Diagnostics>) {
        self.report(&diagnostics.into(), &SourceMap::default(), false);
    }
}

/// A command.
pub struct Command {
    /// Its words: `plan`, `state list`.
    pub path: &'static str,
    /// What may follow the flags, for the usage text.
    pub positional: &'static str,
    /// Declares its flags.
    pub declare: fn() -> clap::Command,
    /// Flags that are known but not supported, and why.
    pub refused: &'static [Refused],
    /// Runs it; gives the exit status.
    pub run: fn(&App, &Given) -> u8,
}

/// Every command, in the order of the general help.
pub const COMMANDS: &[Command] = &[
    init::COMMAND,
    validate::COMMAND,
    plan::COMMAND,
    apply::APPLY,
    apply::DESTROY,
    apply::REFRESH,
    force_unlock::COMMAND,
    output::COMMAND,
    providers::SCHEMA,
    show::COMMAND,
    state::LIST,
    state::SHOW,
    version::COMMAND,
];

/// The command that arguments begin with, and the rest.
#[must_use]
pub fn find(args: &[String]) -> Option<(&'static Command, &[String])> {
    COMMANDS.iter().find_map(|command| {
        let words: Vec<&str> = command.path.split(' ').collect();
        let named = args.len() >= words.len() && words.iter().zip(args).all(|(word, arg)| word == arg);
        named.then(|| (command, &args[words.len()..]))
    })
}

/// Whether a word begins commands of several words.
#[must_use]
pub fn is_group(word: &str) -> bool {
    COMMANDS.iter().any(|c| c.path.strip_prefix(word).is_some_and(|rest| rest.starts_with(' ')))
}

fn listing(commands: impl Iterator<Item = &'static Command>) -> String {
    let mut out = String::new();
    for command in commands {
        let about = (command.declare)().get_about().map(ToString::to_string).unwrap_or_default();
        let first = about.split_inclusive(['.', '\n']).next().unwrap_or_default().trim().trim_end_matches('.').to_owned();
        out.push_str(&format!("  {:<18}  {first}\n", command.path));
    }
    out
}

/// The general help.
#[must_use]
pub fn usage(program: &str) -> String {
    format!(
        "Usage: {program} [global options] <subcommand> [args]\n\nThe available commands for execution are listed below.\n\n\
         Commands:\n{}\n\
         Global options (use these before the subcommand, if any):\n  \
         -chdir=DIR    Switch to a different working directory before executing the\n                given subcommand.\n  \
         -help         Show this help output, or the help for a specified subcommand.\n  \
         -version      An alias for the \"version\" subcommand.\n",
        listing(COMMANDS.iter())
    )
}

/// The help for commands that begin with a word.
#[must_use]
pub fn group_usage(program: &str, word: &str) -> String {
    let inside = COMMANDS.iter().filter(|c| c.path.strip_prefix(word).is_some_and(|rest| rest.starts_with(' ')));
    format!("Usage: {program} [global options] {word} <subcommand> [options] [args]\n\nSubcommands:\n{}", listing(inside))
}

/// The positional arguments, if there are no more than so many; else the usage error has been shown.
fn positional(app: &App, given: &Given, command: &str, most: usize) -> Option<Vec<String>> {
    let found = given.values("arguments");
    if found.len() <= most {
        return Some(found);
    }
    let detail = match most {
        0 => format!("The {command} command expects no positional arguments."),
        1 => format!("The {command} command expects at most one positional argument."),
        n => format!("The {command} command expects at most {n} positional arguments."),
    };
    app.complain(syntax::Diagnostic::error("Too many command line arguments", detail));
    app.ui.err(format!("\nFor more help on using this command, run:\n  {} {command} -help\n", app.program));
    None
}
