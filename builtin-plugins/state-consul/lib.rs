//! The state store `consul`: states as keys of a Consul cluster.
//!
//! The default workspace is the key `PATH`, every other one `PATH-env:NAME`. A lock is the key `…/.lock`, acquired by a session
//! that is renewed as long as the lock is held; its ID is the name of the lock. Who holds it is in `…/.lockinfo`. A state that is
//! too large for one value is in several keys below `…/tfstate.MD5/`, which the key of the workspace lists.
//!
//! - [`config`]: the arguments, and what they and the environment say together.
//! - [`kv`]: the requests; [`locks`]: sessions and who holds them; [`client`]: the states.

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

/// The store's name.
pub const NAME: &str = "consul";

/// The store.
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
