//! Where running plugins come from.

use std::sync::Arc;

use async_trait::async_trait;
use syntax::Diagnostics;

use crate::{Provider, Provisioner};

/// Starts plugins for an operation: each call starts a process of its own.
#[async_trait]
pub trait ProviderSource: Send + Sync {
    /// Starts a process of this provider.
    ///
    /// # Errors
    /// The provider is not available, or does not start.
    async fn start(&self, provider: &addrs::Provider) -> Result<Arc<dyn Provider>, Diagnostics>;
    /// Starts a process of this provisioner.
    ///
    /// # Errors
    /// The provisioner is not available, or does not start.
    async fn start_provisioner(&self, name: &str) -> Result<Arc<dyn Provisioner>, Diagnostics>;
}
