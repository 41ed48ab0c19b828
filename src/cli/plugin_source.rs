//! Plugins for the engine, from the registry.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use config::Config;
use engine::opening;
use engine::providers::{ProviderSource, Schemas};
use plugins::version::Constraints;
use plugins::{Provider, Provisioner, Registry};
use state::State;
use syntax::{Diagnostic, Diagnostics, Range};

/// Starts plugins, and remembers what they said about themselves.
pub struct Plugins {
    registry: Registry,
    schemas: Mutex<Schemas>,
    /// What is not available, which has been reported.
    unavailable: Mutex<Unavailable>,
}

#[derive(Default)]
struct Unavailable {
    providers: BTreeSet<addrs::Provider>,
    provisioners: BTreeSet<Arc<str>>,
}

/// Which versions of which providers a configuration and a state need.
pub fn requirements(config: &Config, state: &State) -> Result<BTreeMap<addrs::Provider, Constraints>, Diagnostics> {
    let mut problems = Diagnostics::new();
    let mut out: BTreeMap<addrs::Provider, Constraints> = opening::providers_needed(config, state)
        .into_iter()
        .map(|p| (p, Constraints::any()))
        .collect();
    for (provider, requirements) in config.provider_requirements() {
        let mut all = out.remove(&provider).unwrap_or_else(Constraints::any);
        for requirement in requirements {
            let Some(constraint) = requirement.constraint else {
                continue;
            };
            match Constraints::parse(&constraint.text) {
                Ok(more) => all = all.and(more),
                Err(e) => problems
                    .push(Diagnostic::error("Invalid version constraint", format!("{e}.")).at(&constraint.range)),
            }
        }
        out.insert(provider, all);
    }
    problems.into_result(out)
}

/// Where each type of provisioner is first named.
fn provisioners_named(config: &Config) -> BTreeMap<Arc<str>, &Range> {
    let mut out = BTreeMap::new();
    for node in config.nodes() {
        for provisioner in node.module.resources.values().flat_map(|r| &r.provisioners) {
            out.entry(provisioner.ty.clone()).or_insert(&provisioner.type_range);
        }
    }
    out
}

/// Who asks for which versions of each provider, in words.
pub fn askers(config: &Config) -> plugins::install::Askers {
    let mut out = plugins::install::Askers::new();
    for (provider, requirements) in config.provider_requirements() {
        let mut lines: Vec<String> = Vec::new();
        for requirement in requirements {
            let Some(constraint) = requirement.constraint else {
                continue;
            };
            let module = if requirement.module.0.is_empty() {
                "the root module".to_owned()
            } else {
                requirement.module.to_string()
            };
            let range = &requirement.range;
            lines.push(format!(
                "{module} asks for \"{}\" ({} line {})",
                constraint.text, range.file, range.start.line
            ));
        }
        lines.dedup();
        out.insert(provider, lines);
    }
    out
}

impl Plugins {
    /// Plugins from this registry.
    #[must_use]
    pub fn new(registry: Registry) -> Plugins {
        Plugins {
            registry,
            schemas: Mutex::default(),
            unavailable: Mutex::default(),
        }
    }

    /// Chooses what stands for everything a configuration and a state need. Gives what the user should know.
    pub fn resolve(&self, config: &Config, state: &State) -> Result<Diagnostics, Diagnostics> {
        let selections = self
            .registry
            .resolve_for(&requirements(config, state)?, &askers(config));
        let mut problems = selections.map_or_else(|problems| problems, |selections| selections.warnings);
        let named = provisioners_named(config);
        for name in opening::provisioners_needed(config, state) {
            let found = self.registry.check_provisioners([&*name]).into_iter();
            problems.extend(found.map(|d| match named.get(&name) {
                Some(range) if d.is_error() => d.at(range),
                _ => d,
            }));
        }
        if problems.has_errors() {
            Err(problems)
        } else {
            Ok(problems)
        }
    }

    /// As [`Plugins::resolve`], for as many as there are: what is not available is reported here, and starting it fails
    /// without a further word.
    pub fn resolve_available(&self, config: &Config, state: &State) -> Diagnostics {
        let mut problems = match self.resolve(config, state) {
            Ok(problems) => return problems,
            Err(problems) => problems,
        };
        let mut unavailable = self.unavailable.lock().unwrap_or_else(PoisonError::into_inner);
        let askers = askers(config);
        for (provider, constraints) in requirements(config, state).unwrap_or_default() {
            let only = BTreeMap::from([(provider.clone(), constraints)]);
            if let Err(found) = self.registry.resolve_for(&only, &askers) {
                if config.is_in_doubt(&provider) {
                    // That follows from an error of its requirement, which has been reported.
                    problems.0.retain(|p| !found.0.contains(p));
                }
                unavailable.providers.insert(provider);
            }
        }
        for name in opening::provisioners_needed(config, state) {
            if self.registry.check_provisioners([&*name]).has_errors() {
                unavailable.provisioners.insert(name);
            }
        }
        problems
    }

    fn is_unavailable(&self, known: impl FnOnce(&Unavailable) -> bool) -> bool {
        known(&self.unavailable.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Chooses what stands for these providers only.
    pub fn resolve_only(&self, needed: &BTreeMap<addrs::Provider, Constraints>) -> Result<(), Diagnostics> {
        self.registry.resolve(needed).map(|_| ())
    }

    /// What the plugins started so far said about themselves.
    #[must_use]
    pub fn schemas(&self) -> Schemas {
        self.schemas.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks every plugin that a configuration and a state need what it says about itself. One that cannot be asked is left
    /// out, and the problem returned.
    pub async fn ask_all(&self, config: Option<&Config>, state: &State) -> Diagnostics {
        let mut needed: BTreeSet<addrs::Provider> =
            state.resources.values().map(|r| r.provider.provider.clone()).collect();
        if let Some(config) = config {
            needed.extend(opening::providers_needed(config, state));
        }
        let mut problems = Diagnostics::new();
        for provider in needed {
            match self.start(&provider).await {
                Ok(running) => running.close().await,
                Err(e) => problems.extend(e),
            }
        }
        for name in config
            .map(|c| opening::provisioners_needed(c, state))
            .unwrap_or_default()
        {
            match self.start_provisioner(&name).await {
                Ok(running) => running.close().await,
                Err(e) => problems.extend(e),
            }
        }
        problems
    }
}

#[async_trait]
impl ProviderSource for Plugins {
    async fn start(&self, provider: &addrs::Provider) -> Result<Arc<dyn Provider>, Diagnostics> {
        if self.is_unavailable(|u| u.providers.contains(provider)) {
            return Err(Diagnostics::new());
        }
        let running = self.registry.start(provider).await?;
        // Every user of a provider asks for this first, and the answer is kept.
        let schema = running.schema().await?;
        self.schemas
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .providers
            .insert(provider.clone(), schema);
        Ok(running)
    }

    async fn start_provisioner(&self, name: &str) -> Result<Arc<dyn Provisioner>, Diagnostics> {
        if self.is_unavailable(|u| u.provisioners.contains(name)) {
            return Err(Diagnostics::new());
        }
        let running = self.registry.start_provisioner(name).await?;
        let schema = running.schema().await?;
        self.schemas
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .provisioners
            .insert(name.into(), schema);
        Ok(running)
    }
}
