//! Table of the commands, each of which has a file, and their dispatch.

mod apply;
mod command_line;
mod completion;
mod console;
mod destroy;
mod docs;
mod doctor;
mod examples;
mod explain;
mod fmt;
mod force_unlock;
mod get;
mod graph;
mod help;
mod import;
mod init;
mod listening;
mod login;
mod logout;
pub(crate) mod man;
mod metadata;
mod modules;
mod output;
pub(crate) mod overview;
mod pack;
pub(crate) mod plan;
mod provider;
mod providers;
mod query;
mod questions;
mod refresh;
mod review;
mod self_check;
mod show;
mod state;
mod taint;
pub(crate) mod test;
pub(crate) mod validate;
mod version;
mod workspace;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use addrs::Program;
use addrs::program::Mode;
use files::io_reason;
use hosted::RemoteVersion;
use packages::cli_config::CliConfig;
use syntax::{Diagnostic, SourceMap};
use views::diagnostics;
use views::json;
use views::plan::{Form, Format, Shown, Verbosity};
use views::stream::Stream;
use views::ui::Ui;

use self::command_line::Parsed;
use self::questions::{approval, confirmed, unanswered};
use crate::args::groups::VariableFlags;
use crate::args::{self, Refused, UsageError, flags};
use crate::env::Env;
use crate::outcome::{Failure, Outcome, Part, Status};
use crate::session::{Session, Surroundings};
use crate::{Invocation, json_into, logging, panics, process, spans};
use files::Environment;

/// Placeholder in `details` for the name by which the program was called.
const PROGRAM: &str = "{program}";

pub struct Command {
    /// Words of the command, such as `state list`.
    path: &'static str,
    /// One-line description.
    about: &'static str,
    /// Positional arguments in the usage line.
    positional: &'static str,
    /// Description in the command's own help text.
    details: &'static str,
    /// Returns the declarations of the command's arguments.
    declare: fn() -> Vec<clap::Arg>,
    /// Flags of other commands that this command rejects with an explanation.
    refused: &'static [Refused],
    /// Parses the arguments from clap's matches, and runs the command.
    run: fn(&Session, &clap::ArgMatches) -> Result<Outcome, Failure>,
}

impl Command {
    fn declared(&self, program: Program) -> clap::Command {
        let name = self.path.rsplit(' ').next().unwrap_or(self.path);
        clap::Command::new(name)
            .about(self.details.replace(PROGRAM, program.command))
            .disable_help_flag(true)
            .disable_version_flag(true)
            .arg(flags::no_color())
            .args((self.declare)().into_iter().map(|argument| {
                // Some flags are declared by a group of flags, and are refused by this command nevertheless.
                let refused = self.refused.iter().any(|(name, _)| argument.get_long() == Some(name));
                argument.hide(refused)
            }))
    }
}

/// Commands whose `-json` is a stream of events.
const STREAMING: &[&str] = &[
    "plan",
    "apply",
    "destroy",
    "refresh",
    "init",
    "query",
    "test",
    "provider test",
];

/// Commands whose standard output is a result that scripts capture. With `-json`, this holds for every command.
const CAPTURED: &[&str] = &[
    "console",
    "docs",
    "explain",
    "graph",
    "metadata functions",
    "modules",
    "output",
    "providers",
    "providers schema",
    "show",
    "state diff",
    "state history",
    "state identities",
    "state list",
    "state pull",
    "state query",
    "state show",
    "version",
    "workspace list",
    "workspace show",
];

/// Returns true if `-json` is set. This must be known before the arguments are parsed, since usage errors are then written as JSON,
/// too.
fn wants_json(arguments: &[String]) -> bool {
    let flags = arguments.iter().take_while(|a| *a != "--");
    let value = |a: &String| {
        let flag = a.strip_prefix("--").or_else(|| a.strip_prefix('-'))?;
        match flag.split_once('=') {
            None => (flag == "json").then_some(true),
            Some((name, value)) => (name == "json").then(|| gotext::boolean(value).unwrap_or_default()),
        }
    };
    flags.filter_map(value).last().unwrap_or_default()
}

const COMMANDS: &[&Command] = &[
    &init::COMMAND,
    &import::COMMAND,
    &validate::COMMAND,
    &plan::COMMAND,
    &apply::COMMAND,
    &completion::COMMAND,
    &console::COMMAND,
    &destroy::COMMAND,
    &docs::COMMAND,
    &doctor::COMMAND,
    &explain::COMMAND,
    &fmt::COMMAND,
    &force_unlock::COMMAND,
    &get::COMMAND,
    &graph::COMMAND,
    &help::COMMAND,
    &login::COMMAND,
    &logout::COMMAND,
    &metadata::FUNCTIONS,
    &modules::COMMAND,
    &modules::MIRROR,
    &output::COMMAND,
    &pack::COMMAND,
    &pack::UNPACK,
    &provider::CHECK,
    &provider::DOCS,
    &provider::NEW,
    &provider::RELEASE,
    &provider::TEST,
    &providers::COMMAND,
    &providers::LOCK,
    &providers::MIRROR,
    &providers::SCHEMA,
    &providers::SERVE,
    &query::COMMAND,
    &refresh::COMMAND,
    &self_check::COMMAND,
    &show::COMMAND,
    &state::DIFF,
    &state::HISTORY,
    &state::IDENTITIES,
    &state::LIST,
    &state::MV,
    &state::PULL,
    &state::PUSH,
    &state::QUERY,
    &state::REPLACE_PROVIDER,
    &state::RESTORE,
    &state::RM,
    &state::SERVE,
    &state::SHOW,
    &taint::TAINT,
    &taint::UNTAINT,
    &test::COMMAND,
    &version::COMMAND,
    &workspace::DELETE,
    &workspace::LIST,
    &workspace::NEW,
    &workspace::SELECT,
    &workspace::SHOW,
    &workspace::ENV_DELETE,
    &workspace::ENV_LIST,
    &workspace::ENV_NEW,
    &workspace::ENV_SELECT,
];

/// Runs the command that the arguments name. Returns the exit status.
pub fn run(invocation: Invocation) -> Status {
    let env = Env::from(Environment::read(invocation.environment));
    let mode = Mode::current();
    let program = Program::called_as(&invocation.called_as, mode);
    // Completion comes first: it must be fast, and must not log or print anything else.
    if let Some(line) = completion::line(&env) {
        return complete(
            invocation.builtins,
            env,
            &Arc::new(Ui::process(true, false).named(program)),
            &line,
        );
    }
    // Colours and the live area are control sequences, both of which -no-color excludes.
    let early = |no_color: bool| Ui::process(no_color || env.no_color(), !no_color && env.progress()).named(program);
    let mut arguments = Vec::new();
    for argument in invocation.args {
        match argument.into_string() {
            Ok(text) => arguments.push(text),
            Err(bad) => {
                early(false).err(format!("The argument {bad:?} is not valid Unicode text.\n"));
                return 1;
            }
        }
    }
    let log_problems = logging::start(&env);
    tracing::info!(
        version = crate::VERSION,
        core = crate::core_version(),
        called_as = program.command,
        "started"
    );
    // A mount namespace must be created before other threads exist.
    #[cfg(target_os = "linux")]
    plugins::private_tmp::mount_if_needed(process::working_dir);
    let paths: Vec<&str> = COMMANDS.iter().map(|command| command.path).collect();
    let parsed = match Parsed::new(&arguments, &env, &paths) {
        Ok(parsed) => parsed,
        Err(message) => {
            early(false).err(format!("{message}\n"));
            return 1;
        }
    };
    let ui = Arc::new(early(parsed.no_color));
    for problem in log_problems {
        ui.err(format!("{problem}\n"));
    }
    panics::command(&parsed.path);
    tracing::info!(command = parsed.path, arguments = ?logging::arguments(&parsed.arguments), "command");
    let tracer = spans::start(&env);
    let status = spans::whole(tracer.as_deref(), program, || {
        start(invocation.builtins, env, parsed, (&ui, tracer.as_ref()))
    });
    match ui.write_error() {
        Some(error) => unwritten(&ui, &error, status),
        None => status,
    }
}

/// Prints the completion candidates for a line, in the directory of its -chdir.
fn complete(builtins: packages::builtin::Builtins, env: Env, ui: &Arc<Ui>, line: &str) -> Status {
    let moved = completion::directory(line).map_or(Ok(()), |dir| process::change_dir(Path::new(&dir)));
    let Ok(working_dir) = moved.and_then(|()| process::working_dir()) else {
        return 0;
    };
    let surroundings = Surroundings::new(ui.clone(), env, builtins, CliConfig::default(), working_dir);
    let session = Session::new(surroundings, crate::session::Invocation::default());
    let status = session.render(completion::candidates(&session, line));
    ui.flush();
    status
}

/// Exit status that shells report for a program that was killed by SIGPIPE.
const BROKEN_PIPE: Status = 141;

/// Reports that standard output is incomplete, and returns the exit status. If the reader has ended (as `head` does), nothing
/// is reported.
fn unwritten(ui: &Ui, error: &std::io::Error, status: Status) -> Status {
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        return if status == 0 { BROKEN_PIPE } else { status };
    }
    let why = io_reason(error);
    let problem = Diagnostic::error(
        "Failed to write output",
        format!("Standard output cannot be written: {why}. What this command has printed is not complete."),
    );
    let layout = diagnostics::Layout {
        style: ui.err_style(),
        width: ui.err_width(),
        plain: ui.plain,
    };
    ui.err(diagnostics::format(&problem, &SourceMap::default(), layout));
    1
}

fn start(
    mut builtins: packages::builtin::Builtins,
    env: Env,
    parsed: Parsed,
    (ui, tracer): (&Arc<Ui>, Option<&Arc<traces::Tracer>>),
) -> Status {
    builtins.carried = packages::packed::Carried::by(&builtins.executable, &env);
    let (cli_config, mut problems) = CliConfig::load_with(&env, &builtins.carried);
    problems.extend(env.problems());
    if !problems.is_empty() {
        ui.err("There are some problems with the CLI configuration:\n");
        let layout = diagnostics::Layout {
            style: ui.err_style(),
            width: ui.err_width(),
            plain: ui.plain,
        };
        for problem in &problems {
            ui.err(diagnostics::format(problem, &SourceMap::default(), layout));
        }
        if problems.has_errors() {
            // Invalid settings have their defaults, so the command can run.
            ui.err(format!(
                "\nAs a result of the above problems, {} may not behave as intended.\n\n",
                ui.program.tool
            ));
        }
    }
    let original_dir = process::working_dir().unwrap_or_else(|_| PathBuf::from("."));
    let original_dir = system::paths::with_slashes(system::Os::CURRENT, original_dir);
    if let Some(dir) = &parsed.chdir
        && let Err(e) = process::change_dir(dir)
    {
        ui.err(format!(
            "Error handling -chdir option: chdir {}: {}\n",
            dir.display(),
            io_reason(&e)
        ));
        return 1;
    }
    let working_dir = process::working_dir().unwrap_or_else(|_| original_dir.clone());
    let mut surroundings = Surroundings {
        original_dir,
        cli_problems: problems,
        tracer: tracer.cloned(),
        ..Surroundings::new(ui.clone(), env, builtins, cli_config, working_dir)
    };
    surroundings.console.form = diagnostics::Form {
        compact: parsed.compact_warnings,
        separate_warnings: !parsed.view.consolidate_warnings,
        fold_errors: parsed.view.consolidate_errors,
        ..surroundings.console.form
    };
    surroundings.deprecations = parsed.view.deprecations;
    dispatch(surroundings, &parsed)
}

fn find(path: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|c| c.path == path).copied()
}

/// Returns the help page of a command, with its subcommands.
fn page(command: &Command, program: Program) -> String {
    let own = args::help::command(&args::help::Page {
        program: program.command,
        path: command.path,
        positional: command.positional,
        examples: examples::for_command(command.path),
        declared: &command.declared(program),
    });
    own + &overview::subcommands(command.path)
}

fn dispatch(surroundings: Surroundings, parsed: &Parsed) -> Status {
    let ui = surroundings.ui.clone();
    if parsed.version && !parsed.help {
        let json = parsed
            .arguments
            .iter()
            .any(|a| matches!(a.trim_start_matches('-'), "json" | "json=true"));
        return surroundings.render(version::outcome(&surroundings, json));
    }
    if let (Some(installed), false) = (parsed.completion, parsed.help) {
        let result = match installed {
            true => completion::install(&surroundings),
            false => completion::uninstall(&surroundings),
        };
        return surroundings.render(result.unwrap_or_else(Outcome::from));
    }
    // These are Terraform's exit statuses: 127 without a command, 0 with -help.
    if parsed.path.is_empty() {
        if let Some(flag) = parsed.arguments.first().filter(|_| !parsed.help) {
            ui.err(format!(
                "flag provided but not defined: {flag}{}\n\n{}",
                overview::nearest_global(flag),
                overview::general(ui.program.command)
            ));
            return 1;
        }
        ui.out(overview::general(ui.program.command));
        return if parsed.help { 0 } else { 127 };
    }
    let Some(command) = find(&parsed.path) else {
        let outcome = overview::unknown(&parsed.path, &parsed.arguments, parsed.help, ui.program);
        return surroundings.render(outcome);
    };
    if parsed.help {
        ui.out(page(command, ui.program));
        return 0;
    }
    let tracer = surroundings.tracer.clone();
    spans::command(tracer.as_deref(), command.path, || {
        run_command(surroundings, command, parsed)
    })
}

/// Parses the arguments of a command, runs it, and shows its outcome.
fn run_command(mut surroundings: Surroundings, command: &Command, parsed: &Parsed) -> Status {
    let as_json = wants_json(&parsed.arguments);
    if STREAMING.contains(&command.path) && as_json {
        surroundings.console.stream = Some(Arc::new(Stream::begin(surroundings.ui.clone())));
    }
    // With `-json`, or if a script captures the result, warnings go to standard error. On a terminal they need not: a person reads both
    // streams together.
    surroundings.console.form.beside_results =
        as_json || (CAPTURED.contains(&command.path) && !surroundings.ui.is_terminal());
    let matches = match matches(command, parsed, surroundings.ui.program) {
        Ok(matches) => matches,
        Err(error) => {
            let outcome = wrong_usage(&surroundings, command, error.into(), as_json);
            return surroundings.render(outcome);
        }
    };
    surroundings.console.form.compact |= flags::compact_warnings(&matches);
    let streams = STREAMING.contains(&command.path);
    if let Some(path) = flags::json_into(&matches)
        && let Err(failure) = json_into::begin(&mut surroundings, (command.path, streams), path, as_json)
    {
        let outcome = wrong_usage(&surroundings, command, failure, as_json);
        return surroundings.render(outcome);
    }
    if let Some(flag) = flags::for_people(&matches).filter(|_| as_json) {
        let failure = Failure::usage(
            "Incompatible options",
            format!(
                "The option -{flag} is about what people read. It cannot be used with -json, whose output is always the same."
            ),
        );
        let outcome = wrong_usage(&surroundings, command, failure, as_json);
        return surroundings.render(outcome);
    }
    let shown = match shown(&matches) {
        Ok(shown) => shown,
        Err(error) => {
            let outcome = wrong_usage(&surroundings, command, error.into(), as_json);
            return surroundings.render(outcome);
        }
    };
    // With Markdown, standard output contains only the document, so warnings go to standard error.
    surroundings.console.form.beside_results |= shown.format == Format::Markdown;
    if let Some(stream) = surroundings.stream.as_ref().filter(|_| flags::summary(&matches)) {
        stream.leave_out_objects();
    }
    let session = Session::new(surroundings, invocation(&matches, parsed, shown));
    let outcome = match (command.run)(&session, &matches) {
        Ok(outcome) => outcome,
        Err(failure) if failure.is_usage => wrong_usage(&session, command, failure, as_json),
        Err(failure) => failure.into(),
    };
    let status = session.render(outcome);
    json_into::end(&session, status)
}

fn matches(command: &Command, parsed: &Parsed, program: Program) -> Result<clap::ArgMatches, UsageError> {
    let declared = command.declared(program);
    let normal = args::normalise(&declared, command.refused, &parsed.arguments)?;
    declared.try_get_matches_from(normal).map_err(|e| {
        // All other errors were found by `normalise`; only unexpected arguments remain.
        UsageError::new(
            "Too many command line arguments",
            e.to_string().lines().next().unwrap_or_default(),
        )
    })
}

fn invocation(matches: &clap::ArgMatches, parsed: &Parsed, shown: Shown) -> crate::session::Invocation {
    crate::session::Invocation {
        typed: parsed.typed.clone(),
        variables: match matches.try_contains_id("var") {
            Ok(_) => flags::read::<VariableFlags>(matches).0,
            // The command has no such flags.
            Err(_) => Vec::new(),
        },
        remote_version: match flags::ignore_remote_version(matches) {
            None => RemoteVersion::Unimportant,
            Some(false) => RemoteVersion::Checked,
            Some(true) => RemoteVersion::Ignored,
        },
        shown,
        concise: flags::concise(matches) || shown.format == Format::Markdown,
        // Only commands with this flag ask.
        input: matches!(matches.try_get_one::<bool>("input"), Ok(Some(true))),
    }
}

/// Returns the display options of plans, states and outputs.
fn shown(matches: &clap::ArgMatches) -> Result<Shown, UsageError> {
    let shown = Shown {
        form: match flags::summary(matches) {
            true => Form::Summary,
            false => Form::Whole,
        },
        format: flags::plan_format(matches)?,
        verbosity: flags::verbosity(matches)?,
        sensitive: flags::show_sensitive(matches),
    };
    if shown.verbosity != Verbosity::Normal && (shown.form == Form::Summary || shown.format == Format::Markdown) {
        return Err(UsageError::new(
            "Incompatible options",
            "The option -verbosity is about the text of all changes. Leave out -summary and -format.",
        ));
    }
    Ok(shown)
}

fn wrong_usage(surroundings: &Surroundings, command: &Command, failure: Failure, as_json: bool) -> Outcome {
    let outcome = Outcome::from(failure);
    // Editors that run validate expect JSON even after an error.
    if command.path == "validate" && as_json {
        let document = json::diagnostics::validation(&outcome.problems(), &SourceMap::default());
        return Outcome::document(&document).with_status(outcome.status);
    }
    if surroundings.stream.is_some() {
        return outcome;
    }
    outcome.and(Part::Error(format!(
        "\nFor more help on using this command, run:\n  {} {} -help\n",
        surroundings.ui.program.command, command.path
    )))
}

fn no_positional(positional: &[String], what: &str) -> Result<(), UsageError> {
    if positional.is_empty() {
        return Ok(());
    }
    Err(UsageError::new(
        "Too many command line arguments",
        format!("To specify a working directory for the {what}, use the global -chdir flag."),
    ))
}

fn is_file(path: &str) -> bool {
    Path::new(path).is_file()
}

/// Returns the clap declaration of a command, for tests of the guides.
#[cfg(test)]
pub(crate) fn declared(path: &str) -> Option<clap::Command> {
    find(path).map(|command| command.declared(Program::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_can_be_declared() {
        for command in COMMANDS {
            command.declared(Program::default()).debug_assert();
        }
    }
}
