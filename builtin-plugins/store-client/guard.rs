//! Guarded writes: a program that has lost its lock overwrites nothing.
//!
//! A lock can be lost while its program is still running: `force-unlock` releases it, or a session expires. [`Guarded`] turns a
//! [`LockedStore`] into a state client that checks for this before each write. It asks the service whether the lock is still its own. If
//! the service has conditional writes, the write also requires that the state is the one that was read or written last. Once the lock is
//! found to be lost, all writes are refused until it is taken again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use monoform_sdk::state_store::{DEFAULT, LockError, LockInfo, StateClient, WorkspaceSupport};
use monoform_sdk::{Diagnostics, Result, async_trait};
use serde_json::Value as Json;

use crate::about::{WRITE, problem};
pub use crate::lock::Holder;
use crate::lock::{self, Records};
use crate::sum::md5_hex;

/// Maximum number of attempts of a conditional write. A condition can fail although the state has the expected content, for example because
/// only metadata has changed.
const ATTEMPTS: u32 = 5;

/// Version of a state at a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revision {
    /// There is no state.
    Absent,
    /// Name of a version at the service, such as a generation, an ETag or an index.
    Named(String),
}

impl Revision {
    /// Returns the revision with this name; `None` if the name is absent or empty.
    #[must_use]
    pub fn named(name: Option<&str>) -> Option<Revision> {
        name.filter(|name| !name.is_empty())
            .map(|name| Revision::Named(name.to_owned()))
    }
}

/// A state as the service returned it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Bytes of the state; `None` if there is none.
    pub state: Option<Vec<u8>>,
    /// Revision of the state; `None` if the service has no revisions.
    pub revision: Option<Revision>,
}

impl From<Option<Vec<u8>>> for Snapshot {
    fn from(state: Option<Vec<u8>>) -> Snapshot {
        Snapshot { state, revision: None }
    }
}

#[derive(Clone, Debug)]
pub enum Written {
    /// The state was written. The revision is the new one, if the service reported it.
    Done(Option<Revision>),
    /// The state does not have the expected revision, and nothing was written.
    Changed,
    /// The service reported that the lock is no longer held, and nothing was written. The text is the reason.
    LockLost(String),
}

/// Requests of a store with guarded writes: the requests of a [`StateClient`], and one for the holder of a lock.
#[async_trait]
pub trait LockedStore: Send + Sync + 'static {
    /// Returns the workspaces that the store can have.
    fn support(&self) -> WorkspaceSupport;

    /// Lists the existing workspaces.
    async fn workspaces(&self) -> Result<Vec<String>>;

    async fn read(&self, workspace: &str) -> Result<Snapshot>;

    /// Replaces the state. If the service has conditional writes, the store writes only if the state has the expected revision.
    async fn write(&self, workspace: &str, state: &[u8], expected: Option<&Revision>) -> Result<Written>;

    /// Deletes a workspace with its state.
    async fn delete(&self, workspace: &str) -> Result<()>;

    /// Returns the records that lock a workspace. A store with other locks overrides `lock`, `unlock` and `holder` instead.
    fn lock_records<'s>(&'s self, _workspace: &'s str) -> Result<Records<'s>> {
        Ok(Vec::new())
    }

    /// Tries to lock a workspace, without waiting for a known holder.
    async fn lock(&self, workspace: &str, info: LockInfo) -> std::result::Result<String, LockError> {
        lock::acquire(&self.lock_records(workspace)?, info).await
    }

    async fn unlock(&self, workspace: &str, id: &str) -> Result<()> {
        lock::release(&self.lock_records(workspace)?, id).await
    }

    /// Forgets a lost lock, without releasing the lock at the service, which may belong to another program.
    async fn forget_lock(&self, _workspace: &str, _id: &str) {}

    /// Returns true if the store records each object of a state separately, with its history.
    fn keeps_objects(&self) -> bool {
        false
    }

    /// Answers a query about the history of a workspace's state.
    async fn inquire(&self, _workspace: &str, _question: &str) -> Result<Vec<u8>> {
        Err(problem(
            "No history of states",
            "This store keeps no history of its states.",
        ))
    }

    /// Carries out a request about single objects of a workspace's state.
    async fn request(&self, _workspace: &str, _request: &str) -> Result<()> {
        Err(problem(
            "No objects in this store",
            "This store keeps states as a whole.",
        ))
    }

    /// Returns the holder of a workspace's lock. `own` is the ID of the lock that this program has taken.
    async fn holder(&self, workspace: &str, own: &str) -> Result<Holder> {
        lock::holder(&self.lock_records(workspace)?, WRITE, own).await
    }
}

/// A store with guarded writes.
pub struct Guarded<S> {
    store: S,
    workspaces: Mutex<BTreeMap<String, Entry>>,
}

/// The known lock and state of a workspace.
#[derive(Clone, Default)]
struct Entry {
    /// ID of the lock that this program has taken.
    lock: Option<String>,
    /// Reason why the lock is lost; `None` if it is not.
    lost: Option<String>,
    /// The state that was read or written last.
    known: Option<Known>,
    /// MD5 of each state whose write has failed since `known` was set. Such a write may have been carried out although its answer was lost.
    attempted: BTreeSet<String>,
}

impl Entry {
    /// Returns true if this program has read or written the state with this MD5 last, or may have written it in a failed attempt.
    fn is_own(&self, sum: &str) -> bool {
        self.attempted.contains(sum) || self.known.as_ref().is_some_and(|known| known.sum == sum)
    }
}

#[derive(Clone)]
struct Known {
    /// MD5 of the state; that of an empty text if there is no state.
    sum: String,
    /// Lineage and serial. They identify the state even if a service has formatted its JSON in another way.
    mark: Option<(String, u64)>,
    revision: Option<Revision>,
}

impl Known {
    fn new(state: Option<&[u8]>, revision: Option<Revision>) -> Known {
        Known {
            sum: md5_hex(state.unwrap_or_default()),
            mark: state.and_then(mark),
            revision,
        }
    }

    /// Returns true if both are the same state: equal in content, or in lineage and serial.
    fn is_same(&self, other: &Known) -> bool {
        self.sum == other.sum || self.mark.is_some() && self.mark == other.mark
    }
}

/// Returns the lineage and the serial of a state.
fn mark(state: &[u8]) -> Option<(String, u64)> {
    let json: Json = serde_json::from_slice(state).ok()?;
    Some((json["lineage"].as_str()?.to_owned(), json["serial"].as_u64()?))
}

/// Describes the holder of a lock for messages.
fn shown(holder: &LockInfo) -> String {
    let mut text = format!("the ID {:?}", holder.id);
    for (name, value) in [
        ("of", &holder.who),
        ("since", &holder.created),
        ("for", &holder.operation),
    ] {
        if !value.is_empty() {
            let _ = write!(text, " {name} {value}");
        }
    }
    text
}

/// Creates the error for a refused write.
fn refusal(detail: &str) -> Diagnostics {
    problem(WRITE, detail)
}

impl<S: LockedStore> Guarded<S> {
    pub fn new(store: S) -> Guarded<S> {
        Guarded {
            store,
            workspaces: Mutex::default(),
        }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.workspaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(&self, workspace: &str) -> Entry {
        self.entries().get(workspace).cloned().unwrap_or_default()
    }

    fn remember(&self, workspace: &str, known: Known) {
        let mut entries = self.entries();
        let entry = entries.entry(workspace.to_owned()).or_default();
        entry.known = Some(known);
        // The current state is known, so earlier failed writes no longer matter.
        entry.attempted.clear();
    }

    /// Records a failed write of the state with this MD5, since it may have been carried out nevertheless.
    fn remember_attempt(&self, workspace: &str, sum: String) {
        let mut entries = self.entries();
        entries.entry(workspace.to_owned()).or_default().attempted.insert(sum);
    }

    /// Marks the lock as lost, so that no further write is sent. Returns the error.
    fn lose(&self, workspace: &str, why: &str) -> Diagnostics {
        let detail = format!(
            "lock lost: {why} Nothing was written, since that could overwrite what the other program has written or is about to \
             write. Compare this state with the one that is stored before it takes its place (\"state push\", with -force if both \
             were made from the same state)."
        );
        let refused = refusal(&detail);
        self.entries().entry(workspace.to_owned()).or_default().lost = Some(detail);
        refused
    }

    /// Returns the error for a state that another program has written since this program read it. If this program has taken a lock, the
    /// lock is marked as lost.
    fn overwritten(&self, workspace: &str, locked: bool) -> Diagnostics {
        match locked {
            true => self.lose(
                workspace,
                "another program has written the state since it was read here: the lock of this program was taken away in \
                 between.",
            ),
            false => refusal(
                "Another program has written the state since it was read here, and this one holds no lock. Nothing was written. \
                 Run the command again.",
            ),
        }
    }

    /// Checks that this program still holds the lock, so that it may write the state.
    async fn check(&self, workspace: &str, entry: &Entry) -> Result<()> {
        if let Some(lost) = &entry.lost {
            return Err(refusal(lost));
        }
        // Without a lock (`-lock=false`, or a service without locks), only the revision protects the state.
        let Some(own) = &entry.lock else { return Ok(()) };
        match self.store.holder(workspace, own).await? {
            Holder::Own => Ok(()),
            Holder::Free => Err(self.lose(
                workspace,
                &format!("the lock with the ID {own:?} that this program held was released by another one."),
            )),
            Holder::Other(holder) => Err(self.lose(
                workspace,
                &format!(
                    "the lock with the ID {own:?} that this program held was taken away; the state is locked by another one with \
                     {}.",
                    shown(&holder)
                ),
            )),
            // The lock cannot be read, so the state is compared: if it is neither the state that was read last nor one that this process
            // wrote, another program has written it.
            Holder::Unknown => {
                let Some(known) = &entry.known else { return Ok(()) };
                let there = self.store.read(workspace).await?;
                let found = Known::new(there.state.as_deref(), None);
                match known.is_same(&found) || entry.is_own(&found.sum) {
                    true => Ok(()),
                    false => Err(self.overwritten(workspace, true)),
                }
            }
        }
    }
}

#[async_trait]
impl<S: LockedStore> StateClient for Guarded<S> {
    fn support(&self) -> WorkspaceSupport {
        self.store.support()
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        self.store.workspaces().await
    }

    async fn read(&self, workspace: &str) -> Result<Option<Vec<u8>>> {
        let Snapshot { state, revision } = self.store.read(workspace).await?;
        self.remember(workspace, Known::new(state.as_deref(), revision));
        Ok(state)
    }

    async fn write(&self, workspace: &str, state: Vec<u8>) -> Result<()> {
        let entry = self.entry(workspace);
        self.check(workspace, &entry).await?;
        let locked = entry.lock.is_some();
        let sum = md5_hex(&state);
        let mut expected = entry.known.as_ref().and_then(|known| known.revision.clone());
        for _ in 0..ATTEMPTS {
            let written = self.store.write(workspace, &state, expected.as_ref()).await;
            // The failed write may have been carried out. A later attempt recognizes the state by this record.
            let written = written.inspect_err(|_| self.remember_attempt(workspace, sum.clone()))?;
            let revision = match written {
                Written::Done(revision) => revision,
                Written::LockLost(why) => return Err(self.lose(workspace, &why)),
                Written::Changed => {
                    let there = self.store.read(workspace).await?;
                    let found = Known::new(there.state.as_deref(), there.revision.clone());
                    if found.sum == sum {
                        // An earlier attempt was carried out, but its answer was lost.
                        self.remember(workspace, found);
                        return Ok(());
                    }
                    if !entry.is_own(&found.sum) {
                        return Err(self.overwritten(workspace, locked));
                    }
                    // The state is the known one, or one of a failed attempt of this program. Only the revision is new, so the write is
                    // repeated with it.
                    expected = there.revision;
                    continue;
                }
            };
            self.remember(workspace, Known::new(Some(&state), revision));
            return Ok(());
        }
        Err(refusal(
            "The state is as it was read, but something else about it is changed again and again. Nothing was written. Try again.",
        ))
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        let is_default = workspace == DEFAULT || workspace.is_empty();
        if is_default && self.store.support() != WorkspaceSupport::Single {
            let detail = "can't delete default state: the default workspace is always there.";
            return Err(problem("Cannot delete the workspace", detail));
        }
        self.store.delete(workspace).await?;
        if let Some(entry) = self.entries().get_mut(workspace) {
            // A new workspace with the same name must not be compared with the deleted state.
            entry.known = None;
        }
        Ok(())
    }

    async fn lock(&self, workspace: &str, info: LockInfo) -> std::result::Result<String, LockError> {
        let id = self.store.lock(workspace, info).await?;
        let entry = Entry {
            lock: Some(id.clone()).filter(|id| !id.is_empty()),
            // An empty ID means that the store has no locks.
            ..Entry::default()
        };
        self.entries().insert(workspace.to_owned(), entry);
        Ok(id)
    }

    fn keeps_objects(&self) -> bool {
        self.store.keeps_objects()
    }

    async fn inquire(&self, workspace: &str, question: &str) -> Result<Vec<u8>> {
        self.store.inquire(workspace, question).await
    }

    async fn request(&self, workspace: &str, request: &str) -> Result<()> {
        // No check here: the store checks the lock in the transaction of the request.
        self.store.request(workspace, request).await
    }

    async fn unlock(&self, workspace: &str, id: &str) -> Result<()> {
        let entry = self.entry(workspace);
        let is_own = entry.lock.as_deref() == Some(id);
        match entry.lost {
            // The loss of the lock was reported with the refused write, so unlocking is no error.
            Some(_) if is_own => self.store.forget_lock(workspace, id).await,
            _ => self.store.unlock(workspace, id).await?,
        }
        if !is_own {
            return Ok(());
        }
        if let Some(entry) = self.entries().get_mut(workspace) {
            entry.lock = None;
            entry.lost = None;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
