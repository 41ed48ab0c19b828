//! `plan`.

use engine::planner::Planning;

use crate::args::matches::Given;
use crate::args::{UsageError, flags};
use crate::commands::{Command, NO_JSON, no_positional};
use crate::operation::{Operation, plan_options};
use crate::session::{Session, Status};
use crate::views;

pub const COMMAND: Command = Command {
    path: "plan",
    about: "Show changes required by the current configuration",
    positional: "",
    declare: || {
        let command = flags::command(
            "plan",
            "Generates a speculative execution plan, showing what actions would be taken to apply the current configuration. This \
             command will not actually perform the planned actions.",
        );
        flags::positional(flags::operation(flags::planning(command)), "args")
            .arg(flags::value(
                "out",
                "PATH",
                "Write a plan file to this path, which can be given to apply.",
            ))
            .arg(flags::switch(
                "detailed-exitcode",
                false,
                "Exit with status 0 if there is nothing to do, 1 after an error, 2 if there are changes.",
            ))
            .arg(flags::value(
                "state",
                "PATH",
                "The state file to read, in place of the working directory's.",
            ))
    },
    refused: &[NO_JSON, ("generate-config-out", "configuration is not generated yet.")],
    run,
};

fn run(session: &Session, given: &Given) -> Result<Status, UsageError> {
    no_positional(given, "plan")?;
    let options = plan_options(given)?;
    let operation = match Operation::begin(session, given, options.mode, "OperationTypePlan", ("Plan", "Planning")) {
        Ok(operation) => operation,
        Err(status) => return Ok(status),
    };
    let Planning {
        plan,
        schemas,
        diagnostics: mut problems,
    } = operation.plan(&options);
    if !options.targets.is_empty() && plan.is_some() {
        add_missing(&mut problems, views::plan::targeting_warning());
    }
    let mut status = u8::from(problems.has_errors());
    let Some(plan) = plan else {
        session.show(&problems, &operation.project.sources);
        return Ok(finish(session, operation, status.max(1)));
    };
    views::plan::show(&session.ui, &plan, &schemas);
    session.show(&problems, &operation.project.sources);
    if status == 0 && given.on("detailed-exitcode") && plan.is_applyable() {
        status = 2;
    }
    let (applyable, errored) = (plan.is_applyable(), plan.errored || problems.has_errors());
    let out = given.value("out");
    // A plan with errors is kept, too, for those who look at it; apply refuses it.
    if let Some(out) = out
        && let Err(problem) = operation.save_plan(out.as_ref(), plan)
    {
        session.show(&problem.into(), &operation.project.sources);
        return Ok(finish(session, operation, 1));
    }
    if applyable && !errored && !session.env.in_automation() {
        let ui = &session.ui;
        ui.out(views::plan::rule(ui.style(), ui.width()));
        match out {
            None => ui.out(
                "\nNote: You didn't use the -out option to save this plan, so Monoform can't\nguarantee to take exactly these \
                 actions if you run \"monoform apply\" now.\n",
            ),
            Some(out) => ui.out(format!(
                "\nSaved the plan to: {out}\n\nTo perform exactly these actions, run the following command to apply:\n    {} \
                 apply \"{out}\"\n",
                session.program
            )),
        }
    }
    Ok(finish(session, operation, status))
}

/// Adds a warning unless the engine has given it already.
pub fn add_missing(problems: &mut syntax::Diagnostics, more: syntax::Diagnostics) {
    for diagnostic in more {
        if !problems.iter().any(|d| d.summary == diagnostic.summary) {
            problems.push(diagnostic);
        }
    }
}

/// Ends an operation: releases the lock.
pub fn finish(session: &Session, operation: Operation<'_>, status: Status) -> Status {
    let problems = operation.end();
    if session.show(&problems, &syntax::SourceMap::default()) {
        1
    } else {
        status
    }
}
