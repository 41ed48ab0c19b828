//! State stores: backends that are plugins, each in a separate process.
//!
//! [`StorePlugin`] is a store that is not configured yet, [`Store`] a configured one. `snapshots.rs` has the state of one workspace of a
//! store.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cty::Value;
use provider::state_store::WorkspaceSupport;
use provider::{Answer, PluginDiagnostic};
use schema::Schema;
use state::journal::JournalLocation;
use state::sealed::Sealer;
use state::{Codec, State, StateError};
use syntax::ast::Body;
use syntax::{Diagnostic, Diagnostics};

use super::owner::Owner;
use super::process::Process;
use super::record::{Saved, SavedProvider};
use super::settings;
use crate::Context;
use crate::workspace::DEFAULT;

/// Directory in the data directory with the journals of all states in stores.
pub(super) const JOURNALS: &str = "journals";

/// Converts the diagnostics of a store to a state error.
pub(super) fn error(problems: Diagnostics) -> StateError {
    let mut errors = problems.into_iter().filter(Diagnostic::is_error);
    let first = errors.next().unwrap_or_else(|| {
        Diagnostic::error(
            "Error accessing the state",
            "The store did not answer, and gave no reason. Run the command again with TF_LOG=debug to see its log.",
        )
    });
    let syntax::DiagnosticParts {
        summary, mut detail, ..
    } = first.into_parts();
    for other in errors {
        detail.push_str(&format!("\n\n{}: {}", other.summary, other.detail));
    }
    StateError::Store { summary, detail }
}

/// A running state store that is not configured yet.
pub struct StorePlugin {
    ty: String,
    process: Arc<Process>,
    schema: Arc<Schema>,
    journals: PathBuf,
    /// Third-party provider that serves the store; `None` for a built-in one.
    owner: Option<Box<Owner>>,
}

impl StorePlugin {
    /// Starts the plugin of a built-in store.
    ///
    /// # Errors
    /// The plugin does not start, or does not send its schema.
    pub fn start(context: &Context<'_>, ty: &str) -> Result<StorePlugin, Diagnostics> {
        let runtime = context.plugins.runtime()?;
        let host = context.plugins.host()?;
        let (plugin, schema) = runtime.block_on(async {
            let plugin = host.state_store(ty).await?;
            let schema = plugin.schema().await?;
            Ok::<_, Diagnostics>((plugin, schema))
        })?;
        let journals = Path::new(context.data_dir).join(JOURNALS);
        Ok(StorePlugin::new(
            ty,
            Process::new(plugin, runtime),
            schema,
            journals,
            None,
        ))
    }

    pub(super) fn new(
        ty: &str,
        process: Process,
        schema: Arc<Schema>,
        journals: PathBuf,
        owner: Option<Owner>,
    ) -> StorePlugin {
        StorePlugin {
            ty: ty.to_owned(),
            process: Arc::new(process),
            schema,
            journals,
            owner: owner.map(Box::new),
        }
    }

    /// Returns the third-party provider that serves the store; `None` for a built-in store.
    #[must_use]
    pub fn owner(&self) -> Option<&Owner> {
        self.owner.as_deref()
    }

    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Configures the store. Problems are located in the body that the configuration comes from.
    ///
    /// # Errors
    /// A required setting is missing, or the store refuses the configuration.
    pub fn configure(self, config: Value, body: Option<&Body>) -> Result<Store, Diagnostics> {
        // Missing settings are checked here and not by the plugin, because the message refers to the block and to -backend-config.
        let missing = settings::missing(&self.ty, &self.schema, &config, body);
        let plugin = self.process.plugin();
        if missing.has_errors() {
            return Err(self.all_missing(missing, config, body));
        }
        let mut warnings = Diagnostics::new();
        if let Some(owner) = &self.owner {
            owner.configure(&self.process, &mut warnings)?;
        }
        let checked = self.process.wait(plugin.validate(config.clone()))?;
        self.accept(checked, body, &mut warnings)?;
        let configured = self.process.wait(plugin.configure(config.clone()))?;
        let support = self.accept(configured, body, &mut warnings)?;
        Ok(Store {
            ty: self.ty,
            config,
            schema: self.schema,
            support,
            warnings: Mutex::new(warnings),
            process: self.process,
            journals: self.journals,
            provider: self.owner.map(|owner| owner.saved),
        })
    }

    /// Adds the store's own errors to those about missing arguments, so that the user can correct all at once. The store's errors include
    /// arguments that are required only if the environment has no value for them.
    fn all_missing(&self, mut missing: Diagnostics, config: Value, body: Option<&Body>) -> Diagnostics {
        // A third-party provider may have to be configured before its store can validate settings.
        if self.owner.is_some() {
            return missing;
        }
        let absent = settings::absent(&self.schema, &config);
        let Ok(checked) = self.process.wait(self.process.plugin().validate(config)) else {
            return missing;
        };
        let problems = checked.diagnostics.into_iter();
        let others = problems.filter(|problem| match problem.attribute.0.first() {
            Some(cty::Step::Attribute(name)) => problem.diagnostic.is_error() && !absent.contains(name),
            _ => false,
        });
        let others = others.map(|problem| (problem.diagnostic, problem.attribute));
        missing.extend(settings::located(others, body, &self.schema));
        missing
    }

    fn accept<T>(&self, answer: Answer<T>, body: Option<&Body>, warnings: &mut Diagnostics) -> Result<T, Diagnostics> {
        let problems = answer.diagnostics.into_iter();
        let parts = problems.map(|PluginDiagnostic { diagnostic, attribute }| (diagnostic, attribute));
        let problems = settings::located(parts, body, &self.schema);
        if problems.has_errors() {
            return Err(problems);
        }
        warnings.extend(problems);
        Ok(answer.value)
    }
}

pub struct Store {
    ty: String,
    config: Value,
    schema: Arc<Schema>,
    support: WorkspaceSupport,
    /// Warnings about the store's configuration.
    warnings: Mutex<Diagnostics>,
    process: Arc<Process>,
    journals: PathBuf,
    /// Third-party provider that serves the store; `None` for a built-in one.
    provider: Option<SavedProvider>,
}

impl Store {
    /// Returns true if a third-party provider serves the store (a `state_store` block).
    #[must_use]
    pub fn is_of_third_party(&self) -> bool {
        self.provider.is_some()
    }

    /// Returns the type: the name of the backend.
    #[must_use]
    pub fn ty(&self) -> &str {
        &self.ty
    }

    /// Returns the configuration as in records and saved plans, without values from the environment.
    ///
    /// # Errors
    /// A value has no form in JSON.
    pub fn saved(&self) -> Result<Saved, Diagnostics> {
        let saved = Saved::new(&self.ty, &self.config, &self.schema, 0)?;
        Ok(Saved {
            provider: self.provider.clone(),
            ..saved
        })
    }

    /// Takes the warnings about the configuration.
    pub fn take_warnings(&self) -> Diagnostics {
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns true if the store stores each object of a state separately, with its history.
    #[must_use]
    pub fn keeps_objects(&self) -> bool {
        self.process.plugin().keeps_objects()
    }

    /// Lists the workspaces, the default one first; `None` if the store has no workspaces.
    ///
    /// # Errors
    /// The workspaces cannot be listed.
    pub fn workspaces(&self) -> Result<Option<Vec<String>>, Diagnostics> {
        if self.support == WorkspaceSupport::Single {
            return Ok(None);
        }
        let mut names = self.process.wait(self.process.plugin().workspaces())?;
        names.sort();
        names.dedup();
        let default_is_there = matches!(
            self.support,
            WorkspaceSupport::NamedAndDefault | WorkspaceSupport::NamedByState
        );
        let listed = names.iter().position(|n| n == DEFAULT).map(|at| names.remove(at));
        if default_is_there || listed.is_some() {
            names.insert(0, DEFAULT.to_owned());
        }
        Ok(Some(names))
    }

    /// Reads the state of a workspace, without its journal; `None` if there is none.
    ///
    /// # Errors
    /// The state cannot be read.
    pub fn read(&self, workspace: &str, codec: &Codec) -> Result<Option<State>, Diagnostics> {
        let text = self.process.wait(self.process.plugin().read(workspace))?;
        let decoded = match self.keeps_objects() {
            true => Sealer::new(codec.clone()).decode(text),
            false => codec.decode(&text),
        };
        let decoded = decoded.map_err(|e| {
            let detail = format!("The state of the workspace \"{workspace}\" cannot be read: {e}.");
            Diagnostics::from(Diagnostic::error(e.summary(), detail))
        })?;
        Ok(decoded.map(|decoded| decoded.state))
    }

    /// Returns true if the store allows a workspace with the name `default`.
    #[must_use]
    pub fn has_default(&self) -> bool {
        self.support != WorkspaceSupport::NamedWithoutDefault
    }

    /// Deletes a workspace with its state.
    ///
    /// # Errors
    /// The store refuses.
    pub fn delete(&self, workspace: &str) -> Result<(), Diagnostics> {
        self.process.wait(self.process.plugin().delete(workspace))
    }

    /// Releases the lock of a workspace, which another program may hold.
    ///
    /// # Errors
    /// The store refuses: there is no such lock.
    pub fn force_unlock(&self, workspace: &str, id: &str) -> Result<(), Diagnostics> {
        self.process.wait(self.process.plugin().unlock(workspace, id))
    }

    /// Returns true if a workspace exists, needs no creation, or was created by this request.
    ///
    /// # Errors
    /// The store does not support a workspace with this name, or does not answer.
    pub(super) fn has_workspace(&self, workspace: &str) -> Result<bool, Diagnostics> {
        let is_default = workspace == DEFAULT;
        Ok(match self.support {
            WorkspaceSupport::Single if is_default => true,
            WorkspaceSupport::Single => {
                return Err(Diagnostic::error(
                    "Workspaces not supported",
                    format!(
                        "The backend \"{}\" has one state only, and no workspace called \"{workspace}\". Select the workspace \
                         \"default\", or use a backend that has workspaces.",
                        self.ty
                    ),
                )
                .into());
            }
            WorkspaceSupport::NamedAndDefault if is_default => true,
            WorkspaceSupport::NamedByState => {
                let state = self.process.wait(self.process.plugin().read(workspace))?;
                !state.is_empty()
            }
            WorkspaceSupport::NamedWithoutDefault if is_default => {
                return Err(Diagnostic::error(
                    "No default workspace",
                    format!(
                        "The backend \"{}\" has no workspace called \"default\". Select another one with \"workspace select\".",
                        self.ty
                    ),
                )
                .into());
            }
            // A store of this kind creates the workspace if an empty text is written to it, and does not change an existing state.
            WorkspaceSupport::NamedWithoutDefault => {
                self.process.wait(self.process.plugin().write(workspace, Vec::new()))?;
                true
            }
            WorkspaceSupport::NamedAndDefault | WorkspaceSupport::Named => self
                .workspaces()?
                .is_some_and(|names| names.iter().any(|name| name == workspace)),
        })
    }

    pub(super) fn process(&self) -> &Process {
        &self.process
    }

    /// Returns the location of the journal of a workspace. It depends on the configuration of the store, since two stores
    /// of one type may have workspaces of the same name.
    ///
    /// # Errors
    /// A value of the configuration cannot be represented in JSON.
    pub(super) fn journal(&self, workspace: &str) -> Result<JournalLocation, Diagnostics> {
        let saved = self.saved()?;
        let mut identity = serde_json::to_string(&saved.config).unwrap_or_default();
        if let Some(provider) = &saved.provider {
            let config = serde_json::to_string(&provider.config).unwrap_or_default();
            identity = format!("{identity}\0{}\0{config}", provider.source);
        }
        let identity = format!("{}\0{identity}", self.ty);
        Ok(JournalLocation::among(self.journals.clone(), workspace, &identity))
    }
}
