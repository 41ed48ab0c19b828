//! The state store `cos`: states as objects of a bucket in Tencent Cloud's object storage.
//!
//! The default workspace is the object `PREFIX/KEY`, any other workspace is `PREFIX/NAME/KEY`. A lock is an object beside the state with
//! the extension `.tflock`. Before a program creates it, it creates a tag in the account, which only one program can do, and removes the
//! tag afterwards. The lock ID is the MD5 of the lock object.
//!
//! - [`config`]: the arguments, and their effective values, including the environment.
//! - [`credentials`]: keys, profiles, the role of the machine, and assumed roles.
//! - [`sign`]: the two signatures of Tencent Cloud; [`cloud`]: requests to its services, and their errors.
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

/// Name of the store, which is the backend type.
pub const NAME: &str = "cos";

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
        // Checked here, so that `init` reports wrong credentials, and not only the first read.
        client.check().await?;
        Ok(Arc::new(Guarded::new(client)))
    }
}
