//! [`ProviderSource`] starts the plugin processes of an operation.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::{AbsProviderConfig, AbsResourceInstance, ModuleInstance};
use async_trait::async_trait;
use cty::Value;
use syntax::{Diagnostic, Diagnostics};

use crate::{Provider, Provisioner};

/// The reason why a plugin does not run.
#[derive(Clone, Debug, PartialEq)]
pub enum StartError {
    /// The plugin is not available, which was reported when plugins were selected.
    Reported,
    /// Problems that have not been reported yet.
    Problems(Diagnostics),
}

impl StartError {
    /// Returns the problems that have not been reported; empty if all have been.
    #[must_use]
    pub fn unreported(self) -> Diagnostics {
        match self {
            StartError::Reported => Diagnostics::new(),
            StartError::Problems(problems) => problems,
        }
    }
}

impl From<Diagnostics> for StartError {
    fn from(problems: Diagnostics) -> StartError {
        StartError::Problems(problems)
    }
}

impl From<Diagnostic> for StartError {
    fn from(problem: Diagnostic) -> StartError {
        StartError::Problems(problem.into())
    }
}

/// Source of plugins for an operation. Each call starts a new process.
#[async_trait]
pub trait ProviderSource: Send + Sync {
    /// Starts a process of this provider.
    ///
    /// # Errors
    /// The provider is not available, or does not start.
    async fn start(&self, provider: &addrs::Provider) -> Result<Arc<dyn Provider>, StartError>;
    /// Starts a process of this provisioner.
    ///
    /// # Errors
    /// The provisioner is not available, or does not start.
    async fn start_provisioner(&self, name: &str) -> Result<Arc<dyn Provisioner>, StartError>;

    /// Returns the provider that replaces the process of a provider configuration, if there is one. The
    /// configuration's block is then not evaluated.
    fn stand_in(&self, _: &AbsProviderConfig) -> Option<Arc<dyn Provider>> {
        None
    }

    /// Returns the provider for one object: `provider`, which is that of its provider configuration, or a replacement.
    fn for_object(
        &self,
        _: &AbsProviderConfig,
        _: &AbsResourceInstance,
        provider: Arc<dyn Provider>,
    ) -> Arc<dyn Provider> {
        provider
    }

    /// Returns the outputs that stand for the content of a module instance: the instance has no objects, and its content is not evaluated.
    /// `None` for a module instance that is evaluated.
    fn module_outputs(&self, _: &ModuleInstance) -> Option<BTreeMap<Arc<str>, Value>> {
        None
    }

    /// Returns true if [`ProviderSource::module_outputs`] returns outputs for at least one module.
    fn has_module_outputs(&self) -> bool {
        false
    }
}

/// A source without providers, for evaluation that calls none.
pub struct NoProviders;

#[async_trait]
impl ProviderSource for NoProviders {
    async fn start(&self, _provider: &addrs::Provider) -> Result<Arc<dyn Provider>, StartError> {
        Err(StartError::Reported)
    }

    async fn start_provisioner(&self, _name: &str) -> Result<Arc<dyn Provisioner>, StartError> {
        Err(StartError::Reported)
    }
}
