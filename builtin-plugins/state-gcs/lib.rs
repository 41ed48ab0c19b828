//! The state store `gcs`: states as objects of a bucket in Google Cloud Storage.
//!
//! A workspace is the object `PREFIX/NAME.tfstate`, also the default one. Its lock is the object `PREFIX/NAME.tflock`, which is
//! created only if it does not exist, and removed only in the generation that was created; the generation is the ID of the lock.
//!
//! - [`config`]: the arguments, and their effective values with those of the environment.
//! - [`credentials`]: tokens, keys of service accounts, application default credentials, the machine; [`federation`]: identities
//!   of other providers that Google accepts.
//! - [`client`]: the objects and locks, by the JSON API. The store makes its own five requests: the official library brings gRPC
//!   along, and `object_store` has neither customer-supplied keys nor conditional deletes.
//! - [`kms`]: keys of Cloud KMS for the key provider `gcp_kms`, whose credentials are those of this backend.

mod client;
mod config;
mod credentials;
mod federation;
mod impersonation;
mod kms;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use monoform_sdk::{Diagnostics, Result, StateClient, StateStore, async_trait};
use store_client::guard::Guarded;

pub use config::Config;
pub use kms::Kms;

/// Name of the store, which is that of the backend.
pub const NAME: &str = "gcs";

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
