//! The state store `cos`: states as objects of a bucket in Tencent Cloud's object storage.
//!
//! The default workspace is the object `PREFIX/KEY`, every other one `PREFIX/NAME/KEY`. A lock is an object beside the state that
//! ends with `.tflock`; so that only one program makes it, a tag of the account is made before and removed after, which only one
//! can make. The MD5 of the lock is its name.
//!
//! - [`config`]: the arguments, and what they and the environment say together.
//! - [`credentials`]: who we are: keys, profiles, the role of the machine, roles that are taken on.
//! - [`sign`]: the two signatures of Tencent Cloud; [`cloud`]: requests to its services, and what their answers say.
//! - [`client`]: the objects and locks.

mod client;
mod cloud;
mod config;
mod credentials;
mod services;
mod sign;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use monoform_sdk::{Diagnostics, Result, StateClient, StateStore, async_trait};
use store_client::guard::Guarded;

pub use config::Config;

/// The store's name.
pub const NAME: &str = "cos";

/// The store.
#[must_use]
pub fn store() -> impl StateStore {
    Cos
}

struct Cos;

#[async_trait]
impl StateStore for Cos {
    type Config = Config;

    fn validate(&self, config: &Config) -> Diagnostics {
        config.problems()
    }

    async fn configure(&self, config: Config) -> Result<Arc<dyn StateClient>> {
        let client = client::Client::new(config.settings()?);
        // What is wrong with the credentials is told now, and not at the first state.
        client.check().await?;
        Ok(Arc::new(Guarded::new(client)))
    }
}
