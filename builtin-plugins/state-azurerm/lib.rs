//! The state store `azurerm`: states as block blobs of a container in Azure Storage.
//!
//! The default workspace is the blob `KEY`, every other one `KEYenv:NAME`. A lock is a lease of the blob without end, whose ID is
//! the name of the lock; who holds it is in the metadata of the blob.
//!
//! - [`config`]: the arguments; [`settings`]: what they and the environment say together; [`clouds`]: where the services of a
//!   cloud are.
//! - [`login`]: tokens of Entra ID, from certificates, secrets, tokens of others, the machine, and the command line of Azure.
//! - [`access`]: how requests to the storage are signed: by key, by a signed address, by token. [`manager`]: what the Resource
//!   Manager says about the account, its keys among that.
//! - [`client`]: the blobs and leases. The requests are ours: the official library is young and has no keys of accounts, and
//!   `object_store` knows neither leases nor the metadata of a blob.

mod access;
mod client;
mod clouds;
mod config;
mod login;
mod manager;
mod settings;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use monoform_sdk::{Diagnostics, Result, StateClient, StateStore, async_trait};
use store_client::guard::Guarded;

pub use config::Config;

/// The store's name.
pub const NAME: &str = "azurerm";

/// The store.
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
