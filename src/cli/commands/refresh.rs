//! `refresh`: brings the state up to date with the objects, without asking.

use engine::plan::Mode;
use engine::planner::Planning;
use syntax::{Diagnostic, SourceMap};

use crate::args::matches::Given;
use crate::args::{UsageError, flags};
use crate::commands::apply::outputs;
use crate::commands::plan::finish;
use crate::commands::{Command, no_positional};
use crate::operation::{Operation, plan_options};
use crate::session::{Session, Status};

pub const COMMAND: Command = Command {
    path: "refresh",
    about: "Update the state to match remote systems",
    positional: "",
    declare: || {
        let command = flags::command(
            "refresh",
            "Updates the state to what the objects are now, without asking. \"apply -refresh-only\" shows the changes first.",
        );
        let command = flags::local_state(flags::operation(flags::targeting(flags::variables(command))));
        flags::positional(command, "args")
    },
    refused: &[],
    run,
};

fn run(session: &Session, given: &Given) -> Result<Status, UsageError> {
    no_positional(given, "refresh")?;
    let mut options = plan_options(given)?;
    options.mode = Mode::RefreshOnly;
    let operation = match Operation::begin(
        session,
        given,
        options.mode,
        "OperationTypeRefresh",
        ("Refresh", "Refreshing"),
    ) {
        Ok(operation) => operation,
        Err(status) => return Ok(status),
    };
    if !operation.state.has_resources() {
        let warning = Diagnostic::warning(
            "Empty or non-existent state",
            "There are currently no remote objects tracked in the state, so there is nothing to refresh.",
        );
        session.show(&warning.into(), &SourceMap::default());
    }
    let Planning {
        plan,
        diagnostics: mut problems,
        ..
    } = operation.plan(&options);
    let Some(plan) = plan.filter(|p| !p.errored && !problems.has_errors()) else {
        session.show(&problems, &operation.project.sources);
        return Ok(finish(session, operation, 1));
    };
    let applied = operation.apply(&plan);
    problems.extend(applied.problems);
    let failed = session.show(&problems, &operation.project.sources);
    if !failed {
        outputs(session, &applied.state);
    }
    Ok(finish(session, operation, u8::from(failed)))
}
