//! Completion for shells.
//!
//! With `COMP_LINE` in the environment, the program only prints the candidates for the word at its end (or at `COMP_POINT`), one
//! a line, as bash's `complete -C` expects. The scripts of `completion SHELL` name their shell in `COMP_SHELL`: zsh and fish
//! quote candidates themselves, and display descriptions, which follow after a tab.

mod candidates;
mod install;
mod line;
mod live;

use syntax::content::{did_you_mean, suggest};

use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::Command;
use crate::env::Env;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

pub use install::{install, uninstall};

pub const COMMAND: Command = Command {
    path: "completion",
    about: "Print the completion script of a shell",
    positional: "SHELL",
    details: "Prints a script for bash, zsh or fish that completes commands, flags, workspaces, addresses, names and files. \
      Load it with source <({program} completion bash), or in fish with {program} completion fish | source. The global option \
      -install-autocomplete writes such a line into the shells' own files, and -uninstall-autocomplete takes it out.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            positional: flags.positional(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    const ALL: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

    fn name(self) -> &'static str {
        match self {
            Shell::Bash => "bash",
            Shell::Zsh => "zsh",
            Shell::Fish => "fish",
        }
    }

    fn named(name: &str) -> Option<Shell> {
        Shell::ALL.into_iter().find(|shell| shell.name() == name)
    }

    /// Returns the completion script of the shell, for the name that the program was called by.
    fn script(self, command: &str) -> String {
        let text = match self {
            Shell::Bash => include_str!("script.bash"),
            Shell::Zsh => include_str!("script.zsh"),
            Shell::Fish => include_str!("script.fish"),
        };
        text.replace("PROGRAM", command)
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let shell = match &arguments.positional[..] {
        [name] => Shell::named(name),
        _ => None,
    };
    let Some(shell) = shell else {
        let written = arguments.positional.first().map_or("", String::as_str);
        let hint = did_you_mean(suggest(written, Shell::ALL.into_iter().map(Shell::name)));
        return Err(Failure::usage(
            "Invalid arguments",
            format!("The completion command expects the name of one shell: bash, zsh or fish.{hint}"),
        ));
    };
    Ok(Outcome::text(shell.script(session.ui.program.command)))
}

/// Returns the line up to the cursor, if this process was started for completion.
pub fn line(env: &Env) -> Option<String> {
    let line = env.get("COMP_LINE")?;
    let end = env.get("COMP_POINT").and_then(|p| p.parse().ok()).unwrap_or(line.len());
    Some(line.get(..end).unwrap_or(line).to_owned())
}

/// Returns the candidates for a line.
pub fn candidates(session: &Session, text: &str) -> Outcome {
    let shell = session
        .env
        .get("COMP_SHELL")
        .and_then(Shell::named)
        .unwrap_or(Shell::Bash);
    let line = line::Line::parse(text);
    let live = live::WorkingDirectory(session);
    let found = candidates::complete(&line, &live);
    Outcome::text(found.iter().map(|found| shown(found, &line, shell)).collect::<String>())
}

fn shown(found: &candidates::Candidate, line: &line::Line, shell: Shell) -> String {
    if shell != Shell::Bash {
        return match found.about.is_empty() {
            true => format!("{}\n", found.text),
            false => format!("{}\t{}\n", found.text, found.about),
        };
    }
    // bash replaces only a part of the word.
    let part = found.text.get(line.part..).unwrap_or_default();
    format!("{}\n", line::quoted(part, line.quote))
}

/// Returns the value of -chdir in a line, if it has this option.
pub fn directory(text: &str) -> Option<String> {
    let words = line::Line::parse(text).words;
    let globals = words.iter().take_while(|word| word.starts_with('-'));
    let value = |word: &String| {
        let flag = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
        flag.strip_prefix("chdir=").map(ToOwned::to_owned)
    };
    globals.filter_map(value).last()
}
