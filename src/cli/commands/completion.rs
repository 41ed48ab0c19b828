//! Completion for shells: with `COMP_LINE` in the environment, the candidates for its last word are printed and nothing else
//! is done. `complete -C monoform monoform` in a bash, and the like in others, makes use of it.

use super::{COMMANDS, Command, find, overview};
use crate::args::flags::is_switch;
use crate::backend::Local;
use crate::backend::record::Record;

/// The part of the line before the cursor, if this run is for completion.
pub fn line(env: &crate::env::Env) -> Option<String> {
    let line = env.get("COMP_LINE")?;
    let end = env.get("COMP_POINT").and_then(|p| p.parse().ok()).unwrap_or(line.len());
    Some(line.get(..end).unwrap_or(line).to_owned())
}

/// The workspaces of the working directory, of the backend that the last `init` recorded, or else of the local one.
pub fn workspaces(env: &crate::env::Env) -> Vec<String> {
    let record = Record::read(env.data_dir()).unwrap_or_default();
    let local = match record.backend {
        None => Some(Local::default()),
        // No request is made for a completion.
        Some(saved) => saved.local(),
    };
    local.and_then(|local| local.workspaces().ok()).unwrap_or_default()
}

/// The candidates, one a line. `workspaces` are the names there are.
#[must_use]
pub fn candidates(line: &str, workspaces: &[String]) -> String {
    let mut words: Vec<&str> = line.split_whitespace().skip(1).collect();
    let last = if line.ends_with(char::is_whitespace) || words.is_empty() {
        ""
    } else {
        words.pop().unwrap_or_default()
    };
    let mut found: Vec<String> = of_word(&words, last, workspaces);
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|c| c + "\n").collect()
}

fn of_word(words: &[&str], last: &str, workspaces: &[String]) -> Vec<String> {
    let mut rest = words.iter().copied().skip_while(|w| w.starts_with('-')).peekable();
    let mut path = String::new();
    while let Some(word) = rest.peek() {
        let longer = if path.is_empty() {
            (*word).to_owned()
        } else {
            format!("{path} {word}")
        };
        let known = |c: &&Command| c.path == longer || c.path.starts_with(&format!("{longer} "));
        if !COMMANDS.iter().any(known) {
            break;
        }
        path = longer;
        rest.next();
    }
    let starting = |all: Vec<&str>| -> Vec<String> {
        all.into_iter()
            .filter(|c| c.starts_with(last))
            .map(ToOwned::to_owned)
            .collect()
    };
    if path.is_empty() {
        if rest.peek().is_some() {
            return Vec::new();
        }
        return if last.starts_with('-') {
            starting(vec!["-chdir=", "-help", "-version"])
        } else {
            starting(overview::top().into_iter().map(|(name, _)| name).collect())
        };
    }
    let arguments: Vec<&str> = rest.collect();
    let command = find(&path);
    if last.starts_with('-') {
        return command.map(|command| flags(command, last)).unwrap_or_default();
    }
    let first = arguments.iter().all(|argument| argument.starts_with('-'));
    if first && matches!(&*path, "workspace select" | "workspace delete") {
        let names = workspaces.iter().map(String::as_str);
        return starting(names.collect());
    }
    if arguments.is_empty() {
        let below = overview::below(&path).into_iter();
        return starting(below.map(|c| &c.path[path.len() + 1..]).collect());
    }
    Vec::new()
}

/// The flags of a command that begin so, or the values of one that is true or false.
fn flags(command: &Command, last: &str) -> Vec<String> {
    let declared = command.declared();
    let name = last.trim_start_matches('-');
    if let Some((name, value)) = name.split_once('=') {
        // Shells take what follows the sign for a word of its own.
        let switch = declared.get_arguments().find(|a| a.get_long() == Some(name));
        return match switch.is_some_and(is_switch) {
            true => ["true", "false"]
                .into_iter()
                .filter(|c| c.starts_with(value))
                .map(ToOwned::to_owned)
                .collect(),
            false => Vec::new(),
        };
    }
    let dashes = &last[..last.len() - name.len()];
    declared
        .get_arguments()
        .filter_map(clap::Arg::get_long)
        .filter(|long| long.starts_with(name))
        // A value may follow as a word of its own, and shells put a blank behind what they complete.
        .map(|long| format!("{dashes}{long}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Vec<String> {
        candidates(line, &["default".into(), "staging".into()])
            .lines()
            .map(ToOwned::to_owned)
            .collect()
    }

    #[test]
    fn commands_and_their_subcommands() {
        assert_eq!(of("monoform pl"), ["plan"]);
        assert_eq!(of("monoform -chdir=x va"), ["validate"]);
        assert_eq!(of("monoform state s"), ["show"]);
        assert_eq!(of("monoform providers "), ["lock", "mirror", "schema"]);
        assert!(of("monoform ").contains(&"workspace".to_owned()));
        assert!(!of("monoform ").contains(&"env".to_owned()));
        assert_eq!(of("monoform workspace select s"), ["staging"]);
        assert_eq!(of("monoform workspace delete -force "), ["default", "staging"]);
        assert!(of("monoform nonsense ").is_empty());
    }

    #[test]
    fn flags_and_truth_values() {
        assert_eq!(of("monoform plan -detailed"), ["-detailed-exitcode"]);
        assert_eq!(of("monoform plan -o"), ["-out"]);
        assert_eq!(of("monoform plan --refresh-o"), ["--refresh-only"]);
        assert_eq!(of("monoform plan -input="), ["false", "true"]);
        assert_eq!(of("monoform workspace new -st"), ["-state"]);
        assert!(of("monoform state -").is_empty());
    }
}
