//! Guarded writes: a program whose lock was taken away overwrites nothing.
//!
//! `force-unlock` takes a lock from a program that may still be running, and so does a session that expires. [`Guarded`] turns a
//! [`LockedStore`] into a state client that checks this before each write: it asks whether the lock is still its own, and writes on
//! the condition that the state is the one that was read or written last, where the service has conditional writes. After a refused
//! write, all others are refused until the lock is taken again.

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

/// Attempts of a write whose condition failed though the content of the state is the expected one: only metadata or the like was
/// changed.
const ATTEMPTS: u32 = 5;

/// Version of a state at a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revision {
    /// There is no state.
    Absent,
    /// Name of a version at the service: a generation, an ETag, an index.
    Named(String),
}

impl Revision {
    /// Returns the revision of this name; an absent or empty name is no revision.
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
    /// Revision, if the service has them.
    pub revision: Option<Revision>,
}

impl From<Option<Vec<u8>>> for Snapshot {
    fn from(state: Option<Vec<u8>>) -> Snapshot {
        Snapshot { state, revision: None }
    }
}

#[derive(Clone, Debug)]
pub enum Written {
    /// The state was written, and has this revision now if the service reported it.
    Done(Option<Revision>),
    /// The revision is not the expected one, and nothing was written.
    Changed,
    /// The service reported that the lock is no longer held, and nothing was written. The text is the reason.
    LockLost(String),
}

/// Requests of a store with guarded writes: those of a [`StateClient`], and one for the holder of the lock.
#[async_trait]
pub trait LockedStore: Send + Sync + 'static {
    /// Returns the kind of workspaces that the store supports.
    fn support(&self) -> WorkspaceSupport;

    /// Lists the existing workspaces.
    async fn workspaces(&self) -> Result<Vec<String>>;

    async fn read(&self, workspace: &str) -> Result<Snapshot>;

    /// Replaces the state. A store whose service has conditional writes writes only if the state has the expected revision.
    async fn write(&self, workspace: &str, state: &[u8], expected: Option<&Revision>) -> Result<Written>;

    /// Deletes a workspace with its state.
    async fn delete(&self, workspace: &str) -> Result<()>;

    /// Returns the records that lock a workspace. A store with other locks overrides the three functions below instead.
    fn lock_records<'s>(&'s self, _workspace: &'s str) -> Result<Records<'s>> {
        Ok(Vec::new())
    }

    /// Attempts to lock a workspace, once.
    async fn lock(&self, workspace: &str, info: LockInfo) -> std::result::Result<String, LockError> {
        lock::acquire(&self.lock_records(workspace)?, info).await
    }

    async fn unlock(&self, workspace: &str, id: &str) -> Result<()> {
        lock::release(&self.lock_records(workspace)?, id).await
    }

    /// Forgets a lost lock without releasing it: the existing lock belongs to another program.
    async fn forget_lock(&self, _workspace: &str, _id: &str) {}

    /// Returns true if the store keeps each object of a state apart, with its history.
    fn keeps_objects(&self) -> bool {
        false
    }

    /// Answers a question about the history of a workspace's state.
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

    /// Returns the holder of a workspace's lock; `own` is the ID of the lock that this program took.
    async fn holder(&self, workspace: &str, own: &str) -> Result<Holder> {
        lock::holder(&self.lock_records(workspace)?, WRITE, own).await
    }
}

/// A store with guarded writes.
pub struct Guarded<S> {
    store: S,
    workspaces: Mutex<BTreeMap<String, Entry>>,
}

/// Known lock, revision and last content of a workspace.
#[derive(Clone, Default)]
struct Entry {
    /// ID of the lock that is held.
    lock: Option<String>,
    /// Reason why the lock is lost.
    lost: Option<String>,
    /// The state that was read or written last.
    known: Option<Known>,
    /// MD5 of states whose writes have failed since then. Such a write may have succeeded, with only its answer lost.
    attempted: BTreeSet<String>,
}

impl Entry {
    /// Returns true if this program may have written the state with this MD5.
    fn is_own(&self, sum: &str) -> bool {
        self.attempted.contains(sum) || self.known.as_ref().is_some_and(|known| known.sum == sum)
    }
}

#[derive(Clone)]
struct Known {
    /// MD5 of the state; that of nothing if there is none.
    sum: String,
    /// Lineage and serial, which stay the same when a service changes the form of a state.
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

    /// Returns true if both are the same state.
    fn is_same(&self, other: &Known) -> bool {
        self.sum == other.sum || self.mark.is_some() && self.mark == other.mark
    }
}

/// Returns lineage and serial of a state.
fn mark(state: &[u8]) -> Option<(String, u64)> {
    let json: Json = serde_json::from_slice(state).ok()?;
    Some((json["lineage"].as_str()?.to_owned(), json["serial"].as_u64()?))
}

/// Describes the holder of a lock.
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

/// Builds the error of a refused write.
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
        // The state is known again, so earlier failed writes no longer matter.
        entry.attempted.clear();
    }

    /// Records a failed write of the state with this MD5, since it may have been carried out.
    fn remember_attempt(&self, workspace: &str, sum: String) {
        let mut entries = self.entries();
        entries.entry(workspace.to_owned()).or_default().attempted.insert(sum);
    }

    /// Marks the lock as lost, so that nothing more is written under it, and returns the error.
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

    /// Returns the error for a state that another program has written since it was read.
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

    /// Checks that the lock is still held by this program, so that a state may be written.
    async fn check(&self, workspace: &str, entry: &Entry) -> Result<()> {
        if let Some(lost) = &entry.lost {
            return Err(refusal(lost));
        }
        // Without a lock (-lock=false, or a service without locks) only the revision protects the state.
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
            // The lock cannot be read, so the content of the state decides: this program must know it.
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
            // A later attempt that finds this state recognizes it as its own.
            let written = written.inspect_err(|_| self.remember_attempt(workspace, sum.clone()))?;
            let revision = match written {
                Written::Done(revision) => revision,
                Written::LockLost(why) => return Err(self.lose(workspace, &why)),
                Written::Changed => {
                    let there = self.store.read(workspace).await?;
                    let found = Known::new(there.state.as_deref(), there.revision.clone());
                    if found.sum == sum {
                        // An earlier attempt was carried out, and its answer was lost.
                        self.remember(workspace, found);
                        return Ok(());
                    }
                    if !entry.is_own(&found.sum) {
                        return Err(self.overwritten(workspace, locked));
                    }
                    // The content is the known one and only its revision differs, so the write is sent again for that
                    // revision.
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
            // A new workspace of the same name begins without a known state.
            entry.known = None;
        }
        Ok(())
    }

    async fn lock(&self, workspace: &str, info: LockInfo) -> std::result::Result<String, LockError> {
        let id = self.store.lock(workspace, info).await?;
        let entry = Entry {
            lock: Some(id.clone()).filter(|id| !id.is_empty()),
            // The ID is empty if the state has no lock.
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
        // The store checks the lock itself, in the transaction of the request.
        self.store.request(workspace, request).await
    }

    async fn unlock(&self, workspace: &str, id: &str) -> Result<()> {
        let entry = self.entry(workspace);
        let is_own = entry.lock.as_deref() == Some(id);
        match entry.lost {
            // The refused write has reported the loss already.
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
