//! The state store `consul`: states as keys of a Consul cluster.
//!
//! The default workspace is the key `PATH`, every other one `PATH-env:NAME`. A lock is the key `…/.lock`, held by a session that
//! is renewed while the lock is held; the ID of the session is the ID of the lock. The key `…/.lockinfo` names the holder. A
//! state that is too large for one value is in several keys below `…/tfstate.MD5/`, which the key of the workspace lists.
//!
//! - [`config`]: the arguments, and their effective values with those of the environment.
//! - [`kv`]: the requests; [`locks`]: sessions and their holders; [`client`]: the states.

mod client;
mod config;
mod kv;
mod locks;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use monoform_sdk::{Diagnostics, Result, StateClient, StateStore, async_trait};
use store_client::guard::Guarded;

pub use config::Config;

/// Name of the store, which is that of the backend.
pub const NAME: &str = "consul";

#[must_use]
pub fn store() -> impl StateStore {
    Consul
}

struct Consul;

#[async_trait]
impl StateStore for Consul {
    type Config = Config;

    fn validate(&self, config: &Config) -> Diagnostics {
        config.problems()
    }

    async fn configure(&self, config: Config) -> Result<Arc<dyn StateClient>> {
        Ok(Arc::new(Guarded::new(client::Client::new(config.settings()?))))
    }
}
