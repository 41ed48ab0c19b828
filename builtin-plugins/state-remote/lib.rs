//! The state stores `remote` and `cloud`: states in workspaces of HCP Terraform or Terraform Enterprise.
//!
//! Both use the same API (the crate `tfe`). They differ in their blocks, in the environment variables for these, and in how workspace names
//! are mapped to names in the organization. A lock is the workspace's own lock. It does not tell its holder, and is released with the ID
//! `ORGANIZATION/WORKSPACE`.
//!
//! [`config`] has the arguments of the two blocks, and [`client`] the requests.

mod client;
mod config;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use monoform_sdk::{Diagnostics, Result, StateClient, StateStore, async_trait};

pub use config::{CloudConfig, RemoteConfig};
pub use files::Environment;

/// Name of the store for a `backend "remote"`.
pub const REMOTE: &str = "remote";

/// Name of the store for a `cloud` block.
pub const CLOUD: &str = "cloud";

/// Creates the store for a `backend "remote"`. `version` is the version of Terraform that the calling program reports. The environment
/// contains tokens, proxies, and defaults of arguments.
#[must_use]
pub fn remote(version: &'static str, environment: Environment) -> impl StateStore {
    Remote(Caller { version, environment })
}

/// Creates the store for a `cloud` block. The parameters are as for [`remote`].
#[must_use]
pub fn cloud(version: &'static str, environment: Environment) -> impl StateStore {
    Cloud(Caller { version, environment })
}

/// Version and environment of the calling program.
struct Caller {
    version: &'static str,
    environment: Environment,
}

struct Remote(Caller);

struct Cloud(Caller);

#[async_trait]
impl StateStore for Remote {
    type Config = RemoteConfig;

    fn validate(&self, config: &RemoteConfig) -> Diagnostics {
        config.settings(&self.0.environment).err().unwrap_or_default()
    }

    async fn configure(&self, config: RemoteConfig) -> Result<Arc<dyn StateClient>> {
        let settings = config.settings(&self.0.environment)?;
        Ok(Arc::new(client::connect(settings, &self.0).await?))
    }
}

#[async_trait]
impl StateStore for Cloud {
    type Config = CloudConfig;

    fn validate(&self, config: &CloudConfig) -> Diagnostics {
        config.settings(&self.0.environment).err().unwrap_or_default()
    }

    async fn configure(&self, config: CloudConfig) -> Result<Arc<dyn StateClient>> {
        let settings = config.settings(&self.0.environment)?;
        Ok(Arc::new(client::connect(settings, &self.0).await?))
    }
}
