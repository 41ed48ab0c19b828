//! Providers of a run: real providers, providers that the test file configures, mocks, and overrides of single objects.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use addrs::{AbsProviderConfig, AbsResourceInstance, ModuleInstance, Resource, Target};
use async_trait::async_trait;
use cty::Value;
use provider::{Provider, ProviderSchema, ProviderSource, Provisioner, StartError};
use syntax::Diagnostics;
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::mock::{Given, Mock, Source};
use crate::shared::{Shared, Valid};

/// A provider that is started by the first run that needs it.
type Started = Arc<OnceCell<Arc<dyn Provider>>>;

/// Unconfigured providers of all runs: one process for each has the schema, validates configurations and calls
/// functions.
pub struct Pool<'s> {
    source: &'s dyn ProviderSource,
    running: Mutex<HashMap<addrs::Provider, Started>>,
    valid: Mutex<HashMap<addrs::Provider, Arc<Valid>>>,
}

impl<'s> Pool<'s> {
    #[must_use]
    pub fn new(source: &'s dyn ProviderSource) -> Pool<'s> {
        Pool {
            source,
            running: Mutex::default(),
            valid: Mutex::default(),
        }
    }

    fn cell(&self, provider: &addrs::Provider) -> Started {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.entry(provider.clone()).or_default().clone()
    }

    /// Returns the unconfigured provider, and starts it for the first caller.
    async fn unconfigured(&self, provider: &addrs::Provider) -> Result<Arc<dyn Provider>, StartError> {
        let cell = self.cell(provider);
        // A failed start is not stored, so that a later run tries again.
        let running = cell.get_or_try_init(|| self.source.start(provider)).await?;
        Ok(running.clone())
    }

    /// Returns the unconfigured provider for runs that use another provider in place of the configured one.
    fn shared(&self, provider: &addrs::Provider, running: Arc<dyn Provider>) -> Arc<dyn Provider> {
        let mut valid = self.valid.lock().unwrap_or_else(PoisonError::into_inner);
        let valid = valid.entry(provider.clone()).or_default().clone();
        Arc::new(Shared::remembering(running, valid))
    }

    /// Returns the unconfigured provider; `None` if it is not running.
    fn running(&self, provider: &addrs::Provider) -> Option<Arc<dyn Provider>> {
        let running = self.cell(provider).get().cloned()?;
        Some(self.shared(provider, running))
    }

    /// Starts a process that is configured with this value. If the value is not valid, the result is the unconfigured provider with the
    /// errors.
    pub async fn configured(
        &self,
        provider: &addrs::Provider,
        config: impl FnOnce(&ProviderSchema) -> Result<Value, Diagnostics>,
    ) -> Result<(Arc<dyn Provider>, Vec<provider::PluginDiagnostic>), Diagnostics> {
        let shared = self.unconfigured(provider).await.map_err(StartError::unreported)?;
        let value = config(&*shared.schema().await?)?;
        let checked = shared.validate_provider(value.clone()).await?;
        if checked.diagnostics.iter().any(|d| d.diagnostic.is_error()) {
            return Ok((shared, checked.diagnostics));
        }
        // Other runs use the shared process, so it must stay without a configuration.
        let own = self.source.start(provider).await.map_err(StartError::unreported)?;
        let configured = own.configure(value).await?;
        let mut problems = checked.diagnostics;
        problems.extend(configured.diagnostics);
        Ok((own, problems))
    }

    /// Closes all providers that were started.
    pub async fn close(&self) {
        let all: Vec<_> = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.drain().filter_map(|(_, cell)| cell.get().cloned()).collect()
        };
        futures::future::join_all(all.iter().map(|p| p.close())).await;
    }
}

/// Overrides of a run, by resource and module.
#[derive(Debug, Default)]
pub struct Overrides {
    objects: HashMap<Resource, Vec<ObjectOverride>>,
    modules: Vec<(Target, BTreeMap<Arc<str>, Value>)>,
}

#[derive(Debug)]
struct ObjectOverride {
    target: Target,
    /// Mock provider whose objects are overridden; `None` for the objects of all providers.
    of: Option<AbsProviderConfig>,
    source: Arc<Source>,
}

impl ObjectOverride {
    /// Returns true if the override is for this object. In test files, a module step without a key is a module that is
    /// not repeated.
    fn selects(&self, address: &AbsResourceInstance) -> bool {
        let unkeyed = |target: &Target| matches!(target, Target::ConfigResource(_));
        self.target.selects(address) && !(unkeyed(&self.target) && is_repeated(&address.module))
    }
}

fn is_repeated(module: &ModuleInstance) -> bool {
    module.0.iter().any(|step| !step.key.is_none())
}

impl Overrides {
    /// Adds an override of objects. An override with an instance key takes precedence over one without; otherwise the
    /// first one does.
    pub fn add_object(&mut self, target: Target, of: Option<AbsProviderConfig>, given: Given) {
        let resource = match &target {
            Target::ConfigResource(r) => r.resource.clone(),
            Target::Resource(r) => r.resource.clone(),
            Target::ResourceInstance(r) => r.resource.resource.clone(),
            Target::Module(_) | Target::ModuleInstance(_) => return,
        };
        self.objects.entry(resource).or_default().push(ObjectOverride {
            target,
            of,
            source: Arc::new(Source::One(given)),
        });
    }

    pub fn add_module(&mut self, target: Target, outputs: BTreeMap<Arc<str>, Value>) {
        self.modules.push((target, outputs));
    }

    fn object(&self, config: &AbsProviderConfig, address: &AbsResourceInstance) -> Option<&ObjectOverride> {
        let all = self.objects.get(&address.resource.resource)?;
        let is_of = |o: &ObjectOverride| o.of.as_ref().is_none_or(|provider| *provider == config.block());
        let fits = |o: &&ObjectOverride| is_of(o) && o.selects(address);
        let named = |o: &&ObjectOverride| matches!(o.target, Target::ResourceInstance(_));
        let instance = all.iter().filter(fits).find(named);
        instance.or_else(|| all.iter().find(fits))
    }

    fn module(&self, instance: &ModuleInstance) -> Option<&BTreeMap<Arc<str>, Value>> {
        let exactly = |target: &Target| match target {
            Target::ModuleInstance(m) => m == instance,
            _ => false,
        };
        // A target without keys means all instances of its last module, so the modules before it must not have count or
        // for_each.
        let whole = |target: &Target| match target {
            Target::Module(m) => {
                *m == instance.module() && instance.parent().is_none_or(|(parent, _)| !is_repeated(&parent))
            }
            _ => false,
        };
        let found = self.modules.iter().find(|(target, _)| exactly(target));
        let found = found.or_else(|| self.modules.iter().find(|(target, _)| whole(target)));
        found.map(|(_, outputs)| outputs)
    }
}

pub struct RunProviders<'s> {
    pool: &'s Pool<'s>,
    /// Mocks, by provider configuration of the module under test.
    pub mocks: BTreeMap<AbsProviderConfig, Arc<Source>>,
    /// Providers that the test file configures, by provider configuration of the module under test.
    pub configured: BTreeMap<AbsProviderConfig, Arc<dyn Provider>>,
    /// Providers that have configurations of the module itself.
    pub real: BTreeSet<addrs::Provider>,
    pub overrides: Overrides,
    /// Seed of the values of mocks, different for each run.
    seed: Uuid,
}

impl<'s> RunProviders<'s> {
    /// Creates the providers of a run without mocks.
    #[must_use]
    pub fn new(pool: &'s Pool<'s>) -> RunProviders<'s> {
        RunProviders {
            pool,
            mocks: BTreeMap::new(),
            configured: BTreeMap::new(),
            real: BTreeSet::new(),
            overrides: Overrides::default(),
            seed: Uuid::new_v4(),
        }
    }

    // The seed is derived from the address: an object is planned again during apply, and must get the same
    // values.
    fn seed_of(&self, address: &AbsResourceInstance) -> Uuid {
        Uuid::new_v5(&self.seed, address.to_string().as_bytes())
    }
}

#[async_trait]
impl ProviderSource for RunProviders<'_> {
    async fn start(&self, provider: &addrs::Provider) -> Result<Arc<dyn Provider>, StartError> {
        let mut stand_ins = self.mocks.keys().chain(self.configured.keys());
        let pretends = stand_ins.any(|config| config.provider == *provider);
        if pretends {
            // Mocks and configured providers take the schema and functions from an unconfigured process.
            let shared = self.pool.unconfigured(provider).await?;
            if !self.real.contains(provider) {
                return Ok(self.pool.shared(provider, shared));
            }
        }
        self.pool.source.start(provider).await
    }

    async fn start_provisioner(&self, name: &str) -> Result<Arc<dyn Provisioner>, StartError> {
        self.pool.source.start_provisioner(name).await
    }

    fn stand_in(&self, config: &AbsProviderConfig) -> Option<Arc<dyn Provider>> {
        if let Some(source) = self.mocks.get(&config.block()) {
            let real = self.pool.running(&config.provider)?;
            return Some(Arc::new(Mock::new(real, source.clone(), self.seed)));
        }
        let configured = self.configured.get(&config.block())?;
        Some(Arc::new(Shared::new(configured.clone())))
    }

    fn for_object(
        &self,
        config: &AbsProviderConfig,
        address: &AbsResourceInstance,
        provider: Arc<dyn Provider>,
    ) -> Arc<dyn Provider> {
        if let Some(found) = self.overrides.object(config, address) {
            return Arc::new(Mock::new(provider, found.source.clone(), self.seed_of(address)));
        }
        match (self.mocks.get(&config.block()), self.pool.running(&config.provider)) {
            (Some(source), Some(real)) => Arc::new(Mock::new(real, source.clone(), self.seed_of(address))),
            _ => provider,
        }
    }

    fn module_outputs(&self, instance: &ModuleInstance) -> Option<BTreeMap<Arc<str>, Value>> {
        self.overrides.module(instance).cloned()
    }

    fn has_module_outputs(&self) -> bool {
        !self.overrides.modules.is_empty()
    }
}
