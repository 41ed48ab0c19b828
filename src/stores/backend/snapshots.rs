//! The state of one workspace in a store, with its lock and its journal. [`Snapshots`] is for stores what `state::LocalStore` is for files.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use addrs::program::core_version;
use provider::state_store::{LockFailure, LockRequest};
use state::journal::{Base, JournalLocation, JournalReport, JournaledStore, Keeper, Writer};
use state::sealed::Sealer;
use state::{Claims, Codec, LockInfo, SnapshotStore, State, StateError, StoreLocked, Written};
use syntax::{Diagnostic, Diagnostics};

use super::objects::{Records, Unfinished};
use super::process::Process;
use super::store::{Store, error};

/// First pause between attempts to acquire a lock. Each pause is twice as long as the one before, up to the longest one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause between attempts to acquire a lock.
const LONGEST_PAUSE: Duration = Duration::from_secs(16);

/// First pause for a store that queues the requests for a lock, where an attempt costs little.
const FIRST_PAUSE_IN_ORDER: Duration = Duration::from_millis(100);
/// Longest pause for a store that queues the requests for a lock.
const LONGEST_PAUSE_IN_ORDER: Duration = Duration::from_secs(1);

/// Interval at which cancellation is checked while waiting for the lock.
const TICK: Duration = Duration::from_millis(100);

/// State of one workspace of a store, with its lock and its journal.
pub struct Snapshots {
    store: Arc<Store>,
    workspace: String,
    /// ID of the held lock; empty if the store has no lock IDs.
    lock_id: Option<String>,
    /// State that was last read or written. `None` before the first read; `Some(None)` if there was no state.
    known: Option<Option<State>>,
    /// Set if results of a journal are in the known state but not in the store.
    replayed: bool,
    /// Set if the stored state should be written again, see `state::codec::Decoded`.
    outdated: bool,
    keeper: Keeper,
    codec: Codec,
    /// Encryption for a store that keeps objects apart.
    sealer: Arc<Sealer>,
    journal: JournalLocation,
    /// Parts that the run changes; `None` before they are known, and for a lock on the whole state.
    claims: Option<Claims>,
    /// Writer that sends the records of this run to the store, if the store stores each object separately.
    recorder: Option<Writer>,
    /// Operations of earlier runs without a result, as recorded by the store.
    unfinished: Unfinished,
}

impl Snapshots {
    /// Opens the state of a workspace. A missing workspace is created with an empty state, so that it is listed from now on.
    ///
    /// # Errors
    /// The store does not support a workspace with this name, or stores each object separately while encryption is configured. The empty
    /// state cannot be written.
    pub fn open(store: &Arc<Store>, workspace: &str, codec: Codec) -> Result<Snapshots, Diagnostics> {
        let mut snapshots = Snapshots {
            store: store.clone(),
            workspace: workspace.to_owned(),
            lock_id: None,
            known: None,
            replayed: false,
            outdated: false,
            keeper: Keeper::new(codec.clone()),
            sealer: Arc::new(Sealer::new(codec.clone())),
            codec,
            journal: store.journal(workspace)?,
            claims: None,
            recorder: None,
            unfinished: Unfinished::default(),
        };
        if !store.has_workspace(workspace)? {
            snapshots.create().map_err(|e| {
                Diagnostics::from(Diagnostic::error(
                    "Failed to create the workspace",
                    format!("An empty state for the workspace \"{workspace}\" cannot be written. {e}"),
                ))
            })?;
        }
        Ok(snapshots)
    }

    /// Creates the workspace: writes an empty state if there is none.
    fn create(&mut self) -> Result<(), StateError> {
        // The lock ensures that two commands which create the same workspace do not overwrite each other's first state.
        self.lock(&LockInfo::new("init", core_version()), Duration::ZERO, &|| false)?;
        let written = match self.read() {
            // Another program has created the workspace meanwhile.
            Ok(Some(_)) => Ok(()),
            Ok(None) => self.write(&State::new(), core_version()).map(drop),
            Err(e) => Err(e),
        };
        let unlocked = self.unlock();
        written.and(unlocked)?;
        // The lock was released, so the state must be read again before it is used.
        self.known = None;
        Ok(())
    }

    fn process(&self) -> &Process {
        self.store.process()
    }

    /// Asks the store for operations of earlier runs without a result. If only parts of the state are locked, operations on other parts are
    /// left to the runs that lock these.
    fn find_unfinished(&mut self) -> Result<(), StateError> {
        let mut found = self.store.unfinished(&self.workspace).map_err(error)?;
        if let Some(claims) = self.claims.as_ref().filter(|claims| !claims.is_complete) {
            let claimed: BTreeSet<String> = claims.objects.iter().map(ToString::to_string).collect();
            found.retain(|operation| claimed.contains(&operation.intent.address));
        }
        let known = self.known.as_ref().and_then(Option::as_ref);
        self.unfinished.replace(found, JournaledStore::shown(self), known);
        Ok(())
    }

    /// Marks the unfinished operations as reported to the user. With a lock, the store forgets them.
    fn forget_unfinished(&mut self) -> Result<(), StateError> {
        let operations = self.unfinished.take();
        match self.lock_id.is_some() && !operations.is_empty() {
            true => self.store.forget(&self.workspace, &operations).map_err(error),
            false => Ok(()),
        }
    }

    /// Makes one attempt to acquire the lock. Calls `ask` at intervals until the store answers; `ask` may report that the command waits.
    fn try_lock(&self, request: &LockRequest, ask: &dyn Fn() -> bool) -> Result<String, LockFailure> {
        self.process().wait(async {
            let mut attempt = self.process().plugin().lock(&self.workspace, request);
            loop {
                tokio::select! {
                    // The attempt is never abandoned, because the store may already have granted the lock, which would then never be
                    // released.
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
            store.ty()
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
    fn keeps_objects(&self) -> bool {
        self.store.keeps_objects()
    }

    fn lock_objects(
        &mut self,
        claims: &Claims,
        info: &LockInfo,
        timeout: Option<Duration>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), StateError> {
        if self.lock_id.is_none() && self.store.keeps_objects() {
            self.store
                .claim(&self.workspace, &info.id, claims, timeout.is_some())
                .map_err(error)?;
            // A request that locks nothing is granted at once.
            self.lock(info, timeout.unwrap_or_default(), cancelled)?;
            self.claims = Some(claims.clone());
            return Ok(());
        }
        match timeout {
            Some(timeout) => self.lock(info, timeout, cancelled),
            None => Ok(()),
        }
    }

    fn lock(&mut self, info: &LockInfo, timeout: Duration, cancelled: &dyn Fn() -> bool) -> Result<(), StateError> {
        if self.lock_id.is_some() {
            return Ok(());
        }
        let in_order = self.store.keeps_objects();
        let request = LockRequest {
            operation: info.operation.clone(),
            info: info.to_json(),
        };
        let began = Instant::now();
        let (mut pause, longest) = match in_order {
            true => (FIRST_PAUSE_IN_ORDER, LONGEST_PAUSE_IN_ORDER),
            false => (FIRST_PAUSE, LONGEST_PAUSE),
        };
        // A queued request stays in the store's queue until the session ends, and requests of other programs would wait behind it, so it is
        // withdrawn.
        let withdraw = || {
            if in_order {
                let withdrawn = self
                    .process()
                    .wait(self.process().plugin().unlock(&self.workspace, &info.id));
                if withdrawn.is_err() {
                    tracing::debug!("the request for the lock cannot be withdrawn");
                }
            }
        };
        loop {
            let (holder, problems) = match self.try_lock(&request, cancelled) {
                Ok(id) => {
                    self.lock_id = Some(id);
                    self.known = None;
                    return Ok(());
                }
                Err(LockFailure::Failed(mut problems)) => {
                    // A third-party store returns its error as text only, so advice on how to release the lock is added.
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
            // If the store names no holder, the failure probably has another cause, and waiting does not help.
            if holder.as_ref().is_none_or(|holder| holder.id.is_empty()) {
                return Err(refused(holder));
            }
            let until = Instant::now() + pause;
            while Instant::now() < until {
                if began.elapsed() >= timeout || cancelled() {
                    withdraw();
                    return Err(refused(holder));
                }
                std::thread::sleep(TICK.min(until.saturating_duration_since(Instant::now())));
            }
            pause = (pause * 2).min(longest);
        }
    }

    fn first_lineage(&self) -> Option<String> {
        // Of a run that has recorded results: the store has begun the state with the ID of its lock.
        self.claims.as_ref().and(self.lock_id.clone())
    }

    fn unlock(&mut self) -> Result<(), StateError> {
        self.claims = None;
        match self.lock_id.take() {
            // The ID may be empty for a store without lock IDs, but the lock must be released nevertheless.
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
        let decoded = match self.store.keeps_objects() {
            true => self.sealer.decode(text),
            false => self.codec.decode(&text),
        };
        let decoded = decoded.map_err(|problem| StateError::Store {
            summary: problem.summary().into(),
            detail: match problem.is_of_encryption() {
                true => format!(
                    "The state of the workspace \"{}\" in the backend \"{}\" cannot be read: {problem}. Nothing was changed.",
                    self.workspace, self.store.ty()
                ),
                false => format!(
                "The backend \"{}\" has data of the workspace \"{}\" that are not a state: {problem}. Nothing was changed.",
                self.store.ty(), self.workspace
            ),
            },
        })?;
        let outdated = decoded.as_ref().is_some_and(|decoded| decoded.outdated);
        let state = decoded.map(|decoded| decoded.state);
        let found = self.keeper.find(&self.journal, state.as_ref())?;
        self.known = Some(state);
        self.outdated = outdated;
        self.replayed = false;
        if self.store.keeps_objects() {
            self.find_unfinished()?;
        }
        if let Some(found) = found {
            // Only the holder of the lock may save the results of the journal.
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
            // Announced before the write, so that at every instant the journal knows the snapshot in the store.
            self.keeper.announce(Base::from_state_text(&snapshot, &text));
        }
        let stored = match self.store.keeps_objects() {
            true => self.sealer.seal(text)?,
            false => self.codec.seal(&snapshot, text)?,
        };
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
        self.keeper.report().or(self.unfinished.report.as_ref())
    }

    fn forget_journal(&mut self) -> Result<(), StateError> {
        self.forget_unfinished()?;
        self.keeper.forget(self.lock_id.is_some())
    }

    fn begin_journal(&mut self, operation: &str, terraform_version: &str) -> Result<Option<Writer>, StateError> {
        if self.known.is_none() {
            self.read()?;
        }
        if self.claims.is_some() {
            let sink = Box::new(Records {
                store: self.store.clone(),
                workspace: self.workspace.clone(),
                sealer: self.sealer.clone(),
            });
            let started = Writer::in_store(sink).map_err(|e| StateError::Store {
                summary: "Cannot start".to_owned(),
                detail: format!("The system does not let us start a thread for recording results: {e}"),
            })?;
            self.recorder = Some(started.clone());
            return Ok(Some(started));
        }
        // The whole edit is one transaction there.
        if self.store.keeps_objects() {
            return Ok(None);
        }
        // The new journal replaces an earlier one and continues the store's state, so the store must have the earlier
        // results first.
        if let (true, Some(Some(known))) = (self.replayed, self.known.clone()) {
            self.write(&known, terraform_version)?;
        }
        self.keeper.forget(true)?;
        let base = Base::from_state(self.known())?;
        let journal = self.keeper.begin(&self.journal, base, operation, terraform_version)?;
        Ok(Some(journal))
    }

    fn compact_journal(&self, included: u64) {
        self.keeper.compact(included, self.known());
    }

    fn end_journal(&mut self) -> Result<(), StateError> {
        if let Some(recorder) = self.recorder.take() {
            return recorder.end_run(|| Ok(Base::default()));
        }
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
        // A command that ends early must not leave a lock. Inside a runtime, the blocking request to release it is not possible.
        if tokio::runtime::Handle::try_current().is_err()
            && let Err(e) = SnapshotStore::unlock(self)
        {
            tracing::warn!("{e}");
        }
    }
}
