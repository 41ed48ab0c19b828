//! What there is: the help of the whole program, of families of commands, and for commands that do not exist.

use syntax::content::{did_you_mean, suggest};

use super::{COMMANDS, Command};
use crate::program;
use crate::session::{Session, Status};
use crate::{TERRAFORM_VERSION, VERSION};

/// Commands that do nothing by themselves, and have others below them.
const FAMILIES: &[(&str, &str)] = &[
    ("metadata", "Metadata related commands"),
    ("state", "Advanced state management"),
    ("workspace", "Workspace management"),
];

/// The family of old names: it works, and is shown nowhere but in its own help.
const HIDDEN: (&str, &str) = ("env", "Old name of the workspace commands");

/// The commands of the primary workflow, in its order.
const MAIN: &[&str] = &["init", "validate", "plan", "apply", "destroy"];

/// Two columns: names, and what they stand for.
fn columns(indent: &str, rows: &[(&str, &str)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    rows.iter()
        .map(|(name, about)| format!("{indent}{name:width$}  {about}\n"))
        .collect()
}

/// The commands directly below one.
pub fn below(path: &str) -> Vec<&'static Command> {
    let prefix = format!("{path} ");
    COMMANDS
        .iter()
        .copied()
        .filter(|c| c.path.strip_prefix(&*prefix).is_some_and(|rest| !rest.contains(' ')))
        .collect()
}

/// The first words of all commands with what they are for, in the order of their names; old names are left out.
pub fn top() -> Vec<(&'static str, &'static str)> {
    let mut all: Vec<(&str, &str)> = COMMANDS
        .iter()
        .filter(|c| !c.path.contains(' '))
        .map(|c| (c.path, c.about))
        .chain(FAMILIES.iter().copied())
        .collect();
    all.sort_unstable();
    all
}

/// The usage of the whole program.
pub fn general() -> String {
    let command = program::command();
    let all = top();
    let find = |name: &&str| all.iter().find(|(n, _)| n == name).copied();
    let main: Vec<_> = MAIN.iter().filter_map(find).collect();
    let rest: Vec<_> = all.iter().copied().filter(|(n, _)| !MAIN.contains(n)).collect();
    // Both groups are aligned as one.
    let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let list = |rows: &[(&str, &str)]| -> String {
        rows.iter()
            .map(|(name, about)| format!("  {name:width$}  {about}\n"))
            .collect()
    };
    format!(
        "Usage: {command} [global options] <subcommand> [args]\n\nMonoform {VERSION}: compatible with Terraform \
         {TERRAFORM_VERSION}, plugins included.\n\nThe commands of the usual workflow come first, then all others.\n\nMain commands:\n{}\nAll other \
         commands:\n{}\nGlobal options (use these before the subcommand, if any):\n{}",
        list(&main),
        list(&rest),
        columns(
            "  ",
            &[
                (
                    "-chdir=DIR",
                    "Change to this directory before anything else is done, as"
                ),
                ("", "if the program had been started there."),
                ("-help", "Print this text, or the help of the command that follows."),
                ("-version", "An alias for the \"version\" subcommand."),
            ]
        )
    )
}

/// What stands below a command in its help.
pub fn subcommands(path: &str) -> String {
    let rows: Vec<(&str, &str)> = below(path)
        .iter()
        .map(|c| (&c.path[path.len() + 1..], c.about))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("\nSubcommands:\n{}", columns("    ", &rows))
}

/// The usage of a family; `None` for what is none.
fn family(path: &str) -> Option<String> {
    let (_, about) = FAMILIES.iter().chain([&HIDDEN]).find(|(name, _)| *name == path)?;
    Some(format!(
        "Usage: {command} [global options] {path} <subcommand> [options] [args]\n\n  {about}.\n{}\nTo see the options of a \
         subcommand, run:\n  {command} {path} <subcommand> -help\n",
        subcommands(path),
        command = program::command()
    ))
}

/// The error for an unknown command.
pub fn unknown(session: &Session, path: &str, arguments: &[String], help: bool) -> Status {
    let command = program::command();
    if let Some(mut text) = family(path) {
        if help {
            session.ui.out(text);
            return 0;
        }
        if let Some(word) = arguments.first().filter(|word| !word.starts_with('-')) {
            let names = below(path).into_iter().map(|c| &c.path[path.len() + 1..]);
            let hint = did_you_mean(suggest(word, names));
            text.push_str(&format!("\nThere is no command \"{path} {word}\".{hint}\n"));
        }
        session.ui.out(text);
        return 1;
    }
    let names = top().into_iter().map(|(name, _)| name);
    let hint = did_you_mean(suggest(path, names));
    session.ui.err(format!(
        "{tool} has no command named \"{path}\".{hint}\n\nTo see all of {tool}'s top-level commands, run:\n  {command} -help\n\n",
        tool = program::tool()
    ));
    1
}
