//! Tests of a state in a local file: serials, backups, and recovery after a crash.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment, and need the time"
)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use addrs::{AbsProviderConfig, Provider};
use state::pending::{Recovery, RecoveryAction, Unused};
use state::store::{read_copy, write_copy};
use state::{Attributes, Codec, LocalStore, LockInfo, Object, RawJson, State, Written, document};

fn state(names: &[&str]) -> State {
    let mut state = State::new();
    for name in names {
        let object = Object::new(
            0,
            Attributes::Json(RawJson::parse(&format!("{{\"id\": \"{name}\"}}")).unwrap()),
        );
        let address = addrs::parse::resource_instance(&format!("null_resource.{name}")).unwrap();
        state.set_current(
            &address,
            &AbsProviderConfig::root(Provider::default_for("null")),
            Some(Arc::new(object)),
        );
    }
    state
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("terraform.tfstate");
    (dir, path)
}

fn files(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn locked(path: &Path) -> LocalStore {
    let mut store = LocalStore::new(path);
    store
        .lock(&LockInfo::new("OperationTypeApply", "1.11.4"), Duration::ZERO, &|| {
            false
        })
        .unwrap();
    store
}

#[test]
fn snapshots_are_numbered_and_backed_up_once_a_run() {
    let (dir, path) = place();
    let mut store = locked(&path);
    assert!(store.read().unwrap().is_none());
    assert_eq!(store.write(&state(&["a"]), "1.11.4").unwrap(), Written::Snapshot(1));
    assert_eq!(store.write(&state(&["a"]), "1.11.4").unwrap(), Written::Unchanged);
    assert_eq!(
        store.write(&state(&["a", "b"]), "1.11.4").unwrap(),
        Written::Snapshot(2)
    );
    store.unlock().unwrap();
    assert_eq!(files(dir.path()), ["terraform.tfstate"]);
    let first = fs::read(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    let mut store = LocalStore::new(&path);
    let before = store.read().unwrap().unwrap();
    assert_eq!(before.lineage.len(), 36);
    assert_eq!(store.write(&before, "1.11.5").unwrap(), Written::Unchanged);
    assert_eq!(fs::read(&path).unwrap(), first);
    store.write(&state(&[]), "1.11.4").unwrap();
    store.write(&state(&["c"]), "1.11.4").unwrap();
    let after = read_copy(&path, &Codec::PLAIN).unwrap().unwrap();
    assert_eq!((after.serial, &after.lineage), (4, &before.lineage));
    assert_eq!(files(dir.path()), ["terraform.tfstate", "terraform.tfstate.backup"]);
    assert_eq!(fs::read(dir.path().join("terraform.tfstate.backup")).unwrap(), first);
}

#[test]
fn another_output_file_starts_from_what_was_read() {
    let (dir, path) = place();
    write_copy(
        &path,
        &State {
            serial: 5,
            lineage: "l".into(),
            ..state(&["a"])
        },
        &Codec::PLAIN,
    )
    .unwrap();
    let original = fs::read(&path).unwrap();
    let out = dir.path().join("out/new");
    let mut store = LocalStore::new(&path).writing_to(&out);
    let read = store.read().unwrap().unwrap();
    assert_eq!(store.write(&read, "1.11.4").unwrap(), Written::Snapshot(5));
    assert_eq!(store.write(&state(&["b"]), "1.11.4").unwrap(), Written::Snapshot(6));
    assert_eq!(fs::read(&path).unwrap(), original);
    // The file that was read is not overwritten, so there is no backup.
    assert_eq!(files(out.parent().unwrap()), ["new"]);
    let mut again = LocalStore::new(&path).writing_to(&out);
    again.write(&state(&["c"]), "1.11.4").unwrap();
    assert_eq!(files(out.parent().unwrap()), ["new", "new.backup"]);
}

#[test]
fn links_and_modes_of_existing_files_stay() {
    let (dir, path) = place();
    let real = dir.path().join("real");
    write_copy(&real, &state(&["a"]), &Codec::PLAIN).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real", &path).unwrap();
    let mut store = locked(&path);
    store.write(&state(&["b"]), "1.11.4").unwrap();
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::read_to_string(&real).unwrap().contains("\"b\""));
}

#[test]
fn a_file_that_is_no_state_is_left_alone_with_advice() {
    let (dir, path) = place();
    let text = "{\n  \"version\": 4,\n  \"serial\":";
    fs::write(&path, text).unwrap();
    let error = LocalStore::new(&path).read().unwrap_err().to_string();
    assert!(
        error.contains("line 3") && error.contains(&path.display().to_string()),
        "{error}"
    );
    assert!(error.contains("no backup file"), "{error}");
    write_copy(
        &dir.path().join("terraform.tfstate.backup"),
        &state(&["a"]),
        &Codec::PLAIN,
    )
    .unwrap();
    let mut store = locked(&path);
    let error = store.write(&state(&["b"]), "1.11.4").unwrap_err().to_string();
    assert!(error.contains("terraform.tfstate.backup"), "{error}");
    store.unlock().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

/// If a write is interrupted after `n` bytes, the next command loses nothing.
#[test]
fn interrupted_write_is_completed_by_the_next_read() {
    let (dir, path) = place();
    let pending = dir.path().join(".terraform.tfstate.pending");
    let old = State {
        serial: 1,
        lineage: "l".into(),
        ..state(&["a"])
    };
    let new = State {
        serial: 2,
        lineage: "l".into(),
        ..state(&["a", "b"])
    };
    let text = document::encode(&new).unwrap();
    for cut in [
        None,
        Some(0),
        Some(1),
        Some(text.len() / 2),
        Some(text.len() - 1),
        Some(text.len()),
    ] {
        write_copy(&path, &old, &Codec::PLAIN).unwrap();
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(SystemTime::now() - Duration::from_secs(10))
            .unwrap();
        fs::write(&pending, &text).unwrap();
        if let Some(cut) = cut {
            // File timestamps are coarse, so the interrupted state file gets a later one than the pending snapshot, as in a real crash.
            fs::write(&path, &text[..cut]).unwrap();
            let later = SystemTime::now() + Duration::from_secs(5);
            fs::File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_modified(later)
                .unwrap();
        }
        let without_lock = read_copy(&path, &Codec::PLAIN).unwrap().unwrap();
        assert!(without_lock.serial == 2 && without_lock.same_content(&new), "{cut:?}");
        let mut store = locked(&path);
        let with_lock = store.read().unwrap().unwrap();
        assert!(with_lock.serial == 2 && with_lock.same_content(&new), "{cut:?}");
        store.unlock().unwrap();
        assert!(fs::read(&path).unwrap() == text, "{cut:?}");
        let recovery = store.take_recovery();
        let mut left = files(dir.path());
        if cut.is_none() {
            // The older snapshot is preserved, and the report names its path.
            let kept = recovery.unwrap().kept.unwrap();
            assert_eq!(read_copy(&kept, &Codec::PLAIN).unwrap().unwrap().serial, 1);
            fs::remove_file(kept).unwrap();
            left = files(dir.path());
        } else if cut == Some(text.len()) {
            assert_eq!(recovery, None);
        } else {
            let recovery = recovery.unwrap();
            assert_eq!((recovery.kept, recovery.action), (None, RecoveryAction::Completed(2)));
        }
        assert_eq!(left, ["terraform.tfstate"], "{cut:?}");
    }
}

/// Writes a state file and a newer file with a pending snapshot. Returns the state that is read with the lock.
fn beside_pending(written: &State, pending: &[u8]) -> (tempfile::TempDir, State, Recovery) {
    let (dir, path) = place();
    write_copy(&path, written, &Codec::PLAIN).unwrap();
    let old = SystemTime::now() - Duration::from_secs(10);
    fs::File::open(&path).unwrap().set_modified(old).unwrap();
    fs::write(dir.path().join(".terraform.tfstate.pending"), pending).unwrap();
    assert_eq!(read_copy(&path, &Codec::PLAIN).unwrap().unwrap().serial, written.serial);
    let mut store = locked(&path);
    let found = store.read().unwrap().unwrap();
    let recovery = store.take_recovery().unwrap();
    store.unlock().unwrap();
    (dir, found, recovery)
}

#[test]
fn a_pending_snapshot_that_is_not_newer_by_its_serial_is_kept_and_not_used() {
    let snapshot = |serial: u64, lineage: &str, name: &str| State {
        serial,
        lineage: lineage.into(),
        ..state(&[name])
    };
    let written = snapshot(4, "l", "a");
    for (pending, why) in [
        (snapshot(2, "l", "lost"), Unused::NotNewer { pending: 2, state: 4 }),
        (snapshot(4, "l", "lost"), Unused::NotNewer { pending: 4, state: 4 }),
        (snapshot(9, "other", "lost"), Unused::OtherLineage),
    ] {
        let text = document::encode(&pending).unwrap();
        let (dir, found, recovery) = beside_pending(&written, &text);
        assert_eq!((found.serial, recovery.action), (4, RecoveryAction::Unused(why)));
        assert_eq!(fs::read(recovery.kept.unwrap()).unwrap(), text);
        assert_eq!(files(dir.path()).len(), 2);
    }
    let (_dir, found, recovery) = beside_pending(&written, b"{ damaged");
    assert_eq!(
        (found.serial, recovery.action),
        (4, RecoveryAction::Unused(Unused::Unreadable))
    );
}

#[test]
fn a_pending_snapshot_replaces_a_damaged_state_which_is_kept() {
    let (dir, path) = place();
    fs::write(&path, "not a state").unwrap();
    write_copy(
        &dir.path().join(".terraform.tfstate.pending"),
        &state(&["a"]),
        &Codec::PLAIN,
    )
    .unwrap();
    let mut store = locked(&path);
    assert!(store.read().unwrap().unwrap().same_content(&state(&["a"])));
    let kept = store.take_recovery().unwrap().kept.unwrap();
    assert_eq!(fs::read(kept).unwrap(), b"not a state");
}

#[test]
fn a_state_in_a_pipe_or_device_is_written_into() {
    let (dir, path) = place();
    write_copy(&path, &state(&["a"]), &Codec::PLAIN).unwrap();
    let fifo = dir.path().join("fifo");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::read(fifo).unwrap()
    });
    let mut store = LocalStore::new(&path).writing_to(&fifo);
    store.lock(&LockInfo::new("x", "1"), Duration::ZERO, &|| false).unwrap();
    store.read().unwrap();
    store.write(&state(&["b"]), "1").unwrap();
    store.unlock().unwrap();
    let text = reader.join().unwrap();
    assert!(document::decode(&text).unwrap().unwrap().same_content(&state(&["b"])));
    assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
    assert_eq!(files(dir.path()), ["fifo", "terraform.tfstate"]);

    let mut store = LocalStore::new("/dev/null").with_backup(Some("/dev/null".into()));
    assert!(store.read().unwrap().is_none());
    store.write(&state(&["b"]), "1").unwrap();
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    let full = LocalStore::new("/dev/full").write(&state(&["b"]), "1").unwrap_err();
    assert!(full.to_string().contains("/dev/full"), "{full}");
}

#[test]
fn a_pipe_in_place_of_the_lock_information_is_refused() {
    let (dir, path) = place();
    let info = dir.path().join(".terraform.tfstate.lock.info");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&info)
            .status()
            .unwrap()
            .success()
    );
    let refused = LocalStore::new(&path).lock(&LockInfo::new("x", "1"), Duration::ZERO, &|| false);
    assert!(refused.unwrap_err().to_string().contains("not a regular file"));
    assert!(state::lock::read_info(&path).is_none());
    assert_eq!(files(dir.path()), [".terraform.tfstate.lock.info"]);
}

#[test]
fn a_crash_before_the_first_state_loses_nothing_either() {
    let (dir, path) = place();
    write_copy(
        &dir.path().join(".terraform.tfstate.pending"),
        &state(&["a"]),
        &Codec::PLAIN,
    )
    .unwrap();
    let mut store = LocalStore::new(&path);
    assert!(store.read().unwrap().is_some());
    // A write by a run without a lock leaves a readable backup.
    store.write(&state(&["b"]), "1.11.4").unwrap();
    assert_eq!(files(dir.path()), ["terraform.tfstate", "terraform.tfstate.backup"]);
    assert!(
        read_copy(&dir.path().join("terraform.tfstate.backup"), &Codec::PLAIN)
            .unwrap()
            .unwrap()
            .same_content(&state(&["a"]))
    );
}

#[test]
fn readers_without_a_lock_never_see_a_state_half_written() {
    let (_dir, path) = place();
    let one = state(&["a"]);
    let names: Vec<String> = (0..300).map(|i| format!("r{i}")).collect();
    let other = state(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut store = locked(&path);
    store.write(&one, "1").unwrap();
    let reader = std::thread::spawn({
        let path = path.clone();
        move || {
            let mut last = 0;
            while last < 40 {
                let state = read_copy(&path, &Codec::PLAIN)
                    .unwrap()
                    .expect("there is always a state");
                assert!(state.serial >= last);
                assert_eq!(
                    state.instance_count(),
                    if state.serial.is_multiple_of(2) { 300 } else { 1 }
                );
                last = state.serial;
            }
        }
    });
    for i in 0..40 {
        store.write(if i % 2 == 0 { &other } else { &one }, "1").unwrap();
    }
    reader.join().unwrap();
}

#[test]
fn a_damaged_state_is_never_overwritten() {
    let (dir, path) = place();
    locked(&path).write(&state(&["a", "b"]), "1.11.4").unwrap();
    let whole = fs::read(&path).unwrap();
    let (mut refused, mut read) = (0, 0);
    let flips = (0..whole.len() * 8).step_by(7).map(|bit| {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        damaged
    });
    let cuts = (1..whole.len()).step_by(11).map(|end| whole[..end].to_vec());
    for damaged in flips.chain(cuts) {
        fs::write(&path, &damaged).unwrap();
        let mut store = locked(&path);
        match store.read() {
            Ok(_) => read += 1,
            Err(e) => {
                refused += 1;
                assert!(e.to_string().contains("Nothing was changed"), "{e}");
                assert!(store.write(&state(&["c"]), "1.11.4").is_err());
                assert!(store.begin_journal("test", "1.11.4").is_err());
            }
        }
        store.unlock().unwrap();
        assert_eq!(fs::read(&path).unwrap(), damaged);
    }
    // A flipped bit inside a value makes another valid state, which no reader can detect.
    assert!(refused > 50 && read > 0, "{refused} refused, {read} read");
    assert_eq!(files(dir.path()), ["terraform.tfstate"]);
}
