//! Plugins for the engine, from the registry.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use config::Config;
use config::model::{Requirement, RequirementOrigin};
use engine::opening;
use engine::providers::{ProviderSource, Schemas};
use plugins::version::Constraints;
use plugins::{Provider, Provisioner, Registry};
use state::State;
use syntax::{Diagnostic, Diagnostics};

/// Starts plugins, and remembers what they said about themselves.
pub struct Plugins {
    registry: Registry,
    schemas: Mutex<Schemas>,
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

/// How many requirement origins of one provider are put into words.
const ORIGINS: usize = 12;

/// The blocks and objects that require each provider, in words, for errors.
pub fn origins(config: &Config, state: &State) -> plugins::install::Origins {
    let mut out = plugins::install::Origins::new();
    for (provider, requirements) in config.provider_requirements() {
        let lines: &mut Vec<String> = out.entry(provider).or_default();
        // Those that say a version are what a choice depends on.
        let (said, unsaid): (Vec<_>, Vec<_>) = requirements.into_iter().partition(|r| r.constraint.is_some());
        for requirement in said.into_iter().chain(unsaid).take(ORIGINS) {
            lines.push(origin(&requirement));
        }
        lines.dedup();
    }
    for (address, resource) in &state.resources {
        let provider = &resource.provider.provider;
        let lines = match out.get_mut(provider) {
            Some(lines) => lines,
            None => out.entry(provider.clone()).or_default(),
        };
        if lines.len() < ORIGINS {
            lines.push(format!("{address} in the state"));
        }
    }
    out
}

fn origin(requirement: &Requirement) -> String {
    let module = match requirement.module.0.is_empty() {
        true => "the root module".to_owned(),
        false => requirement.module.to_string(),
    };
    let block = match &requirement.origin {
        RequirementOrigin::RequiredProviders => "required_providers".to_owned(),
        RequirementOrigin::ProviderBlock => "a provider block".to_owned(),
        RequirementOrigin::Resource(address) => address.to_string(),
        RequirementOrigin::Import => "an import block".to_owned(),
    };
    let constraint = requirement.constraint.as_ref();
    let constraint = constraint.map(|c| format!(": \"{}\"", c.text)).unwrap_or_default();
    let range = &requirement.range;
    format!(
        "{block} of {module}{constraint} ({} line {})",
        range.file, range.start.line
    )
}

impl Plugins {
    /// Plugins from this registry.
    #[must_use]
    pub fn new(registry: Registry) -> Plugins {
        Plugins {
            registry,
            schemas: Mutex::default(),
        }
    }

    /// Chooses what stands for everything a configuration and a state need. Gives what the user should know.
    pub fn resolve(&self, config: &Config, state: &State) -> Result<Diagnostics, Diagnostics> {
        let selections = self
            .registry
            .resolve_for(&requirements(config, state)?, &origins(config, state))?;
        let mut problems = selections.warnings;
        let provisioners = opening::provisioners_needed(config, state);
        problems.extend(self.registry.check_provisioners(provisioners.iter().map(|p| &**p)));
        if problems.has_errors() {
            Err(problems)
        } else {
            Ok(problems)
        }
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
        let mut needed: std::collections::BTreeSet<addrs::Provider> =
            state.resources.values().map(|r| r.provider.provider.clone()).collect();
        if let Some(config) = config {
            needed.extend(opening::providers_needed(config, state));
        }
        let mut problems = self.ask(needed).await;
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

impl Plugins {
    /// Asks these providers for their schemas. One that cannot be asked is left out, and the problem returned.
    pub async fn ask(&self, providers: impl IntoIterator<Item = addrs::Provider>) -> Diagnostics {
        let mut problems = Diagnostics::new();
        for provider in providers {
            match self.start(&provider).await {
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
