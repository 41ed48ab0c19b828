//! Plugins for the engine, selected by the catalog of packages and started by the plugin host.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use config::Config;
use config::model::{Requirement, RequirementOrigin};
use engine::requirements;
use packages::selection::Selection;
use packages::{Catalog, ProvisionerSelection};
use plugins::{Host, Program};
use provider::{Provider, Provisioner};
use provider::{ProviderSource, Schemas, StartError};
use state::State;

use syntax::{Diagnostics, Range};
use versions::Constraints;

/// Replacements of the providers of single objects.
pub trait Replacements: Send + Sync {
    /// Returns the provider for an object: `provider`, which serves its provider configuration, or a replacement.
    fn for_object(
        &self,
        config: &addrs::AbsProviderConfig,
        object: &addrs::AbsResourceInstance,
        provider: Arc<dyn Provider>,
    ) -> Arc<dyn Provider>;
}

/// Plugins of a working directory, with the schemas of those that have been started.
pub struct Plugins {
    catalog: Catalog,
    host: Host,
    schemas: Mutex<Schemas>,
    /// Plugins that are not available. Their errors have been reported.
    unavailable: Mutex<Unavailable>,
    /// Replacements of the providers of single objects, if there are any.
    replacements: Option<Box<dyn Replacements>>,
}

#[derive(Default)]
struct Unavailable {
    providers: BTreeSet<addrs::Provider>,
    provisioners: BTreeSet<Arc<str>>,
}

/// Returns the version constraints of the providers that a configuration and a state need.
pub fn requirements(config: &Config, state: &State) -> Result<BTreeMap<addrs::Provider, Constraints>, Diagnostics> {
    let mut out: BTreeMap<addrs::Provider, Constraints> = requirements::providers_needed(config, state)
        .into_iter()
        .map(|p| (p, Constraints::any()))
        .collect();
    out.extend(config.version_constraints()?);
    Ok(out)
}

/// Returns the program that serves a selected provider. If the checksum of its package is known, its schemas are cached.
#[must_use]
pub fn program_of(selection: Selection, package: Option<String>) -> Program {
    match selection {
        Selection::Builtin { name, protocols, .. } => Program::Builtin { name, protocols },
        Selection::DevOverride(path) => Program::Executable { path, package },
        Selection::External(found) | Selection::Installed(found) => Program::Executable {
            path: found.executable,
            package,
        },
        Selection::Packed(packed) => match packed.executable {
            Some(path) => Program::Executable { path, package },
            None => Program::Packed {
                provider: packed.address().to_string(),
                version: packed.version.to_string(),
                package,
            },
        },
        Selection::Reattached => Program::Reattached,
    }
}

/// Returns the first source range that names each type of provisioner.
fn provisioners_named(config: &Config) -> BTreeMap<Arc<str>, &Range> {
    let mut out = BTreeMap::new();
    for node in config.nodes() {
        for provisioner in node.module.resources.values().flat_map(|r| &r.provisioners) {
            out.entry(provisioner.ty.clone()).or_insert(&provisioner.type_range);
        }
    }
    out
}

/// Limit of the requirement origins that are described for a provider.
const ORIGINS: usize = 12;

/// Describes the requirement origins of each provider, for errors.
pub fn origins(config: &Config, state: &State) -> packages::install::Origins {
    let mut out = packages::install::Origins::new();
    for (provider, requirements) in config.provider_requirements() {
        let lines: &mut Vec<String> = out.entry(provider).or_default();
        // Requirements with a version decide the selection, so they come first.
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
        RequirementOrigin::Action(action) => format!("the block {action}"),
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
    /// Creates plugins that this catalog selects and this host starts.
    #[must_use]
    pub fn new(catalog: Catalog, host: Host) -> Plugins {
        Plugins {
            catalog,
            host,
            schemas: Mutex::default(),
            unavailable: Mutex::default(),
            replacements: None,
        }
    }

    /// Sets replacements of the providers of single objects.
    #[must_use]
    pub fn replacing(self, replacements: Option<Box<dyn Replacements>>) -> Plugins {
        Plugins { replacements, ..self }
    }

    /// Selects the plugins that a configuration and a state need. Returns warnings.
    pub fn resolve(&self, config: &Config, state: &State) -> Result<Diagnostics, Diagnostics> {
        let selections = self
            .catalog
            .resolve_for(&requirements(config, state)?, &origins(config, state));
        let mut problems = selections.map_or_else(|problems| problems, |selections| selections.warnings);
        let named = provisioners_named(config);
        for name in requirements::provisioners_needed(config, state) {
            let found = self.catalog.check_provisioners([&*name]).into_iter();
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

    /// Selects plugins as [`Plugins::resolve`] does, but continues without those that are not available. These are reported here,
    /// and starting them fails without another diagnostic.
    pub fn resolve_available(&self, config: &Config, state: &State) -> Diagnostics {
        let mut problems = match self.resolve(config, state) {
            Ok(problems) => return problems,
            Err(problems) => problems,
        };
        let mut unavailable = self.unavailable.lock().unwrap_or_else(PoisonError::into_inner);
        let origins = origins(config, state);
        for (provider, constraints) in requirements(config, state).unwrap_or_default() {
            let only = BTreeMap::from([(provider.clone(), constraints)]);
            if let Err(found) = self.catalog.resolve_for(&only, &origins) {
                if config.is_in_doubt(&provider) {
                    // The problem follows from an error in the provider's requirement, which was reported.
                    problems.0.retain(|p| !found.0.contains(p));
                }
                unavailable.providers.insert(provider);
            }
        }
        for name in requirements::provisioners_needed(config, state) {
            if self.catalog.check_provisioners([&*name]).has_errors() {
                unavailable.provisioners.insert(name);
            }
        }
        problems
    }

    fn is_unavailable(&self, known: impl FnOnce(&Unavailable) -> bool) -> bool {
        known(&self.unavailable.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Selects the plugins of these providers only.
    pub fn resolve_only(&self, needed: &BTreeMap<addrs::Provider, Constraints>) -> Result<(), Diagnostics> {
        self.catalog.resolve(needed).map(|_| ())
    }

    #[must_use]
    pub fn schemas(&self) -> Schemas {
        self.schemas.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fetches the schemas of all plugins that a configuration and a state need. Plugins that fail are left out, and their
    /// diagnostics returned.
    pub async fn ask_all(&self, config: Option<&Config>, state: &State) -> Diagnostics {
        let mut needed: BTreeSet<addrs::Provider> =
            state.resources.values().map(|r| r.provider.provider.clone()).collect();
        if let Some(config) = config {
            needed.extend(requirements::providers_needed(config, state));
        }
        let mut problems = self.ask(needed).await;
        for name in config
            .map(|c| requirements::provisioners_needed(c, state))
            .unwrap_or_default()
        {
            match self.start_provisioner(&name).await {
                // A provisioner is needed for its schema only; an apply starts its own.
                Ok(running) => running.close().await,
                Err(e) => problems.extend(e.unreported()),
            }
        }
        problems
    }
}

impl Plugins {
    /// Fetches the schemas of these providers. Providers that fail are left out, and their diagnostics returned.
    pub async fn ask(&self, providers: impl IntoIterator<Item = addrs::Provider>) -> Diagnostics {
        let mut problems = Diagnostics::new();
        // The providers are started one after the other: only the schemas are needed, so no two plugins have to
        // run at the same time.
        for provider in providers {
            match self.start(&provider).await {
                Ok(running) => running.close().await,
                Err(e) => problems.extend(e.unreported()),
            }
        }
        problems
    }
}

#[async_trait]
impl ProviderSource for Plugins {
    async fn start(&self, provider: &addrs::Provider) -> Result<Arc<dyn Provider>, StartError> {
        if self.is_unavailable(|u| u.providers.contains(provider)) {
            return Err(StartError::Reported);
        }
        let selection = self.catalog.select(provider).await?;
        let package = match self.host.keeps_schemas() {
            true => self.catalog.checksum(&selection).await,
            false => None,
        };
        let running = self.host.provider(provider, program_of(selection, package))?;
        // Every user of a provider needs the schema first, so it is fetched and stored here.
        let schema = running.schema().await?;
        self.schemas
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .providers
            .insert(provider.clone(), schema);
        Ok(running)
    }

    fn for_object(
        &self,
        config: &addrs::AbsProviderConfig,
        object: &addrs::AbsResourceInstance,
        provider: Arc<dyn Provider>,
    ) -> Arc<dyn Provider> {
        match &self.replacements {
            Some(replacements) => replacements.for_object(config, object, provider),
            None => provider,
        }
    }

    async fn start_provisioner(&self, name: &str) -> Result<Arc<dyn Provisioner>, StartError> {
        if self.is_unavailable(|u| u.provisioners.contains(name)) {
            return Err(StartError::Reported);
        }
        let program = match self.catalog.select_provisioner(name)? {
            ProvisionerSelection::External(path) => Program::Executable { path, package: None },
            ProvisionerSelection::Builtin => Program::Builtin {
                name: name.to_owned(),
                // Provisioners exist only in protocol 5.
                protocols: vec![5],
            },
        };
        let running = self.host.provisioner(name, program).await?;
        let schema = running.schema().await?;
        self.schemas
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .provisioners
            .insert(name.into(), schema);
        Ok(running)
    }
}
