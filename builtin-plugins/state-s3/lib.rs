//! The state store `s3`: states as objects of a bucket in Amazon S3, or in a service that speaks its protocol.
//!
//! The default workspace is the object `KEY`, every other one `PREFIX/NAME/KEY`. A lock is an object beside the state that is
//! created only if it is not there (`use_lockfile`), an item of a DynamoDB table (`dynamodb_table`), or both. With a table, the
//! checksum of the state is an item of it, too, and a state with another checksum is not believed.
//!
//! - [`config`]: the arguments, and what is wrong with them; [`settings`]: what they and the environment say together.
//! - [`credentials`]: who we are, from arguments, environment, files, roles, processes, and the machine.
//! - [`aws`]: signed requests. The signatures are those of the library `reqsign`; its sources of credentials know neither roles
//!   of profiles nor sessions of SSO nor other endpoints, so those are ours.
//! - [`client`]: the objects, and [`locks`].

mod aws;
mod client;
mod config;
mod credentials;
mod endpoints;
mod locks;
mod services;
mod settings;

use std::sync::Arc;

use monoform_sdk::{Diagnostics, Result, StateClient, StateStore, async_trait};
use store_client::guard::Guarded;

pub use config::Config;

/// The store's name.
pub const NAME: &str = "s3";

/// The store.
#[must_use]
pub fn store() -> impl StateStore {
    S3
}

struct S3;

#[async_trait]
impl StateStore for S3 {
    type Config = Config;

    fn validate(&self, config: &Config) -> Diagnostics {
        config.problems()
    }

    async fn configure(&self, config: Config) -> Result<Arc<dyn StateClient>> {
        let settings = settings::Settings::new(&config)?;
        Ok(Arc::new(Guarded::new(client::Client::connect(settings).await?)))
    }
}
