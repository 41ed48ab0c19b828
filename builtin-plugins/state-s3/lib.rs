//! The state store `s3`: states as objects of a bucket in Amazon S3, or in a compatible service.
//!
//! The default workspace is the object `KEY`, any other workspace is `PREFIX/NAME/KEY`. A lock is an object beside the state that is
//! created only if it does not exist (`use_lockfile`), an item of a DynamoDB table (`dynamodb_table`), or both. With a table, the checksum
//! of the state is also an item, and a state with another checksum is refused.
//!
//! - [`config`]: the arguments and their validation; [`settings`]: their effective values, including the environment.
//! - [`credentials`]: credentials from arguments, environment, shared files, roles, processes and the machine.
//! - [`aws`]: signed requests. The crate `reqsign` makes the signatures. Its sources of credentials are not used, because they support
//!   neither roles of profiles nor SSO sessions nor custom endpoints.
//! - [`client`]: the objects, and [`locks`].
//! - [`kms`]: data keys of KMS for the key provider `aws_kms`, which has the same credential arguments as this backend.

mod aws;
mod client;
mod config;
mod credentials;
mod endpoints;
mod kms;
mod locks;
mod services;
mod settings;

use std::sync::Arc;

use monoform_sdk::{Diagnostics, Result, StateClient, StateStore, async_trait};
use store_client::guard::Guarded;

pub use config::Config;
pub use kms::Kms;

/// Name of the store, which is the backend type.
pub const NAME: &str = "s3";

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
