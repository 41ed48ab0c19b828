//! The state store `inmem`, which is for tests: states are in the memory of the plugin process and are lost when the command ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use monoform_sdk::schema::optional;
use monoform_sdk::state_store::{DEFAULT, LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Attr, Diagnostic, Model, Result, StateClient, StateStore, async_trait};

/// Name of the store, which is the backend type.
pub const NAME: &str = "inmem";

/// The configuration.
#[derive(Clone, Default, Model)]
pub struct Config {
    /// The ID of a lock that exists on the default workspace from the start.
    #[member(optional())]
    pub lock_id: Attr<String>,
}

#[must_use]
pub fn store() -> impl StateStore {
    Memory
}

struct Memory;

#[async_trait]
impl StateStore for Memory {
    type Config = Config;

    async fn configure(&self, config: Config) -> Result<Arc<dyn StateClient>> {
        let mut kept = Kept::default();
        // The default workspace is listed even without a state.
        kept.states.insert(DEFAULT.to_owned(), None);
        // With this lock, tests check how commands handle a lock that another program holds.
        if let Some(id) = config.lock_id.into_known() {
            let info = LockInfo {
                id,
                ..LockInfo::of_this_process("test")
            };
            kept.locks.insert(
                DEFAULT.to_owned(),
                LockInfo {
                    info: "test config".to_owned(),
                    ..info
                },
            );
        }
        Ok(Arc::new(Client(Mutex::new(kept))))
    }
}

#[derive(Default)]
struct Kept {
    states: BTreeMap<String, Option<Vec<u8>>>,
    locks: BTreeMap<String, LockInfo>,
}

struct Client(Mutex<Kept>);

impl Client {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl StateClient for Client {
    fn support(&self) -> WorkspaceSupport {
        WorkspaceSupport::NamedAndDefault
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        Ok(self.kept().states.keys().cloned().collect())
    }

    async fn read(&self, workspace: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.kept().states.get(workspace).cloned().flatten())
    }

    async fn write(&self, workspace: &str, state: Vec<u8>) -> Result<()> {
        self.kept().states.insert(workspace.to_owned(), Some(state));
        Ok(())
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        if workspace == DEFAULT {
            return Err(
                Diagnostic::error("Cannot delete the workspace", "The default workspace is always there.").into(),
            );
        }
        self.kept().states.remove(workspace);
        Ok(())
    }

    async fn lock(&self, workspace: &str, info: LockInfo) -> std::result::Result<String, LockError> {
        let mut kept = self.kept();
        if let Some(holder) = kept.locks.get(workspace) {
            return Err(LockError::held(
                Some(holder.clone()),
                format!("The state \"{workspace}\" is already locked: {}", holder.id),
            ));
        }
        let id = info.id.clone();
        kept.locks.insert(workspace.to_owned(), info);
        Ok(id)
    }

    async fn unlock(&self, workspace: &str, id: &str) -> Result<()> {
        let mut kept = self.kept();
        let problem = match kept.locks.get(workspace) {
            None => format!("The state \"{workspace}\" is not locked."),
            Some(holder) if holder.id != id => {
                format!(
                    "The lock of the state \"{workspace}\" has the ID {:?}, and not {id:?}.",
                    holder.id
                )
            }
            Some(_) => {
                kept.locks.remove(workspace);
                return Ok(());
            }
        };
        Err(Diagnostic::error("Cannot release the state lock", problem).into())
    }
}

#[cfg(test)]
mod tests {
    use monoform_sdk_testing::state_store::{Abilities, client, conformance};

    use super::*;

    #[tokio::test]
    async fn it_is_a_state_store() {
        let store = client(store(), &[]).await.unwrap();
        conformance(&*store, &*store, Abilities::default()).await;
        assert!(store.delete(DEFAULT).await.is_err());
    }

    #[tokio::test]
    async fn it_may_begin_locked() {
        let store = client(store(), &[("lock_id", "x".into())]).await.unwrap();
        let Err(LockError::Held { holder, .. }) = store.lock(DEFAULT, LockInfo::of_this_process("test")).await else {
            panic!("it is locked");
        };
        assert_eq!(holder.unwrap().id, "x");
        store.unlock(DEFAULT, "x").await.unwrap();
    }
}
