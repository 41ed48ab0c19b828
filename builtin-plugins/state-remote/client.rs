//! State client: requests to HCP Terraform or Terraform Enterprise.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use monoform_sdk::state_store::{DEFAULT, LockError, LockInfo, WorkspaceSupport, report_waiting};
use monoform_sdk::{Diagnostic, Diagnostics, Result, StateClient, async_trait};
use net::NetSettings;
use packages::cli_config::CliConfig;
use packages::packed::Carried;
use tfe::{ApiError, Connection, Kind, LockProblem, Mapping, Settings, Snapshot, Upload, Workspace};

use crate::Caller;
use crate::config::diagnostic;

/// User agent of the requests.
const PRODUCT: &str = concat!("Monoform/", env!("CARGO_PKG_VERSION"));

/// Creates an HTTP client with the hosts and tokens of the CLI configuration.
fn net(caller: &Caller) -> net::Client {
    let environment = caller.environment.clone();
    // Problems of the configuration are dropped, because the process that started this one has reported them.
    let own = std::env::current_exe().map_or(Carried::Nothing, |path| Carried::by(&path, &environment));
    let (config, _) = CliConfig::load_with(&environment, &own);
    let platform = addrs::platform::Platform::current().to_string();
    let plugins = environment
        .home()
        .map(|home: PathBuf| home.join(".terraform.d/plugins"));
    let client = net::Client::new(NetSettings {
        environment,
        hosts: config.hosts,
        // Commands search the same directories for credentials helpers.
        helper_dirs: plugins.into_iter().flat_map(|dir| [dir.join(&platform), dir]).collect(),
        terraform_version: caller.version.to_owned(),
        product: PRODUCT.to_owned(),
    });
    client.reporting(|notice| {
        if let net::Notice::Waiting(host) = notice {
            report_waiting(host);
        }
    })
}

pub(crate) async fn connect(settings: Settings, caller: &Caller) -> Result<Client> {
    let connection = Connection::open(net(caller), settings, "monoform")
        .await
        .map_err(diagnostic)?;
    Ok(Client {
        connection,
        known: Mutex::default(),
    })
}

/// Client for the states of an organization's workspaces.
pub(crate) struct Client {
    connection: Connection,
    /// Cache of workspaces, by their names in the organization.
    known: Mutex<HashMap<String, Known>>,
}

/// Cached information on a workspace: its lock, its last state, and whether a write has failed.
#[derive(Clone)]
struct Known {
    workspace: Workspace,
    /// ID of the lock that is held.
    lock: Option<String>,
    /// Identification of the state that was last read or written.
    snapshot: Option<Snapshot>,
    /// True if a state could not be written. The workspace then stays locked, so that no other run continues from an older state.
    failed: bool,
}

const READ: &str = "Error reading the state";
const WRITE: &str = "Error writing the state";

fn failed(summary: &str, what: &str, error: &ApiError) -> Diagnostics {
    Diagnostic::error(summary, format!("{what}: {error}.")).into()
}

impl Client {
    fn known(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the cached workspace.
    fn known_facts(&self, name: &str) -> Option<Known> {
        self.known().get(name).cloned()
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Known)) {
        if let Some(known) = self.known().get_mut(name) {
            change(known);
        }
    }

    /// Returns the name that a workspace has in the organization.
    fn remote_name(&self, workspace: &str) -> Result<String> {
        let name = self.connection.settings.remote_name(workspace);
        name.ok_or_else(|| {
            let problem = match (workspace, &self.connection.settings.mapping) {
                (DEFAULT, _) => Diagnostic::error(
                    "No default workspace",
                    "Workspaces of HCP Terraform and Terraform Enterprise have names of their own, and none is called \"default\" \
                     here. Select one with \"workspace select\".",
                ),
                (_, Mapping::Name(name)) => Diagnostic::error(
                    "Workspaces not supported",
                    format!(
                        "The configuration names one workspace, \"{name}\", so there is none called \"{workspace}\". To have several, \
                         use tags (in a cloud block) or a prefix (in a backend \"remote\") in place of the name."
                    ),
                ),
                _ => Diagnostic::error("Invalid workspace", format!("There can be no workspace \"{workspace}\".")),
            };
            problem.into()
        })
    }

    fn learned(&self, workspace: Workspace) -> Known {
        let known = Known {
            workspace,
            lock: None,
            snapshot: None,
            failed: false,
        };
        self.known()
            .entry(known.workspace.name.clone())
            // An existing entry may contain the held lock, so it is not replaced.
            .or_insert(known)
            .clone()
    }

    /// Returns a workspace. A missing workspace is created.
    async fn ensured(&self, workspace: &str) -> Result<Known> {
        let name = self.remote_name(workspace)?;
        if let Some(known) = self.known_facts(&name) {
            return Ok(known);
        }
        let ensured = self.connection.ensure(&name).await.map_err(|error| {
            let mut why = error.to_string();
            // The error text is a part of a sentence, but begins a sentence here.
            if let Some(first) = why.get(..1).map(str::to_uppercase) {
                why.replace_range(..1, &first);
            }
            Diagnostics::from(Diagnostic::error("Failed to open the workspace", format!("{why}.")))
        })?;
        Ok(self.learned(ensured))
    }

    /// Returns a workspace if it exists.
    async fn found(&self, workspace: &str) -> Result<Option<Known>> {
        let name = self.remote_name(workspace)?;
        if let Some(known) = self.known_facts(&name) {
            return Ok(Some(known));
        }
        let found = self.connection.workspace(&name).await;
        let found = found.map_err(|e| failed(READ, &format!("The workspace \"{name}\" cannot be read"), &e))?;
        Ok(found.map(|workspace| self.learned(workspace)))
    }

    /// Returns the ID with which `force-unlock` releases the lock of a workspace.
    fn lock_id(&self, workspace: &Workspace) -> String {
        format!("{}/{}", self.connection.settings.organization, workspace.name)
    }
}

#[async_trait]
impl StateClient for Client {
    fn support(&self) -> WorkspaceSupport {
        match (&self.connection.settings.mapping, self.connection.settings.kind) {
            (Mapping::Name(_), Kind::Remote) => WorkspaceSupport::Single,
            _ => WorkspaceSupport::NamedWithoutDefault,
        }
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        let listed = self.connection.workspaces().await;
        listed.map_err(|e| failed("Failed to list workspaces", "The workspaces cannot be listed", &e))
    }

    async fn read(&self, workspace: &str) -> Result<Option<Vec<u8>>> {
        let Some(known) = self.found(workspace).await? else {
            return Ok(None);
        };
        let name = &known.workspace.name;
        let state = self.connection.read_state(&known.workspace).await;
        let state = state.map_err(|e| {
            failed(
                READ,
                &format!("The state of the workspace \"{name}\" cannot be read"),
                &e,
            )
        })?;
        let snapshot = state.as_deref().and_then(Snapshot::read);
        self.change(name, |known| known.snapshot = snapshot);
        Ok(state)
    }

    async fn write(&self, workspace: &str, state: Vec<u8>) -> Result<()> {
        let mut known = self.ensured(workspace).await?;
        // Writing an empty state only creates the workspace.
        if state.is_empty() {
            return Ok(());
        }
        let name = &known.workspace.name.clone();
        let snapshot = Snapshot::read(&state);
        // Only `state push -force` writes a state with another lineage or without a higher serial. In this case `force` is set, so that the
        // server does not compare the states.
        let force = match (&known.snapshot, &snapshot) {
            (Some(before), Some(after)) => before.lineage != after.lineage || before.serial >= after.serial,
            _ => false,
        };
        // Without a lock, the workspace may have been deleted meanwhile. It is then created again, which needs the state a second time.
        let again = known.lock.is_none().then(|| state.clone());
        let mut written = self
            .connection
            .write_state(&known.workspace, Upload { state, force })
            .await;
        if let (Err(ApiError::NotFound), Some(state)) = (&written, again) {
            self.known().remove(name);
            known = self.ensured(workspace).await?;
            written = self
                .connection
                .write_state(&known.workspace, Upload { state, force })
                .await;
        }
        self.change(name, |known| {
            known.failed = written.is_err();
            if written.is_ok() {
                known.snapshot = snapshot;
            }
        });
        written.map_err(|e| {
            let mut what = format!("The state of the workspace \"{name}\" cannot be written");
            if known.lock.is_some() {
                what.push_str(", and the workspace stays locked");
            }
            failed(WRITE, &what, &e)
        })
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        if let (Mapping::Name(name), Kind::Cloud) = (&self.connection.settings.mapping, self.connection.settings.kind) {
            let detail = format!("The configuration names one workspace, \"{name}\", which is not deleted from here.");
            return Err(Diagnostic::error("Workspaces not supported", detail).into());
        }
        let name = self.remote_name(workspace)?;
        // The entry is removed whatever the result is, so that the workspace is requested again.
        self.known().remove(&name);
        let deleted = self.connection.delete(&name).await;
        deleted.map_err(|e| {
            let what = format!("The workspace \"{name}\" cannot be deleted");
            failed("Failed to delete the workspace", &what, &e)
        })
    }

    async fn lock(&self, workspace: &str, info: LockInfo) -> std::result::Result<String, LockError> {
        let known = self.ensured(workspace).await?;
        match self.connection.lock(&known.workspace).await {
            Ok(()) => {
                let id = info.id.clone();
                self.change(&known.workspace.name, |known| {
                    known.lock = Some(info.id);
                    known.failed = false;
                });
                Ok(id)
            }
            Err(LockProblem::Held(said)) => {
                // The API does not tell the holder. The ID is the one with which `force-unlock` releases the lock.
                let holder = LockInfo {
                    id: self.lock_id(&known.workspace),
                    path: known.workspace.name,
                    ..LockInfo::default()
                };
                Err(LockError::held(Some(holder), said))
            }
            Err(LockProblem::Failed(e)) => {
                let what = format!("The workspace \"{}\" cannot be locked", known.workspace.name);
                Err(failed("Error acquiring the state lock", &what, &e).into())
            }
        }
    }

    async fn unlock(&self, workspace: &str, id: &str) -> Result<()> {
        const UNLOCK: &str = "Cannot release the state lock";
        let Some(known) = self.found(workspace).await? else {
            return Ok(());
        };
        let name = &known.workspace.name;
        if known.lock.as_deref() == Some(id) {
            // The workspace stays locked on purpose. The error of the write has reported that.
            if known.failed {
                return Ok(());
            }
            let unlocked = self.connection.unlock(&known.workspace).await;
            self.change(name, |known| known.lock = None);
            return unlocked.map_err(|e| failed(UNLOCK, &format!("The workspace \"{name}\" stays locked"), &e));
        }
        let expected = self.lock_id(&known.workspace);
        if id != expected {
            let detail = format!("The lock ID \"{id}\" does not match the existing lock ID \"{expected}\".");
            return Err(Diagnostic::error(UNLOCK, detail).into());
        }
        let unlocked = self.connection.force_unlock(&known.workspace).await;
        unlocked.map_err(|e| match e {
            ApiError::Conflict(_) => {
                Diagnostic::error(UNLOCK, format!("The workspace \"{name}\" is not locked.")).into()
            }
            e => failed(UNLOCK, &format!("The workspace \"{name}\" stays locked"), &e),
        })
    }
}
