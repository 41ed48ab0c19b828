//! The real executable with random configurations: alone, killed at any time, and compared with Terraform.
//!
//! The engine's own tests (`src/engine/tests/random`) run thousands of configurations in memory. Here a few take the whole path,
//! through files, processes and saved plans. `MONOFORM_SEED=N` runs one seed alone, `MONOFORM_SEED=N..M` those from N to before
//! M, `MONOFORM_CASES=N` so many from 0. [`beside`] needs Terraform 1.16, and is reported as ignored without it.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment, and need the time"
)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

#[path = "../../src/engine/tests/random/generate/mod.rs"]
#[allow(dead_code, reason = "the engine's tests use all of it")]
mod generate;

mod beside;

use std::process::{ExitCode, Stdio};
use std::time::Duration;

use generate::{Dialect, Model, Random};
use libtest_mimic::Trial;
use support::{Workspace, monoform, needing};

fn main() -> ExitCode {
    let tests: &[support::Test] = &[
        (
            "the_same_as_terraform",
            &["terraform-1.16"],
            beside::the_same_as_terraform,
        ),
        (
            "plans_are_saved_and_carried_out_and_settle",
            &[],
            plans_are_saved_and_carried_out_and_settle,
        ),
        (
            "killed_at_any_time_it_leaves_a_state_that_can_be_used",
            &[],
            killed_at_any_time_it_leaves_a_state_that_can_be_used,
        ),
    ];
    let trials = tests.iter().map(|&(name, programs, test)| {
        let trial = Trial::test(name, move || {
            test();
            Ok(())
        });
        needing(trial, programs)
    });
    support::run_trials(trials.collect())
}

/// Returns the seeds to run: `MONOFORM_SEED`, which is one seed or a range such as `1..9`, or else the first
/// `MONOFORM_CASES` seeds. Without both variables, it is the first `usual` seeds.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |text: &str| text.parse::<u64>().expect("a number");
    match std::env::var("MONOFORM_SEED") {
        Ok(seed) => match seed.split_once("..") {
            Some((from, to)) => number(from)..number(to),
            None => number(&seed)..number(&seed) + 1,
        },
        Err(_) => 0..std::env::var("MONOFORM_CASES").map_or(usual, |n| number(&n)),
    }
}

fn write(w: &Workspace, model: &Model) {
    for (name, text) in model.files() {
        w.write(&name, &text);
    }
}

/// Returns the addresses of all managed instances in the state, with the IDs of their objects.
fn stored(w: &Workspace) -> Vec<(String, String)> {
    // After an interrupted write, `state pull` finds the new content beside the state file.
    let pulled = w.run(&["state", "pull"]).ok();
    if pulled.stdout.trim().is_empty() {
        return Vec::new();
    }
    let state = pulled.json();
    let mut out = Vec::new();
    for resource in state["resources"].as_array().into_iter().flatten() {
        let text = |name: &str| resource[name].as_str().unwrap_or_default();
        let module = if text("module").is_empty() {
            String::new()
        } else {
            format!("{}.", text("module"))
        };
        for instance in resource["instances"].as_array().into_iter().flatten() {
            let key = match &instance["index_key"] {
                serde_json::Value::Null => String::new(),
                key => format!("[{key}]"),
            };
            let id = instance["attributes"]["id"].as_str().unwrap_or_default().to_owned();
            out.push((format!("{module}{}.{}{key}", text("type"), text("name")), id));
        }
    }
    out.sort();
    out
}

#[track_caller]
fn complete(w: &Workspace, model: &Model, seed: u64) {
    let there: Vec<String> = stored(w).into_iter().map(|(address, _)| address).collect();
    let wanted: Vec<String> = model.instances().into_iter().map(|e| e.address).collect();
    assert_eq!(there, wanted, "MONOFORM_SEED={seed} in {}", w.dir().display());
    w.run(&["plan", "-no-color", "-detailed-exitcode"]).ok();
}

fn plans_are_saved_and_carried_out_and_settle() {
    for seed in seeds(4) {
        let mut r = Random::new(seed);
        let mut model = Model::random(&mut r, Dialect::Builtin, 6);
        let w = Workspace::new();
        for step in 0..3 {
            if step > 0 {
                for _ in 0..2 {
                    model.change(&mut r, false);
                }
            }
            write(&w, &model);
            w.run(&["plan", "-no-color", "-out=the.plan"]).ok();
            w.run(&["apply", "-no-color", "the.plan"]).ok();
            complete(&w, &model, seed);
        }
        w.run(&["destroy", "-no-color", "-auto-approve"]).ok();
        assert!(stored(&w).is_empty(), "MONOFORM_SEED={seed}: left {:?}", stored(&w));
    }
}

/// Whenever the apply is killed, the state and the results in the journal can be read: every object is either as it was before the apply or
/// as in the configuration. The lock of the killed run does not block the next run, which completes the apply.
fn killed_at_any_time_it_leaves_a_state_that_can_be_used() {
    for seed in seeds(6) {
        let mut r = Random::new(seed ^ 0x6b11);
        let mut model = Model::random(&mut r, Dialect::Builtin, 8);
        let w = Workspace::new();
        write(&w, &model);
        if r.percent(70) {
            w.run(&["apply", "-no-color", "-auto-approve"]).ok();
        }
        for _ in 0..3 {
            for _ in 0..3 {
                model.change(&mut r, false);
            }
            write(&w, &model);
            let before = stored(&w);
            let wanted: Vec<String> = model.instances().into_iter().map(|e| e.address).collect();
            let mut child = w
                .command(monoform())
                .args(["apply", "-no-color", "-auto-approve"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("it starts");
            std::thread::sleep(Duration::from_millis(r.next() % 400));
            child.kill().expect("it can be killed");
            child.wait().expect("it ends");
            let after = stored(&w);
            let unexpected = after
                .iter()
                .find(|(address, id)| !wanted.contains(address) && !before.contains(&(address.clone(), id.clone())));
            assert_eq!(
                unexpected, None,
                "MONOFORM_SEED={seed}: an object is neither one of before nor one of the configuration: {before:?} {after:?}"
            );
        }
        // The next apply completes the work.
        w.run(&["apply", "-no-color", "-auto-approve"]).ok();
        complete(&w, &model, seed);
        w.run(&["destroy", "-no-color", "-auto-approve"]).ok();
    }
}
