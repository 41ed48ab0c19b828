//! Overviews: the help of the whole program and of families of commands, and errors for unknown commands.

use addrs::Program;
use syntax::content::{did_you_mean, suggest};
use views::wrap::wrap;

use super::{COMMANDS, Command};
use crate::guide::TOPICS;
use crate::outcome::{Failure, Outcome};
use crate::{TERRAFORM_VERSION, VERSION};

/// Commands that only have subcommands.
const FAMILIES: &[(&str, &str)] = &[
    ("metadata", "Metadata related commands"),
    ("provider", "Tools for authors of providers"),
    ("state", "Advanced state management"),
    ("workspace", "Workspace management"),
];

/// Family of the old workspace commands, which only its own help shows.
const HIDDEN: (&str, &str) = ("env", "Old name of the workspace commands");

/// Commands by purpose. Those of the usual workflow come first, in its order.
const GROUPS: &[(&str, &[&str])] = &[
    ("Main commands", &["init", "validate", "plan", "apply", "destroy"]),
    (
        "Configuration",
        &["console", "explain", "fmt", "get", "graph", "modules", "query", "test"],
    ),
    (
        "State",
        &[
            "force-unlock",
            "import",
            "output",
            "refresh",
            "show",
            "state",
            "taint",
            "untaint",
            "workspace",
        ],
    ),
    ("Providers", &["metadata", "pack", "provider", "providers", "unpack"]),
    ("Credentials", &["login", "logout"]),
    (
        "This program",
        &["completion", "docs", "doctor", "help", "self-check", "version"],
    ),
];

/// Global options, with descriptions.
pub const GLOBALS: &[(&str, &str)] = &[
    (
        "-chdir=DIR",
        "Change to this directory before anything else is done, as if the program had been started there.",
    ),
    ("-help", "Print this text, or the help of the command that follows."),
    ("-version", "An alias for the \"version\" subcommand."),
    (
        "-consolidate-warnings=BOOL",
        "Show similar warnings as one; true if not set. Like the next two options, it can stand anywhere.",
    ),
    (
        "-consolidate-errors=BOOL",
        "Show similar errors as one; false if not set.",
    ),
    (
        "-deprecation=module:LEVEL",
        "Modules whose deprecated variables and outputs cause warnings: \"all\", those with \"local\" sources, or \"none\".",
    ),
    (
        "-install-autocomplete",
        "Have the shells that you use complete commands and their arguments.",
    ),
    ("-uninstall-autocomplete", "Take that back."),
];

/// Returns the global options in the form that completion inserts, with descriptions.
pub fn global_flags() -> impl Iterator<Item = (String, &'static str)> {
    GLOBALS.iter().map(|(flag, about)| {
        let end = flag.find('=').map_or(flag.len(), |at| at + 1);
        (flag[..end].to_owned(), *about)
    })
}

/// Suggests a global option, like `. Did you mean -chdir=?`; empty if none is similar.
pub fn nearest_global(flag: &str) -> String {
    let name = flag.trim_start_matches('-').split('=').next().unwrap_or_default();
    let known: Vec<String> = global_flags().map(|(flag, _)| flag).collect();
    let names = known.iter().map(|flag| flag.trim_matches(['-', '=']));
    let near = suggest(name, names).and_then(|near| known.iter().find(|flag| flag.trim_matches(['-', '=']) == near));
    near.map_or_else(String::new, |near| format!(". Did you mean {near}?"))
}

/// Formats two columns: names and descriptions.
fn columns(indent: &str, rows: &[(&str, &str)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    rows.iter()
        .map(|(name, about)| format!("{indent}{name:width$}  {about}\n"))
        .collect()
}

/// Returns the direct subcommands of a command.
pub fn below(path: &str) -> Vec<&'static Command> {
    let prefix = format!("{path} ");
    COMMANDS
        .iter()
        .copied()
        .filter(|c| c.path.strip_prefix(&*prefix).is_some_and(|rest| !rest.contains(' ')))
        .collect()
}

/// Returns the first words of all commands with descriptions, sorted by name, without old names.
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

/// Returns the words of all commands and families, without old names.
pub fn paths() -> impl Iterator<Item = &'static str> {
    let commands = COMMANDS.iter().map(|c| c.path).filter(|path| !is_hidden(path));
    commands.chain(FAMILIES.iter().map(|(name, _)| *name))
}

/// Returns true if a command is an old name, which is not shown.
pub fn is_hidden(path: &str) -> bool {
    path.starts_with("env ")
}

/// Returns the help of the whole program.
pub fn general(command: &str) -> String {
    let all = top();
    // All groups have the same column width.
    let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut out = format!(
        "Usage: {command} [global options] <subcommand> [args]\n\nMonoform {VERSION}: compatible with Terraform \
         {TERRAFORM_VERSION}, plugins included.\n"
    );
    for (title, names) in GROUPS {
        out.push_str(&format!("\n{title}:\n"));
        let rows = names.iter().filter_map(|name| all.iter().find(|(n, _)| n == name));
        for (name, about) in rows {
            out.push_str(&format!("  {name:width$}  {about}\n"));
        }
    }
    out.push_str(&format!("\nGuides ({command} help TOPIC):\n"));
    let topics: Vec<(&str, &str)> = TOPICS.iter().map(|topic| (topic.name, topic.about)).collect();
    out.push_str(&columns("  ", &topics));
    out.push_str("\nGlobal options (use these before the subcommand, if any):\n");
    let width = GLOBALS.iter().map(|(flag, _)| flag.len()).max().unwrap_or_default();
    for (flag, about) in GLOBALS {
        for (i, line) in wrap(about, 76 - width).iter().enumerate() {
            let flag = if i == 0 { flag } else { "" };
            out.push_str(&format!("  {flag:width$}  {line}\n"));
        }
    }
    out.push_str(&format!(
        "\nThe options of a command, with examples: {command} <subcommand> -help\n"
    ));
    out
}

/// Returns the list of subcommands in the help of a command.
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

/// Returns the help of a family of commands; `None` for other words.
pub fn family(path: &str, command: &str) -> Option<String> {
    let (_, about) = FAMILIES.iter().chain([&HIDDEN]).find(|(name, _)| *name == path)?;
    Some(format!(
        "Usage: {command} [global options] {path} <subcommand> [options] [args]\n\n  {about}.\n{}\nTo see the options of a \
         subcommand, run:\n  {command} {path} <subcommand> -help\n",
        subcommands(path)
    ))
}

pub fn unknown(path: &str, arguments: &[String], help: bool, program: Program) -> Outcome {
    let Program { tool, command } = program;
    if let Some(mut text) = family(path, command) {
        if help {
            return Outcome::text(text);
        }
        if let Some(word) = arguments.first().filter(|word| !word.starts_with('-')) {
            let names = below(path).into_iter().map(|c| &c.path[path.len() + 1..]);
            let hint = did_you_mean(suggest(word, names));
            text.push_str(&format!("\nThere is no command \"{path} {word}\".{hint}\n"));
        }
        // As in Terraform, a family without a subcommand shows its help and fails.
        return Outcome::from(1).and_text(text);
    }
    let names = top().into_iter().map(|(name, _)| name);
    let hint = did_you_mean(suggest(path, names));
    Failure::text(format!(
        "{tool} has no command named \"{path}\".{hint}\n\nTo see all of {tool}'s top-level commands, run:\n  {command} -help\n\n"
    ))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        grouped.sort_unstable();
        let all: Vec<&str> = top().into_iter().map(|(name, _)| name).collect();
        assert_eq!(grouped, all);
    }

    #[test]
    fn lines_fit_a_terminal() {
        for line in general("monoform").lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
