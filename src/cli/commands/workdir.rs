//! What a command works on: the configuration in the working directory, the values of its variables, its plugins, its
//! state.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use addrs::Provider as Address;
use async_trait::async_trait;
use config::files::{Disk, FileSource};
use config::manifest::Manifest;
use config::values::{ValueInputs, VariableFlag, collect, from_prompt, missing_variable};
use config::{Config, LoadOptions};
use cty::Value;
use engine::eval::Surroundings;
use engine::providers::{ProviderSource, Providers, Schemas};
use lang::eval::{Context, evaluate};
use lang::scope::{Constant, FunctionSettings};
use plugins::environment::Environment;
use plugins::version::Constraints;
use plugins::{Provider, Provisioner, Registry, Settings};
use state::{LocalStore, LockInfo, State, StateError};
use syntax::{Diagnostic, Diagnostics, SourceMap};

use super::App;
use crate::ANSWERS_AS;

/// A configuration and the text it came from.
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// The text of every file, for messages.
    pub sources: SourceMap,
    /// Warnings.
    pub warnings: Diagnostics,
}

/// The plugins of a working directory, as the engine wants them.
pub struct Plugins(pub Registry);

#[async_trait]
impl ProviderSource for Plugins {
    async fn start(&self, provider: &Address) -> Result<Arc<dyn Provider>, Diagnostics> {
        self.0.start(provider).await
    }

    async fn start_provisioner(&self, name: &str) -> Result<Arc<dyn Provisioner>, Diagnostics> {
        self.0.start_provisioner(name).await
    }
}

/// The problem of a state file as a diagnostic.
#[must_use]
pub fn state_problem(error: &StateError) -> Diagnostic {
    Diagnostic::error(error.summary(), error.to_string())
}

impl App {
    /// Reads the configuration in the working directory. Problems are shown; `None` if there are errors.
    #[must_use]
    pub fn load(&self) -> Option<Loaded> {
        let manifest = match Manifest::read(&Disk, self.env.data_dir()) {
            Ok(manifest) => manifest,
            Err(diagnostic) => {
                self.complain(*diagnostic);
                return None;
            }
        };
        let loaded = self.load_from(&Disk, ".", &manifest);
        if loaded.warnings.has_errors() {
            self.report(&loaded.warnings, &loaded.sources, false);
            return None;
        }
        Some(loaded)
    }

    /// Reads a configuration from somewhere. The warnings may contain errors.
    #[must_use]
    pub fn load_from(&self, files: &dyn FileSource, dir: &str, manifest: &Manifest) -> Loaded {
        let options = LoadOptions { tool_version: ANSWERS_AS, manifest };
        let loaded = config::load(files, dir, &options);
        Loaded { config: loaded.config, sources: loaded.sources, warnings: loaded.diagnostics }
    }

    /// Whether there is a configuration in the working directory; says so if not.
    #[must_use]
    pub fn require_configuration(&self, what: &str) -> bool {
        if config::loader::has_configuration(&Disk, ".").unwrap_or_default() {
            return true;
        }
        self.complain(Diagnostic::error(
            "No configuration files",
            format!(
                "{what} requires configuration to be present. {what} without a configuration would mark everything for \
                 destruction, which is normally not what is desired. If you would like to destroy everything, run the \
                 command with the -destroy option. Otherwise, create a configuration file (.tf file) and try again."
            ),
        ));
        false
    }

    /// The values of the root variables, as files, flags and the environment say, or a person. Problems are added.
    #[must_use]
    pub fn variables(
        &self,
        loaded: &mut Loaded,
        flags: &[VariableFlag],
        ask: bool,
        diagnostics: &mut Diagnostics,
    ) -> BTreeMap<Arc<str>, Value> {
        let module = loaded.config.root.module.clone();
        let environment = self.env.variables();
        let mut collected = collect(&module, &ValueInputs { files: &Disk, environment: &environment, flags });
        for name in std::mem::take(&mut collected.missing) {
            let Some(variable) = module.variables.get(&name) else { continue };
            if !(ask && self.env.input() && self.ui.can_ask()) {
                collected.diagnostics.push(missing_variable(variable));
                continue;
            }
            let description = variable.description.as_deref().map(|d| format!("  {d}\n")).unwrap_or_default();
            let style = self.ui.style();
            let head = style.bold(format!("var.{name}"));
            match self.ui.ask(&format!("{head}\n{description}\n  {} ", style.bold("Enter a value:"))) {
                Some(text) => match from_prompt(variable, &text) {
                    Ok(value) => {
                        collected.values.insert(name, value);
                    }
                    Err(problems) => collected.diagnostics.extend(problems),
                },
                None => collected.diagnostics.push(missing_variable(variable)),
            }
            self.ui.line("");
        }
        loaded.sources.extend(collected.sources);
        diagnostics.extend(collected.diagnostics);
        collected.values.into_iter().map(|(name, value)| (name, value.value)).collect()
    }

    /// The registry of plugins for the working directory.
    pub fn registry(&self) -> Result<Registry, Diagnostics> {
        let settings = Settings::new(
            self.builtins.clone(),
            Environment(self.env.all().clone()),
            self.cli_config.clone(),
            PathBuf::from("."),
            ANSWERS_AS,
        );
        Registry::new(settings)
    }

    /// The plugins that a configuration and a state need, chosen. Warnings are added.
    pub fn plugins(&self, config: &Config, state: &State, warnings: &mut Diagnostics) -> Result<Plugins, Diagnostics> {
        let registry = self.registry()?;
        let needed = engine::opening::providers_needed(config, state);
        let requirements = requirements(config, Some(&needed))?;
        let selections = registry.resolve(&requirements)?;
        warnings.extend(selections.warnings);
        let provisioners = engine::opening::provisioners_needed(config);
        let problems = registry.check_provisioners(provisioners.iter().map(|n| &**n));
        if problems.has_errors() {
            return Err(problems);
        }
        warnings.extend(problems);
        Ok(Plugins(registry))
    }

    /// The schemas of everything a configuration and a state need.
    pub fn schemas(&self, config: &Config, state: &State) -> Result<Schemas, Diagnostics> {
        let mut warnings = Diagnostics::new();
        let plugins = self.plugins(config, state, &mut warnings)?;
        let runtime = runtime()?;
        runtime.block_on(async {
            let needed = engine::opening::providers_needed(config, state);
            let provisioners = engine::opening::provisioners_needed(config);
            let providers = Providers::start(&plugins, needed, provisioners).await?;
            let schemas = providers.schemas().clone();
            providers.close().await;
            Ok(schemas)
        })
    }

    /// The selected workspace.
    #[must_use]
    pub fn workspace(&self) -> String {
        if let Some(name) = self.env.workspace() {
            return name.to_owned();
        }
        let path = PathBuf::from(self.env.data_dir()).join("environment");
        let selected = std::fs::read_to_string(path).map(|s| s.trim().to_owned()).unwrap_or_default();
        if selected.is_empty() { "default".into() } else { selected }
    }

    /// What expressions see of the surroundings.
    #[must_use]
    pub fn surroundings(&self) -> Surroundings {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        Surroundings {
            workspace: self.workspace(),
            cwd: self.cwd.clone(),
            functions: FunctionSettings { plan_timestamp: Some(now), ..FunctionSettings::default() },
        }
    }

    /// Where the state of the selected workspace is kept.
    pub fn state_path(&self, config: Option<&Config>) -> Result<PathBuf, Diagnostics> {
        let workspace = self.workspace();
        let (path, workspace_dir) = match config {
            Some(config) => local_backend(config)?,
            None => (None, None),
        };
        Ok(if workspace == "default" {
            PathBuf::from(path.unwrap_or_else(|| "terraform.tfstate".into()))
        } else {
            let dir = PathBuf::from(workspace_dir.unwrap_or_else(|| "terraform.tfstate.d".into()));
            dir.join(workspace).join("terraform.tfstate")
        })
    }
}

/// Which versions of which providers a configuration needs; of those in `only`, if that is given.
pub fn requirements(
    config: &Config,
    only: Option<&BTreeSet<Address>>,
) -> Result<BTreeMap<Address, Constraints>, Diagnostics> {
    let mut out: BTreeMap<Address, Constraints> = BTreeMap::new();
    let mut problems = Diagnostics::new();
    for (provider, needs) in config.provider_requirements() {
        if only.is_some_and(|only| !only.contains(&provider)) {
            continue;
        }
        let mut all = Constraints::any();
        for constraint in needs.iter().filter_map(|n| n.constraint.as_ref()) {
            match Constraints::parse(&constraint.text) {
                Ok(more) => all = all.and(more),
                Err(error) => problems.push(
                    Diagnostic::error("Invalid version constraint", error.to_string()).at(&constraint.range),
                ),
            }
        }
        out.insert(provider, all);
    }
    // What only the state needs may have any version.
    for provider in only.into_iter().flatten() {
        out.entry(provider.clone()).or_insert_with(Constraints::any);
    }
    problems.into_result(out)
}

/// The paths a `local` backend names. Every other backend is an error, because the state would be looked for in the wrong
/// place.
fn local_backend(config: &Config) -> Result<(Option<String>, Option<String>), Diagnostics> {
    let module = &config.root.module;
    if let Some(cloud) = &module.cloud {
        return Err(Diagnostic::error(
            "HCP Terraform is not supported",
            "The configuration keeps its state in HCP Terraform, which this version of Monoform does not support.",
        )
        .at(&cloud.range)
        .into());
    }
    let Some(backend) = &module.backend else { return Ok((None, None)) };
    if &*backend.ty != "local" {
        return Err(Diagnostic::error(
            "Backend not supported yet",
            format!(
                "The configuration keeps its state in a \"{}\" backend. This version of Monoform supports only the \"local\" \
                 backend.",
                backend.ty
            ),
        )
        .at(&backend.type_range)
        .into());
    }
    let mut out = (None, None);
    let mut problems = Diagnostics::new();
    for attribute in &backend.body.attributes {
        let slot = match &*attribute.name {
            "path" => &mut out.0,
            "workspace_dir" => &mut out.1,
            other => {
                problems.push(
                    Diagnostic::error(
                        "Unsupported argument",
                        format!("An argument named \"{other}\" is not expected here."),
                    )
                    .at(&attribute.name_range),
                );
                continue;
            }
        };
        let (value, found) = evaluate(&attribute.expr, Context::new(&Constant));
        problems.extend(found);
        *slot = value.as_str().filter(|s| !s.is_empty()).map(str::to_owned);
    }
    problems.into_result(out)
}

/// The runtime that provider calls run on. The work is on this machine's processors, so there are as many threads.
pub fn runtime() -> Result<tokio::runtime::Runtime, Diagnostics> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|e| {
        Diagnostic::error("Threads cannot be started", format!("The operating system refused: {e}.")).into()
    })
}

/// The state of a workspace, locked while a command works on it.
pub struct OpenState {
    store: Mutex<LocalStore>,
    locked: bool,
}

impl OpenState {
    /// Opens the store and locks it, if `lock` says how long to wait for that.
    pub fn open(store: LocalStore, operation: &str, lock: Option<Duration>) -> Result<OpenState, Diagnostic> {
        let mut store = store;
        if let Some(timeout) = lock {
            let info = LockInfo::new(operation, ANSWERS_AS);
            store.lock(&info, timeout, &|| false).map_err(|e| state_problem(&e))?;
        }
        Ok(OpenState { store: Mutex::new(store), locked: lock.is_some() })
    }

    fn store(&self) -> std::sync::MutexGuard<'_, LocalStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the state; one that does not exist is empty.
    pub fn read(&self) -> Result<State, Diagnostic> {
        Ok(self.store().read().map_err(|e| state_problem(&e))?.unwrap_or_default())
    }

    /// Writes the state, if it differs from what is there.
    pub fn write(&self, state: &State) -> Result<(), StateError> {
        self.store().write(state, ANSWERS_AS).map(|_| ())
    }

    /// Gives the lock back.
    pub fn close(self) -> Result<(), Diagnostic> {
        if !self.locked {
            return Ok(());
        }
        let mut store = self.store.into_inner().unwrap_or_else(PoisonError::into_inner);
        store.unlock().map_err(|e| state_problem(&e))
    }
}
