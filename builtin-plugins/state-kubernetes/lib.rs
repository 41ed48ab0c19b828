//! The state store `kubernetes`: states as secrets of a namespace.
//!
//! A workspace is the secret `tfstate-NAME-SUFFIX`, which contains the compressed state. A large state continues in secrets whose names end
//! in `-part-1` and so on. Its lock is the lease `lock-tfstate-NAME-SUFFIX`. The lease locks the state if it names a holder, and that name
//! is the lock ID.
//!
//! - [`config`]: the arguments, and their effective values, including the environment.
//! - [`kubeconfig`]: clusters and users of `kubectl`; [`yaml`]: the syntax of its files.
//! - [`session`]: HTTP client and credentials for the cluster; [`exec`]: credential plugins.
//! - [`api`]: requests and errors; [`client`]: secrets and leases.
//!
//! The store makes its own requests, of which there are only seven kinds: the crate `kube` would add types for all of Kubernetes and
//! another HTTP client.

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

/// Name of the store, which is the backend type.
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
