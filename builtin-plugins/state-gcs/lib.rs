//! The state store `gcs`: states as objects of a bucket in Google Cloud Storage.
//!
//! Every workspace, including the default one, is an object `PREFIX/NAME.tfstate`. Its lock is the object `PREFIX/NAME.tflock`, which is
//! created only if it does not exist, and removed only if it still has the generation that was created. The lock ID is this generation.
//!
//! - [`config`]: the arguments, and their effective values, including the environment.
//! - [`credentials`]: tokens from access tokens, service account keys, application default credentials and the machine; [`federation`]:
//!   workload identity federation.
//! - [`client`]: the objects and locks, by the JSON API. The store makes its own requests, of which there are only five kinds: the official
//!   library depends on gRPC, and `object_store` supports neither customer-supplied keys nor conditional deletes.
//! - [`kms`]: keys of Cloud KMS for the key provider `gcp_kms`, which has the same credential arguments as this backend.

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

/// Name of the store, which is the backend type.
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
