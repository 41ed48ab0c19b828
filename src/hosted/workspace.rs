//! The selected workspace in HCP Terraform and its execution mode, according to the record of the last `init` and the
//! server.

use config::Config;
use syntax::{Diagnostic, Diagnostics};
use tfe::{ApiError, Connection, Kind, Mapping, Workspace};

use crate::{Context, remote};

pub struct Hosted {
    pub connection: Connection,
    pub workspace: Workspace,
}

impl Hosted {
    /// Returns the address of a run for a browser.
    #[must_use]
    pub fn run_url(&self, run: &str) -> String {
        let settings = &self.connection.settings;
        format!(
            "https://{}/app/{}/{}/runs/{run}",
            settings.hostname, settings.organization, self.workspace.name
        )
    }

    /// Returns true if the workspace is that of a `cloud` block.
    #[must_use]
    pub fn is_cloud(&self) -> bool {
        self.connection.settings.kind == Kind::Cloud
    }
}

/// Returns true if the working directory was initialized with a backend whose workspaces can run operations on a server. This makes no
/// request.
#[must_use]
pub fn may_be(data_dir: &str) -> bool {
    remote::is_recorded(data_dir)
}

/// Finds the selected workspace, if the recorded backend is `remote` or `cloud` and its block is unchanged, regardless of the execution
/// mode of the workspace. Returns `None` for other backends, and if the name of the workspace is invalid. With `backend "remote"` and a
/// workspace name, a missing workspace is created.
///
/// # Errors
/// The settings are invalid, or the server cannot be reached.
pub fn selected(context: &Context<'_>, config: &Config) -> Result<Option<Hosted>, Diagnostics> {
    let Some(settings) = remote::recorded(context, config)? else {
        return Ok(None);
    };
    let Some(name) = settings.remote_name(&stores::workspace::selected(&context.stores)?) else {
        // An invalid name is reported when the store is opened.
        return Ok(None);
    };
    let (net, login) = (context.net.clone(), context.stores.program.command);
    context.stores.plugins.runtime()?.block_on(async {
        let connection = Connection::open(net, settings, login)
            .await
            .map_err(|problem| Diagnostics::from(Diagnostic::error(problem.summary, problem.detail)))?;
        match connection.workspace(&name).await {
            Ok(Some(workspace)) => Ok(Some(Hosted { connection, workspace })),
            // With `backend "remote"`, the first operation creates the workspace. Before that, it has no execution mode.
            Ok(None)
                if matches!(
                    (connection.settings.kind, &connection.settings.mapping),
                    (Kind::Remote, Mapping::Name(_))
                ) =>
            {
                let made = connection.ensure(&name).await;
                let workspace = made.map_err(|why| {
                    Diagnostics::from(Diagnostic::error(
                        "Failed to open the workspace",
                        format!("It is not there, and {why}."),
                    ))
                })?;
                Ok(Some(Hosted { connection, workspace }))
            }
            Ok(None) => Err(not_found(&name, login)),
            Err(e) => Err(unreadable(&name, &e)),
        }
    })
}

/// Finds the selected workspace, if its operations run on the server.
///
/// # Errors
/// The settings are invalid, the server cannot be reached, or the workspace does not exist.
pub fn of_operation(context: &Context<'_>, config: &Config) -> Result<Option<Hosted>, Diagnostics> {
    if context.environment.get("TF_FORCE_LOCAL_BACKEND").is_some() {
        return Ok(None);
    }
    let hosted = selected(context, config)?;
    Ok(hosted.filter(|hosted| !hosted.connection.forced_local && !hosted.workspace.is_local()))
}

fn not_found(name: &str, command: &str) -> Diagnostics {
    Diagnostic::error(
        format!("workspace {name} not found"),
        format!(
            "There is no workspace \"{name}\" in the organization, or the token may not see it: the server gives the same answer \
             to both. Check the name and the rights of the token, or create the workspace with \"{command} workspace new\"."
        ),
    )
    .into()
}

fn unreadable(name: &str, error: &ApiError) -> Diagnostics {
    Diagnostic::error(
        "Error looking up workspace",
        format!("The workspace \"{name}\" cannot be read: {error}."),
    )
    .into()
}
