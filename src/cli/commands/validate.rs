//! `validate`.

use config::files::Disk;
use config::test_files;
use engine::events::NoEvents;
use engine::inputs::Inputs;
use engine::stop::Stop;
use files::io_reason;
use state::State;
use syntax::Diagnostics;

use crate::args::UsageError;
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::VariableFlags;
use crate::backend;
use crate::commands::Command;
use crate::session::{Session, Status};
use crate::workdir::{self, Project};
use crate::{interrupt, json, process};

pub const COMMAND: Command = Command {
    path: "validate",
    about: "Check whether the configuration is valid",
    positional: "",
    details: "Checks the configuration files of a directory, without looking at state, variables or any object.",
    declare: flags::declare::<Arguments>,
    refused: &[("query", "query files are not read.")],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    json: bool,
    no_tests: bool,
    test_directory: Option<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        VariableFlags::read(flags);
        Arguments {
            positional: flags.positional(),
            json: flags.switch("json", false, "Produce output in a machine-readable JSON format."),
            no_tests: flags.switch("no-tests", false, "Do not check test files."),
            test_directory: flags.value(
                "test-directory",
                "PATH",
                "The directory of test files, \"tests\" if it is not given.",
            ),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Status, UsageError> {
    let args = &arguments.positional;
    if args.len() > 1 {
        return Err(UsageError::new(
            "Too many command line arguments",
            "Expected at most one positional argument.",
        ));
    }
    if let Some(dir) = args.first()
        && let Err(e) = process::change_dir(dir)
    {
        return Ok(session.fail(
            "Invalid directory",
            format!("The directory {dir} cannot be used: {}.", io_reason(&e)),
        ));
    }
    let (mut project, mut problems) = workdir::read(session);
    problems.extend(beyond_loading(session, &project, &problems));
    problems.extend(backend::check_type(session, &project.config));
    if !arguments.no_tests {
        let dir = arguments.test_directory.as_deref();
        let tests = dir.unwrap_or(test_files::DEFAULT_DIR);
        if std::path::Path::new(tests).is_absolute() || tests.split('/').any(|step| step == "..") {
            return Ok(session.fail(
                "Invalid testing directory",
                format!("The directory of test files must be inside the working directory, and \"{tests}\" is not."),
            ));
        }
        problems.extend(test_files::check(
            &Disk,
            ".",
            tests,
            dir.is_some(),
            &mut project.sources,
        ));
    }
    problems.sort();
    let status = u8::from(problems.has_errors());
    if arguments.json {
        session.ui.exact_line(cty::json::to_text(
            &json::diagnostics::validation(&problems, &project.sources),
            Some(2),
        ));
        return Ok(status);
    }
    let style = session.ui.style();
    if status == 0 {
        let text = if problems.is_empty() {
            format!("{} The configuration is valid.\n", style.good("Success!"))
        } else {
            format!(
                "{} The configuration is valid, but there were some validation warnings as shown above.\n",
                style.good("Success!")
            )
        };
        session.show(&problems, &project.sources);
        session.ui.line(text);
    } else {
        session.show(&problems, &project.sources);
    }
    Ok(status)
}

/// What validation finds in a configuration as far as its files could be read, without what is only a consequence of the
/// problems they have.
pub fn beyond_loading(session: &Session, project: &Project, loading: &Diagnostics) -> Diagnostics {
    if project.config.is_refused() {
        return Diagnostics::new();
    }
    let found = check(session, project).unwrap_or_else(|problems| problems);
    engine::validate::beyond_loading(&project.config, loading, found)
}

fn check(session: &Session, project: &Project) -> Result<Diagnostics, Diagnostics> {
    let nothing = State::new();
    let plugins = session.plugins()?;
    let mut problems = plugins.resolve_available(&project.config, &nothing);
    let runtime = session.runtime()?;
    let stop = Stop::new();
    let environment = workdir::environment(session, &workdir::workspace(session).unwrap_or_default());
    let variables = std::collections::BTreeMap::new();
    problems.extend(runtime.block_on(async {
        interrupt::listen(session.ui.clone(), stop.clone());
        engine::validate::validate(Inputs {
            config: &project.config,
            state: &nothing,
            variables: &variables,
            environment: &environment,
            providers: &plugins,
            events: &NoEvents,
            stop: &stop,
            parallelism: 10,
        })
        .await
    }));
    Ok(problems)
}
