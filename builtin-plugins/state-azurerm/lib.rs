//! The state store `azurerm`: states as block blobs of a container in Azure Storage.
//!
//! The default workspace is the blob `KEY`, every other one `KEYenv:NAME`. A lock is an infinite lease of the blob, whose ID is
//! the ID of the lock; its holder is in the metadata of the blob.
//!
//! - [`config`]: the arguments; [`settings`]: their effective values, with those of the environment; [`clouds`]: service
//!   addresses of a cloud.
//! - [`login`]: tokens of Entra ID, by certificates, secrets, federated tokens, managed identities, and the Azure CLI.
//! - [`access`]: signatures by account key, by shared access signature, or by token. [`manager`]: address and keys of the account
//!   from the Resource Manager.
//! - [`client`]: the blobs and leases. It makes its own requests: the official library is young and has no account keys, and
//!   `object_store` knows neither leases nor the metadata of a blob.
//! - [`vault`]: keys of Key Vault for the key provider `azure_vault`, whose credentials are those of this backend.

mod access;
mod client;
mod clouds;
mod config;
mod login;
mod manager;
mod settings;
#[cfg(test)]
mod tests;
mod vault;

use std::sync::Arc;

use monoform_sdk::{Diagnostics, Result, StateClient, StateStore, async_trait};
use store_client::guard::Guarded;

pub use config::Config;
pub use vault::Vault;

/// Name of the store, which is that of the backend.
pub const NAME: &str = "azurerm";

#[must_use]
pub fn store() -> impl StateStore {
    Azure
}

struct Azure;

#[async_trait]
impl StateStore for Azure {
    type Config = Config;

    fn validate(&self, config: &Config) -> Diagnostics {
        config.problems()
    }

    async fn configure(&self, config: Config) -> Result<Arc<dyn StateClient>> {
        let settings = settings::Settings::new(&config).await?;
        Ok(Arc::new(Guarded::new(client::Client::connect(settings).await?)))
    }
}
