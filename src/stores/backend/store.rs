//! State stores: backends that are plugins in processes of their own.
//!
//! [`StorePlugin`] is a store that is not configured yet, [`Store`] a configured one. [`Snapshots`] is the state of one
//! of its workspaces, as `state::LocalStore` is that of a file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use addrs::program::core_version;
use cty::Value;
use provider::state_store::{LockFailure, LockRequest, WorkspaceSupport};
use provider::{Answer, PluginDiagnostic};
use schema::Schema;
use state::journal::{Base, JournalLocation, JournalReport, JournaledStore, Keeper, Writer};
use state::{Codec, LockInfo, SnapshotStore, State, StateError, StoreLocked, Written};
use syntax::ast::Body;
use syntax::{Diagnostic, Diagnostics};

use super::owner::Owner;
use super::process::Process;
use super::record::{Saved, SavedProvider};
use super::settings;
use crate::Context;
use crate::workspace::DEFAULT;

/// Directory of the journals of states in stores, below the data directory.
pub(super) const JOURNALS: &str = "journals";

/// Pauses between attempts to acquire a lock: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(16);

/// Interval at which cancellation is checked while the lock is waited for.
const TICK: Duration = Duration::from_millis(100);

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

    /// Returns the third-party provider that serves the store.
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
    /// The store refuses the configuration.
    pub fn configure(self, config: Value, body: Option<&Body>) -> Result<Store, Diagnostics> {
        // Checked here, since the message names the block and -backend-config, which a plugin does not know.
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

    /// Adds what the store itself finds to the errors about missing arguments, so that the user can set all at once: some are
    /// required only where the environment has no value.
    fn all_missing(&self, mut missing: Diagnostics, config: Value, body: Option<&Body>) -> Diagnostics {
        // A third party's provider may need to be configured before it can answer.
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
        let decoded = codec.decode(&text).map_err(|e| {
            let detail = format!("The state of the workspace \"{workspace}\" cannot be read: {e}.");
            Diagnostics::from(Diagnostic::error(e.summary(), detail))
        })?;
        Ok(decoded.map(|decoded| decoded.state))
    }

    /// Returns true if a workspace can be called `default`.
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

    /// Opens the state of a workspace. A missing one is created with an empty state, so that it is listed from now on.
    ///
    /// # Errors
    /// The store has no such workspaces, or the empty state cannot be written.
    pub fn open(self: &Arc<Store>, workspace: &str, codec: Codec) -> Result<Snapshots, Diagnostics> {
        let saved = self.saved()?;
        let mut identity = serde_json::to_string(&saved.config).unwrap_or_default();
        if let Some(provider) = &saved.provider {
            let config = serde_json::to_string(&provider.config).unwrap_or_default();
            identity = format!("{identity}\0{}\0{config}", provider.source);
        }
        let mut snapshots = Snapshots {
            store: self.clone(),
            workspace: workspace.to_owned(),
            lock_id: None,
            known: None,
            replayed: false,
            outdated: false,
            keeper: Keeper::new(codec.clone()),
            codec,
            place: JournalLocation::among(self.journals.clone(), workspace, &format!("{}\0{identity}", self.ty)),
        };
        let is_default = workspace == DEFAULT;
        let there = match self.support {
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
            // Such a store creates the workspace when it gets an empty text, and leaves an existing state as it is.
            WorkspaceSupport::NamedWithoutDefault => {
                self.process.wait(self.process.plugin().write(workspace, Vec::new()))?;
                true
            }
            WorkspaceSupport::NamedAndDefault | WorkspaceSupport::Named => self
                .workspaces()?
                .is_some_and(|names| names.iter().any(|name| name == workspace)),
        };
        if !there {
            let create = |snapshots: &mut Snapshots| -> Result<(), StateError> {
                // Under the lock, so that two commands which create the same workspace do not replace each other's
                // first state.
                snapshots.lock(&LockInfo::new("init", core_version()), Duration::ZERO, &|| false)?;
                let written = match snapshots.read() {
                    // Another program has created it meanwhile.
                    Ok(Some(_)) => Ok(()),
                    Ok(None) => snapshots.write(&State::new(), core_version()).map(drop),
                    Err(e) => Err(e),
                };
                let unlocked = snapshots.unlock();
                written.and(unlocked)
            };
            create(&mut snapshots).map_err(|e| {
                Diagnostics::from(Diagnostic::error(
                    "Failed to create the workspace",
                    format!("An empty state for the workspace \"{workspace}\" cannot be written. {e}"),
                ))
            })?;
            // Forgotten, since the lock was released: the state must be read again before it is used.
            snapshots.known = None;
        }
        Ok(snapshots)
    }
}

/// State of one workspace of a store.
pub struct Snapshots {
    store: Arc<Store>,
    workspace: String,
    /// Lock that is held; the ID is empty where the store has none.
    lock_id: Option<String>,
    /// State that was read or written last; `None` before the first reading, and `Some(None)` if there was no state.
    known: Option<Option<State>>,
    /// Set if the known state has results from a journal that the store does not have.
    replayed: bool,
    /// Set if the known state would be stored in another way now.
    outdated: bool,
    keeper: Keeper,
    codec: Codec,
    /// Location of the journal.
    place: JournalLocation,
}

/// Turns the diagnostics of a store into the error of a state.
fn error(problems: Diagnostics) -> StateError {
    let mut errors = problems.into_iter().filter(Diagnostic::is_error);
    let first = errors
        .next()
        .unwrap_or_else(|| Diagnostic::error("Error accessing the state", "The store does not answer."));
    let syntax::DiagnosticParts {
        summary, mut detail, ..
    } = first.into_parts();
    for other in errors {
        detail.push_str(&format!("\n\n{}: {}", other.summary, other.detail));
    }
    StateError::Store { summary, detail }
}

impl Snapshots {
    fn process(&self) -> &Process {
        &self.store.process
    }

    /// Tries once to acquire the lock. Meanwhile calls `ask`, which may report that the attempt takes long.
    fn try_lock(&self, request: &LockRequest, ask: &dyn Fn() -> bool) -> Result<String, LockFailure> {
        self.process().wait(async {
            let mut attempt = self.process().plugin().lock(&self.workspace, request);
            loop {
                tokio::select! {
                    // The attempt is never abandoned: the store may have taken the lock already, and nobody would
                    // release it.
                    result = &mut attempt => return result,
                    () = tokio::time::sleep(TICK) => drop(ask()),
                }
            }
        })
    }
}

impl JournaledStore for Snapshots {
    fn keeper(&mut self) -> &mut Keeper {
        &mut self.keeper
    }

    fn known(&self) -> Option<&State> {
        self.known.as_ref().and_then(Option::as_ref)
    }

    fn shown(&self) -> String {
        let Snapshots { store, workspace, .. } = self;
        format!(
            "the state of the workspace \"{workspace}\" in the backend \"{}\"",
            store.ty
        )
    }

    fn save(&mut self, state: &State, version: &str) -> Result<(), StateError> {
        self.write(state, version).map(drop)
    }

    fn hold(&mut self, state: State) {
        self.replayed = true;
        self.known = Some(Some(state));
    }
}

impl SnapshotStore for Snapshots {
    fn lock(&mut self, info: &LockInfo, timeout: Duration, cancelled: &dyn Fn() -> bool) -> Result<(), StateError> {
        if self.lock_id.is_some() {
            return Ok(());
        }
        let request = LockRequest {
            operation: info.operation.clone(),
            info: info.to_json(),
        };
        let began = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let (holder, problems) = match self.try_lock(&request, cancelled) {
                Ok(id) => {
                    self.lock_id = Some(id);
                    self.known = None;
                    return Ok(());
                }
                Err(LockFailure::Failed(mut problems)) => {
                    // The error of a third-party store is text only, without the way to release the lock.
                    if let (true, Some(problem)) = (self.store.is_of_third_party(), problems.0.first_mut()) {
                        problem.detail.push_str(
                            "\n\nIf this is a lock that no program is using any more, \"force-unlock\" with its ID frees it.",
                        );
                    }
                    return Err(error(problems));
                }
                Err(LockFailure::Held { holder, problems }) => (holder, problems),
            };
            let holder = holder.and_then(|text| LockInfo::from_json(text.as_bytes()));
            let refused = |holder| {
                let details: Vec<String> = problems.iter().map(|d| d.detail.clone()).collect();
                StateError::StoreLocked(Box::new(StoreLocked {
                    message: details.join(" "),
                    holder,
                    waited: began.elapsed(),
                }))
            };
            // Without a holder, the failure is likely another one, which does not pass with time.
            if holder.as_ref().is_none_or(|holder| holder.id.is_empty()) {
                return Err(refused(holder));
            }
            let until = Instant::now() + pause;
            while Instant::now() < until {
                if began.elapsed() >= timeout || cancelled() {
                    return Err(refused(holder));
                }
                std::thread::sleep(TICK.min(until.saturating_duration_since(Instant::now())));
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn unlock(&mut self) -> Result<(), StateError> {
        match self.lock_id.take() {
            // A store that has no lock IDs may have something to release nevertheless.
            Some(id) => {
                let unlock = self.process().plugin().unlock(&self.workspace, &id);
                self.process().wait(unlock).map_err(|problems| {
                    let StateError::Store { detail, .. } = error(problems) else {
                        return StateError::Unlock(String::new());
                    };
                    StateError::Unlock(format!(
                        "{detail}\n\nThe state may still be locked. If it is, \"force-unlock {id}\" frees it once it is certain \
                         that no program is using it."
                    ))
                })
            }
            None => Ok(()),
        }
    }

    fn read(&mut self) -> Result<Option<State>, StateError> {
        let read = self.process().plugin().read(&self.workspace);
        let text = self.process().wait(read).map_err(error)?;
        let decoded = self.codec.decode(&text).map_err(|problem| StateError::Store {
            summary: problem.summary().into(),
            detail: match problem.is_of_encryption() {
                true => format!(
                    "The state of the workspace \"{}\" in the backend \"{}\" cannot be read: {problem}. Nothing was changed.",
                    self.workspace, self.store.ty
                ),
                false => format!(
                "What the backend \"{}\" has for the workspace \"{}\" is not a state: {problem}. Nothing was changed.",
                self.store.ty, self.workspace
            ),
            },
        })?;
        let outdated = decoded.as_ref().is_some_and(|decoded| decoded.outdated);
        let state = decoded.map(|decoded| decoded.state);
        let found = self.keeper.find(&self.place, state.as_ref())?;
        self.known = Some(state);
        self.outdated = outdated;
        self.replayed = false;
        if let Some(found) = found {
            // Only the holder of the lock may save what the journal adds.
            let locked = self.lock_id.is_some();
            Keeper::replay(self, found, locked)?;
        }
        Ok(self.known.clone().flatten())
    }

    fn write(&mut self, state: &State, terraform_version: &str) -> Result<Written, StateError> {
        if self.known.is_none() {
            self.read()?;
        }
        let known = self.known();
        let same = known.is_some_and(|known| known.same_content(state)) && !self.replayed;
        if same && !self.outdated {
            return Ok(Written::Unchanged);
        }
        let snapshot = state.next_snapshot(known, terraform_version, !same);
        self.write_snapshot(snapshot)
    }

    fn write_snapshot(&mut self, snapshot: State) -> Result<Written, StateError> {
        let text = state::document::encode(&snapshot)?;
        if self.keeper.is_writing() {
            // Before the write: at every instant, the store must have a snapshot that the journal knows.
            self.keeper.announce(Base::from_state_text(&snapshot, &text));
        }
        let stored = self.codec.seal(&snapshot, text)?;
        let write = self.process().plugin().write(&self.workspace, stored);
        self.process().wait(write).map_err(error)?;
        let serial = snapshot.serial;
        self.known = Some(Some(snapshot));
        self.replayed = false;
        self.outdated = false;
        self.keeper.replaced();
        Ok(Written::Snapshot(serial))
    }

    fn journal_report(&self) -> Option<&JournalReport> {
        self.keeper.report()
    }

    fn forget_journal(&mut self) -> Result<(), StateError> {
        self.keeper.forget(self.lock_id.is_some())
    }

    fn begin_journal(&mut self, operation: &str, terraform_version: &str) -> Result<Option<Writer>, StateError> {
        if self.known.is_none() {
            self.read()?;
        }
        // The new journal takes the place of an earlier one and continues the store's state, so the store must have the
        // earlier results first.
        if let (true, Some(Some(known))) = (self.replayed, self.known.clone()) {
            self.write(&known, terraform_version)?;
        }
        self.keeper.forget(true)?;
        let base = Base::from_state(self.known())?;
        let journal = self.keeper.begin(&self.place, base, operation, terraform_version)?;
        Ok(Some(journal))
    }

    fn compact_journal(&self, included: u64) {
        self.keeper.compact(included, self.known());
    }

    fn end_journal(&mut self) -> Result<(), StateError> {
        let known = self.known.clone().flatten();
        self.keeper.end(known.as_ref())
    }

    fn announce_copy(&self, snapshot: &State) -> Result<(), StateError> {
        self.keeper.announce(Base::from_state(Some(snapshot))?);
        Ok(())
    }

    fn expect_snapshot(&mut self, snapshot: &State) -> Result<(), StateError> {
        self.keeper.expect(Base::from_state(Some(snapshot))?);
        Ok(())
    }
}

impl Drop for Snapshots {
    fn drop(&mut self) {
        // A command that ends early leaves no lock. Inside a runtime nothing can be waited for.
        if tokio::runtime::Handle::try_current().is_err()
            && let Err(e) = SnapshotStore::unlock(self)
        {
            tracing::warn!("{e}");
        }
    }
}
