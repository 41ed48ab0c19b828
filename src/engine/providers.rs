//! Running plugins of one operation: schemas are loaded once, and provider configurations are opened before their first use.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use addrs::{AbsProviderConfig, AbsResourceInstance};
use config::Config;
use cty::Value;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use provider::{Provider, ProviderSchema, ProviderSource, Provisioner, Schemas, StartError};
use state::State;
use syntax::{Diagnostic, Diagnostics};
use tokio::sync::{Mutex, RwLock};

use crate::functions::Functions;
use crate::lanes::Lanes;
use crate::paced::Paced;
use crate::requirements;

/// Running plugins of one operation.
pub struct Providers<'s> {
    source: &'s dyn ProviderSource,
    schemas: Schemas,
    /// Processes that were started to load their schemas, and are not configured yet.
    idle: Mutex<HashMap<addrs::Provider, Arc<dyn Provider>>>,
    open: Mutex<BTreeMap<AbsProviderConfig, Arc<dyn Provider>>>,
    /// Values with which the open provider configurations were configured.
    configured: Mutex<BTreeMap<AbsProviderConfig, Value>>,
    provisioners: HashMap<Arc<str>, Arc<dyn Provisioner>>,
    functions: Functions<'s>,
    /// Held for reading while a process validates a provider configuration that may not be its own. [`Providers::close_one`] holds it for
    /// writing, so that this process is not closed meanwhile.
    lent: RwLock<()>,
    /// Lanes of the command, if it has any. Requests to providers with adapted lanes are measured.
    lanes: Option<Arc<Lanes>>,
}

/// The plugins that could be started, and the errors of the others.
pub(crate) struct Started<'s> {
    pub providers: Providers<'s>,
    pub diagnostics: Diagnostics,
}

impl<'s> Started<'s> {
    /// Returns all plugins, or the errors. If there are errors, the running plugins are closed.
    async fn all_or_errors(self) -> Result<Providers<'s>, Diagnostics> {
        if self.diagnostics.has_errors() {
            self.providers.close().await;
            return Err(self.diagnostics);
        }
        Ok(self.providers)
    }
}

/// Starts a provider, and loads its schema.
async fn start_provider(
    source: &dyn ProviderSource,
    provider: &addrs::Provider,
) -> Result<(Arc<dyn Provider>, Arc<ProviderSchema>), StartError> {
    let running = source.start(provider).await?;
    match running.schema().await {
        Ok(schema) => Ok((running, schema)),
        Err(diagnostics) => {
            // `Providers::close` does not close this process, because it is not in its lists yet.
            running.close().await;
            Err(diagnostics.into())
        }
    }
}

impl<'s> Providers<'s> {
    /// Starts all plugins that a configuration and a state require.
    pub async fn start_required(
        source: &'s dyn ProviderSource,
        config: &Config,
        state: &State,
    ) -> Result<Providers<'s>, Diagnostics> {
        Providers::start_available_of(source, config, state)
            .await
            .all_or_errors()
            .await
    }

    /// Starts the required plugins that can be started, and returns the errors of the others.
    pub(crate) async fn start_available_of(
        source: &'s dyn ProviderSource,
        config: &Config,
        state: &State,
    ) -> Started<'s> {
        let providers = requirements::providers_needed(config, state);
        let functions = requirements::function_providers_needed(config);
        let provisioners = requirements::provisioners_needed(config, state);
        Providers::start_available(source, providers, provisioners, functions).await
    }

    /// Starts these providers and provisioners concurrently, and loads their schemas. A provider whose functions are called gets a second
    /// process, which is never configured.
    #[cfg(test)]
    pub async fn start(
        source: &'s dyn ProviderSource,
        providers: impl IntoIterator<Item = addrs::Provider>,
        provisioners: impl IntoIterator<Item = Arc<str>>,
        functions: impl IntoIterator<Item = addrs::Provider>,
    ) -> Result<Providers<'s>, Diagnostics> {
        let started = Providers::start_available(source, providers, provisioners, functions).await;
        started.all_or_errors().await
    }

    async fn start_available(
        source: &'s dyn ProviderSource,
        providers: impl IntoIterator<Item = addrs::Provider>,
        provisioners: impl IntoIterator<Item = Arc<str>>,
        functions: impl IntoIterator<Item = addrs::Provider>,
    ) -> Started<'s> {
        // Concurrently, since each plugin takes some time to start.
        let mut starting: FuturesUnordered<_> = providers
            .into_iter()
            .map(|provider| (provider, false))
            .chain(functions.into_iter().map(|provider| (provider, true)))
            .map(|(provider, for_functions)| async move {
                let result = start_provider(source, &provider).await.map_err(StartError::unreported);
                (provider, for_functions, result)
            })
            .collect();
        let mut starting_provisioners: FuturesUnordered<_> = provisioners
            .into_iter()
            .map(|name| async move {
                let started = async {
                    let running = source.start_provisioner(&name).await?;
                    match running.schema().await {
                        Ok(schema) => Ok((running, schema)),
                        Err(diagnostics) => {
                            running.close().await;
                            Err(StartError::from(diagnostics))
                        }
                    }
                };
                let result = started.await.map_err(StartError::unreported);
                (name, result)
            })
            .collect();
        let mut diagnostics = Diagnostics::new();
        let mut schemas = Schemas::default();
        let mut idle = HashMap::new();
        let functions = Functions::new(source);
        while let Some((provider, for_functions, result)) = starting.next().await {
            let Some((running, schema)) = diagnostics.take(result) else {
                if for_functions {
                    functions.add_unavailable(provider);
                }
                continue;
            };
            if for_functions {
                functions.add(provider.clone(), running, &schema);
            } else {
                idle.insert(provider.clone(), running);
            }
            schemas.providers.insert(provider, schema);
        }
        let mut running_provisioners = HashMap::new();
        while let Some((name, result)) = starting_provisioners.next().await {
            if let Some((running, schema)) = diagnostics.take(result) {
                schemas.provisioners.insert(name.clone(), schema);
                running_provisioners.insert(name, running);
            }
        }
        drop((starting, starting_provisioners));
        // The diagnostics are sorted, because plugins respond in any order.
        diagnostics
            .0
            .sort_by(|a, b| (&a.summary, &a.detail).cmp(&(&b.summary, &b.detail)));
        let providers = Providers {
            source,
            schemas,
            idle: Mutex::new(idle),
            open: Mutex::new(BTreeMap::new()),
            configured: Mutex::default(),
            provisioners: running_provisioners,
            functions,
            lent: RwLock::default(),
            lanes: None,
        };
        Started { providers, diagnostics }
    }

    /// Sets the lanes. Requests to providers with adapted lanes are then measured.
    #[must_use]
    pub(crate) fn in_lanes(self, lanes: Option<&Arc<Lanes>>) -> Providers<'s> {
        Providers {
            lanes: lanes.cloned(),
            ..self
        }
    }

    #[must_use]
    pub fn schemas(&self) -> &Schemas {
        &self.schemas
    }

    /// Returns the functions of the running providers.
    #[must_use]
    pub fn functions(&self) -> &Functions<'s> {
        &self.functions
    }

    /// Returns a process of this provider for requests that need no configuration: validation, and upgrades of stored objects.
    pub async fn unconfigured(&self, provider: &addrs::Provider) -> Result<Arc<dyn Provider>, Diagnostics> {
        if let Some(running) = self.idle.lock().await.get(provider) {
            return Ok(running.clone());
        }
        // A configured process can answer such requests as well, which saves starting another one.
        if let Some((_, running)) = self
            .open
            .lock()
            .await
            .iter()
            .find(|(config, _)| config.provider == *provider)
        {
            return Ok(running.clone());
        }
        let running = self.source.start(provider).await.map_err(StartError::unreported)?;
        self.idle.lock().await.insert(provider.clone(), running.clone());
        Ok(running)
    }

    /// Opens a provider configuration: takes an idle process or starts one, and configures it with this value (without marks). Returns
    /// the diagnostics of the configure call. A provider configuration that an earlier pass of the plan has opened with this value stays
    /// open.
    pub async fn configure(
        &self,
        address: &AbsProviderConfig,
        config: Value,
    ) -> Result<Vec<provider::PluginDiagnostic>, Diagnostics> {
        let earlier = self.configured.lock().await.insert(address.clone(), config.clone());
        if let Some(earlier) = earlier {
            let mut open = self.open.lock().await;
            if earlier == config && open.contains_key(address) {
                return Ok(Vec::new());
            }
            let outdated = open.remove(address);
            drop(open);
            if let Some(outdated) = outdated {
                outdated.close().await;
            }
        }
        // The process that was started for the schema is reused, so that a provider with one configuration has one
        // process.
        let idle = self.idle.lock().await.remove(&address.provider);
        let running = match idle {
            Some(running) => running,
            None => {
                let started = self.source.start(&address.provider).await;
                started.map_err(StartError::unreported)?
            }
        };
        let lanes = self.lanes.as_ref();
        let lane = lanes.and_then(|lanes| Some((lanes, lanes.adapted(&address.provider)?)));
        let running = match lane {
            Some((lanes, lane)) => Arc::new(Paced::new(running, lane, lanes.clone())),
            None => running,
        };
        let known = config.is_wholly_known();
        let answer = running.configure(config).await;
        if answer
            .as_ref()
            .is_ok_and(|answer| !answer.diagnostics.iter().any(|problem| problem.diagnostic.is_error()))
        {
            self.functions.add_configured(address, running.clone(), known);
        }
        // The process is stored before the result is checked, so that it is closed even if its configuration failed.
        self.open.lock().await.insert(address.clone(), running);
        Ok(answer?.diagnostics)
    }

    /// Returns the process of an open provider configuration.
    pub async fn get(&self, address: &AbsProviderConfig) -> Result<Arc<dyn Provider>, Diagnostics> {
        self.open.lock().await.get(address).cloned().ok_or_else(|| {
            Diagnostic::error(
                "Provider configuration not present",
                format!(
                    "The provider configuration {address} is needed here but was not opened. This is a bug in \
                     Monoform; please report it."
                ),
            )
            .into()
        })
    }

    /// Has a provider validate the value of a provider configuration.
    pub(crate) async fn validate_config(
        &self,
        provider: &addrs::Provider,
        value: Value,
    ) -> Result<provider::Answer<()>, Diagnostics> {
        // The process may be that of another provider configuration, which must not be closed meanwhile.
        let _lent = self.lent.read().await;
        self.unconfigured(provider).await?.validate_provider(value).await
    }

    /// Closes an open provider configuration, which nothing may use afterwards.
    pub(crate) async fn close_one(&self, address: &AbsProviderConfig) {
        let running = {
            let _not_lent = self.lent.write().await;
            self.open.lock().await.remove(address)
        };
        // A provider configuration that could not be opened has no process.
        if let Some(running) = running {
            running.close().await;
        }
    }

    /// Returns the provider that is called for an object of an open provider configuration: its process, unless the plugin source overrides
    /// it for this object.
    pub async fn for_object(
        &self,
        address: &AbsProviderConfig,
        object: &AbsResourceInstance,
    ) -> Result<Arc<dyn Provider>, Diagnostics> {
        Ok(self.source.for_object(address, object, self.get(address).await?))
    }

    /// Opens a provider configuration with a running provider that the plugin source offers in place of a process, such as a mock. Returns
    /// true if there is one.
    pub async fn adopt(&self, address: &AbsProviderConfig) -> bool {
        let Some(running) = self.source.stand_in(address) else {
            return false;
        };
        self.functions.add_configured(address, running.clone(), true);
        self.open.lock().await.insert(address.clone(), running);
        true
    }

    /// Returns true if the plugin source offers a running provider in place of a process for this provider configuration.
    pub fn has_stand_in(&self, address: &AbsProviderConfig) -> bool {
        self.source.stand_in(address).is_some()
    }

    /// Returns a running provisioner by its type.
    #[must_use]
    pub fn provisioner(&self, name: &str) -> Option<&Arc<dyn Provisioner>> {
        self.provisioners.get(name)
    }

    /// Requests the processes of all open provider configurations, and all provisioners, to stop.
    pub async fn stop(&self) {
        // The map is cloned, so that the lock is not held while the plugins are stopping.
        let providers: Vec<_> = self.open.lock().await.values().cloned().collect();
        let providers = futures::future::join_all(providers.iter().map(|p| p.stop()));
        let provisioners = futures::future::join_all(self.provisioners.values().map(|p| p.stop()));
        // All plugins are stopped at the same time, because a provider that is slow to answer must not keep a
        // provisioner running.
        let (providers, provisioners) = futures::join!(providers, provisioners);
        for failed in providers.into_iter().chain(provisioners).filter_map(Result::err) {
            // Errors are only logged, because the plugin's process will be ended anyway.
            for diagnostic in failed {
                tracing::warn!("a plugin did not stop: {}: {}", diagnostic.summary, diagnostic.detail);
            }
        }
    }

    /// Closes all plugins.
    pub async fn close(&self) {
        let mut all: Vec<_> = self.idle.lock().await.drain().map(|(_, p)| p).collect();
        all.extend(std::mem::take(&mut *self.open.lock().await).into_values());
        all.extend(self.functions.processes());
        futures::future::join_all(all.iter().map(|p| p.close())).await;
        futures::future::join_all(self.provisioners.values().map(|p| p.close())).await;
    }
}
