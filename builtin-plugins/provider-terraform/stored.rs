//! Reads states from state stores that run in this process.

use std::sync::Arc;

use monoform_sdk::cty::Value;
use monoform_sdk::state_store::{DEFAULT, LockInfo, WorkspaceSupport};
use monoform_sdk::{AnyStateStore, Diagnostic, Diagnostics, Result, StateClient};

use crate::{Stores, VERSION};

/// Creates the store with this name; `None` if the executable does not have it.
pub(crate) fn find(stores: Stores, name: &str) -> Option<AnyStateStore> {
    stores.iter().find(|(store, _)| *store == name).map(|(_, make)| make())
}

/// Moves the errors of a store's configuration to `config`, the argument that contains it.
fn of_config(problems: Diagnostics) -> Diagnostics {
    let at = |problem: Diagnostic| Diagnostic {
        attribute: None,
        ..problem
    };
    Diagnostics(problems.0.into_iter().map(|p| at(p).at_attribute("config")).collect())
}

/// Validates the configuration of a store.
pub(crate) fn validate(store: &AnyStateStore, config: &Value) -> Diagnostics {
    of_config(match store.coerce(config) {
        Ok(config) => store.validate(&config),
        Err(problems) => problems,
    })
}

pub(crate) async fn read(store: &AnyStateStore, config: &Value, workspace: &str) -> Result<Option<Vec<u8>>> {
    let config = store.coerce(config).map_err(of_config)?;
    let found = store.validate(&config);
    if found.has_errors() {
        return Err(of_config(found));
    }
    let client = store.configure(&config).await.map_err(of_config)?;
    open(&client, workspace).await?;
    client.read(workspace).await
}

async fn open(client: &Arc<dyn StateClient>, workspace: &str) -> Result<()> {
    let is_default = workspace == DEFAULT;
    let exists = match client.support() {
        WorkspaceSupport::Single if is_default => true,
        WorkspaceSupport::Single => {
            return Err(Diagnostic::error(
                "Workspaces not supported",
                format!(
                    "This backend has one state only, and no workspace called {workspace:?}. Leave \"workspace\" out."
                ),
            )
            .at_attribute("workspace")
            .into());
        }
        WorkspaceSupport::NamedAndDefault if is_default => true,
        WorkspaceSupport::NamedWithoutDefault => return client.write(workspace, Vec::new()).await,
        WorkspaceSupport::NamedByState => client.read(workspace).await?.is_some(),
        _ => client.workspaces().await?.iter().any(|name| name == workspace),
    };
    // As in Terraform, a workspace that does not exist is created with an empty state, as any command would do.
    if exists {
        return Ok(());
    }
    let info = LockInfo {
        version: VERSION.to_owned(),
        ..LockInfo::of_this_process("init")
    };
    let id = client
        .lock(workspace, info)
        .await
        .map_err(|error| error.into_diagnostics())?;
    let create = async {
        if client.read(workspace).await?.is_some() {
            return Ok(());
        }
        let lineage = uuid::Uuid::new_v4();
        let empty = format!(
            "{{\n  \"version\": 4,\n  \"terraform_version\": \"{VERSION}\",\n  \"serial\": 1,\n  \"lineage\": \"{lineage}\",\n  \
             \"outputs\": {{}},\n  \"resources\": [],\n  \"check_results\": null\n}}\n"
        );
        client.write(workspace, empty.into_bytes()).await
    };
    let created = create.await;
    client.unlock(workspace, &id).await?;
    created
}
