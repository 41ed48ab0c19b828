//! The command line: what people and scripts type, and what they are shown.
//!
//! Each command goes three steps: arguments as typed ([`args`], normalised from Go's rules), the working directory and
//! everything it says ([`commands::workdir`]), one call into the engine. What comes back becomes text ([`views`]) or JSON
//! ([`json`]). Nothing here decides anything about resources.
//!
//! Where to begin: [`main`], then the table in [`commands`]. Environment variables are read once, in [`env`]; everything
//! printed goes through [`ui`].

pub mod args;
pub mod commands;
pub mod env;
pub mod json;
pub mod logging;
pub mod planfile;
pub mod ui;
pub mod views;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use plugins::builtin::Builtins;
use plugins::cli_config::CliConfig;
use plugins::environment::Environment;
use syntax::SourceMap;

use crate::commands::{App, COMMANDS, Command};
use crate::env::Env;
use crate::ui::Ui;

/// The version of Terraform whose language, files and documents this program speaks. It rises when the language of a later
/// release is whole.
pub const ANSWERS_AS: &str = "1.11.4";
/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How the program was called.
pub struct Invocation {
    /// The plugins that are part of the executable.
    pub builtins: Builtins,
    /// The arguments, without the program's name.
    pub args: Vec<OsString>,
    /// Called by the name `terraform`, by a driver that expects its answers.
    pub as_terraform: bool,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
}

/// What stands before the command.
#[derive(Default)]
struct Global {
    chdir: Option<String>,
    help: bool,
}

/// Runs the command line.
#[must_use]
pub fn main(invocation: Invocation) -> ExitCode {
    let env = Env::read(invocation.environment);
    install_panic_message();
    let args: Vec<String> = invocation.args.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let no_color = args.iter().any(|a| matches!(&**a, "-no-color" | "--no-color" | "-no-color=true"));
    let ui = Arc::new(Ui::process(no_color));
    let program = if invocation.as_terraform { "terraform" } else { "monoform" };
    let status = run(invocation.builtins, args, env, ui.clone(), program);
    ui.flush();
    ExitCode::from(status)
}

fn run(builtins: Builtins, mut args: Vec<String>, env: Env, ui: Arc<Ui>, program: &'static str) -> u8 {
    for problem in logging::start(&env) {
        ui.err(format!("{problem}\n"));
    }
    let environment = Environment(env.all().clone());
    let (cli_config, problems) = CliConfig::load(&environment);
    if !problems.is_empty() {
        ui.err("There are some problems with the CLI configuration:\n");
        for problem in &problems {
            let layout = views::diagnostics::Layout { style: ui.err_style(), width: ui.err_width(), plain: ui.plain };
            ui.err(views::diagnostics::format(problem, &SourceMap::default(), layout));
        }
        if problems.has_errors() {
            return 1;
        }
    }
    // The version is asked for anywhere, even behind the command.
    if args.iter().any(|a| matches!(&**a, "-v" | "-version" | "--version")) {
        args = vec!["version".into()];
    }
    let cwd = std::env::current_dir().map(|d| d.to_string_lossy().into_owned()).unwrap_or_default();
    let global = match global(&mut args) {
        Ok(global) => global,
        Err(message) => {
            ui.err(format!("{message}\n"));
            return 1;
        }
    };
    if let Some(dir) = &global.chdir
        && let Err(error) = std::env::set_current_dir(dir)
    {
        ui.err(format!("Error handling -chdir option: {dir}: {error}\n"));
        return 1;
    }
    let app = App { env, ui, builtins, cwd, program, cli_config };
    let Some((command, rest)) = commands::find(&args) else {
        return without_command(&app, &args, global.help);
    };
    if global.help || rest.iter().take_while(|a| *a != "--").any(|a| matches!(&**a, "-h" | "-help" | "--help")) {
        app.ui.out(args::help::command(program, command.path, command.positional, &(command.declare)()));
        return 0;
    }
    command_line(&app, command, rest.to_vec())
}

/// Takes what stands before the command off the arguments.
fn global(args: &mut Vec<String>) -> Result<Global, String> {
    let mut global = Global::default();
    while let Some(first) = args.first() {
        let Some(flag) = first.strip_prefix("--").or_else(|| first.strip_prefix('-')) else { break };
        match flag.split_once('=') {
            Some(("chdir", dir)) if !dir.is_empty() => global.chdir = Some(dir.to_owned()),
            _ if flag == "chdir" || flag.starts_with("chdir=") => {
                return Err("Invalid -chdir option: must include an equals sign followed by a directory path, like \
                            -chdir=example"
                    .into());
            }
            _ if matches!(flag, "h" | "help") => global.help = true,
            _ => break,
        }
        args.remove(0);
    }
    Ok(global)
}

/// What happens when no known command is named.
fn without_command(app: &App, args: &[String], help: bool) -> u8 {
    match args.first() {
        None => {
            app.ui.out(commands::usage(app.program));
            if help { 0 } else { 127 }
        }
        Some(word) if commands::is_group(word) => {
            app.ui.out(commands::group_usage(app.program, word));
            u8::from(!help)
        }
        Some(word) => {
            let known = COMMANDS.iter().map(|c| c.path.split(' ').next().unwrap_or(c.path));
            let hint = match syntax::content::suggest(word, known) {
                Some(near) => format!(" Did you mean \"{near}\"?"),
                None => String::new(),
            };
            app.ui.err(format!(
                "{name} has no command named \"{word}\".{hint}\n\nTo see all of {name}'s top-level commands, run:\n  {program} -help\n\n",
                name = "Monoform",
                program = app.program
            ));
            1
        }
    }
}

/// Runs a command with its arguments, those of the environment put in.
fn command_line(app: &App, command: &'static Command, typed: Vec<String>) -> u8 {
    let mut words = Vec::new();
    for (name, value) in app.env.arguments(command.path) {
        match args::words::split(value.unwrap_or_default()) {
            Ok(more) => words.extend(more),
            Err(why) => {
                app.ui.err(format!("Error parsing extra CLI args from {name}: {why}\n"));
                return 1;
            }
        }
    }
    words.extend(typed);
    let declared = (command.declare)();
    let parsed = args::normalise(&declared, command.refused, &words).and_then(|normal| {
        declared.clone().try_get_matches_from(normal).map_err(|e| args::UsageError::flag(e.to_string()))
    });
    match parsed {
        Ok(matches) => {
            let given = args::matches::Given(matches);
            (command.run)(app, &given)
        }
        Err(error) => {
            let diagnostic = syntax::Diagnostic::error(error.summary, error.detail);
            views::diagnostics::show(&app.ui, &diagnostic.into(), &SourceMap::default(), false);
            app.ui.err(format!("\nFor more help on using this command, run:\n  {} {} -help\n", app.program, command.path));
            1
        }
    }
}

/// A panic is a bug of this program: it is called one, and the status says so.
fn install_panic_message() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        usual(info);
        let text = "\n!!! Monoform has crashed. This is always a bug. Please report it with the lines above, and with the log of\n\
                    !!! a run with TF_LOG=trace. The state is as it was last saved; run plan to see where things stand.\n";
        // Nothing can be done if even this cannot be said.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
    }));
}
