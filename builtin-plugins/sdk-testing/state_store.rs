//! Conformance test for state stores. The author of a store runs it against a real or fake server.

#![allow(clippy::panic, reason = "a check fails by panicking")]

use std::sync::Arc;

use monoform_sdk::cty::Value;
use monoform_sdk::state_store::{DEFAULT, LockError, LockInfo, StateClient, WorkspaceSupport};
use monoform_sdk::{AnyStateStore, Diagnostics, Result, StateStore};

use crate::config::Config;

/// Creates a client from a configuration, as the server of a plugin does: the checks of the schema and of the store run first.
///
/// # Errors
/// The configuration is invalid, or the store cannot be configured.
pub async fn client(store: impl StateStore, config: Config<'_>) -> Result<Arc<dyn StateClient>> {
    let store = AnyStateStore::new(store);
    let config = store.coerce(&Value::object(
        config.iter().map(|(name, value)| (*name, value.clone())),
    ))?;
    let found = store.validate(&config);
    if found.has_errors() {
        return Err(found);
    }
    store.configure(&config).await
}

/// Optional features of a store, as the conformance test expects them.
#[derive(Clone, Copy, Debug)]
pub struct Abilities {
    /// The store can lock workspaces.
    pub locks: bool,
    /// The error for a lock that is held contains the lock info of the holder.
    pub holder: bool,
    /// Unlocking with an ID other than that of the lock is an error.
    pub checks_id: bool,
    /// A process other than the holder can unlock.
    pub force_unlock: bool,
}

impl Default for Abilities {
    fn default() -> Abilities {
        Abilities {
            locks: true,
            holder: true,
            checks_id: true,
            force_unlock: true,
        }
    }
}

#[track_caller]
fn good<T>(result: Result<T>, what: &str) -> T {
    match result {
        Ok(value) => value,
        Err(problems) => panic!("{what}: {}", list(&problems)),
    }
}

fn list(problems: &Diagnostics) -> String {
    let lines = problems.0.iter().map(|d| format!("{}: {}", d.summary, d.detail));
    lines.collect::<Vec<_>>().join("; ")
}

fn info(operation: &str) -> LockInfo {
    LockInfo {
        who: "somebody@somewhere".into(),
        version: "1.11.4".into(),
        ..LockInfo::of_this_process(operation)
    }
}

/// Checks an empty store through two clients, as of two programs. The test reads a missing state, writes and reads back, uses a state of
/// several megabytes, takes locks and checks their holders, and creates and deletes workspaces. At the end no lock is held, and only the
/// workspace `default` has a state, or `first` if the store has no default workspace.
///
/// # Panics
/// The store breaks a rule.
pub async fn conformance(one: &dyn StateClient, other: &dyn StateClient, abilities: Abilities) {
    let workspace = match one.support() {
        WorkspaceSupport::NamedWithoutDefault => "first",
        _ => DEFAULT,
    };
    reading_and_writing(one, other, workspace).await;
    locks(one, other, workspace, abilities).await;
    if one.support() != WorkspaceSupport::Single {
        workspaces(one, other).await;
        if abilities.locks {
            locks_are_of_a_workspace(one, other, workspace).await;
        }
    }
}

async fn reading_and_writing(one: &dyn StateClient, other: &dyn StateClient, workspace: &str) {
    assert_eq!(
        good(one.read(workspace).await, "reading where there is nothing"),
        None,
        "there is a state before one was written"
    );
    for text in [
        "{\"version\":4,\"serial\":1}\n",
        "{\"version\":4,\"serial\":2,\"x\":\"\u{e4}\u{2028}<&>\"}\n",
    ] {
        good(one.write(workspace, text.into()).await, "writing");
        for (client, whose) in [(one, "own"), (other, "other")] {
            let found = good(client.read(workspace).await, "reading");
            assert_eq!(found.as_deref(), Some(text.as_bytes()), "read by the {whose} client");
        }
    }
    // The letters are pseudo-random, so that the state hardly compresses. Its size is not a power of two, so that the last chunk is shorter
    // than the others.
    let mut seed = 1_u32;
    let big: Vec<u8> = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + u8::try_from(seed >> 24).unwrap_or_default() % 26
    })
    .take(3_000_017)
    .collect();
    good(one.write(workspace, big.clone()).await, "writing a big state");
    let found = good(other.read(workspace).await, "reading a big state");
    assert!(found == Some(big), "a big state is read as it was written");
    good(
        other.write(workspace, b"{\"version\":4}\n".to_vec()).await,
        "writing a small state over it",
    );
    let found = good(one.read(workspace).await, "reading it");
    assert_eq!(found.as_deref(), Some(&b"{\"version\":4}\n"[..]));
}

async fn lock(client: &dyn StateClient, workspace: &str, what: &str) -> String {
    match client.lock(workspace, info("OperationTypeApply")).await {
        Ok(id) => id,
        Err(error) => panic!("{what}: {}", list(&error.into_diagnostics())),
    }
}

async fn locks(one: &dyn StateClient, other: &dyn StateClient, workspace: &str, abilities: Abilities) {
    let id = lock(one, workspace, "locking").await;
    if !abilities.locks {
        assert_eq!(id, "", "a store without locks names none");
        good(one.unlock(workspace, "").await, "unlocking without locks");
        return;
    }
    assert_ne!(id, "", "a lock has a name");
    match other.lock(workspace, info("OperationTypePlan")).await {
        Ok(_) => panic!("the lock was given twice"),
        Err(LockError::Failed(problems)) => panic!("a held lock is not said to be held: {}", list(&problems)),
        Err(LockError::Held { holder, .. }) if abilities.holder => {
            let Some(holder) = holder else {
                panic!("it is not said who holds the lock")
            };
            assert_eq!(holder.id, id, "the holder's lock has the name that it was given");
            assert_eq!(holder.operation, "OperationTypeApply");
            assert_eq!(holder.who, "somebody@somewhere");
            assert_eq!(holder.version, "1.11.4");
            assert!(!holder.created.is_empty());
        }
        Err(LockError::Held { .. }) => {}
    }
    good(
        one.write(workspace, b"{\"version\":4,\"locked\":true}\n".to_vec())
            .await,
        "writing with the lock",
    );
    let found = good(other.read(workspace).await, "reading without the lock");
    assert_eq!(found.as_deref(), Some(&b"{\"version\":4,\"locked\":true}\n"[..]));
    if abilities.checks_id {
        assert!(
            other
                .unlock(workspace, "00000000-0000-4000-8000-000000000000")
                .await
                .is_err(),
            "unlocked with another name than the lock's"
        );
        assert!(
            other.lock(workspace, info("OperationTypePlan")).await.is_err(),
            "the lock is gone after unlocking with another name"
        );
    }
    good(one.unlock(workspace, &id).await, "unlocking");
    let id = lock(other, workspace, "locking after the other client has unlocked").await;
    if abilities.force_unlock {
        good(one.unlock(workspace, &id).await, "unlocking for another client");
        let id = lock(one, workspace, "locking after that").await;
        good(one.unlock(workspace, &id).await, "unlocking");
    } else {
        good(other.unlock(workspace, &id).await, "unlocking");
    }
}

async fn names(client: &dyn StateClient) -> Vec<String> {
    let mut names = good(client.workspaces().await, "listing");
    names.sort();
    names
}

async fn workspaces(one: &dyn StateClient, other: &dyn StateClient) {
    let before = names(one).await;
    for name in ["dev", "prod-2"] {
        good(
            one.write(name, format!("{{\"of\":\"{name}\"}}").into()).await,
            "writing to a workspace",
        );
    }
    let mut with: Vec<String> = before.iter().cloned().chain(["dev".into(), "prod-2".into()]).collect();
    with.sort();
    assert_eq!(names(other).await, with, "workspaces are listed");
    let found = good(other.read("dev").await, "reading a workspace");
    assert_eq!(found.as_deref(), Some(&b"{\"of\":\"dev\"}"[..]));
    assert_eq!(good(other.read("none").await, "reading no workspace"), None);
    for name in ["dev", "prod-2"] {
        good(other.delete(name).await, "deleting a workspace");
        assert_eq!(good(one.read(name).await, "reading a deleted workspace"), None);
    }
    assert_eq!(names(one).await, before, "deleted workspaces are not listed");
}

async fn locks_are_of_a_workspace(one: &dyn StateClient, other: &dyn StateClient, workspace: &str) {
    good(one.write("dev", b"{}".to_vec()).await, "writing to a workspace");
    let first = lock(one, workspace, "locking one workspace").await;
    let second = lock(other, "dev", "locking another workspace meanwhile").await;
    good(other.unlock("dev", &second).await, "unlocking it");
    good(one.unlock(workspace, &first).await, "unlocking the first");
    good(one.delete("dev").await, "deleting a workspace");
}
