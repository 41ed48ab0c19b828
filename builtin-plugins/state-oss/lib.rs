//! The state store `oss`: states as objects of a bucket in Alibaba Cloud's object storage.
//!
//! The default workspace is the object `PREFIX/KEY`, every other one `PREFIX/NAME/KEY`. With a table of Tablestore, a lock is a
//! row of it that is made only if it is not there, and the checksum of the state is a row, too: a state with another checksum is
//! not believed. Without a table nothing keeps others out.
//!
//! - [`config`]: the arguments; [`settings`]: what they, the environment and a profile say together.
//! - [`credentials`]: who we are: keys, profiles, the role of the machine, roles that are taken on.
//! - [`sign`]: the three signatures of Alibaba Cloud; [`cloud`]: requests to its services, and what their answers say.
//! - [`client`]: the objects; [`table`]: the rows; [`row`]: rows as bytes.

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

/// The store's name.
pub const NAME: &str = "oss";

/// The store.
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
        let client = client::Client::new(settings::of(&config)?);
        // What is wrong with the credentials and the table is told now, and not at the first state.
        client.check().await?;
        Ok(Arc::new(Guarded::new(client)))
    }
}
