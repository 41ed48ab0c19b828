//! The state store `consul`: states as keys of a Consul cluster.
//!
//! The default workspace is the key `PATH`, any other workspace is `PATH-env:NAME`. A lock is the key `…/.lock`, held by a session that is
//! renewed while the lock is held. The lock ID is the session ID. The key `…/.lockinfo` names the holder. A state that is too large for one
//! value is split into several keys below `…/tfstate.MD5/`, and the key of the workspace contains their list.
//!
//! - [`config`]: the arguments, and their effective values, including the environment.
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

/// Name of the store, which is the backend type.
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
