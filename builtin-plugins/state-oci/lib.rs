//! The state store `oci`: states as objects of a bucket in Oracle Cloud's object storage.
//!
//! The default workspace is the object `KEY`, any other workspace is `PREFIX/NAME/KEY`. A lock is an object beside the state with the
//! extension `.lock`, which is created only if it does not exist.
//!
//! - [`config`]: the arguments; [`settings`]: their effective values, including the environment; [`region`]: service addresses of regions.
//! - [`auth`]: sources of identities; [`profile`]: the configuration file; [`key`]: private keys; [`federation`]: exchange of certificates
//!   and service accounts for tokens.
//! - [`cloud`]: signed requests, and the errors that they return; [`signature`]: their signatures; [`identity`]: the keys that sign.
//! - [`client`]: the objects and locks; [`upload`]: large objects.

mod auth;
mod client;
mod cloud;
mod config;
mod federation;
mod identity;
mod key;
mod kind;
mod profile;
mod region;
mod requests;
mod settings;
mod signature;
#[cfg(test)]
mod tests;
mod upload;

use std::sync::Arc;

use monoform_sdk::{Diagnostics, Result, StateClient, StateStore, async_trait};
use store_client::guard::Guarded;

pub use config::Config;

/// Name of the store, which is the backend type.
pub const NAME: &str = "oci";

#[must_use]
pub fn store() -> impl StateStore {
    Oci
}

struct Oci;

#[async_trait]
impl StateStore for Oci {
    type Config = Config;

    fn validate(&self, config: &Config) -> Diagnostics {
        config.problems()
    }

    async fn configure(&self, config: Config) -> Result<Arc<dyn StateClient>> {
        let client = client::Client::new(settings::effective(&config)?);
        // Checked here, so that `init` reports wrong credentials, and not only the first read.
        client.check().await?;
        Ok(Arc::new(Guarded::new(client)))
    }
}
