//! The state store `oci`: states as objects of a bucket in Oracle Cloud's object storage.
//!
//! The default workspace is the object `KEY`, every other one `PREFIX/NAME/KEY`. A lock is an object beside the state with the
//! extension `.lock`, which is created only if it does not exist.
//!
//! - [`config`]: the arguments; [`settings`]: their effective values, with those of the environment. [`region`]: addresses of
//!   regions.
//! - [`auth`]: identities: keys of users, and tokens of machines and programs. [`profile`]: the configuration file; [`key`]:
//!   private keys; [`federation`]: exchange of certificates and of cluster accounts for tokens.
//! - [`cloud`]: signed requests, and the errors in their answers. [`signature`]: their signatures, by an [`identity`].
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

/// Name of the store, which is that of the backend.
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
        // Wrong credentials are reported by `init`, and not by the first read.
        client.check().await?;
        Ok(Arc::new(Guarded::new(client)))
    }
}
