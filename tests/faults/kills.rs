//! `kill -9` during an apply: the saved state stays, and every object that exists is known. See also
//! [`crate::crashes`].

use std::collections::BTreeSet;
use std::time::Duration;

use crate::{WAITING, no_orphans, start, until};
use nix::sys::signal::Signal;
use support::Workspace;

/// Returns the IDs of the objects in the state; none if the state file cannot be read at this moment.
fn saved(w: &Workspace) -> BTreeSet<String> {
    let text = std::fs::read_to_string(w.dir().join("terraform.tfstate")).unwrap_or_default();
    let Ok(state) = serde_json::from_str::<serde_json::Value>(&text) else {
        return BTreeSet::new();
    };
    let resources = state["resources"].as_array().into_iter().flatten();
    let instances = resources.flat_map(|r| r["instances"].as_array().into_iter().flatten());
    instances
        .filter_map(|i| i["attributes"]["id"].as_str().map(str::to_owned))
        .collect()
}

/// Returns the IDs of the objects that exist: each object makes a file when it is created.
fn existing(w: &Workspace) -> BTreeSet<String> {
    let entries = std::fs::read_dir(w.dir().join("out")).expect("a directory");
    entries
        .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn results_are_saved_while_no_operation_completes() {
    for command in ["apply", "destroy"] {
        let w = Workspace::with(&[("main.tf", WAITING)]);
        if command == "destroy" {
            w.write(
                "main.tf",
                r#"
resource "terraform_data" "a" {
  provisioner "local-exec" {
    when    = destroy
    command = "touch started; while [ ! -e go ]; do sleep 0.05; done"
  }
}

resource "terraform_data" "b" {
  depends_on = [terraform_data.a]
}
"#,
            );
            w.run(&["apply", "-no-color", "-auto-approve"]).ok();
        }
        let run = start(&w, &[command, "-no-color", "-auto-approve"]);
        until("the provisioner runs", || w.exists("started"));
        let expected = if command == "apply" { 2 } else { 1 };
        until("the results are saved", || saved(&w).len() == expected);
        run.signal(Signal::SIGKILL);
        assert_eq!(run.ends().status, -1);
        w.write("go", "");
        no_orphans(&w);
        w.run(&[command, "-no-color", "-auto-approve"]).ok();
        assert_eq!(saved(&w).len(), if command == "apply" { 3 } else { 0 });
    }
}

#[test]
fn killed_at_random_moments_nothing_is_lost() {
    const CONFIG: &str = r#"
resource "terraform_data" "n" {
  count = 400
  provisioner "local-exec" {
    command = "touch out/${self.id}; sleep 0.05"
  }
}
"#;
    let mut random = std::env::var("MONOFORM_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1u64);
    let (mut created, mut lost) = (0, 0);
    for round in 0..6 {
        let w = Workspace::with(&[("main.tf", CONFIG)]);
        std::fs::create_dir(w.dir().join("out")).expect("a directory");
        let apply = start(&w, &["apply", "-no-color", "-auto-approve"]);
        until("something is saved", || !saved(&w).is_empty());
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_millis((random >> 33) % 1500));
        // Objects that were saved before the kill must still exist after it.
        let before = saved(&w);
        apply.signal(Signal::SIGKILL);
        apply.ends();
        no_orphans(&w);
        // The first command that locks the state repairs an interrupted write.
        w.run(&["plan", "-no-color"]).ok();
        let listed = w.run(&["state", "pull"]).ok();
        let state: serde_json::Value = serde_json::from_str(&listed.stdout).expect("JSON");
        assert!(state["serial"].as_u64() > Some(0), "{}", listed.all());
        let (after, exists) = (saved(&w), existing(&w));
        let missing: Vec<_> = before.difference(&after).collect();
        assert!(missing.is_empty(), "round {round}: saved, and lost: {missing:?}");
        created += exists.len();
        lost += exists.difference(&after).count();
        w.run(&["plan", "-no-color"]).ok();
        w.run(&["destroy", "-no-color", "-auto-approve"]).ok();
        assert!(saved(&w).is_empty());
    }
    eprintln!("killed 6 times: {created} objects were created, {lost} of them are not in the state");
    assert_eq!(lost, 0, "of {created}");
}
