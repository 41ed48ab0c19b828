//! States in HCP Terraform: what the workspaces there say about operations and versions.
//!
//! The states themselves come through the stores `remote` and `cloud`, as those of every other backend. What is asked here, of the
//! same API, concerns commands: whether an operation may run on this machine, and whether this version may write the state.

use syntax::{Diagnostic, Diagnostics, SourceMap};
use tfe::{Arguments, Compatibility, Connection, Kind, Problem, Settings, Workspace, compatible};

use super::store::Store;
use crate::session::{RemoteVersion, Session};
use crate::{TERRAFORM_VERSION, program};

/// The type of the backend that a `cloud` block stands for.
pub const CLOUD: &str = "cloud";

/// The type of the backend with the same service and a block of its own.
const REMOTE: &str = "remote";

fn diagnostics(problem: Problem) -> Diagnostics {
    Diagnostic::error(problem.summary, problem.detail).into()
}

/// Where the workspaces of a store are; `None` for all other stores.
///
/// # Errors
/// The settings contradict each other.
pub fn settings(session: &Session, store: &Store) -> Result<Option<Settings>, Diagnostics> {
    if store.is_of_third_party() {
        return Ok(None);
    }
    let kind = match store.ty() {
        CLOUD => Kind::Cloud,
        REMOTE => Kind::Remote,
        _ => return Ok(None),
    };
    let arguments = Arguments::of_json(&store.saved()?.config);
    Settings::new(kind, arguments, &session.env)
        .map(Some)
        .map_err(|problems| problems.into_iter().flat_map(diagnostics).collect())
}

/// Checks whether an operation of this program may use the state of a workspace: whether it may run here, and for commands that
/// change the state without an operation, whether the version is one for this workspace.
///
/// # Errors
/// It may not, or the workspace cannot be read.
pub fn check(session: &Session, store: &Store, workspace: &str, operation: &str) -> Result<(), Diagnostics> {
    let runs = matches!(
        operation,
        "OperationTypePlan" | "OperationTypeApply" | "OperationTypeRefresh"
    );
    if !runs && session.remote_version == RemoteVersion::Unimportant {
        return Ok(());
    }
    let Some(settings) = settings(session, store)? else {
        return Ok(());
    };
    let Some(name) = settings.remote_name(workspace) else {
        // The store says what is wrong with it.
        return Ok(());
    };
    if runs && settings.forced_local {
        return Ok(());
    }
    let (net, login) = (session.net(), program::command());
    let asked = session.runtime()?.block_on(async {
        let connection = Connection::open(net, settings, login).await.map_err(diagnostics)?;
        let workspace = connection.workspace(&name).await.map_err(|e| {
            Diagnostics::from(Diagnostic::error(
                "Error looking up workspace",
                format!("The workspace \"{name}\" cannot be read: {e}."),
            ))
        })?;
        Ok::<_, Diagnostics>((connection, workspace))
    });
    let (connection, found) = asked?;
    let Some(found) = found else {
        return Ok(());
    };
    if !runs {
        return version(session, &connection, &found);
    }
    if connection.forced_local || found.is_local() {
        return Ok(());
    }
    Err(Diagnostic::error(
        "Remote operations not supported",
        format!(
            "The execution mode of the workspace \"{name}\" is \"{}\": its plans and applies run at {}, and this version of {} runs \
             them on this machine only. Set the execution mode of the workspace to \"local\", start the run there, or set the \
             environment variable TF_FORCE_LOCAL_BACKEND to have this operation run here; the variables of the workspace are not \
             known here.",
            found.execution_mode,
            connection.settings.hostname,
            program::tool()
        ),
    )
    .into())
}

fn version(session: &Session, connection: &Connection, workspace: &Workspace) -> Result<(), Diagnostics> {
    let (own, settings) = (TERRAFORM_VERSION, &connection.settings);
    let (organization, name) = (&settings.organization, &workspace.name);
    let (summary, why) = match (compatible(workspace, own), settings.kind) {
        (Compatibility::Compatible, _) => return Ok(()),
        (Compatibility::Incompatible(_), Kind::Remote) => (
            "Terraform version mismatch",
            format!(
                "The local Terraform version ({own}) does not match the configured version for remote workspace \
                 {organization}/{name} ({}).",
                workspace.terraform_version
            ),
        ),
        (Compatibility::Incompatible(wanted), Kind::Cloud) => (
            "Incompatible Terraform version",
            format!(
                "The local Terraform version ({own}) does not meet the version requirements for remote workspace \
                 {organization}/{name} ({wanted})."
            ),
        ),
        (Compatibility::Unknown, _) => (
            "Incompatible Terraform version",
            format!(
                "The workspace {organization}/{name} asks for the version \"{}\", which is neither a version nor a constraint, so it is \
                 not known whether the local Terraform version ({own}) may write its state.",
                workspace.terraform_version
            ),
        ),
    };
    if session.remote_version == RemoteVersion::Ignored {
        session.show(&Diagnostic::warning(summary, why).into(), &SourceMap::default());
        return Ok(());
    }
    Err(Diagnostic::error(
        summary,
        format!(
            "{why}\n\nA state written by this version may not be readable in the workspace any more. To write it all the same, use \
             the option -ignore-remote-version."
        ),
    )
    .into())
}
