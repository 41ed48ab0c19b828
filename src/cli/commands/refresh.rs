//! `refresh`: updates the state from the objects, without asking.

use engine::plan::Mode;
use engine::planner::Planning;
use syntax::Diagnostic;
use views::verb::Verb;

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{OperationFlags, Refresh, StateFlags, TargetFlags, VariableFlags};
use crate::args::operation::{OperationArguments, targeted};
use crate::commands::apply::outputs;
use crate::commands::{Command, no_positional};
use crate::operation::Operation;
use crate::outcome::{Failure, Outcome};
use crate::remote_run;
use crate::session::Session;

pub const COMMAND: Command = Command {
    path: "refresh",
    about: "Update the state to match remote systems",
    positional: "",
    details: "Updates the state to what the objects are now, without asking. \"apply -refresh-only\" shows the changes first.",
    declare: flags::declare::<Arguments>,
    refused: &[(
        "invoke",
        "a refresh invokes no action; \"plan\" and \"apply\" have this option.",
    )],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    targets: TargetFlags,
    operation: OperationFlags,
    state: StateFlags,
    positional: Vec<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        VariableFlags::read(flags);
        Arguments {
            targets: TargetFlags::read(flags),
            operation: OperationFlags::read(flags),
            state: StateFlags::read(flags),
            positional: flags.positional(),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    no_positional(&arguments.positional, "refresh")?;
    let options = targeted(Mode::RefreshOnly, &Refresh::Everything, &arguments.targets)?;
    let operation_arguments = OperationArguments::new(arguments.state.clone(), &arguments.operation);
    let remote = remote_run::Request {
        verb: Verb::Refresh,
        arguments: &operation_arguments,
        options: &options,
        auto_approve: true,
        only_local: None,
        out: None,
        generate: None,
        detailed_exitcode: false,
        saved: None,
    };
    if let Some(status) = remote_run::perform(session, &remote)? {
        return Ok(status.into());
    }
    let mut operation = Operation::begin(session, &operation_arguments, options.mode, Verb::Refresh)?;
    if !operation.state.has_resources() {
        let warning = Diagnostic::warning(
            "Empty or non-existent state",
            "The state has no objects that could be read, so it stays as it is.",
        );
        session.warn_now(warning);
    }
    let (plan, mut problems) = loop {
        let Planning {
            plan,
            diagnostics: problems,
            ..
        } = operation.plan(&options);
        // A plan with errors may lack objects, so nothing is written.
        let Some(plan) = plan.filter(|p| !p.errored && !problems.has_errors()) else {
            let failure = Failure::within(problems, &operation.project.sources);
            return operation.finish(Err(failure));
        };
        match operation.claim(&plan) {
            Ok(true) => break (plan, problems),
            Ok(false) => session.warn_now(operation.planned_again()),
            Err(problems) => return operation.finish(Err(problems.into())),
        }
    };
    let applied = operation.apply(&plan);
    problems.extend(applied.problems);
    if problems.has_errors() {
        let failure = Failure::within(problems, &operation.project.sources);
        return operation.finish(Err(failure));
    }
    session.show_now(&problems, &operation.project.sources);
    outputs(session, &applied.state);
    operation.finish(Ok(Outcome::success()))
}
