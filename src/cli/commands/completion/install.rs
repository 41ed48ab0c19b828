//! `-install-autocomplete` and `-uninstall-autocomplete`: a line in the startup files of shells.

use std::path::{Path, PathBuf};

use files::{Policy, io_reason};
use syntax::Diagnostic;

use super::Shell;
use crate::outcome::{Failure, Outcome};
use crate::session::Surroundings;

/// Comment that marks the line in a startup file as written by this program.
const MARK: &str = "# completion, by -install-autocomplete";

/// Returns the startup file of a shell, below the home directory: the first candidate that exists. For fish, it is a file of its own
/// below the configuration directory. `None` if there is no such file or directory.
fn file(shell: Shell, home: &Path, command: &str) -> Option<PathBuf> {
    let candidates: &[&str] = match shell {
        Shell::Bash => &[".bashrc", ".bash_profile"],
        Shell::Zsh => &[".zshrc"],
        Shell::Fish => &[".config/fish"],
    };
    let found = candidates
        .iter()
        .map(|name| home.join(name))
        .find(|path| path.exists())?;
    Some(match shell {
        Shell::Fish => found.join("completions").join(format!("{command}.fish")),
        Shell::Bash | Shell::Zsh => found,
    })
}

/// Returns the line for a shell. It checks for the program first, so that a shell starts without errors after the program was
/// removed.
fn own_line(shell: Shell, command: &str) -> String {
    let name = shell.name();
    match shell {
        Shell::Bash | Shell::Zsh => {
            format!("command -v {command} >/dev/null && source <({command} completion {name})  {MARK}")
        }
        Shell::Fish => format!("command -q {command}; and {command} completion fish | source  {MARK}"),
    }
}

/// Returns true if `-install-autocomplete` has written this line, for the current name of the program.
fn is_own(line: &str, command: &str) -> bool {
    line.ends_with(MARK) && (line.contains(&format!("<({command} ")) || line.contains(&format!("and {command} ")))
}

/// Adds the line to the startup files of the user's shells.
pub fn install(surroundings: &Surroundings) -> Result<Outcome, Failure> {
    let command = surroundings.ui.program.command;
    let changed = change(surroundings, |text, shell| {
        if text.lines().any(|line| is_own(line, command)) {
            return None;
        }
        let mut text = text.to_owned();
        // If the setting were appended to a last line without a line break, it would become a part of that
        // line.
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Some(format!("{text}{}\n", own_line(shell, command)))
    });
    report(
        changed,
        "Completion is installed in",
        "It takes effect in shells that are started from now on.",
    )
}

/// Removes the line from the startup files of the user's shells.
pub fn uninstall(surroundings: &Surroundings) -> Result<Outcome, Failure> {
    let command = surroundings.ui.program.command;
    let changed = change(surroundings, |text, _| {
        let kept: Vec<&str> = text
            .split_inclusive('\n')
            .filter(|line| !is_own(line.trim_end(), command))
            .collect();
        let kept = kept.concat();
        (kept != text).then_some(kept)
    });
    report(changed, "Completion is taken out of", "")
}

/// Files that were changed, and those that needed no change.
struct Changed {
    changed: Vec<PathBuf>,
    unchanged: Vec<PathBuf>,
}

/// Changes the startup files of the user's shells. `change` returns `None` if there is nothing to do.
fn change(surroundings: &Surroundings, change: impl Fn(&str, Shell) -> Option<String>) -> Result<Changed, Diagnostic> {
    let failed = |why: String| Diagnostic::error("Completion not changed", why);
    let home = surroundings.env.home();
    let home = home.ok_or_else(|| failed("The environment has no HOME.".to_owned()))?;
    let mut all = Changed {
        changed: Vec::new(),
        unchanged: Vec::new(),
    };
    for shell in Shell::ALL {
        let Some(path) = file(shell, &home, surroundings.ui.program.command) else {
            continue;
        };
        let unwritable = |e: std::io::Error| {
            failed(format!(
                "The file {} cannot be changed: {}.",
                path.display(),
                io_reason(&e)
            ))
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(unwritable(e)),
        };
        let Some(new) = change(&text, shell) else {
            all.unchanged.push(path);
            continue;
        };
        // The file for fish belongs to this program only, unlike those of the other shells.
        if new.is_empty() && shell == Shell::Fish {
            std::fs::remove_file(&path).map_err(unwritable)?;
        } else {
            if let Some(dir) = path.parent() {
                std::fs::create_dir_all(dir).map_err(unwritable)?;
            }
            files::replace(&path, new.as_bytes(), Policy::SHARED).map_err(unwritable)?;
        }
        all.changed.push(path);
    }
    if all.changed.is_empty() && all.unchanged.is_empty() {
        return Err(failed(format!(
            "There is no .bashrc, .zshrc or .config/fish in {}. Make the one of your shell, or see \"{} completion -help\".",
            home.display(),
            surroundings.ui.program.command
        )));
    }
    Ok(all)
}

fn report(changed: Result<Changed, Diagnostic>, done: &str, hint: &str) -> Result<Outcome, Failure> {
    let changed = changed?;
    let mut outcome = Outcome::success();
    for path in &changed.changed {
        outcome = outcome.and_line(format!("{done} {}.", path.display()));
    }
    if changed.changed.is_empty() {
        let paths: Vec<String> = changed.unchanged.iter().map(|p| p.display().to_string()).collect();
        outcome = outcome.and_line(format!("Nothing to do in {}.", paths.join(", ")));
    } else if !hint.is_empty() {
        outcome = outcome.and_line(hint);
    }
    Ok(outcome)
}
