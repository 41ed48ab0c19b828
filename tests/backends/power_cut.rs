//! Power cuts at every instant of an apply with a remote state: the machine loses data that was not synced, while the server has everything
//! that it has received until then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use support::crash::{self, CrashTest};
use support::disk::{self, Kept, Op};
use support::{Workspace, ran};

use crate::http;
use crate::lab::{Lab, Tool, run};

pub const TESTS: &[(&str, fn())] = &[("a_power_cut_at_any_moment_loses_nothing", at_any_moment)];

/// Number of objects of the configuration.
const OBJECTS: usize = 4;

fn directory(lab: &Lab) -> Workspace {
    let w = lab.without();
    w.write("main.tf", crash::CONFIG);
    w.write("backend.tf", &lab.block(""));
    run(&w, Tool::Monoform, &["init", "-input=false"]).ok();
    w
}

/// Applies, and returns the file operations of the run.
fn recorded(w: &Workspace, version: u64, objects: usize) -> Vec<(f64, Op)> {
    let traces = w.home().join(format!("traces-{version}"));
    std::fs::create_dir_all(&traces).expect("a directory");
    let recording = disk::recording(&Tool::Monoform.path(), &traces);
    let mut command = w.command("strace");
    command.args(recording.get_args());
    command.args(["apply", "-no-color", "-auto-approve"]);
    command.args([
        format!("-var=version_of_all={version}"),
        format!("-var=objects={objects}"),
    ]);
    ran(command.output().expect("strace starts")).ok();
    disk::recorded(&traces, &w.dir().canonicalize().expect("a directory"))
}

/// Returns the files that stand for objects. They represent remote objects, which a power cut does not affect.
fn objects(disk: &BTreeMap<String, Vec<u8>>) -> impl Iterator<Item = (&String, &Vec<u8>)> {
    disk.iter().filter(|(name, _)| name.starts_with("out/"))
}

/// Writes the files after a power cut: the journals in `found`, and in `real` the files that stand for remote objects.
fn restore(w: &Workspace, found: &BTreeMap<String, Vec<u8>>, real: &BTreeMap<String, Vec<u8>>) {
    for directory in ["out", ".terraform/journals"] {
        // The directory may not exist.
        let _ = std::fs::remove_dir_all(w.dir().join(directory));
    }
    for (name, contents) in objects(real) {
        w.write(name, &String::from_utf8_lossy(contents));
    }
    for (name, contents) in found {
        let path = w.dir().join(name);
        if name.starts_with(".terraform/journals/") {
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            std::fs::write(path, contents).expect("a journal");
        }
    }
}

/// Returns the states that the server may have between two local operations: its state at the first operation, and those
/// that arrived before the second. `None` if the server had no state yet.
fn stored(history: &[(f64, Vec<u8>)], from: f64, until: f64) -> Vec<Option<&[u8]>> {
    let before = history.iter().rev().find(|(time, _)| *time < from);
    let after = history.iter().filter(|(time, _)| (from..until).contains(time));
    let mut states = vec![before.map(|(_, state)| state.as_slice())];
    states.extend(after.map(|(_, state)| Some(state.as_slice())));
    states
}

fn at_any_moment() {
    if !disk::traceable("power_cut::a_power_cut_at_any_moment_loses_nothing") {
        return;
    }
    let lab = http::lab();
    let server = lab.server.downcast_ref::<Arc<http::Kept>>().expect("the server");
    let w = directory(&lab);
    // The steps: objects are created; all are replaced, half of them with create_before_destroy; all are
    // destroyed.
    let mut ops = recorded(&w, 1, OBJECTS);
    ops.extend(recorded(&w, 2, OBJECTS));
    ops.extend(recorded(&w, 3, 0));
    ops.retain(|(_, op)| {
        let of_files = ["out/", ".terraform/journals"]
            .iter()
            .any(|place| op.name().starts_with(place));
        // The journals survive only if the name of their directory does.
        of_files || matches!(op, Op::SyncDirectory(_))
    });
    assert!(ops.len() > 40, "{ops:#?}");
    let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64();
    let history: Vec<_> = server
        .history()
        .into_iter()
        .map(|(time, state)| (seconds(time), state))
        .collect();
    assert!(history.len() >= 3, "{} states were written", history.len());
    w.write("log", "");
    let test = CrashTest {
        workspace: &w,
        program: Tool::Monoform.path().into(),
        objects: OBJECTS,
        window: 1,
        plans_repeat_reports: false,
    };
    let mut seen = BTreeSet::new();
    for end in 1..=ops.len() {
        let next = ops.get(end).map_or(f64::MAX, |(time, _)| *time);
        let done = || ops[..end].iter().map(|(_, op)| op);
        let real = disk::on_the_disk(done(), Kept::All);
        let exist: Vec<_> = objects(&real).collect();
        for kept in [Kept::All, Kept::Nothing, Kept::Contents, Kept::Some(end as u64)] {
            let mut found = disk::on_the_disk(done(), kept);
            found.retain(|name, _| name.starts_with(".terraform/journals/"));
            for state in stored(&history, ops[end - 1].0, next) {
                // Many points in time leave the same files, which are tested once.
                if !seen.insert(format!("{exist:?}{found:?}{state:?}")) {
                    continue;
                }
                restore(&w, &found, &real);
                server.restore(state);
                let outcome = test.compare(1, OBJECTS);
                assert!(
                    outcome.lost.is_empty() && outcome.wrong.is_empty(),
                    "after {end} of {} operations, {kept:?}: lost {:?}, wrong {:?}, named {:?}; last {:?}\n{}",
                    ops.len(),
                    outcome.lost,
                    outcome.wrong,
                    outcome.named,
                    ops[end - 1],
                    outcome.text
                );
            }
        }
    }
    eprintln!(
        "{} operations recorded; recovered from {} moments",
        ops.len(),
        seen.len()
    );
}
