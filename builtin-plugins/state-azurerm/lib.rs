//! The state store `azurerm`: states as block blobs of a container in Azure Storage.
//!
//! The default workspace is the blob `KEY`, any other workspace is `KEYenv:NAME`. A lock is an infinite lease of the blob, and the lock ID
//! is the lease ID. The holder is recorded in the metadata of the blob.
//!
//! - [`config`]: the arguments; [`settings`]: their effective values, including the environment; [`clouds`]: service addresses of a cloud.
//! - [`login`]: tokens of Entra ID, by certificates, secrets, federated tokens, managed identities, and the Azure CLI.
//! - [`access`]: signatures by account key, by shared access signature, or by token. [`manager`]: address and keys of the account
//!   from the Resource Manager.
//! - [`client`]: the blobs and leases. It makes its own requests, because the official library does not support account keys, and
//!   `object_store` supports neither leases nor metadata of blobs.
//! - [`vault`]: keys of Key Vault for the key provider `azure_vault`, which has the same credential arguments as this backend.

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

/// Name of the store, which is the backend type.
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
