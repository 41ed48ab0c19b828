//! Tests of guarded writes with a store in memory. Another program changes its lock and its state.

use std::sync::Arc;

use monoform_sdk::Diagnostic;

use super::*;

/// State of the service, and its faults.
#[derive(Default)]
struct Service {
    state: Option<Vec<u8>>,
    revision: u64,
    lock: Option<String>,
    /// True if the service names the holder of the lock.
    tells: bool,
    /// True if the answer to the next write is lost: the write is carried out, and its repetition fails because the state has changed.
    loses_answer: bool,
    /// True if the next write is carried out, but returns an error.
    breaks: bool,
    writes: u32,
    /// True if there are workspaces other than the default one.
    has_workspaces: bool,
}

#[derive(Clone)]
struct Memory(Arc<Mutex<Service>>);

impl Memory {
    fn new() -> Memory {
        Memory(Arc::new(Mutex::new(Service {
            tells: true,
            ..Service::default()
        })))
    }

    fn service(&self) -> MutexGuard<'_, Service> {
        self.0.lock().unwrap()
    }

    /// Writes a state as another program would.
    fn changed(&self, text: &str) {
        let mut service = self.service();
        service.revision += 1;
        service.state = Some(text.into());
    }

    fn text(&self) -> String {
        String::from_utf8(self.service().state.clone().unwrap_or_default()).unwrap()
    }
}

#[async_trait]
impl LockedStore for Memory {
    fn support(&self) -> WorkspaceSupport {
        match self.service().has_workspaces {
            true => WorkspaceSupport::NamedAndDefault,
            false => WorkspaceSupport::Single,
        }
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    async fn read(&self, _workspace: &str) -> Result<Snapshot> {
        let service = self.service();
        let revision = match service.state {
            Some(_) => Revision::Named(service.revision.to_string()),
            None => Revision::Absent,
        };
        Ok(Snapshot {
            state: service.state.clone(),
            revision: Some(revision).filter(|_| service.tells),
        })
    }

    async fn write(&self, _workspace: &str, state: &[u8], expected: Option<&Revision>) -> Result<Written> {
        let mut service = self.service();
        service.writes += 1;
        let current = match service.state {
            Some(_) => Revision::Named(service.revision.to_string()),
            None => Revision::Absent,
        };
        if expected.is_some_and(|expected| *expected != current) {
            return Ok(Written::Changed);
        }
        service.revision += 1;
        service.state = Some(state.to_vec());
        if std::mem::take(&mut service.breaks) {
            return Err(Diagnostic::error("Error writing the state", "the connection ended").into());
        }
        if std::mem::take(&mut service.loses_answer) {
            return Ok(Written::Changed);
        }
        let revision = Revision::Named(service.revision.to_string());
        Ok(Written::Done(Some(revision).filter(|_| service.tells)))
    }

    async fn delete(&self, _workspace: &str) -> Result<()> {
        self.service().state = None;
        Ok(())
    }

    async fn lock(&self, _workspace: &str, info: LockInfo) -> std::result::Result<String, LockError> {
        self.service().lock = Some(info.id.clone());
        Ok(info.id)
    }

    async fn unlock(&self, _workspace: &str, id: &str) -> Result<()> {
        let mut service = self.service();
        match service.lock.as_deref() == Some(id) {
            true => service.lock = None,
            false => return Err(Diagnostic::error("Cannot release the state lock", "not the holder").into()),
        }
        Ok(())
    }

    async fn holder(&self, _workspace: &str, own: &str) -> Result<Holder> {
        let service = self.service();
        let info = service.lock.clone().map(|id| LockInfo {
            id,
            who: "me@here".into(),
            ..LockInfo::default()
        });
        Ok(match service.tells {
            true => Holder::new(info, own),
            false => Holder::Unknown,
        })
    }
}

const W: &str = "default";

fn state(serial: u64) -> String {
    format!("{{\"version\":4,\"lineage\":\"l\",\"serial\":{serial}}}")
}

/// Returns a client that holds the lock and has read a state with serial 1, and the ID of the lock.
async fn holding(memory: &Memory) -> (Guarded<Memory>, String) {
    memory.changed(&state(1));
    let client = Guarded::new(memory.clone());
    let id = client.lock(W, LockInfo::of_this_process("test")).await.unwrap();
    client.read(W).await.unwrap();
    (client, id)
}

async fn refused(client: &Guarded<Memory>, serial: u64) -> String {
    let problems = client.write(W, state(serial).into()).await.unwrap_err();
    problems.0[0].detail.clone()
}

#[tokio::test]
async fn a_lock_that_another_program_holds_or_that_nobody_holds_is_lost_for_good() {
    for other in [Some("another".to_owned()), None] {
        let memory = Memory::new();
        let (client, id) = holding(&memory).await;
        client.write(W, state(2).into()).await.unwrap();
        memory.service().lock.clone_from(&other);
        let detail = refused(&client, 3).await;
        assert!(detail.starts_with("lock lost: "), "{detail}");
        assert_eq!(detail.contains("\"another\" of me@here"), other.is_some(), "{detail}");
        // Writes stay refused even if the lock has the client's ID again and the state is unchanged.
        memory.service().lock = Some(id.clone());
        refused(&client, 3).await;
        assert_eq!(memory.text(), state(2));
        memory.service().lock = other;
        client.unlock(W, &id).await.expect("it was reported already");
        // After taking a new lock, the client may write again.
        client.lock(W, LockInfo::of_this_process("test")).await.unwrap();
        client.read(W).await.unwrap();
        client.write(W, state(3).into()).await.unwrap();
        assert_eq!(memory.text(), state(3));
    }
}

#[tokio::test]
async fn a_state_that_changed_under_the_own_lock_is_not_overwritten() {
    for tells in [true, false] {
        let memory = Memory::new();
        memory.service().tells = tells;
        let (client, _) = holding(&memory).await;
        memory.changed(&state(2));
        let detail = refused(&client, 3).await;
        assert!(detail.starts_with("lock lost: another program has written"), "{detail}");
        assert_eq!(memory.text(), state(2));
    }
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_recognized() {
    let memory = Memory::new();
    let (client, _) = holding(&memory).await;
    memory.service().loses_answer = true;
    client.write(W, state(2).into()).await.unwrap();
    client.write(W, state(3).into()).await.unwrap();
    assert_eq!(memory.text(), state(3));
}

#[tokio::test]
async fn after_a_write_that_failed_and_was_done_the_next_one_is_no_surprise() {
    for tells in [true, false] {
        let memory = Memory::new();
        memory.service().tells = tells;
        let (client, _) = holding(&memory).await;
        memory.service().breaks = true;
        assert_eq!(refused(&client, 2).await, "the connection ended");
        assert_eq!(memory.text(), state(2));
        let later = state(2).replace('}', ",\"resources\":[]}");
        client.write(W, later.clone().into()).await.unwrap();
        assert_eq!(memory.text(), later);
        // A later state of another program is not taken for the client's own.
        memory.changed(&state(4));
        let detail = refused(&client, 3).await;
        assert!(detail.starts_with("lock lost: "), "{detail}");
    }
}

#[tokio::test]
async fn a_new_revision_of_the_same_content_is_accepted() {
    let memory = Memory::new();
    let (client, _) = holding(&memory).await;
    memory.changed(&state(1));
    client.write(W, state(2).into()).await.unwrap();
    assert_eq!((memory.text(), memory.service().writes), (state(2), 2));
}

#[tokio::test]
async fn a_state_in_another_form_is_the_same_by_lineage_and_serial() {
    let memory = Memory::new();
    memory.service().tells = false;
    let (client, _) = holding(&memory).await;
    memory.changed("{\"serial\": 1, \"lineage\": \"l\", \"version\": 4}");
    client.write(W, state(2).into()).await.unwrap();
    assert_eq!(memory.text(), state(2));
}

#[tokio::test]
async fn without_a_lock_a_changed_state_is_refused_but_not_remembered() {
    let memory = Memory::new();
    let client = Guarded::new(memory.clone());
    assert_eq!(client.read(W).await.unwrap(), None);
    memory.changed(&state(1));
    let problems = client.write(W, state(5).into()).await.unwrap_err();
    assert!(problems.0[0].detail.contains("holds no lock"), "{problems:?}");
    client.read(W).await.unwrap();
    client.write(W, state(2).into()).await.unwrap();
    client.delete(W).await.unwrap();
    client.write(W, state(1).into()).await.unwrap();
    assert_eq!(memory.text(), state(1));
}

#[tokio::test]
async fn default_workspace_is_deleted_only_where_it_is_the_only_one() {
    for has_workspaces in [false, true] {
        let memory = Memory::new();
        memory.service().has_workspaces = has_workspaces;
        memory.changed(&state(1));
        let deleted = Guarded::new(memory.clone()).delete(W).await;
        assert_eq!(deleted.is_err(), has_workspaces);
        assert_eq!(memory.service().state.is_some(), has_workspaces);
    }
}
