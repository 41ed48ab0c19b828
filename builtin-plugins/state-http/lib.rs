//! The state store `http`: a state on a web server that supports GET, POST and, for locks, two more methods.
//!
//! | operation | request | answers |
//! | --- | --- | --- |
//! | read | GET `address` | 200 with the state; 204, 404 or an empty body for none |
//! | write | `update_method` (POST) `address`, with `?ID=` of the lock that is held | 200, 201, 204 |
//! | lock | `lock_method` (LOCK) `lock_address`, with the lock information as JSON | 200; 409 or 423 with that of the holder |
//! | unlock | `unlock_method` (UNLOCK) `unlock_address`, with the same JSON | 200 |
//!
//! [`config`] has the arguments and their values from the environment; [`client`] makes the requests.

mod client;
mod config;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use monoform_sdk::{Result, StateClient, StateStore, async_trait};
use store_client::guard::Guarded;

pub use config::Config;

/// Name of the store, which is the backend type.
pub const NAME: &str = "http";

#[must_use]
pub fn store() -> impl StateStore {
    Http
}

struct Http;

#[async_trait]
impl StateStore for Http {
    type Config = Config;

    async fn configure(&self, config: Config) -> Result<Arc<dyn StateClient>> {
        Ok(Arc::new(Guarded::new(client::Client::new(config.settings()?))))
    }
}
