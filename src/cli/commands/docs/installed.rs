//! Providers beside the built-in ones: those that the configuration of the working directory requires, and those of the pack.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addrs::Provider;
use addrs::platform::Platform;
use packages::selection::Selection;
use provider::ProviderSchema;
use syntax::Diagnostics;
use versions::Constraints;

use super::page::Described;
use crate::plugin_source::{Plugins, requirements};
use crate::session::Session;
use crate::workdir;

/// Provider of the configuration or of the pack.
pub(super) struct Available {
    pub provider: Provider,
    constraints: Constraints,
    /// Names of the provider in the configuration: its type, and its local names in `required_providers`.
    names: BTreeSet<String>,
}

impl Available {
    /// Returns true if this prefix of a type or function is a local name of the provider.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns the name, kind, address and version of the selected plugin, for the heading of its pages.
    ///
    /// # Errors
    /// The provider is not installed.
    pub(super) fn described(&self, session: &Session) -> Result<Described, Diagnostics> {
        let needed = BTreeMap::from([(self.provider.clone(), self.constraints.clone())]);
        let selections = session.catalog()?.resolve(&needed)?;
        let selection = selections.providers.get(&self.provider);
        let kind = match selection {
            Some(Selection::Builtin { .. }) => "built-in provider",
            Some(Selection::Packed(_)) => "packed provider",
            Some(Selection::DevOverride(_)) => "provider under development",
            _ => "installed provider",
        };
        let version = selection.and_then(Selection::version);
        Ok(Described {
            name: self.provider.ty.to_string(),
            kind,
            address: self.provider.to_string(),
            version: version
                .map(|version| format!(" (version {version})"))
                .unwrap_or_default(),
        })
    }

    pub(super) fn schema(&self, session: &Session) -> Result<Option<Arc<ProviderSchema>>, Diagnostics> {
        let catalog = session.catalog()?;
        catalog.resolve(&BTreeMap::from([(self.provider.clone(), self.constraints.clone())]))?;
        let plugins = Plugins::new(catalog, session.plugin_host()?);
        let failed = session.runtime()?.block_on(plugins.ask([self.provider.clone()]));
        let mut schemas = failed.into_result(plugins.schemas())?;
        Ok(schemas.providers.remove(&self.provider))
    }
}

/// Returns the providers that the configuration requires and those of the pack, without those that are built in. If the configuration has
/// errors, requirements that could not be read are left out.
pub(super) fn all(session: &Session) -> Result<Vec<Available>, Diagnostics> {
    let mut found: BTreeMap<Provider, Available> = BTreeMap::new();
    let add = |found: &mut BTreeMap<Provider, Available>, provider: Provider, constraints: Constraints| {
        let names = BTreeSet::from([provider.ty.to_string()]);
        found.entry(provider.clone()).or_insert(Available {
            provider,
            constraints,
            names,
        });
    };
    let catalog = session.catalog()?;
    if workdir::has_configuration() {
        let (project, _) = workdir::read_as_installed(session);
        let required = requirements(&project.config, &state::State::default()).unwrap_or_default();
        for (provider, constraints) in required {
            if !catalog.is_built_in(&provider, &constraints) {
                add(&mut found, provider, constraints);
            }
        }
        for (name, required) in &project.config.root.module.required_providers {
            if let Some(one) = found.get_mut(&required.provider) {
                one.names.insert(name.to_string());
            }
        }
    }
    let platform = Platform::current();
    let packed = session.builtins.carried.pack();
    let packed = packed.iter().flat_map(|pack| &pack.index().providers);
    for one in packed.filter(|one| one.platform == platform) {
        add(&mut found, one.address.clone(), Constraints::any());
    }
    Ok(found.into_values().collect())
}
