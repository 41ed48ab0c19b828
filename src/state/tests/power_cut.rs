//! Tests of power cuts at every instant of a run: the state can be recovered from the disk.
//!
//! A run is recorded in a separate process under `strace`: its operations on files, and the objects that it creates. Then, for the instant
//! after each recorded operation, the test makes directories as a disk may have them after a power cut: with all operations, or without
//! some that were not synced yet. A disk may keep later writes and lose earlier ones, so there are several variants. In each of them, the
//! next program must find every object in the state or in the list of unfinished operations.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]
#![allow(clippy::disallowed_methods, reason = "locks have their time")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use addrs::{AbsProviderConfig, AbsResourceInstance, Provider};
use state::journal::{Answers, Intent, IntentAction, Outcome};
use state::{Attributes, InstanceState, LocalStore, LockInfo, Object, RawJson, State, StateError};
use support::disk::{self, Kept, Op};

/// Environment variable that names the directory for the recorded process.
const RECORDED: &str = "MONOFORM_RECORDED_RUN";

const STATE: &str = "terraform.tfstate";

fn provider() -> AbsProviderConfig {
    AbsProviderConfig::root(Provider::default_for("null"))
}

fn address(name: &str) -> AbsResourceInstance {
    addrs::parse::resource_instance(&format!("null_resource.{name}")).unwrap()
}

fn objects(id: &str) -> InstanceState {
    let json = RawJson::parse(&format!("{{\"id\": \"{id}\"}}")).unwrap();
    InstanceState {
        current: Some(Arc::new(Object::new(0, Attributes::Json(json)))),
        ..InstanceState::default()
    }
}

fn locked(path: &Path) -> LocalStore {
    let mut store = LocalStore::new(path);
    let info = LockInfo::new("test", "1.0.0");
    store.lock(&info, Duration::ZERO, &|| false).unwrap();
    store
}

/// Creates objects in the recorded process. Each object is a file in `real`; an object whose operation counts as done also has a file in
/// `done`. The run writes the state several times, compacts the journal, and ends it.
#[test]
fn recorded_run() {
    let Some(dir) = std::env::var_os(RECORDED).map(PathBuf::from) else {
        return;
    };
    let mut store = locked(&dir.join(STATE));
    let mut state = State::new();
    for run in 0..2 {
        let journal = store.begin_journal("OperationTypeApply", "1.0.0").unwrap().unwrap();
        let mut number = 0;
        for i in 0..5 {
            let name = format!("r{run}o{i}");
            let intent = Intent {
                address: address(&name).to_string(),
                deposed: None,
                action: IntentAction::Create,
                by: provider().to_string(),
                planned: String::new(),
            };
            journal.begin(&intent).wait().unwrap();
            fs::write(dir.join("real").join(&name), "").unwrap();
            state.set_instance(&address(&name), &provider(), Some(objects(&name)));
            number = journal.outcome(Outcome {
                address: address(&name),
                provider: provider(),
                objects: Some(objects(&name)),
                answers: Answers::Current,
            });
            journal.sync().wait().unwrap();
            fs::write(dir.join("done").join(&name), "").unwrap();
            if i % 2 == 1 {
                store.write(&state, "1.0.0").unwrap();
            }
        }
        store.write(&state, "1.0.0").unwrap();
        store.compact_journal(number);
        store.end_journal().unwrap();
    }
    store.unlock().unwrap();
}

/// Result of opening a state after a power cut.
struct FoundAfter {
    state: BTreeSet<String>,
    in_flight: BTreeSet<String>,
}

fn recover(files: &BTreeMap<String, Vec<u8>>) -> Result<FoundAfter, StateError> {
    let dir = tempfile::tempdir().unwrap();
    for (name, contents) in files.iter().filter(|(name, _)| !name.contains('/')) {
        fs::write(dir.path().join(name), contents).unwrap();
    }
    let mut store = locked(&dir.path().join(STATE));
    let state = store.read()?.unwrap_or_default();
    let in_flight = store.journal_report().into_iter().flat_map(|report| &report.in_flight);
    let short = |address: &str| address.trim_start_matches("null_resource.").to_owned();
    let found = FoundAfter {
        in_flight: in_flight.map(|operation| short(&operation.address)).collect(),
        state: state
            .instances()
            .map(|(resource, ..)| resource.resource.name.to_string())
            .collect(),
    };
    store.forget_journal()?;
    store.unlock()?;
    // The second program finds nothing more to report.
    let again = LocalStore::new(dir.path().join(STATE)).read()?;
    assert_eq!(again.unwrap_or_default().instance_count(), found.state.len());
    Ok(found)
}

/// Returns the objects that exist, or count as done, after these operations. They are remote objects: the power cut
/// does not affect them.
fn outside(ops: &[Op], directory: &str) -> BTreeSet<String> {
    let created = ops.iter().filter_map(|op| match op {
        Op::Create(name) => name.strip_prefix(directory)?.strip_prefix('/').map(str::to_owned),
        _ => None,
    });
    created.collect()
}

#[test]
fn after_a_power_cut_at_any_moment_nothing_is_lost() {
    const TEST: &str = "after_a_power_cut_at_any_moment_nothing_is_lost";
    if !disk::traceable(TEST) {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let (dir, traces) = (root.join("run"), root.join("traces"));
    for dir in [&dir, &traces, &dir.join("real"), &dir.join("done")] {
        fs::create_dir_all(dir).unwrap();
    }
    let run = disk::recording(&std::env::current_exe().unwrap().to_string_lossy(), &traces)
        .args(["--exact", "recorded_run", "--test-threads=1"])
        .env(RECORDED, &dir)
        .current_dir(&dir)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let ops: Vec<Op> = disk::recorded(&traces, &dir).into_iter().map(|(_, op)| op).collect();
    assert_eq!(outside(&ops, "done").len(), 10, "{ops:#?}");
    assert!(
        ops.iter().any(|op| matches!(op, Op::SyncDirectory(_))),
        "directories are synced"
    );
    let mut checked = 0;
    for end in 0..=ops.len() {
        let done = &ops[..end];
        let (real, certain) = (outside(done, "real"), outside(done, "done"));
        let kinds = [Kept::All, Kept::Names, Kept::Contents, Kept::Nothing];
        let random = (0..3).map(|i| Kept::Some(end as u64 * 1_000_003 + i));
        for kept in kinds.into_iter().chain(random) {
            let disk = disk::on_the_disk(done, kept);
            let shown = || {
                let names: Vec<_> = disk.iter().map(|(name, text)| (name, text.len())).collect();
                format!(
                    "after {end} of {} operations, {kept:?}: {names:?}\nlast: {:?}",
                    ops.len(),
                    done.last()
                )
            };
            let found = recover(&disk).unwrap_or_else(|e| panic!("{e}\n{}", shown()));
            let known: BTreeSet<String> = found.state.union(&found.in_flight).cloned().collect();
            assert!(
                real.is_subset(&known),
                "lost: {:?}\n{}",
                real.difference(&known),
                shown()
            );
            assert!(
                certain.is_subset(&found.state),
                "done, and not in the state: {:?}\n{}",
                certain.difference(&found.state),
                shown()
            );
            checked += 1;
        }
    }
    eprintln!("{} operations recorded; recovered from {checked} disks", ops.len());
}
