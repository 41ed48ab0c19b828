//! Tests of encrypted states in files: the stored text, and that files are not changed without the key.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use addrs::{AbsProviderConfig, Provider};
use state::codec::{Head, Opened};
use state::journal::{Answers, Outcome};
use state::store::{read_copy, write_copy};
use state::{Attributes, Cipher, CipherError, Codec, LocalStore, LockInfo, Object, RawJson, State, StateError};

/// Cipher that adds a number to each byte.
#[derive(Debug)]
struct Shifted(u8);

impl Cipher for Shifted {
    fn seal(&self, text: Vec<u8>, head: Option<Head<'_>>) -> Result<Vec<u8>, CipherError> {
        let head = head.map_or(String::new(), |h| {
            format!("\"serial\":{},\"lineage\":\"{}\",", h.serial, h.lineage)
        });
        let bytes: Vec<u8> = text.iter().map(|byte| byte.wrapping_add(self.0)).collect();
        let text = format!(
            "{{\"meta\":{{\"key\":{}}},{head}\"encrypted_data\":{bytes:?},\"encryption_version\":\"v0\"}}",
            self.0
        );
        Ok(text.into_bytes())
    }

    fn open(&self, sealed: &[u8]) -> Result<Opened, CipherError> {
        let document: serde_json::Value = serde_json::from_slice(sealed).unwrap();
        if document["meta"]["key"].as_u64() != Some(u64::from(self.0)) {
            return Err(CipherError("it has another key".to_owned()));
        }
        let bytes = document["encrypted_data"].as_array().unwrap().iter();
        let bytes = bytes.map(|byte| u8::try_from(byte.as_u64().unwrap()).unwrap().wrapping_sub(self.0));
        Ok(Opened {
            text: bytes.collect(),
            outdated: false,
        })
    }

    fn accept_plain(&self) -> Result<bool, CipherError> {
        Ok(true)
    }
}

fn codec(key: u8) -> Codec {
    Codec::new(Arc::new(Shifted(key)))
}

fn object() -> Object {
    Object::new(
        0,
        Attributes::Json(RawJson::parse("{\"id\": \"planted-secret\"}").unwrap()),
    )
}

fn state() -> State {
    let mut state = State::new();
    let address = addrs::parse::resource_instance("null_resource.a").unwrap();
    let provider = AbsProviderConfig::root(Provider::default_for("null"));
    state.set_current(&address, &provider, Some(Arc::new(object())));
    state
}

fn locked(path: &Path, codec: Codec) -> LocalStore {
    let mut store = LocalStore::new(path).stored_as(codec);
    let info = LockInfo::new("OperationTypeApply", "1.11.4");
    store.lock(&info, Duration::ZERO, &|| false).unwrap();
    store
}

fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = entries.map(|path| (path.clone(), fs::read(&path).unwrap())).collect();
    // The lock file contains the time, so it is left out.
    all.retain(|(path, _)| !path.to_string_lossy().ends_with(".lock.info"));
    all.sort();
    all
}

#[track_caller]
fn hidden(dir: &Path) {
    for (path, text) in contents(dir) {
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(!text.contains("planted-secret"), "{}", path.display());
    }
}

#[test]
fn state_backup_and_journal_are_encrypted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("terraform.tfstate");
    // The copy is from before encryption was configured.
    write_copy(&path, &state(), &Codec::PLAIN).unwrap();
    let mut store = locked(&path, codec(3));
    let before = store.read().unwrap().unwrap();
    let journal = store.begin_journal("apply", "1.11.4").unwrap().unwrap();
    journal.outcome(Outcome {
        address: addrs::parse::resource_instance("null_resource.b").unwrap(),
        provider: AbsProviderConfig::root(Provider::default_for("null")),
        objects: Some(state::InstanceState {
            current: Some(Arc::new(object())),
            ..state::InstanceState::default()
        }),
        answers: Answers::Nothing,
    });
    journal.sync().wait().unwrap();
    // Only the stored form differs, so the state is written.
    assert!(
        matches!(store.write(&before, "1.11.4").unwrap(), state::Written::Snapshot(serial) if serial == before.serial)
    );
    hidden(dir.path());
    store
        .write(
            &State {
                outputs: Default::default(),
                ..State::new()
            },
            "1.11.4",
        )
        .unwrap();
    assert!(dir.path().join("terraform.tfstate.backup").exists());
    hidden(dir.path());
    drop(journal);
    drop(store);
}

#[test]
fn nothing_changes_without_the_key() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("terraform.tfstate");
    write_copy(&path, &state(), &codec(3)).unwrap();
    let newer = State { serial: 9, ..state() };
    // Simulates a write that was interrupted.
    write_copy(&dir.path().join(".terraform.tfstate.pending"), &newer, &codec(3)).unwrap();
    let before = contents(dir.path());
    for wrong in [Codec::PLAIN, codec(4)] {
        let mut store = locked(&path, wrong.clone());
        assert!(matches!(store.read(), Err(StateError::Sealed { .. })));
        assert!(matches!(
            store.write(&State::new(), "1.11.4"),
            Err(StateError::Sealed { .. })
        ));
        assert!(matches!(read_copy(&path, &wrong), Err(StateError::Sealed { .. })));
        store.unlock().unwrap();
        assert_eq!(contents(dir.path()), before);
    }
    let mut store = locked(&path, codec(3));
    assert_eq!(store.read().unwrap().unwrap().serial, 9);
    hidden(dir.path());
}
