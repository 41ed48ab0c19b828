//! The command line before the command is known: global options, the words of the command, and arguments from the environment.

use std::path::PathBuf;

use addrs::program::Mode;
use engine::inputs::ModuleDeprecations;

use crate::args::words;
use crate::env::Env;

/// Parsed global options, command and arguments.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parsed {
    /// Directory of `-chdir`.
    pub chdir: Option<PathBuf>,
    /// True if help is requested.
    pub help: bool,
    /// True if the version is requested.
    pub version: bool,
    /// `-install-autocomplete` (true) or `-uninstall-autocomplete` (false).
    pub completion: Option<bool>,
    /// True for output without control sequences (`-no-color`).
    pub no_color: bool,
    /// Shows warnings by their summaries only.
    pub compact_warnings: bool,
    /// Values of `-consolidate-warnings`, `-consolidate-errors` and `-deprecation`.
    pub view: ViewFlags,
    /// Words of the command, separated by blanks.
    pub path: String,
    /// Arguments of the command, including those of `TF_CLI_ARGS`.
    pub arguments: Vec<String>,
    /// Complete command line, as typed.
    pub typed: Vec<String>,
}

/// Flags of OpenTofu about diagnostics. Like `-no-color`, they are recognized in any position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ViewFlags {
    /// Folds similar warnings into one.
    pub consolidate_warnings: bool,
    /// Folds similar errors into one.
    pub consolidate_errors: bool,
    /// Modules whose deprecations are warned about.
    pub deprecations: ModuleDeprecations,
}

impl Default for ViewFlags {
    fn default() -> ViewFlags {
        ViewFlags {
            consolidate_warnings: true,
            consolidate_errors: false,
            deprecations: ModuleDeprecations::All,
        }
    }
}

impl ViewFlags {
    /// Takes the flags out of the arguments. The last value of each counts.
    fn take(&mut self, arguments: &mut Vec<String>) -> Result<(), CommandLineError> {
        let mut failed = None;
        arguments.retain(|argument| match self.read(argument) {
            Ok(taken) => !taken,
            Err(error) => {
                failed.get_or_insert(error);
                true
            }
        });
        failed.map_or(Ok(()), Err)
    }

    /// Reads an argument; returns true if it is one of these flags.
    fn read(&mut self, argument: &str) -> Result<bool, CommandLineError> {
        let Some(flag) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else {
            return Ok(false);
        };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, None),
        };
        let switch = match name {
            "consolidate-warnings" => &mut self.consolidate_warnings,
            "consolidate-errors" => &mut self.consolidate_errors,
            "deprecation" => {
                self.deprecations = match value.and_then(|value| value.strip_prefix("module:")) {
                    Some("none") => ModuleDeprecations::None,
                    Some("local") => ModuleDeprecations::Local,
                    // As in OpenTofu, an unknown level means all modules.
                    Some(_) => ModuleDeprecations::All,
                    None => return Err(CommandLineError::Deprecation),
                };
                return Ok(true);
            }
            _ => return Ok(false),
        };
        *switch = match value {
            None => true,
            Some(value) => gotext::boolean(value).ok_or_else(|| CommandLineError::Switch {
                name: name.to_owned(),
                value: value.to_owned(),
            })?,
        };
        Ok(true)
    }
}

/// Reason why a command line cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum CommandLineError {
    #[error("Invalid -chdir option: must include an equals sign followed by a directory path, like -chdir=example")]
    Chdir,
    #[error("Invalid -deprecation option: must be -deprecation=module:LEVEL, with the level all, local or none")]
    Deprecation,
    #[error("Invalid -{name} option: \"{value}\" is neither true nor false")]
    Switch { name: String, value: String },
    /// Invalid quoting in an environment variable.
    #[error("Error parsing extra CLI args from {name}: {why}")]
    Extra { name: String, why: &'static str },
}

impl Parsed {
    /// Reads a command line and the arguments that the environment adds. `commands` are the words of each command.
    ///
    /// # Errors
    /// An option before the command lacks its value, or the arguments from the environment have invalid quoting.
    pub fn new(arguments: &[String], env: &Env, commands: &[&str]) -> Result<Parsed, CommandLineError> {
        let mut parsed = Parsed {
            typed: arguments.to_vec(),
            ..Parsed::default()
        };
        let mut rest = arguments.iter().peekable();
        while let Some(argument) = rest.peek() {
            let flag = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'));
            let Some(flag) = flag else { break };
            match flag.split_once('=') {
                Some(("chdir", dir)) if !dir.is_empty() => parsed.chdir = Some(dir.into()),
                _ if flag == "chdir" || flag == "chdir=" => {
                    return Err(CommandLineError::Chdir);
                }
                _ => match flag {
                    "help" | "h" => parsed.help = true,
                    "version" | "v" => parsed.version = true,
                    "no-color" => parsed.no_color = true,
                    "install-autocomplete" => parsed.completion = Some(true),
                    "uninstall-autocomplete" => parsed.completion = Some(false),
                    _ if Mode::current().has_opentofu() && parsed.view.read(argument)? => {}
                    _ => break,
                },
            }
            rest.next();
        }
        let mut rest: Vec<String> = rest.cloned().collect();
        if let Some(first) = rest.first().filter(|a| !a.starts_with('-')).cloned() {
            rest.remove(0);
            parsed.path = first;
            // Takes the longest sequence of words that is a command or the beginning of one.
            while let Some(next) = rest.first() {
                let longer = format!("{} {}", parsed.path, renamed(&parsed.path, next));
                if !commands
                    .iter()
                    .any(|path| *path == longer || path.starts_with(&format!("{longer} ")))
                {
                    break;
                }
                parsed.path = longer;
                rest.remove(0);
            }
        }
        let mut all = Vec::new();
        if !parsed.path.is_empty() {
            for (name, value) in env.arguments(&parsed.path) {
                let Some(value) = value else { continue };
                let more = words::split(value).map_err(|why| CommandLineError::Extra { name, why })?;
                all.extend(more);
            }
        }
        // The environment's arguments come first, so that typed flags override them.
        all.append(&mut rest);
        // As in Terraform, these flags are recognized in any position, even after positional arguments. The command does not see them.
        let before = all.len();
        all.retain(|a| a != "-no-color");
        parsed.no_color |= all.len() < before;
        let before = all.len();
        all.retain(|a| a != "-compact-warnings");
        parsed.compact_warnings = all.len() < before;
        if Mode::current().has_opentofu() {
            parsed.view.take(&mut all)?;
        }
        // These flags, too, are recognized in any position.
        let is = |argument: &String, names: [&str; 2]| {
            let flag = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'));
            flag.is_some_and(|f| names.contains(&f))
        };
        parsed.version |= all.iter().any(|a| is(a, ["version", "v"]));
        let flags_end = all.iter().position(|a| a == "--").unwrap_or(all.len());
        parsed.help |= all[..flags_end].iter().any(|a| is(a, ["help", "h"]));
        parsed.no_color |= all[..flags_end].iter().any(|a| {
            let flag = a.strip_prefix("--").or_else(|| a.strip_prefix('-')).unwrap_or_default();
            flag == "no-color" || flag.strip_prefix("no-color=").and_then(gotext::boolean) == Some(true)
        });
        parsed.arguments = all;
        Ok(parsed)
    }
}

/// Translates OpenTofu's synonyms of subcommands, such as `ls` for `list`.
fn renamed<'n>(family: &str, name: &'n str) -> &'n str {
    match (family, name) {
        ("state", other) if !Mode::current().has_opentofu() => other,
        ("state", "ls") => "list",
        ("state", "move") => "mv",
        ("state", "remove") => "rm",
        (_, other) => other,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use files::Environment;

    use super::*;

    const COMMANDS: &[&str] = &["plan", "show", "state list", "workspace new"];

    fn strings(arguments: &[&str]) -> Vec<String> {
        arguments.iter().map(|a| (*a).to_owned()).collect()
    }

    fn parse(arguments: &[&str], environment: &[(&str, &str)]) -> Parsed {
        let env = Env::from(Environment::read(
            environment.iter().map(|(k, v)| (OsString::from(k), OsString::from(v))),
        ));
        Parsed::new(&strings(arguments), &env, COMMANDS).unwrap()
    }

    #[test]
    fn names_of_opentofu_mean_the_same_commands() {
        let parsed = parse(&["state", "ls", "a"], &[("TF_CLI_ARGS_state_list", "-state=x")]);
        assert_eq!(parsed.path, "state list");
        assert_eq!(parsed.arguments, ["-state=x", "a"]);
        // Only `state` has this synonym; after `show`, the word is an argument.
        assert_eq!(parse(&["show", "ls"], &[]).arguments, ["ls"]);
    }

    #[test]
    fn flags_about_diagnostics_are_taken_from_anywhere() {
        let parsed = parse(
            &[
                "-consolidate-errors",
                "plan",
                "x",
                "-consolidate-warnings=false",
                "-deprecation=module:local",
            ],
            &[],
        );
        assert_eq!(parsed.path, "plan");
        assert_eq!(parsed.arguments, ["x"]);
        let expected = ViewFlags {
            consolidate_warnings: false,
            consolidate_errors: true,
            deprecations: ModuleDeprecations::Local,
        };
        assert_eq!(parsed.view, expected);
    }

    #[test]
    fn the_environment_adds_arguments_behind_the_command() {
        let parsed = parse(
            &["-chdir=x", "state", "list", "a"],
            &[
                ("TF_CLI_ARGS", "-general"),
                ("TF_CLI_ARGS_state_list", "-specific '-q w'"),
            ],
        );
        assert_eq!(parsed.path, "state list");
        assert_eq!(parsed.arguments, ["-specific", "-q w", "-general", "a"]);
        assert_eq!(parsed.chdir, Some("x".into()));
    }

    #[test]
    fn help_and_version_count_anywhere() {
        assert!(parse(&["-help", "plan"], &[]).help);
        assert!(parse(&["plan", "-out=x", "-h"], &[]).help);
        assert!(!parse(&["plan", "--", "-h"], &[]).help);
        assert!(parse(&["plan", "--", "-v"], &[]).version);
        assert!(parse(&["plan", "-no-color"], &[]).no_color);
        assert!(!parse(&["plan", "-no-colour"], &[]).no_color);
        assert!(!parse(&["plan", "-no-color=0"], &[]).no_color);
    }

    #[test]
    fn two_words_are_taken_out_wherever_they_are() {
        let parsed = parse(
            &["workspace", "new", "w", "-no-color", "--", "-compact-warnings"],
            &[("TF_CLI_ARGS", "-lock=false")],
        );
        assert!(parsed.no_color && parsed.compact_warnings);
        assert_eq!(parsed.arguments, ["-lock=false", "w", "--"]);
        let parsed = parse(&["show", "p"], &[("TF_CLI_ARGS", "-no-color")]);
        assert!(parsed.no_color && !parsed.compact_warnings);
    }

    #[test]
    fn chdir_needs_a_directory() {
        let env = Env::default();
        assert!(Parsed::new(&strings(&["-chdir", "x", "plan"]), &env, COMMANDS).is_err());
    }
}
