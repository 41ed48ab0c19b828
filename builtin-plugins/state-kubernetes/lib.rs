//! The state store `kubernetes`: states as secrets of a namespace.
//!
//! A workspace is the secret `tfstate-NAME-SUFFIX` with the compressed state; a large one continues in secrets that end in
//! `-part-1` and so on. Its lock is the lease `lock-tfstate-NAME-SUFFIX`, which is held while it has a holder; the holder's name
//! is the ID of the lock.
//!
//! - [`config`]: the arguments, and their effective values with those of the environment.
//! - [`kubeconfig`]: clusters and users of `kubectl`; [`yaml`]: the syntax of its files.
//! - [`session`]: HTTP client and credentials for the cluster; [`exec`]: credential plugins.
//! - [`api`]: requests and errors; [`client`]: secrets and leases.
//!
//! The store makes its own requests: the crate `kube` brings types of all of Kubernetes and an HTTP client of its own, for seven
//! requests.

mod api;
mod client;
mod config;
mod exec;
mod kubeconfig;
mod session;
#[cfg(test)]
mod tests;
mod yaml;

use std::sync::Arc;

use monoform_sdk::{Diagnostics, Result, StateClient, StateStore, async_trait};
use store_client::guard::Guarded;

pub use config::Config;

/// Name of the store, which is that of the backend.
pub const NAME: &str = "kubernetes";

#[must_use]
pub fn store() -> impl StateStore {
    Kubernetes
}

struct Kubernetes;

#[async_trait]
impl StateStore for Kubernetes {
    type Config = Config;

    fn validate(&self, config: &Config) -> Diagnostics {
        config.problems()
    }

    async fn configure(&self, config: Config) -> Result<Arc<dyn StateClient>> {
        Ok(Arc::new(Guarded::new(client::Client::new(config.settings()?))))
    }
}
