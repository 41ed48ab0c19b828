//! The command line before the command is known: global options, the words of the command, and arguments from the environment.

use std::path::PathBuf;

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
    /// Installs completion in the shells' files, or removes it from them.
    pub completion: Option<bool>,
    /// Writes no control sequences.
    pub no_color: bool,
    /// Shows warnings by their summaries only.
    pub compact_warnings: bool,
    /// Words of the command, separated by blanks.
    pub path: String,
    /// Arguments of the command, with those of the environment.
    pub arguments: Vec<String>,
    /// Complete command line, as typed.
    pub typed: Vec<String>,
}

/// Reason why a command line cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum CommandLineError {
    #[error("Invalid -chdir option: must include an equals sign followed by a directory path, like -chdir=example")]
    Chdir,
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
                    _ => break,
                },
            }
            rest.next();
        }
        let mut rest: Vec<String> = rest.cloned().collect();
        if let Some(first) = rest.first().filter(|a| !a.starts_with('-')).cloned() {
            rest.remove(0);
            parsed.path = first;
            // The longest sequence of words that is a command, or begins one.
            while let Some(next) = rest.first() {
                let longer = format!("{} {next}", parsed.path);
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
        // As in Terraform, these words have their meaning everywhere, even after positional arguments, and are no arguments of
        // the command.
        let before = all.len();
        all.retain(|a| a != "-no-color");
        parsed.no_color |= all.len() < before;
        let before = all.len();
        all.retain(|a| a != "-compact-warnings");
        parsed.compact_warnings = all.len() < before;
        // These flags count everywhere.
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
