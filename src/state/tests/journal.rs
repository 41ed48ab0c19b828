//! Tests of the recovery from the journal of a killed run.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "locks have their time")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use addrs::{AbsProviderConfig, AbsResourceInstance, Provider};
use state::journal::recovery::Outcomes;
use state::journal::replay::Foreign;
use state::journal::{Answers, Intent, IntentAction, Outcome, Writer, path_of};
use state::{Attributes, InstanceState, LocalStore, LockInfo, Object, RawJson, State};
use tempfile::TempDir;

fn provider() -> AbsProviderConfig {
    AbsProviderConfig::root(Provider::default_for("null"))
}

fn address(name: &str) -> AbsResourceInstance {
    addrs::parse::resource_instance(&format!("null_resource.{name}")).unwrap()
}

fn objects(id: &str) -> InstanceState {
    let object = Object::new(
        0,
        Attributes::Json(RawJson::parse(&format!("{{\"id\": \"{id}\"}}")).unwrap()),
    );
    InstanceState {
        current: Some(Arc::new(object)),
        ..InstanceState::default()
    }
}

fn state(names: &[&str]) -> State {
    let mut state = State::new();
    for name in names {
        state.set_instance(&address(name), &provider(), Some(objects(name)));
    }
    state
}

fn intent(name: &str, action: IntentAction) -> Intent {
    Intent {
        address: address(name).to_string(),
        deposed: None,
        action,
        by: provider().to_string(),
        planned: "00".into(),
    }
}

fn outcome(name: &str, id: Option<&str>) -> Outcome {
    Outcome {
        address: address(name),
        provider: provider(),
        objects: id.map(objects),
        answers: Answers::Current,
    }
}

/// Lists the names of the instances in a state with their identifiers.
fn contents(state: Option<&State>) -> Vec<String> {
    let Some(state) = state else { return Vec::new() };
    state
        .instances()
        .map(
            |(resource, _, _, instance)| match &instance.current.as_ref().unwrap().attributes {
                Attributes::Json(json) => format!("{}={}", resource.resource.name, json.to_value().unwrap()["id"]),
                Attributes::Flat(_) => unreachable!(),
            },
        )
        .map(|text| text.replace('"', ""))
        .collect()
}

/// A locked store with a journal, whose state has `a` and `b`.
struct Run {
    dir: TempDir,
    store: LocalStore,
    journal: Writer,
}

fn place(dir: &TempDir) -> PathBuf {
    dir.path().join("terraform.tfstate")
}

fn locked(path: &Path) -> LocalStore {
    let mut store = LocalStore::new(path);
    store
        .lock(&LockInfo::new("test", "1.0.0"), Duration::ZERO, &|| false)
        .unwrap();
    store
}

fn run() -> Run {
    let dir = tempfile::tempdir().unwrap();
    let mut store = locked(&place(&dir));
    store.write(&state(&["a", "b"]), "1.0.0").unwrap();
    let journal = store.begin_journal("OperationTypeApply", "1.0.0").unwrap().unwrap();
    Run { dir, store, journal }
}

impl Run {
    /// Copies the files without their locks, as a kill would leave them. The writer may be replacing the journal at the same time, so the
    /// copy may have the old or the new journal, and the temporary file of the new one.
    fn killed(&self) -> TempDir {
        let left = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(self.dir.path()).unwrap() {
            let entry = entry.unwrap();
            match fs::copy(entry.path(), left.path().join(entry.file_name())) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                copied => drop(copied.unwrap()),
            }
        }
        left
    }
}

/// Builds the files of a killed run that had changed `a`, created `c`, destroyed `b`, and was creating `d`.
fn interrupted() -> TempDir {
    let run = run();
    for (name, action) in [
        ("a", IntentAction::Update),
        ("c", IntentAction::Create),
        ("b", IntentAction::Delete),
        ("d", IntentAction::Create),
    ] {
        run.journal.begin(&intent(name, action)).wait().unwrap();
    }
    run.journal.outcome(outcome("a", Some("a2")));
    run.journal.outcome(outcome("c", Some("c")));
    run.journal.outcome(outcome("b", None));
    run.journal.sync().wait().unwrap();
    run.killed()
}

#[test]
fn outcomes_are_replayed_and_what_was_in_flight_is_named() {
    let left = interrupted();
    let path = place(&left);
    let journal = path_of(&path);
    assert_eq!(fs::metadata(&journal).unwrap().permissions().mode() & 0o777, 0o600);
    let before = fs::read(&path).unwrap();

    // A reader without the lock sees the results but saves nothing.
    let mut reader = LocalStore::new(&path);
    let seen = reader.read().unwrap();
    assert_eq!(contents(seen.as_ref()), ["a=a2", "c=c"]);
    reader.forget_journal().unwrap();
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(journal.exists());

    let mut store = locked(&path);
    let state = store.read().unwrap().unwrap();
    assert_eq!(contents(Some(&state)), ["a=a2", "c=c"]);
    assert_eq!(state.serial, 2);
    let report = store.journal_report().unwrap();
    assert!(matches!(&report.outcomes, Outcomes::Replayed { instances, saved: true } if instances.len() == 3));
    let text = report.to_string();
    for part in [
        "create null_resource.d with provider[",
        "use import",
        "3 instances",
        "OperationTypeApply",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The journal is not removed until it has been reported.
    assert!(journal.exists());
    store.forget_journal().unwrap();
    assert!(!journal.exists());
    store.unlock().unwrap();
    let again = LocalStore::new(&path).read().unwrap();
    assert_eq!(contents(again.as_ref()), ["a=a2", "c=c"]);
}

#[test]
fn a_recovery_that_was_killed_itself_is_made_up_for() {
    let left = interrupted();
    let path = place(&left);
    let kept = fs::read(path_of(&path)).unwrap();
    let mut store = locked(&path);
    store.read().unwrap();
    store.unlock().unwrap();
    drop(store);
    // The report is repeated, because the journal was not removed.
    assert_eq!(fs::read(path_of(&path)).unwrap(), kept);
    let mut store = locked(&path);
    assert_eq!(contents(store.read().unwrap().as_ref()), ["a=a2", "c=c"]);
    let report = store.journal_report().unwrap();
    assert_eq!(report.outcomes, Outcomes::Known);
    assert_eq!(report.in_flight.len(), 1);
}

#[test]
fn a_state_that_was_written_since_is_left_alone() {
    type Change = fn(&Path);
    let newer: Change = |path| {
        let mut state = state(&["a", "x"]);
        (state.serial, state.lineage) = (7, LocalStore::new(path).read().unwrap().unwrap().lineage);
        fs::write(path, state::document::encode(&state).unwrap()).unwrap();
    };
    let same_serial: Change = |path| {
        let mut state = state(&["a", "x"]);
        (state.serial, state.lineage) = (1, LocalStore::new(path).read().unwrap().unwrap().lineage);
        fs::write(path, state::document::encode(&state).unwrap()).unwrap();
    };
    let other: Change = |path| {
        let mut state = state(&["a"]);
        (state.serial, state.lineage) = (1, "other".into());
        fs::write(path, state::document::encode(&state).unwrap()).unwrap();
    };
    let none: Change = |path| fs::remove_file(path).unwrap();
    for (change, expected) in [
        (newer, Foreign::OtherSerial { journal: 1, state: 7 }),
        (same_serial, Foreign::OtherContents(1)),
        (other, Foreign::OtherLineage),
        (none, Foreign::NoState),
    ] {
        let left = interrupted();
        let path = place(&left);
        let journal = fs::read(path_of(&path)).unwrap();
        change(&path);
        let before = fs::read(&path).unwrap_or_default();
        let mut store = locked(&path);
        store.read().unwrap();
        assert_eq!(fs::read(&path).unwrap(), before);
        let report = store.journal_report().unwrap();
        assert!(
            matches!(&report.outcomes, Outcomes::NotUsed { why, .. } if *why == expected),
            "{report:?}"
        );
        let kept = report.kept.clone().unwrap();
        let text = report.to_string();
        assert!(
            text.contains("null_resource.c") && text.contains(&kept.display().to_string()),
            "{text}"
        );
        assert_eq!(fs::read(&kept).unwrap(), journal);
        assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!path_of(&path).exists());
        store.forget_journal().unwrap();
        assert!(kept.exists());
    }
}

#[test]
fn a_state_that_has_everything_makes_the_journal_needless() {
    let left = interrupted();
    let path = place(&left);
    let mut complete = state(&["c"]);
    complete.set_instance(&address("a"), &provider(), Some(objects("a2")));
    complete.serial = 40;
    fs::write(&path, state::document::encode(&complete).unwrap()).unwrap();
    let mut store = locked(&path);
    assert_eq!(store.read().unwrap().unwrap().serial, 40);
    assert_eq!(store.journal_report().unwrap().outcomes, Outcomes::Known);
}

#[test]
fn every_prefix_of_a_journal_recovers() {
    let left = interrupted();
    let (path, journal) = (place(&left), path_of(&place(&left)));
    let (before, whole) = (fs::read(&path).unwrap(), fs::read(&journal).unwrap());
    let steps = [
        vec!["a=a", "b=b"],
        vec!["a=a2", "b=b"],
        vec!["a=a2", "b=b", "c=c"],
        vec!["a=a2", "c=c"],
    ];
    let mut reached = 0;
    for end in 0..=whole.len() {
        fs::write(&path, &before).unwrap();
        fs::write(&journal, &whole[..end]).unwrap();
        let mut store = locked(&path);
        let found = contents(store.read().unwrap().as_ref());
        let at = steps
            .iter()
            .position(|step| *step == found)
            .unwrap_or_else(|| panic!("cut at {end}: {found:?}"));
        assert!(at == reached || at == reached + 1, "cut at {end}");
        reached = at;
        assert!(store.journal_report().unwrap().damage.is_empty(), "cut at {end}");
        store.forget_journal().unwrap();
        assert!(!journal.exists());
    }
    assert_eq!(reached, 3);
}

#[test]
fn flipped_bit_is_reported_and_the_file_stays() {
    let left = interrupted();
    let (path, journal) = (place(&left), path_of(&place(&left)));
    let (before, whole) = (fs::read(&path).unwrap(), fs::read(&journal).unwrap());
    for byte in (0..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[byte] ^= 1 << (byte % 8);
        fs::write(&path, &before).unwrap();
        fs::write(&journal, &damaged).unwrap();
        let mut store = locked(&path);
        let found = contents(store.read().unwrap().as_ref());
        let known = ["a=a", "a=a2", "b=b", "c=c"];
        assert!(
            found.iter().all(|object| known.contains(&object.as_str())),
            "byte {byte}: {found:?}"
        );
        let report = store.journal_report().unwrap();
        assert!(!report.damage.is_empty(), "byte {byte}: {report}");
        let kept = report.kept.clone().unwrap();
        assert_eq!(fs::read(&kept).unwrap(), damaged);
        fs::remove_file(kept).unwrap();
    }
}

#[test]
fn the_journal_of_a_running_program_is_only_read() {
    let mut run = run();
    run.journal.outcome(outcome("c", Some("c")));
    run.journal.sync().wait().unwrap();
    let mut reader = LocalStore::new(place(&run.dir));
    assert_eq!(contents(reader.read().unwrap().as_ref()), ["a=a", "b=b", "c=c"]);
    assert!(reader.journal_report().is_none());
    // The program that writes the journal may have no lock while another program has it.
    run.store.unlock().unwrap();
    let mut store = locked(&place(&run.dir));
    assert_eq!(contents(store.read().unwrap().as_ref()), ["a=a", "b=b"]);
    assert!(store.journal_report().is_none());
    assert!(run.journal.path().is_some_and(Path::exists));
    assert!(store.begin_journal("test", "1.0.0").is_err());
}

#[test]
fn folding_keeps_what_the_file_does_not_have_and_bounds_the_journal() {
    let mut run = run();
    let mut current = state(&["a", "b"]);
    let large = "x".repeat(10_000);
    let mut largest = 0;
    for i in 0..400 {
        let name = format!("n{i}");
        run.journal.begin(&intent(&name, IntentAction::Create)).wait().unwrap();
        let number = run.journal.outcome(outcome(&name, Some(&large)));
        run.journal.sync().wait().unwrap();
        if i % 50 == 7 {
            // The snapshot lacks the last outcome.
            run.store.write(&current, "1.0.0").unwrap();
            run.store.compact_journal(number - 1);
            run.journal.sync().wait().unwrap();
        }
        largest = largest.max(run.journal.size());
        current.set_instance(&address(&name), &provider(), Some(objects(&large)));
        if i % 97 == 0 || i % 50 == 7 {
            let left = run.killed();
            let mut store = locked(&place(&left));
            let found = store.read().unwrap().unwrap();
            assert!(found.same_content(&current), "after {i}");
            assert!(store.journal_report().is_none_or(|r| r.in_flight.is_empty()));
        }
    }
    assert!(largest < 2 << 20, "{largest} bytes");
    run.store.write(&current, "1.0.0").unwrap();
    run.store.end_journal().unwrap();
    assert!(!path_of(&place(&run.dir)).exists());
}

#[test]
fn the_first_state_of_all_comes_from_a_journal_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = locked(&place(&dir));
    let journal = store.begin_journal("OperationTypeApply", "1.0.0").unwrap().unwrap();
    journal.outcome(outcome("a", Some("a")));
    journal.sync().wait().unwrap();
    let run = Run { dir, store, journal };
    let left = run.killed();
    let mut store = locked(&place(&left));
    let state = store.read().unwrap().unwrap();
    assert_eq!((contents(Some(&state)), state.serial), (vec!["a=a".to_owned()], 1));
    assert!(!state.lineage.is_empty());
    assert_eq!(state.terraform_version, "1.0.0");
}
