//! States of a backend, and the locks of clients on them.

use std::collections::BTreeMap;
use std::time::Duration;

use addrs::program::core_version;
use state::store::LocalStore;
use state::{Codec, LockInfo, SnapshotStore, State, StateError};
use syntax::{Diagnostic, Diagnostics};

use super::command::Command;
use super::{Answer, Request};
use crate::backend::{Snapshots, Source, StateBackend};
use crate::journal;
use crate::workspace::is_name;

/// States of a backend, for one thread.
pub(super) struct States {
    codec: Codec,
    command: Command,
    /// Opened with the first request.
    backend: Option<StateBackend>,
    held: BTreeMap<String, Held>,
}

/// Lock of a client, and the store that holds it.
struct Held {
    store: Box<dyn SnapshotStore>,
    info: LockInfo,
}

impl States {
    pub fn new(codec: Codec, command: Command) -> States {
        States {
            codec,
            command,
            backend: None,
            held: BTreeMap::new(),
        }
    }

    /// Returns true if a client holds the lock of a workspace.
    pub fn holds(&self, workspace: &str) -> bool {
        self.held.contains_key(workspace)
    }

    fn backend(&mut self) -> Result<&StateBackend, Diagnostics> {
        let opened = match self.backend.take() {
            Some(opened) => opened,
            None => self.command.open()?,
        };
        Ok(self.backend.insert(opened))
    }

    /// Answers a request for the state of a workspace.
    pub fn answer(&mut self, workspace: &str, request: Request) -> Answer {
        if !is_name(workspace) {
            return Answer::Invalid(format!("\"{workspace}\" is not a name that a workspace may have"));
        }
        match request {
            Request::Read => self.read(workspace),
            Request::Write { lock, text } => self.write(workspace, lock.as_deref(), &text),
            Request::Lock(record) => self.lock(workspace, &record),
            Request::Unlock(record) => self.unlock(workspace, &record),
        }
    }

    fn read(&mut self, workspace: &str) -> Answer {
        let opened = self.exists(workspace).and_then(|exists| match exists {
            true => self.open(workspace).map(Some),
            false => Ok(None),
        });
        let read = match opened {
            Ok(None) => return Answer::NoState,
            Ok(Some(mut store)) => store.read(),
            Err(problems) => return failed(problems),
        };
        let text = match read {
            // A state that was never written has no lineage. Clients must see it as missing.
            Ok(state) => state.filter(|state| !state.lineage.is_empty()),
            Err(error) => return Answer::Failed(error.to_string()),
        };
        match text.map(|state| state::document::encode(&state)) {
            None => Answer::NoState,
            Some(Ok(text)) => Answer::State(text),
            Some(Err(error)) => Answer::Failed(error.to_string()),
        }
    }

    fn write(&mut self, workspace: &str, lock: Option<&str>, text: &[u8]) -> Answer {
        let state = match Codec::PLAIN.decode(text) {
            Ok(Some(decoded)) => decoded.state,
            Ok(None) => return Answer::Invalid("there is no state in the request".into()),
            Err(error) => return Answer::Invalid(format!("the request has no state that can be stored: {error}")),
        };
        if let Some(held) = self.held.get_mut(workspace) {
            return match lock {
                Some(id) if id == held.info.id => written(held.store.write_snapshot(state)),
                _ => Answer::Locked(Box::new(held.info.clone())),
            };
        }
        // The lock was released, perhaps by a restart of the server, and another program may have changed the state since.
        if let Some(id) = lock {
            return Answer::Refused(format!("the lock {id} is not held any more"));
        }
        match self.locked(workspace, &LockInfo::new("http-write", core_version())) {
            Ok(mut store) => {
                let result = written(store.write_snapshot(state));
                match store.unlock() {
                    Ok(()) => result,
                    Err(error) => Answer::Failed(error.to_string()),
                }
            }
            Err(answer) => answer,
        }
    }

    fn lock(&mut self, workspace: &str, record: &[u8]) -> Answer {
        let Some(info) = LockInfo::from_json(record).filter(|info| !info.id.is_empty()) else {
            return Answer::Invalid("the request has no record of a lock with an ID".into());
        };
        match self.held.get(workspace) {
            // A client repeats its request if it did not get the answer.
            Some(held) if held.info.id == info.id => Answer::Done,
            Some(held) => Answer::Locked(Box::new(held.info.clone())),
            None => match self.locked(workspace, &info) {
                Ok(store) => {
                    self.held.insert(workspace.to_owned(), Held { store, info });
                    Answer::Done
                }
                Err(answer) => answer,
            },
        }
    }

    fn unlock(&mut self, workspace: &str, record: &[u8]) -> Answer {
        let Some(held) = self.held.get(workspace) else {
            return Answer::Refused("no client of this server holds the lock".into());
        };
        // The `force-unlock` of Terraform sends no lock record, and releases the lock of any client.
        let is_other = LockInfo::from_json(record).is_some_and(|info| info.id != held.info.id);
        if is_other {
            return Answer::Locked(Box::new(held.info.clone()));
        }
        match self.held.remove(workspace).map(|mut held| held.store.unlock()) {
            Some(Err(error)) => Answer::Failed(error.to_string()),
            _ => Answer::Done,
        }
    }

    /// Releases the locks of all clients when the server ends. Returns a warning for each.
    pub fn release(&mut self) -> Diagnostics {
        let mut problems = Diagnostics::new();
        for (workspace, mut held) in std::mem::take(&mut self.held) {
            let outcome = match held.store.unlock() {
                Ok(()) => "It was released.".to_owned(),
                Err(error) => error.to_string(),
            };
            problems.push(Diagnostic::warning(
                "A client had a lock",
                format!(
                    "The server ends while a client holds the lock of the workspace \"{workspace}\": {}. {outcome} The client cannot \
                     write the state any more.",
                    held.info
                ),
            ));
        }
        problems
    }

    /// Returns true if a workspace has a state, or needs no creation.
    fn exists(&mut self, workspace: &str) -> Result<bool, Diagnostics> {
        Ok(match self.backend()?.workspaces()? {
            Some(names) => names.iter().any(|name| name == workspace),
            None => true,
        })
    }

    /// Opens the state of a workspace, which is created if it is missing.
    fn open(&mut self, workspace: &str) -> Result<Box<dyn SnapshotStore>, Diagnostics> {
        let codec = self.codec.clone();
        Ok(match self.backend()?.state(workspace) {
            Source::File(path) => Box::new(LocalStore::new(&path).stored_as(codec)),
            Source::Workspace(store, workspace) => Box::new(Snapshots::open(&store, &workspace, codec)?),
        })
    }

    /// Opens and locks the state of a workspace. Results that a killed run has left in its journal are in the state from then on.
    fn locked(&mut self, workspace: &str, info: &LockInfo) -> Result<Box<dyn SnapshotStore>, Answer> {
        let mut store = self.open(workspace).map_err(failed)?;
        store.lock(info, Duration::ZERO, &|| false).map_err(|error| {
            let holder = match &error {
                StateError::Locked(held) => held.info.clone(),
                StateError::StoreLocked(held) => held.holder.clone(),
                _ => return Answer::Failed(error.to_string()),
            };
            Answer::Locked(Box::new(holder.unwrap_or_default()))
        })?;
        let read = store.read().map_err(|error| Answer::Failed(error.to_string()));
        let read = read.and_then(|state: Option<State>| {
            if let Some(warning) = journal::warning(&self.codec, &*store, state.as_ref()) {
                self.command.warn(warning);
            }
            store
                .forget_journal()
                .map_err(|error| Answer::Failed(error.to_string()))
        });
        match read {
            Ok(()) => Ok(store),
            Err(answer) => {
                if let Err(error) = store.unlock() {
                    tracing::warn!("{error}");
                }
                Err(answer)
            }
        }
    }
}

fn written(result: Result<state::Written, StateError>) -> Answer {
    match result {
        Ok(_) => Answer::Done,
        Err(error) => Answer::Failed(error.to_string()),
    }
}

fn failed(problems: Diagnostics) -> Answer {
    let texts: Vec<String> = problems
        .iter()
        .filter(|problem| problem.is_error())
        .map(|problem| format!("{}: {}", problem.summary, problem.detail))
        .collect();
    Answer::Failed(texts.join("\n"))
}
