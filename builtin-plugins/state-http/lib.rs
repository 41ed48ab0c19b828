//! The state store `http`: a state behind any web server that answers GET, POST and, if there are to be locks, two more methods.
//!
//! | what | request | answers |
//! | --- | --- | --- |
//! | read | GET `address` | 200 with the state; 204, 404 or an empty body for none |
//! | write | `update_method` (POST) `address`, with `?ID=` of the lock that is held | 200, 201, 204 |
//! | lock | `lock_method` (LOCK) `lock_address`, with who asks as JSON | 200; 409 or 423 with who holds it |
//! | unlock | `unlock_method` (UNLOCK) `unlock_address`, with the same JSON | 200 |
//!
//! [`config`] is the configuration and what the environment adds; [`client`] makes the requests.

mod client;
mod config;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use monoform_sdk::{Result, StateClient, StateStore, async_trait};
use store_client::guard::Guarded;

pub use config::Config;

/// The store's name.
pub const NAME: &str = "http";

/// The store.
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
