//! Tests of every store.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::lab::{Lab, RESOURCE, Tool, run};
use support::{Workspace, ran};

/// Name, function, and true if Terraform takes part.
pub type Scenario = (&'static str, fn(&Lab), bool);

/// Tests in which Monoform reads resources that Terraform has written.
pub const OF_BOTH: &[&str] = &[
    "what_one_program_applies_the_other_finds",
    "a_lock_of_either_program_holds_the_other",
];

/// All tests.
pub const ALL: &[Scenario] = &[
    ("a_local_state_is_brought_there_and_back", brought_there_and_back, false),
    ("records_are_those_of_terraform", records, true),
    ("what_one_program_applies_the_other_finds", applied_by_either, true),
    ("a_lock_of_either_program_holds_the_other", locks, true),
    ("workspaces_are_the_same_to_both", workspaces, true),
    ("a_saved_plan_is_applied_where_it_was_made_for", saved_plans, false),
    ("states_are_pulled_and_pushed", pull_and_push, false),
    ("outputs_are_read_by_remote_state", remote_state, false),
    (
        "an_encrypted_state_is_read_with_its_key_only",
        crate::encryption::state_is_encrypted,
        false,
    ),
    ("changed_settings_must_go_through_init", changed_settings, false),
    ("two_series_of_applies_at_once_follow_each_other", at_once, false),
    ("a_large_state_comes_back_as_it_was", large, false),
    (
        "what_a_killed_apply_had_done_is_in_the_state",
        crate::crashes::recovered,
        false,
    ),
    (
        "what_a_killed_apply_had_cut_short_is_replaced_by_others",
        crate::crashes::replaced_by_others,
        false,
    ),
    (
        "the_journal_of_a_state_that_others_wrote_is_set_aside",
        crate::crashes::set_aside,
        false,
    ),
    (
        "a_journal_is_found_after_a_change_of_settings",
        crate::crashes::found_after_a_change_of_settings,
        false,
    ),
    (
        "killed_at_any_moment_nothing_is_lost",
        crate::crashes::at_any_moment,
        false,
    ),
];

fn no_changes(workspace: &Workspace, tool: Tool) {
    let planned = run(workspace, tool, &["plan", "-input=false"]).ok();
    assert!(planned.stdout.contains("No changes."), "{}", planned.all());
}

fn pulled(workspace: &Workspace) -> serde_json::Value {
    run(workspace, Tool::Monoform, &["state", "pull"]).ok().json()
}

fn brought_there_and_back(lab: &Lab) {
    let w = lab.without();
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    let before = w.state();
    w.write("backend.tf", &lab.block(""));
    run(&w, Tool::Monoform, &["plan"]).fails_with(&["Initial configuration of the requested backend"]);
    run(&w, Tool::Monoform, &["init", "-input=false"]).fails_with(&["Can't ask approval for state migration"]);
    assert!(
        !w.exists(".terraform/terraform.tfstate"),
        "a refused init records nothing"
    );
    let init = run(&w, Tool::Monoform, &["init", "-force-copy"]).ok();
    let told = format!("Successfully configured the backend \"{}\"!", lab.ty);
    assert!(init.stdout.contains(&told), "{}", init.all());
    assert_eq!(w.read("terraform.tfstate"), "", "the state has moved out");
    assert!(w.read("terraform.tfstate.backup").contains("terraform_data"));
    let there = pulled(&w);
    for part in ["lineage", "resources", "outputs"] {
        assert_eq!(there[part], before[part], "{part}");
    }
    no_changes(&w, Tool::Monoform);

    w.write("backend.tf", "");
    run(&w, Tool::Monoform, &["plan"]).fails_with(&["Unsetting the previously set backend"]);
    run(&w, Tool::Monoform, &["init"]).fails_with(&["Backend configuration changed"]);
    run(&w, Tool::Monoform, &["init", "-migrate-state", "-force-copy"]).ok();
    let after = w.state();
    for part in ["lineage", "resources", "outputs"] {
        assert_eq!(after[part], before[part], "{part}");
    }
    no_changes(&w, Tool::Monoform);
}

fn records(lab: &Lab) {
    // Equal byte for byte, except for the version that each program reports.
    let record = |tool| {
        let text = lab.directory(tool).read(".terraform/terraform.tfstate");
        let line = |line: &&str| !line.trim_start().starts_with("\"terraform_version\":");
        text.lines().filter(line).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(record(Tool::Monoform), record(lab.recorder));
    // Each program accepts the other's record.
    for (one, other) in [(Tool::Monoform, lab.recorder), (lab.recorder, Tool::Monoform)] {
        let w = lab.directory(one);
        run(&w, other, &["plan", "-input=false"]).ok();
    }
}

fn applied_by_either(lab: &Lab) {
    let (ours, theirs) = (lab.directory(Tool::Monoform), lab.directory(lab.peer));
    run(&ours, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    no_changes(&theirs, lab.peer);
    let serial = pulled(&ours)["serial"].clone();
    run(&theirs, lab.peer, &["apply", "-auto-approve", "-var=word=y"]).ok();
    let after = pulled(&ours);
    assert!(after["serial"].as_u64() > serial.as_u64(), "{after}");
    let output = run(&ours, Tool::Monoform, &["output", "-json"]).ok().json();
    assert_eq!(output["word"]["value"], "y");
    run(&ours, Tool::Monoform, &["apply", "-auto-approve", "-var=word=z"]).ok();
    let output = run(&theirs, lab.peer, &["output", "-json"]).ok().json();
    assert_eq!(output["word"]["value"], "z");
    run(&theirs, lab.peer, &["destroy", "-auto-approve"]).ok();
    assert_eq!(pulled(&ours)["resources"], serde_json::json!([]));
}

/// Writes a configuration whose apply lasts until the file `go` exists.
pub fn slow(workspace: &Workspace) {
    workspace.write(
        "slow.tf",
        r#"
resource "terraform_data" "slow" {
  provisioner "local-exec" {
    command = "touch begun; while [ ! -e go ]; do sleep 0.05; done"
  }
}
"#,
    );
}

/// Waits until a condition is true. Fails the test after two minutes.
pub fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !there() {
        assert!(Instant::now() < end, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn locks(lab: &Lab) {
    for (holder, other) in [
        (Tool::Monoform, lab.peer),
        (lab.peer, Tool::Monoform),
        (Tool::Monoform, Tool::Monoform),
    ] {
        let holding = lab.directory(holder);
        let waiting = lab.directory(other);
        slow(&holding);
        let mut command = holding.command(holder.path());
        let applying = command
            .args(["apply", "-auto-approve", "-no-color"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        wait_for("the apply", || holding.exists("begun"));
        let refused = run(&waiting, other, &["plan", "-input=false"]);
        // HCP Terraform does not return the owner of a lock, so Terraform names itself.
        let who = if lab.ty == "remote" {
            "Operation:"
        } else {
            "Operation: OperationType"
        };
        refused.fails_with(&["Error acquiring the state lock", who]);
        // A waiting command gets the lock once it is free.
        let mut command = waiting.command(other.path());
        let planning = command
            .args(["plan", "-input=false", "-no-color", "-lock-timeout=60s"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        std::thread::sleep(Duration::from_millis(300));
        holding.write("go", "");
        ran(applying.wait_with_output().expect("its output")).ok();
        let planned = ran(planning.wait_with_output().expect("its output"));
        if other != Tool::Monoform && planned.stderr.contains("StatusCode: 404") {
            // Terraform gives up if a lock is released after its attempt and before it reads the owner.
            run(&waiting, other, &["plan", "-input=false"]).ok();
        } else {
            planned.ok();
        }
        run(&holding, Tool::Monoform, &["destroy", "-auto-approve"]).ok();
    }
    if lab.named_locks {
        force_unlock(lab);
    }
}

/// A killed program leaves its lock behind, and `force-unlock` removes it.
fn force_unlock(lab: &Lab) {
    let w = lab.directory(Tool::Monoform);
    slow(&w);
    let mut command = w.command(Tool::Monoform.path());
    let mut applying = command
        .args(["apply", "-auto-approve", "-no-color"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    wait_for("the apply", || w.exists("begun"));
    applying.kill().expect("it is killed");
    applying.wait().expect("it has ended");
    w.write("go", "");
    let refused = run(&w, Tool::Monoform, &["plan"]).fails_with(&["Error acquiring the state lock"]);
    let line = refused.stderr.lines().find_map(|line| line.split("ID:").nth(1));
    let id = line.expect("the name of the lock").trim().to_owned();
    run(
        &w,
        Tool::Monoform,
        &["force-unlock", "-force", "00000000-0000-4000-8000-000000000000"],
    );
    run(&w, Tool::Monoform, &["plan"]).fails_with(&["Error acquiring the state lock"]);
    run(&w, Tool::Monoform, &["force-unlock", "-force", &id]).ok();
    run(&w, Tool::Monoform, &["plan"]).ok();
}

fn workspaces(lab: &Lab) {
    let (ours, theirs) = (lab.directory(Tool::Monoform), lab.directory(lab.peer));
    if !lab.workspaces {
        for (w, tool) in [(&ours, Tool::Monoform), (&theirs, lab.peer)] {
            assert_eq!(run(w, tool, &["workspace", "list"]).status, 1);
            assert_eq!(run(w, tool, &["workspace", "new", "dev"]).status, 1);
        }
        return;
    }
    let list = |w: &Workspace, tool| {
        let listed = run(w, tool, &["workspace", "list"]).ok().stdout;
        let names = listed
            .lines()
            .map(|line| line.trim_start_matches(['*', ' ']).to_owned());
        let mut names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
        // Terraform lists Consul's workspaces in the random order of a Go map.
        if tool != Tool::Monoform {
            names.sort_unstable();
        }
        names
    };
    run(&ours, Tool::Monoform, &["workspace", "new", "dev"]).ok();
    run(&theirs, lab.peer, &["workspace", "new", "prod"]).ok();
    for (w, tool) in [(&ours, Tool::Monoform), (&theirs, lab.peer)] {
        assert_eq!(list(w, tool), ["default", "dev", "prod"], "{tool:?}");
    }
    run(&ours, Tool::Monoform, &["apply", "-auto-approve", "-var=word=dev"]).ok();
    run(&theirs, lab.peer, &["workspace", "select", "dev"]).ok();
    let output = run(&theirs, lab.peer, &["output", "-json"]).ok().json();
    assert_eq!(output["word"]["value"], "dev");
    // Both programs write the same empty state for a new workspace.
    let mut empty: Vec<serde_json::Value> = Vec::new();
    for (w, tool, name) in [(&ours, Tool::Monoform, "a"), (&theirs, lab.peer, "b")] {
        run(w, tool, &["workspace", "new", name]).ok();
        let mut state = run(w, tool, &["state", "pull"]).ok().json();
        state["lineage"] = "".into();
        state["terraform_version"] = "".into();
        empty.push(state);
        run(w, tool, &["workspace", "select", "default"]).ok();
    }
    assert_eq!(empty[0], empty[1]);
    run(&theirs, lab.peer, &["workspace", "delete", "a"]).ok();
    run(&ours, Tool::Monoform, &["workspace", "delete", "b"]).ok();
    run(&ours, Tool::Monoform, &["workspace", "delete", "dev"]).fails_with(&["Workspace is not empty"]);
    run(&ours, Tool::Monoform, &["workspace", "delete", "-force", "dev"]).ok();
    run(&ours, Tool::Monoform, &["workspace", "delete", "default"]);
    for (w, tool) in [(&ours, Tool::Monoform), (&theirs, lab.peer)] {
        assert_eq!(list(w, tool), ["default", "prod"], "{tool:?}");
    }
    all_workspaces_are_brought_along(lab);
}

fn all_workspaces_are_brought_along(lab: &Lab) {
    let w = lab.without();
    for name in ["one", "two"] {
        run(&w, Tool::Monoform, &["workspace", "new", name]).ok();
        run(
            &w,
            Tool::Monoform,
            &["apply", "-auto-approve", &format!("-var=word={name}")],
        )
        .ok();
    }
    w.write("backend.tf", &lab.block(""));
    run(&w, Tool::Monoform, &["init", "-force-copy"]).ok();
    for name in ["one", "two"] {
        run(&w, Tool::Monoform, &["workspace", "select", name]).ok();
        let output = run(&w, Tool::Monoform, &["output", "-raw", "word"]).ok();
        assert_eq!(output.stdout, name);
        assert_eq!(w.read(&format!("terraform.tfstate.d/{name}/terraform.tfstate")), "");
    }
    w.write("backend.tf", "");
    run(&w, Tool::Monoform, &["init", "-migrate-state", "-force-copy"]).ok();
    for name in ["one", "two"] {
        let state = w.read(&format!("terraform.tfstate.d/{name}/terraform.tfstate"));
        assert!(state.contains(&format!("\"value\": \"{name}\"")), "{state}");
    }
}

fn saved_plans(lab: &Lab) {
    let w = lab.directory(Tool::Monoform);
    run(&w, Tool::Monoform, &["plan", "-out=p"]).ok();
    // A saved plan is applied in a directory without `init`.
    let elsewhere = lab.without();
    std::fs::remove_file(elsewhere.dir().join("main.tf")).expect("it is there");
    std::fs::copy(w.dir().join("p"), elsewhere.dir().join("p")).expect("a copy");
    run(&elsewhere, Tool::Monoform, &["apply", "p"]).ok();
    no_changes(&w, Tool::Monoform);
    run(&w, Tool::Monoform, &["apply", "p"]).fails_with(&["Saved plan is stale"]);
}

fn pull_and_push(lab: &Lab) {
    let w = lab.directory(Tool::Monoform);
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    let text = run(&w, Tool::Monoform, &["state", "pull"]).ok().stdout;
    w.write("copy.tfstate", &text);
    run(&w, Tool::Monoform, &["state", "push", "copy.tfstate"]).ok();
    let serial = pulled(&w)["serial"].clone();
    run(&w, Tool::Monoform, &["apply", "-auto-approve", "-var=word=later"]).ok();
    run(&w, Tool::Monoform, &["state", "push", "copy.tfstate"]).fails_with(&["over newer state"]);
    w.write("other.tfstate", &text.replace("\"lineage\": \"", "\"lineage\": \"x"));
    run(&w, Tool::Monoform, &["state", "push", "other.tfstate"]).fails_with(&["unrelated state"]);
    run(&w, Tool::Monoform, &["state", "push", "-force", "copy.tfstate"]).ok();
    let after = pulled(&w);
    assert!(after["serial"].as_u64() >= serial.as_u64());
    no_changes(&w, Tool::Monoform);
    run(&w, Tool::Monoform, &["state", "list"]).ok();
    run(
        &w,
        Tool::Monoform,
        &["state", "mv", "terraform_data.a", "terraform_data.b"],
    )
    .ok();
    let listed = run(&w, Tool::Monoform, &["state", "list"]).ok();
    assert_eq!(listed.stdout.trim(), "terraform_data.b");
    run(&w, Tool::Monoform, &["state", "rm", "terraform_data.b"]).ok();
    assert_eq!(run(&w, Tool::Monoform, &["state", "list"]).ok().stdout.trim(), "");
}

fn remote_state(lab: &Lab) {
    let w = lab.directory(Tool::Monoform);
    run(&w, Tool::Monoform, &["apply", "-auto-approve", "-var=word=told"]).ok();
    let reader = lab.without();
    let text = format!(
        "data \"terraform_remote_state\" \"other\" {{\n  backend = \"{}\"\n  config = {{\n{}\n  }}\n}}\noutput \"word\" {{\n  value = \
         data.terraform_remote_state.other.outputs.word\n}}\n",
        lab.ty,
        // In `terraform_remote_state` the block is an argument.
        lab.settings.replace("workspaces {", "workspaces = {")
    );
    reader.write("main.tf", &text);
    run(&reader, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    assert_eq!(
        run(&reader, Tool::Monoform, &["output", "-raw", "word"]).ok().stdout,
        "told"
    );
    reader.write(
        "main.tf",
        &text.replace("config = {", "config = {\n unknown_argument = 1"),
    );
    run(&reader, Tool::Monoform, &["plan"]).fails_with(&["Invalid backend configuration", "unknown_argument"]);
}

fn changed_settings(lab: &Lab) {
    let w = lab.directory(Tool::Monoform);
    w.write("backend.tf", &lab.block("unknown_argument = 1"));
    run(&w, Tool::Monoform, &["plan"]).fails_with(&["Unsupported argument", "unknown_argument"]);
    run(&w, Tool::Monoform, &["init"]).fails_with(&["Unsupported argument", "unknown_argument"]);
    w.write("backend.tf", &lab.block(""));
    run(&w, Tool::Monoform, &["init", "-backend-config=unknown_argument=1"]).fails_with(&["unknown_argument"]);
    // The configuration is changed to another backend with `-reconfigure`, and back with `-migrate-state`.
    w.write("backend.tf", "terraform {\n  backend \"local\" {}\n}\n");
    run(&w, Tool::Monoform, &["plan"]).fails_with(&["Backend type changed"]);
    run(&w, Tool::Monoform, &["init", "-reconfigure"]).ok();
    w.write("main.tf", RESOURCE);
    run(&w, Tool::Monoform, &["plan"]).ok();
    w.write("backend.tf", &lab.block(""));
    run(&w, Tool::Monoform, &["init"]).fails_with(&["Backend configuration changed"]);
    let init = run(&w, Tool::Monoform, &["init", "-migrate-state"]).ok();
    assert!(
        init.stdout.contains("backend type changed from \"local\" to"),
        "{}",
        init.all()
    );
    run(&w, Tool::Monoform, &["plan"]).ok();
}

/// Applies several times in two working directories at the same time. `scripts/crash` applies 50 times in each.
fn at_once(lab: &Lab) {
    let times = support::crash::setting("MONOFORM_CONCURRENT", 3);
    let w = lab.directory(Tool::Monoform);
    let other = lab.directory(Tool::Monoform);
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    let before = pulled(&w)["serial"].as_u64().expect("a number");
    std::thread::scope(|scope| {
        for w in [&w, &other] {
            scope.spawn(move || {
                for i in 0..times {
                    let word = format!("-var=word={i}{}", w.dir().display());
                    let apply = ["apply", "-auto-approve", "-lock-timeout=600s", &word];
                    run(w, Tool::Monoform, &apply).ok();
                }
            });
        }
    });
    let serial = pulled(&w)["serial"].as_u64().expect("a number");
    match lab.keeps_objects() {
        true => assert!(
            serial >= before + 2 * times,
            "every apply has written, after the others"
        ),
        false => assert_eq!(
            serial,
            before + 2 * times,
            "every apply has written once, after the others"
        ),
    }
    run(&w, Tool::Monoform, &["destroy", "-auto-approve"]).ok();
}

/// Tests a large state. The default size is enough for stores that split states; measurements use 50 megabytes.
fn large(lab: &Lab) {
    let megabytes = support::crash::setting("MONOFORM_LARGE_STATE", 3);
    let w = lab.directory(Tool::Monoform);
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    let mut state = pulled(&w);
    // The text must not compress well, because some stores compress states.
    let mut seed = 1_u64;
    let mut noise = || {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        format!("{seed:016x}")
    };
    for name in 0..megabytes * 10 {
        let value: String = (0..6250).map(|_| noise()).collect();
        state["outputs"][format!("o{name}")] = serde_json::json!({"value": value, "type": "string"});
    }
    state["serial"] = (state["serial"].as_u64().expect("a number") + 1).into();
    w.write("large.tfstate", &state.to_string());
    let begin = Instant::now();
    run(&w, Tool::Monoform, &["state", "push", "large.tfstate"]).ok();
    let pushed = begin.elapsed();
    let back = pulled(&w);
    eprintln!(
        "{megabytes} MB: pushed in {pushed:?}, pulled in {:?}",
        begin.elapsed() - pushed
    );
    assert!(back["outputs"] == state["outputs"], "every output is as it was");
}
