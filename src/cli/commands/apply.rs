//! `apply`, and the functions that it shares with `destroy` and `refresh`.

use std::path::Path;

use addrs::program::Mode as Tool;
use engine::inputs::PlanOptions;
use engine::plan::{Mode, Plan};
use engine::planner::Planning;
use hosted::bookmark::Bookmark;
use state::State;
use syntax::{Diagnostic, Diagnostics};
use views::plan::{Form, Verbosity};
use views::reporter::Done;
use views::verb::Verb;

use crate::args::UsageError;
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{GuardFlags, ModeFlags, OperationFlags, StateFlags, VariableFlags, suppress_forget_errors};
use crate::args::operation::{OperationArguments, plan_options};
use crate::commands::review::{Decision, Review};
use crate::commands::{Command, is_file, output};
use crate::guards::{Approval, Guards};
use crate::operation::{Applied, Operation};
use crate::outcome::{Failure, Outcome, Status};
use crate::remote_run;
use crate::session::Session;
use views::wrap::wrapped;

pub const COMMAND: Command = Command {
    path: "apply",
    about: "Create or update infrastructure",
    positional: "[PLAN]",
    details: "Creates or updates infrastructure according to the configuration in the current directory. Makes a new plan and \
      asks for approval before it does anything; a saved plan is carried out without asking.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    modes: ModeFlags,
    operation: OperationFlags,
    state: StateFlags,
    positional: Vec<String>,
    guards: GuardFlags,
    suppress_forget_errors: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.summary();
        flags.show_sensitive();
        let modes = ModeFlags::read(flags);
        VariableFlags::read(flags);
        Arguments {
            modes,
            operation: OperationFlags::read(flags),
            state: StateFlags::read(flags),
            positional: flags.positional(),
            guards: GuardFlags::read(flags),
            suppress_forget_errors: suppress_forget_errors(flags),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let positional = &arguments.positional;
    if positional.len() > 1 {
        return Err(Failure::usage(
            "Too many command line arguments",
            "Expected at most one positional argument.",
        ));
    }
    let work = Work {
        arguments: OperationArguments::new(arguments.state.clone(), &arguments.operation),
        guards: Guards::new(&arguments.guards)?,
        verb: Verb::Apply,
        saved: positional.first().map(String::as_str),
        suppress_forget_errors: arguments.suppress_forget_errors,
    };
    if let Some(path) = positional.first() {
        let shown = session.invocation.shown;
        if shown.form == Form::Summary || shown.verbosity != Verbosity::Normal {
            return Err(Failure::usage(
                "Incompatible options",
                "A saved plan is applied without being shown, so -summary and -verbosity have no effect. To see it, use \"show\" with \
                 them.",
            ));
        }
        return saved(session, &work, path);
    }
    let options = plan_options(&arguments.modes, session.ui.program)?;
    // The possibility of approval is checked before the plan is made: with a stream there is no terminal on
    // which to approve it.
    approval_possible(session, &work.guards.approval)?;
    direct(session, &work, &options)
}

/// Reports an error if a stream of events is selected and the plan would have to be approved.
pub fn approval_possible(session: &Session, approval: &Approval) -> Result<(), UsageError> {
    if session.stream.is_none() || approval.is_automatic() {
        return Ok(());
    }
    Err(UsageError::new(
        "Plan file or auto-approve required",
        "With -json nobody can be asked for approval. Apply a saved plan file, or use the -auto-approve option.",
    ))
}

/// Options of commands that apply a plan.
pub struct Work<'a> {
    pub arguments: OperationArguments,
    pub guards: Guards,
    pub verb: Verb,
    /// Path of the saved plan that is applied, if there is one.
    pub saved: Option<&'a str>,
    /// True if a destroy run that forgets objects is a success in OpenTofu mode (`-suppress-forget-errors`).
    pub suppress_forget_errors: bool,
}

/// Applies a saved plan.
fn saved(session: &Session, work: &Work<'_>, path: &str) -> Result<Outcome, Failure> {
    if !is_file(path) {
        return Err(Failure::new(
            format!("Failed to load \"{path}\" as a plan file"),
            "There is no such file. To apply the configuration of another directory, use the global -chdir flag.",
        ));
    }
    if let Some(status) = remote(session, work, &PlanOptions::default(), Some(Path::new(path)))? {
        return Ok(status.into());
    }
    // A bookmark refers to a plan on the server. If the workspace's operations ran there, `remote` would have applied it; here it is an
    // error.
    if Bookmark::is(Path::new(path)) {
        return Err(Failure::new(
            "Saved plan is not a local plan",
            "The file refers to a plan on a server, and the operations of this working directory run on this machine. Apply it in a \
             working directory whose \"cloud\" block selects the workspace of the plan.",
        ));
    }
    let (mut operation, saved) = Operation::saved(session, &work.arguments, Path::new(path))?;
    if saved.plan.errored {
        return Err(Failure::new(
            "Cannot apply incomplete plan",
            "Planning ended with errors, so this plan cannot be applied.",
        ));
    }
    let limits = &work.guards;
    if let Some(problem) = limits.refusal(saved.plan.view(), session.stream.as_ref()) {
        return operation.finish(Err(Diagnostics::from(problem).into()));
    }
    for stream in session.streams() {
        stream.planned_changes(&saved.plan.changes);
    }
    match operation.claim(&saved.plan) {
        Ok(true) => {}
        Ok(false) => {
            let stale = operation.stale("Saved plan is stale");
            return operation.finish(Err(Diagnostics::from(stale).into()));
        }
        Err(problems) => return operation.finish(Err(problems.into())),
    }
    perform(session, work, operation, &saved.plan, Diagnostics::new())
}

/// Runs the operation on the server, if the workspace's operations run there; otherwise returns `None`.
fn remote(
    session: &Session,
    work: &Work<'_>,
    options: &PlanOptions,
    saved: Option<&Path>,
) -> Result<Option<Status>, Failure> {
    let request = remote_run::Request {
        verb: work.verb,
        arguments: &work.arguments,
        options,
        auto_approve: work.guards.approval.is_automatic(),
        only_local: work.guards.only_local().or_else(|| {
            let is_set = session.invocation.shown.verbosity != Verbosity::Normal;
            is_set.then_some("-verbosity")
        }),
        out: None,
        generate: None,
        detailed_exitcode: false,
        saved,
    };
    remote_run::perform(session, &request)
}

/// Plans, asks for approval, and applies.
pub fn direct(session: &Session, work: &Work<'_>, options: &PlanOptions) -> Result<Outcome, Failure> {
    if let Some(status) = remote(session, work, options, None)? {
        return Ok(status.into());
    }
    let mut operation = Operation::begin(session, &work.arguments, options.mode, work.verb)?;
    let mut options = options.clone();
    loop {
        match planned(session, work, &operation, &options) {
            Ok(Planned::Approved { plan, asked, problems }) => match operation.claim(&plan) {
                Ok(true) => return perform(session, work, operation, &plan, problems),
                // With automatic approval nobody has seen the stale plan, so another plan needs no question either.
                Ok(false) if !asked => session.warn_now(operation.planned_again()),
                Ok(false) => {
                    let stale = operation.stale("Objects changed since the plan");
                    return operation.finish(Err(Diagnostics::from(stale).into()));
                }
                Err(problems) => return operation.finish(Err(problems.into())),
            },
            // The user has excluded some of the changes.
            Ok(Planned::Again(more)) => options.excludes.extend(more),
            Ok(Planned::Ended(outcome)) => return operation.finish(Ok(outcome)),
            Err(failure) => return operation.finish(Err(failure)),
        }
    }
}

/// Result of making a plan and asking for its approval.
enum Planned {
    Approved {
        plan: Box<Plan>,
        /// True if the user has approved the plan at a prompt.
        asked: bool,
        problems: Diagnostics,
    },
    /// The user has excluded these addresses, so another plan must be made.
    Again(Vec<addrs::Target>),
    Ended(Outcome),
}

/// Makes and shows a plan, and asks for approval.
fn planned(
    session: &Session,
    work: &Work<'_>,
    operation: &Operation<'_>,
    options: &PlanOptions,
) -> Result<Planned, Failure> {
    let Planning {
        plan,
        schemas,
        diagnostics: mut problems,
        ..
    } = operation.plan(options);
    let failed = |problems: Diagnostics| Err(Failure::within(problems, &operation.project.sources));
    let Some(plan) = plan else {
        return failed(problems);
    };
    session.streams().for_each(|stream| stream.plan(plan.view()));
    if session.stream.is_none() {
        views::plan::show(&session.ui, plan.view(), &schemas, session.invocation.shown);
    }
    if problems.has_errors() || plan.errored {
        return failed(problems);
    }
    let guards = &work.guards;
    if let Some(problem) = guards.too_many_destroyed(plan.view(), session.stream.as_ref()) {
        problems.push(problem);
        return failed(problems);
    }
    let verdict = guards.approval.verdict(plan.view());
    let uncovered = verdict.and_then(|verdict| verdict.reported(session.stream.as_ref()));
    let asked = plan.is_applyable() && (!guards.approval.is_automatic() || uncovered.is_some());
    if !asked {
        // Checks are evaluated again at the end of the apply, and only those results count.
        problems.0.retain(|d| d.extra != syntax::diag::Extra::OfCheck);
        return Ok(Planned::Approved {
            plan: Box::new(plan),
            asked,
            problems,
        });
    }
    problems.extend(uncovered);
    if session.stream.is_some() {
        problems.push(nobody_to_ask());
        return failed(problems);
    }
    // The user must know warnings before answering; without a question they come at the end.
    session.show_now(&problems, &operation.project.sources);
    let (question, explanation) = question(&plan, &operation.workspace, session.ui.program.tool);
    let review = Review {
        session,
        operation,
        options,
        plan: &plan,
        schemas: &schemas,
    };
    Ok(match review.answer(&question, &explanation)? {
        Decision::Approved => Planned::Approved {
            plan: Box::new(plan),
            asked,
            problems: Diagnostics::new(),
        },
        Decision::Again(more) => Planned::Again(more),
        Decision::Cancelled => {
            let what = if plan.mode == Mode::Destroy { "Destroy" } else { "Apply" };
            Planned::Ended(Outcome::from(1).and_text(format!("{what} cancelled.\n")))
        }
    })
}

fn nobody_to_ask() -> Diagnostic {
    Diagnostic::error(
        "Plan needs approval",
        "With -json nobody can be asked for approval. Nothing was changed. Check the plan, and apply it from a saved plan file.",
    )
}

fn question(plan: &Plan, workspace: &str, tool: &str) -> (String, String) {
    // The default workspace is not named, so that the question has Terraform's wording, which wrappers search for.
    let place = if workspace == "default" {
        String::new()
    } else {
        format!(" in workspace \"{workspace}\"")
    };
    if plan.invoke.is_some() {
        return (
            "Would you like to invoke the specified actions?".to_owned(),
            format!(
                "{tool} will invoke the actions listed above. What they do cannot be undone.\nOnly 'yes' will be accepted to confirm."
            ),
        );
    }
    match plan.mode {
        Mode::Normal => (
            format!("Do you want to perform these actions{place}?"),
            format!("{tool} will perform the actions described above.\nOnly 'yes' will be accepted to approve."),
        ),
        Mode::Destroy => (
            format!("Do you really want to destroy all resources{place}?"),
            "Every object listed above is deleted for good.\nOnly 'yes' will be accepted to confirm.".to_owned(),
        ),
        Mode::RefreshOnly => (
            if workspace == "default" {
                "Would you like to update the Terraform state to reflect these detected changes?".into()
            } else {
                format!(
                    "Would you like to update the Terraform state for \"{workspace}\" to reflect these detected changes?"
                )
            },
            "The values found are written to the state, in place of those it has now. No object is changed.\nOnly 'yes' will be \
             accepted to confirm."
                .to_owned(),
        ),
    }
}

/// Applies a plan, and prints the result after the diagnostics so far.
fn perform(
    session: &Session,
    work: &Work<'_>,
    operation: Operation<'_>,
    plan: &Plan,
    mut problems: Diagnostics,
) -> Result<Outcome, Failure> {
    let Applied {
        state,
        done,
        completion,
        problems: more,
    } = operation.apply(plan);
    problems.extend(more);
    if !problems.has_errors() && !operation.interrupted() {
        problems.extend(left_by_destroy(work, plan));
    }
    let unfinished = views::completion::text(work.verb, &completion);
    // Without an interrupt, the diagnostics already say what went wrong.
    if let (Some(text), true) = (&unfinished, operation.interrupted()) {
        session.streams().for_each(|stream| stream.log(text.trim_end()));
    }
    let failed = session.show_now(&problems, &operation.project.sources);
    let destroying = work.verb == Verb::Destroy;
    if let (None, Some(text)) = (&session.stream, unfinished) {
        // Printed on standard error, so that standard output is the same as in other failures.
        let hint = (!session.env.in_automation())
            .then(|| views::completion::next(&session.invocation.typed, work.saved, session.ui.program.command));
        session
            .ui
            .err(format!("\n{text}{}", hint.flatten().unwrap_or_default()));
    }
    if !failed {
        summary(session, plan, destroying, done);
        if let Some(path) = work
            .arguments
            .files
            .out
            .as_ref()
            .filter(|_| session.stream.is_none() && !destroying)
        {
            session.ui.line(format!(
                "\n{}\n\nState path: {path}",
                wrapped(
                    "The state is in the file below. Keep it safe: without it, no object of this apply can be changed or destroyed. \
                     The command \"show\" prints it.",
                    session.ui.width()
                )
            ));
        }
    }
    session.ui.flush();
    if !failed && !destroying {
        outputs(session, &state);
    }
    let status = u8::from(failed || operation.interrupted());
    operation.finish(Ok(status.into()))
}

/// Returns OpenTofu's error about objects that a destroy run has forgotten. Without it, callers would take the success to mean that all
/// objects are destroyed.
fn left_by_destroy(work: &Work<'_>, plan: &Plan) -> Option<Diagnostic> {
    let forgotten = plan.view().totals().forgotten;
    let reported = Tool::current().is_opentofu() && !work.suppress_forget_errors;
    (reported && plan.mode == Mode::Destroy && forgotten > 0).then(|| {
        Diagnostic::error(
            "Destroy was successful but left behind forgotten instances",
            format!(
                "{forgotten} of the objects were taken out of the state and not destroyed, as their blocks ask for: they still exist, \
                 and may cause costs. To have that count as success, use the -suppress-forget-errors option."
            ),
        )
    })
}

fn summary(session: &Session, plan: &Plan, destroying: bool, done: Done) {
    let style = session.ui.style();
    let Done {
        added,
        changed,
        destroyed,
        invoked,
        failed,
    } = done;
    let imported = plan.changes.iter().filter(|c| c.importing.is_some()).count();
    let forgotten = plan.view().totals().forgotten;
    let text = if destroying {
        format!("Destroy complete! Resources: {destroyed} destroyed.")
    } else {
        let imports = match imported {
            0 => String::new(),
            imported => format!("{imported} imported, "),
        };
        let forgets = forgotten > 0 && Tool::current().is_opentofu();
        let forgets = match forgets {
            true => format!(", {forgotten} forgotten"),
            false => String::new(),
        };
        format!("Apply complete! Resources: {imports}{added} added, {changed} changed, {destroyed} destroyed{forgets}.")
    };
    let actions = match (invoked, failed) {
        (0, _) => String::new(),
        (invoked, 0) => format!(" Actions: {invoked} invoked."),
        // Failures of these invocations are only reported as warnings.
        (invoked, failed) => format!(" Actions: {invoked} invoked, {failed} failed."),
    };
    let text = text + &actions;
    let operation = if plan.mode == Mode::Destroy { "destroy" } else { "apply" };
    for stream in session.streams() {
        stream.summary(&text, done, (imported, forgotten), operation);
    }
    if session.stream.is_none() {
        session.ui.line(format!("\n{}", style.good(text)));
    }
}

/// Shows the output values of a state.
pub fn outputs(session: &Session, state: &State) {
    session.streams().for_each(|stream| stream.outputs(state));
    if session.stream.is_some() {
        return;
    }
    if state.outputs.is_empty() {
        return;
    }
    session.ui.out(format!(
        "\n{}\n\n{}",
        session.ui.style().good("Outputs:"),
        output::listing(state, session.invocation.shown)
    ));
}
