//! The state store `kubernetes`: states as secrets of a namespace.
//!
//! A workspace is the secret `tfstate-NAME-SUFFIX`, the state compressed in it; a large one goes on in secrets that end with
//! `-part-1` and so on. Its lock is the lease `lock-tfstate-NAME-SUFFIX`: held if it has a holder, whose name is that of the lock.
//!
//! - [`config`]: the arguments, and what they and the environment say together.
//! - [`kubeconfig`]: the files in which `kubectl` keeps clusters and users; [`yaml`]: how they are written.
//! - [`session`]: who we are to the cluster; [`exec`]: programs that know it.
//! - [`api`]: requests and what their answers say; [`client`]: secrets and leases.
//!
//! The requests are ours: the library `kube` brings types of all of Kubernetes and a client of its own along, for seven requests.

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

/// The store's name.
pub const NAME: &str = "kubernetes";

/// The store.
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
