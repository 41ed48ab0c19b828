//! Locks that are taken away from a running apply. The later write of that apply is refused, and its state is saved in a file; the state of
//! the other program stays.

use std::process::{Child, Stdio};

use serde_json::Value as Json;
use support::{Ran, Workspace, ran};

use crate::lab::{Lab, Tool, run};
use crate::postgres;
use crate::scenarios::{slow, wait_for};

pub const TESTS_OF_PG: &[(&str, fn())] = &[("a_lock_that_ended_with_its_session_overwrites_nothing", ended_session)];

/// Progress of the other program when the first one writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Other {
    /// Finished, with its state written.
    Finished,
    /// Still running, with the lock.
    Running,
}

fn start(w: &Workspace, args: &[&str]) -> Child {
    let mut command = w.command(Tool::Monoform.path());
    let child = command
        .args(["apply", "-auto-approve", "-no-color"])
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    wait_for("the apply", || w.exists("begun"));
    child
}

fn finish(w: &Workspace, child: Child) -> Ran {
    w.write("go", "");
    ran(child.wait_with_output().expect("its output"))
}

fn pulled(w: &Workspace) -> Json {
    run(w, Tool::Monoform, &["state", "pull"]).ok().json()
}

/// Returns the ID of the lock that another run holds, from the error of a refused command.
pub fn id_of_lock(refused: &Ran) -> String {
    let line = refused.stderr.lines().find_map(|line| line.split("ID:").nth(1));
    line.unwrap_or_else(|| panic!("the ID of the lock: {}", refused.all()))
        .trim()
        .to_owned()
}

/// Tests `force-unlock` during an apply, followed by another apply.
pub fn taken_away(lab: &Lab) {
    if !lab.named_locks {
        return;
    }
    for other in [Other::Finished, Other::Running] {
        overwrites_nothing(lab, other, || {
            let w = lab.directory(Tool::Monoform);
            let refused = run(&w, Tool::Monoform, &["plan", "-input=false"]);
            run(&w, Tool::Monoform, &["force-unlock", "-force", &id_of_lock(&refused)]).ok();
        });
    }
}

/// A PostgreSQL lock ends with its session, which an administrator may end.
fn ended_session() {
    let lab = postgres::lab();
    for other in [Other::Finished, Other::Running] {
        overwrites_nothing(&lab, other, || postgres::end_sessions(&lab));
    }
}

fn overwrites_nothing(lab: &Lab, other: Other, take_away: impl Fn()) {
    let (one, two) = (lab.directory(Tool::Monoform), lab.directory(Tool::Monoform));
    run(&two, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    let before = pulled(&two)["serial"].as_u64().expect("a number");
    slow(&one);
    let first = start(&one, &[]);
    take_away();
    let (refused, there) = match other {
        Other::Finished => {
            run(&two, Tool::Monoform, &["apply", "-auto-approve", "-var=word=two"]).ok();
            let there = pulled(&two);
            (finish(&one, first), there)
        }
        Other::Running => {
            slow(&two);
            let second = start(&two, &["-var=word=two"]);
            let refused = finish(&one, first);
            finish(&two, second).ok();
            (refused, pulled(&two))
        }
    };
    let shown = refused.all();
    refused.fails_with(&["Failed to save state", "lock lost: ", "errored.tfstate", "state push"]);
    assert!(!shown.contains("Cannot release the state lock"), "{shown}");
    assert_eq!(there["outputs"]["word"]["value"], "two", "{}, {other:?}", lab.ty);
    assert_eq!(
        there["serial"],
        before + 1,
        "{}, {other:?}: nothing else was written",
        lab.ty
    );
    assert_eq!(pulled(&one), there, "{}, {other:?}: what the other wrote stays", lab.ty);
    // The results of the first apply are not lost. They are based on the same earlier state as those of the other apply, so the user has to
    // decide which to keep.
    let kept: Json = serde_json::from_str(&one.read("errored.tfstate")).expect("a state");
    assert_eq!(
        (&kept["lineage"], &kept["serial"]),
        (&there["lineage"], &there["serial"]),
        "{}, {other:?}",
        lab.ty
    );
    if other == Other::Finished {
        run(&one, Tool::Monoform, &["state", "push", "errored.tfstate"]).fails_with(&["Failed to write state"]);
    }
    run(&one, Tool::Monoform, &["state", "push", "-force", "errored.tfstate"]).ok();
    let after = pulled(&two);
    assert_eq!(after["resources"], kept["resources"], "{}, {other:?}", lab.ty);
    run(&one, Tool::Monoform, &["destroy", "-auto-approve"]).ok();
}
