//! Where running plugins come from.

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
    /// Problems that are still to be reported.
    Problems(Diagnostics),
}

impl StartError {
    /// The problems that are still to be reported; none if all are.
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

/// Starts plugins for an operation: each call starts a process of its own.
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

    /// The provider that is used for a provider configuration in place of a process that is started and configured for it.
    /// Its block in the configuration is not evaluated.
    fn stand_in(&self, _: &AbsProviderConfig) -> Option<Arc<dyn Provider>> {
        None
    }

    /// The provider that is called for one object in place of that of its provider configuration, which is passed in.
    fn for_object(
        &self,
        _: &AbsProviderConfig,
        _: &AbsResourceInstance,
        provider: Arc<dyn Provider>,
    ) -> Arc<dyn Provider> {
        provider
    }

    /// The outputs of a module instance that is not expanded: it has no objects, and nothing in it is evaluated.
    fn module_outputs(&self, _: &ModuleInstance) -> Option<BTreeMap<Arc<str>, Value>> {
        None
    }

    /// Whether there are any modules with [`ProviderSource::module_outputs`].
    fn has_module_outputs(&self) -> bool {
        false
    }
}
