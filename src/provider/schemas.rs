//! Schemas of all providers of an operation.

use std::collections::BTreeMap;
use std::sync::Arc;

use schema::Schema;

use crate::ProviderSchema;

/// The schemas of all providers and provisioners of an operation.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    pub providers: BTreeMap<addrs::Provider, Arc<ProviderSchema>>,
    /// Schemas by type of provisioner.
    pub provisioners: BTreeMap<Arc<str>, Arc<Schema>>,
}

impl Schemas {
    /// Returns the schema of a resource type; `None` if the provider has no such type, or its schema is invalid.
    #[must_use]
    pub fn resource(&self, provider: &addrs::Provider, mode: addrs::Mode, ty: &str) -> Option<&Schema> {
        let provider = self.providers.get(provider)?;
        match mode {
            addrs::Mode::Managed => provider.resources.get(ty),
            addrs::Mode::Data => provider.data_sources.get(ty),
            addrs::Mode::Ephemeral => provider.ephemeral.get(ty),
            addrs::Mode::List => provider.lists.get(ty).map(|list| &list.block),
        }
    }

    /// Returns the schema of an action type; `None` if the provider has no such type, or its schema is invalid.
    #[must_use]
    pub fn action(&self, provider: &addrs::Provider, ty: &str) -> Option<&Schema> {
        self.providers.get(provider)?.actions.get(ty)
    }

    /// Returns the reason why the schema of a resource type cannot be used; `None` if it can, or does not exist.
    #[must_use]
    pub fn resource_problem(&self, provider: &addrs::Provider, mode: addrs::Mode, ty: &str) -> Option<&str> {
        let provider = self.providers.get(provider)?;
        match mode {
            addrs::Mode::Managed => provider.resources.problem(ty),
            addrs::Mode::Data => provider.data_sources.problem(ty),
            addrs::Mode::Ephemeral => provider.ephemeral.problem(ty),
            addrs::Mode::List => provider.lists.problem(ty),
        }
    }

    /// Returns the reason why the schema of an action type cannot be used; `None` if it can, or does not exist.
    #[must_use]
    pub fn action_problem(&self, provider: &addrs::Provider, ty: &str) -> Option<&str> {
        self.providers.get(provider)?.actions.problem(ty)
    }
}
