//! Monoform and Terraform on one state: in turn, at the same time, and after a migration between stores.

use serde_json::Value as Json;
use support::{Workspace, crash};

use crate::lab::{Lab, Tool, run};

/// Stores on which both programs apply at the same time.
pub const AT_ONCE: &[&str] = &["http", "pg", "s3"];

fn pulled(w: &Workspace) -> Json {
    run(w, Tool::Monoform, &["state", "pull"]).ok().json()
}

/// Applies. Terraform fails to get a lock that is released between its attempt and its request for the owner; its apply is then repeated,
/// because it has changed nothing.
fn applied(w: &Workspace, tool: Tool, word: &str) {
    for _ in 0..100 {
        let word = format!("-var=word={word}");
        let ran = run(
            w,
            tool,
            &["apply", "-auto-approve", "-input=false", "-lock-timeout=600s", &word],
        );
        let gave_up = tool != Tool::Monoform && ran.stderr.contains("Error acquiring the state lock");
        if !gave_up {
            ran.ok();
            return;
        }
    }
    panic!("{tool:?} never got the lock");
}

/// Runs `MONOFORM_CONCURRENT` applies of each program in turn, and then as many of both programs at the same time.
pub fn in_turn_and_at_once(lab: &Lab) {
    let times = crash::setting("MONOFORM_CONCURRENT", 5);
    let (ours, theirs) = (lab.directory(Tool::Monoform), lab.directory(lab.peer));
    applied(&ours, Tool::Monoform, "first");
    let first = pulled(&ours);
    let serial = first["serial"].as_u64().expect("a number");
    for i in 0..times {
        applied(&ours, Tool::Monoform, &format!("ours{i}"));
        applied(&theirs, lab.peer, &format!("theirs{i}"));
        let output = run(&ours, Tool::Monoform, &["output", "-raw", "word"]).ok();
        assert_eq!(output.stdout, format!("theirs{i}"));
    }
    assert_eq!(
        pulled(&ours)["serial"],
        serial + 2 * times,
        "in turn: one for each apply"
    );
    std::thread::scope(|scope| {
        for (w, tool) in [(&ours, Tool::Monoform), (&theirs, lab.peer)] {
            scope.spawn(move || {
                for i in 0..times {
                    applied(w, tool, &format!("{tool:?} at the same time {i}"));
                }
            });
        }
    });
    let last = pulled(&ours);
    assert_eq!(
        last["serial"],
        serial + 4 * times,
        "at once: one for each apply, after the others"
    );
    assert_eq!(last["lineage"], first["lineage"]);
    // The object is still the first one. An apply that missed the other program's state would have created a new one.
    let id = |state: &Json| state["resources"][0]["instances"][0]["attributes"]["id"].clone();
    assert_eq!(id(&last), id(&first));
    let word = last["outputs"]["word"]["value"].as_str().expect("text");
    assert!(word.ends_with(&format!("at the same time {}", times - 1)), "{word}");
}

/// Returns the states of these workspaces. A single workspace is not selected before, because the backend may have no
/// workspaces.
fn states(w: &Workspace, tool: Tool, names: &[&str]) -> Vec<Json> {
    let of = |name: &&str| {
        if names.len() > 1 {
            run(w, tool, &["workspace", "select", name]).ok();
        }
        run(w, tool, &["state", "pull"]).ok().json()
    };
    names.iter().map(of).collect()
}

/// Checks that two lists of states are the same, with two exceptions. The serial number may be greater by one after a copy. Properties that
/// only one program records are ignored: its own version, and the version of identities.
fn same(before: &[Json], after: &[Json], place: &str) {
    let plain = |state: &Json| {
        let mut state = state.clone();
        for resource in state["resources"].as_array_mut().into_iter().flatten() {
            for instance in resource["instances"].as_array_mut().into_iter().flatten() {
                instance
                    .as_object_mut()
                    .expect("an instance")
                    .remove("identity_schema_version");
            }
        }
        state
    };
    for (before, after) in before.iter().zip(after) {
        let (before, after) = (plain(before), plain(after));
        for part in ["version", "lineage", "outputs", "resources", "check_results"] {
            assert_eq!(before[part], after[part], "{place}: {part}");
        }
        let serial = |state: &Json| state["serial"].as_u64().expect("a number");
        let rise = serial(&after) - serial(&before);
        assert!(rise <= 1, "{place}: the serial rose by {rise}");
    }
}

/// Migrates states from files to a store, to another store, and back to files.
pub fn migrated(lab: &Lab, other: &Lab, with_terraform: bool) {
    let names: &[&str] = if lab.workspaces {
        &["default", "one", "two"]
    } else {
        &["default"]
    };
    let mut w = lab.without();
    for (name, value) in &other.environment {
        w = w.env(name, value.clone());
    }
    for name in names {
        if *name != "default" {
            run(&w, Tool::Monoform, &["workspace", "new", name]).ok();
        }
        run(
            &w,
            Tool::Monoform,
            &["apply", "-auto-approve", &format!("-var=word={name}")],
        )
        .ok();
    }
    let before = states(&w, Tool::Monoform, names);
    for (name, state) in names.iter().zip(&before) {
        assert_eq!(state["outputs"]["word"]["value"], **name);
    }
    w.write("backend.tf", &lab.block(""));
    run(&w, Tool::Monoform, &["init", "-force-copy"]).ok();
    let there = states(&w, Tool::Monoform, names);
    same(&before, &there, lab.ty);
    if with_terraform {
        let theirs = lab.directory(lab.peer);
        let found = states(&theirs, lab.peer, names);
        same(&there, &found, &format!("{} read by {:?}", lab.ty, lab.peer));
        assert_eq!(found[0]["serial"], there[0]["serial"]);
    }
    w.write("backend.tf", &other.block(""));
    run(&w, Tool::Monoform, &["init", "-migrate-state", "-force-copy"]).ok();
    let elsewhere = states(&w, Tool::Monoform, names);
    same(&there, &elsewhere, other.ty);
    // A migration copies states: the source keeps them.
    let left = lab.directory(Tool::Monoform);
    let found = states(&left, Tool::Monoform, names);
    assert!(found == there, "{} after the migration", lab.ty);
    w.write("backend.tf", "");
    run(&w, Tool::Monoform, &["init", "-migrate-state", "-force-copy"]).ok();
    let home = states(&w, Tool::Monoform, names);
    same(&elsewhere, &home, "files");
    let planned = run(
        &w,
        Tool::Monoform,
        &["plan", &format!("-var=word={}", names[names.len() - 1])],
    )
    .ok();
    assert!(planned.stdout.contains("No changes."), "{}", planned.all());
}
