//! The state store `oss`: states as objects of a bucket in Alibaba Cloud's object storage.
//!
//! The default workspace is the object `PREFIX/KEY`, every other one `PREFIX/NAME/KEY`. With a table of Tablestore, a lock is a
//! row that is created only if it does not exist, and the checksum of the state is a row, too: a state with another checksum is
//! refused. Without a table there are no locks.
//!
//! - [`config`]: the arguments; [`settings`]: their effective values, with those of the environment and of a profile.
//! - [`credentials`]: keys, profiles, the role of the machine, and assumed roles.
//! - [`sign`]: the three signatures of Alibaba Cloud; [`cloud`]: requests to its services, and their errors.
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

/// Name of the store, which is that of the backend.
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
        // Wrong credentials or a missing table are reported by `init`, and not by the first read.
        client.check().await?;
        Ok(Arc::new(Guarded::new(client)))
    }
}
