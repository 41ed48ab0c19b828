//! Operations that a workspace of HCP Terraform runs on its server.

use std::path::Path;

use engine::inputs::PlanOptions;
use hosted::workspace;
use stores::planfile;
use views::verb::Verb;

use crate::args::groups::{Parallelism, StateFlags};
use crate::args::operation::OperationArguments;
use crate::outcome::{Failure, Status, Within as _};
use crate::session::Session;
use crate::workdir;

/// Operation that may have to run on a server.
pub struct Request<'a> {
    pub verb: Verb,
    pub arguments: &'a OperationArguments,
    pub options: &'a PlanOptions,
    /// Applies the plan without asking.
    pub auto_approve: bool,
    /// Flag that the user has set, and that applies to local operations only.
    pub only_local: Option<&'static str>,
    /// File that will refer to the plan.
    pub out: Option<&'a str>,
    /// File for generated configuration.
    pub generate: Option<&'a str>,
    /// Returns status 2 if there are changes.
    pub detailed_exitcode: bool,
    /// Saved plan to apply.
    pub saved: Option<&'a Path>,
}

/// Runs an operation on the server, if that is the execution mode of the workspace. Otherwise returns `None`, and also if the
/// configuration has errors, which the local operation reports.
///
/// # Errors
/// The operation failed.
pub fn perform(session: &Session, request: &Request<'_>) -> Result<Option<Status>, Failure> {
    // The cheap checks come first: most working directories have no workspace of this kind.
    if !workspace::may_be(session.env.data_dir()) || !workdir::has_configuration() {
        return Ok(None);
    }
    let (mut project, problems) = workdir::read(session);
    if problems.has_errors() {
        // The local operation reports these errors, together with others.
        return Ok(None);
    }
    let context = session.hosted();
    let hosted = workspace::of_operation(&context, &project.config).within(&project.sources)?;
    let Some(hosted) = hosted else { return Ok(None) };
    if session.beside.is_some() {
        return Err(Failure::usage(
            "Invalid output format",
            "The option -json-into is for operations on this machine, and this workspace runs its operations on a server.",
        ));
    }
    session.show_now(&problems, &project.sources);
    let arguments = request.arguments;
    let run = hosted::Request {
        verb: request.verb,
        set: &session.set_variables(),
        input: arguments.input && session.env.input(),
        patience: arguments.lock.timeout.unwrap_or_default(),
        useless: useless_flags(&arguments.files, arguments.lock.timeout.is_some()),
        parallelism: arguments.parallelism != Parallelism::default(),
        options: request.options,
        auto_approve: request.auto_approve,
        only_local: request.only_local,
        out: request.out,
        generate: request.generate,
        detailed_exitcode: request.detailed_exitcode,
        saved: request.saved,
        saved_here: request.saved.is_some_and(planfile::looks_like_plan),
    };
    let module = project.config.root.module.clone();
    let status = hosted::perform(&context, &run, hosted, &module, &mut project.sources);
    status.map(Some).within(&project.sources)
}

/// Returns the flags that have no effect because the server stores and locks the state.
fn useless_flags(files: &StateFlags, lock: bool) -> Vec<&'static str> {
    let flags = [
        ("-state", files.state.is_some()),
        ("-state-out", files.out.is_some()),
        ("-backup", files.backup.is_some()),
        ("-lock=false", !lock),
    ];
    let given = flags.into_iter().filter(|(_, given)| *given);
    given.map(|(flag, _)| flag).collect()
}
