//! The state store `gcs`: states as objects of a bucket in Google Cloud Storage.
//!
//! A workspace is the object `PREFIX/NAME.tfstate`, the default one, too. Its lock is the object `PREFIX/NAME.tflock`, which is
//! written only if it is not there, and removed only in the generation that was written; the generation is the name of the lock.
//!
//! - [`config`]: the arguments, and what they and the environment say together.
//! - [`credentials`]: who we are: tokens, keys of service accounts, application default credentials, the machine; [`federation`]:
//!   identities of others that Google accepts.
//! - [`client`]: the objects and locks, by the JSON interface of the service. The five requests are ours: the official library
//!   brings gRPC along, and `object_store` has neither keys of our own nor conditions for removal.

mod client;
mod config;
mod credentials;
mod federation;
mod impersonation;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use monoform_sdk::{Diagnostics, Result, StateClient, StateStore, async_trait};
use store_client::guard::Guarded;

pub use config::Config;

/// The store's name.
pub const NAME: &str = "gcs";

/// The store.
#[must_use]
pub fn store() -> impl StateStore {
    Gcs
}

struct Gcs;

#[async_trait]
impl StateStore for Gcs {
    type Config = Config;

    fn validate(&self, config: &Config) -> Diagnostics {
        config.problems()
    }

    async fn configure(&self, config: Config) -> Result<Arc<dyn StateClient>> {
        Ok(Arc::new(Guarded::new(client::Client::new(config.settings()?))))
    }
}
