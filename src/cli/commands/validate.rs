//! `validate`.

use engine::events::NoEvents;
use engine::inputs::Inputs;
use engine::stop::Stop;
use state::State;
use syntax::Diagnostics;

use crate::args::matches::Given;
use crate::args::{UsageError, flags};
use crate::commands::Command;
use crate::plugin_source::Plugins;
use crate::session::{Session, Status};
use crate::workdir::{self, Project};
use crate::{interrupt, json};

pub const COMMAND: Command = Command {
    path: "validate",
    about: "Check whether the configuration is valid",
    positional: "",
    declare: || {
        let command = flags::command(
            "validate",
            "Checks the configuration files of a directory, without looking at state, variables or any object.",
        );
        flags::positional(command, "args")
            .arg(flags::switch(
                "json",
                false,
                "Produce output in a machine-readable JSON format.",
            ))
            .arg(flags::switch(
                "no-tests",
                false,
                "Do not check test files (which is never done yet).",
            ))
    },
    refused: &[
        ("test-directory", "test files are not read yet."),
        ("query", "query files are not read."),
    ],
    run,
};

fn run(session: &Session, given: &Given) -> Result<Status, UsageError> {
    let args = given.values("args");
    if args.len() > 1 {
        return Err(UsageError::new(
            "Too many command line arguments",
            "Expected at most one positional argument.",
        ));
    }
    if let Some(dir) = args.first()
        && let Err(e) = std::env::set_current_dir(dir)
    {
        return Ok(session.fail(
            "Invalid directory",
            format!("The directory {dir} cannot be used: {}.", state::io_reason(&e)),
        ));
    }
    let (project, mut problems) = workdir::read(session);
    if !problems.has_errors() {
        problems.extend(check(session, &project));
    }
    problems.sort();
    let status = u8::from(problems.has_errors());
    if given.on("json") {
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

fn check(session: &Session, project: &Project) -> Diagnostics {
    let checked = || -> Result<Diagnostics, Diagnostics> {
        let nothing = State::new();
        let plugins = Plugins::new(session.registry()?);
        let mut problems = plugins.resolve(&project.config, &nothing)?;
        let runtime = session.runtime()?;
        let stop = Stop::new();
        let surroundings = workdir::surroundings(session, &workdir::workspace(session).unwrap_or_default());
        let variables = std::collections::BTreeMap::new();
        problems.extend(runtime.block_on(async {
            interrupt::listen(session.ui.clone(), stop.clone());
            engine::validate::validate(Inputs {
                config: &project.config,
                state: &nothing,
                variables: &variables,
                surroundings: &surroundings,
                providers: &plugins,
                events: &NoEvents,
                stop: &stop,
                parallelism: 10,
            })
            .await
        }));
        Ok(problems)
    };
    checked().unwrap_or_else(|problems| problems)
}
