//! The state store `oss`: states as objects of a bucket in Alibaba Cloud's object storage.
//!
//! The default workspace is the object `PREFIX/KEY`, any other workspace is `PREFIX/NAME/KEY`. With a Tablestore table, a lock is a row
//! that is created only if it does not exist. The checksum of the state is also a row, and a state with another checksum is refused.
//! Without a table there are no locks.
//!
//! - [`config`]: the arguments; [`settings`]: their effective values, including the environment and a profile.
//! - [`credentials`]: keys, profiles, roles of machines, and assumed roles.
//! - [`sign`]: the three signature methods of Alibaba Cloud; [`cloud`]: requests to its services, and the errors that they return.
//! - [`client`]: the objects; [`table`]: the rows; [`row`]: their encoding.

mod client;
mod cloud;
mod config;
mod credentials;
mod row;
mod services;
mod settings;
mod sign;
mod table;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use monoform_sdk::{Diagnostics, Result, StateClient, StateStore, async_trait};
use store_client::guard::Guarded;

pub use config::Config;

/// Name of the store, which is the backend type.
pub const NAME: &str = "oss";

#[must_use]
pub fn store() -> impl StateStore {
    Oss
}

struct Oss;

#[async_trait]
impl StateStore for Oss {
    type Config = Config;

    fn validate(&self, config: &Config) -> Diagnostics {
        config.problems()
    }

    async fn configure(&self, config: Config) -> Result<Arc<dyn StateClient>> {
        let client = client::Client::new(settings::effective(&config)?);
        // Checked here, so that `init` reports wrong credentials or a missing table, and not only the first read.
        client.check().await?;
        Ok(Arc::new(Guarded::new(client)))
    }
}
