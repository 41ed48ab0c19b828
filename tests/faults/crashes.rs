//! `kill -9` at any time, of the core, of a plugin, or of both: every object that exists afterwards is in the state, or is
//! reported by the next command. The objects are files in one directory.
//!
//! `MONOFORM_CRASH_ROUNDS` is the number of killed applies, `MONOFORM_SEED` selects the times; `scripts/crash` is the long
//! form.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use support::Workspace;
use support::crash::{self, Counts, CrashTest, Random, Victims, kill, setting};

use crate::{no_orphans, start, until};

#[test]
fn killed_at_any_moment_the_state_and_what_is_named_are_what_exists() {
    let rounds = setting("MONOFORM_CRASH_ROUNDS", 6);
    let mut random = Random(setting("MONOFORM_SEED", 1));
    let mut counts = Counts::default();
    let mut left = rounds;
    while left > 0 {
        let w = Workspace::with(&[("main.tf", crash::CONFIG)]);
        let test = CrashTest {
            workspace: &w,
            program: support::monoform().into(),
            objects: 60,
            window: 400_000,
            plans_repeat_reports: false,
        };
        let now = left.min(20);
        test.nothing_is_lost(now, &mut random, &mut counts);
        assert!(!w.exists(".terraform.tfstate.journal"), "nothing is left of it");
        left -= now;
    }
    eprintln!("local: {counts}");
}

/// Runs the rounds on another program with the built-in providers, for comparison: `MONOFORM_CRASH_PEER` is its path. Nothing
/// is asserted.
#[test]
fn what_another_program_loses() {
    let Ok(peer) = std::env::var("MONOFORM_CRASH_PEER") else {
        support::skip("what_another_program_loses", "MONOFORM_CRASH_PEER", "is not set");
        return;
    };
    let mut random = Random(setting("MONOFORM_SEED", 1));
    let mut counts = Counts::default();
    let w = Workspace::with(&[("main.tf", crash::CONFIG)]);
    let mirror = w.home().join("mirror");
    let links = [&mirror, &w.home().join(".terraform.d/plugins")];
    for dir in links {
        w.run(&["internal-plugin", "link", &dir.display().to_string()]).ok();
    }
    w.write("../home/.terraformrc", &support::only_from(&mirror));
    let program = PathBuf::from(&peer);
    w.run_program(&program, &["init", "-no-color", "-input=false"]).ok();
    let test = CrashTest {
        workspace: &w,
        program,
        objects: setting("MONOFORM_CRASH_OBJECTS", 60) as usize,
        window: setting("MONOFORM_CRASH_WINDOW", 400_000),
        plans_repeat_reports: false,
    };
    for version in 0..setting("MONOFORM_CRASH_ROUNDS", 50) {
        // Each round begins with an empty directory, so that a loss is not counted twice.
        for name in [
            "terraform.tfstate",
            "terraform.tfstate.backup",
            ".terraform.tfstate.lock.info",
        ] {
            let _ = std::fs::remove_file(w.dir().join(name));
        }
        let _ = std::fs::remove_dir_all(w.dir().join("out"));
        counts.add(&test.round(version, test.objects, Victims::Core, &mut random));
    }
    eprintln!("{peer}: {counts}");
}

#[test]
fn an_interrupted_creation_is_named_by_whatever_comes_next() {
    for command in ["plan", "apply", "refresh", "state"] {
        let w = Workspace::with(&[("main.tf", crate::WAITING)]);
        let run = start(&w, &["apply", "-no-color", "-auto-approve"]);
        until("the provisioner runs", || w.exists("started"));
        let journal = w.dir().join(".terraform.tfstate.journal");
        let mode = std::fs::metadata(&journal).expect("a journal").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // While the apply runs, other commands see its results and do not touch the journal.
        let listed = w.run(&["state", "list"]).ok();
        assert_eq!(listed.stdout.lines().count(), 2, "{}", listed.all());
        kill(&[run.id()]);
        run.ends();
        w.write("go", "");
        no_orphans(&w);
        let listed = w.run(&["state", "list"]).ok();
        assert_eq!(listed.stdout.lines().count(), 2, "{}", listed.all());
        assert!(journal.exists(), "who reads leaves the journal");
        let next = match command {
            "state" => w.run(&["state", "rm", "terraform_data.before"]),
            "apply" => w.run(&["apply", "-no-color", "-auto-approve"]),
            command => w.run(&[command, "-no-color"]),
        };
        let next = next.ok();
        let text = next.all();
        let words = text.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "provision terraform_data.waiting with local-exec, since ",
            "The object is tainted, so the next apply replaces it.",
        ] {
            assert!(words.contains(part), "{command}: {part}\n{text}");
        }
        if command == "apply" {
            assert!(text.contains("Resources: 2 added, 0 changed, 1 destroyed."), "{text}");
        } else {
            let waiting = &w.state()["resources"];
            let waiting = waiting
                .as_array()
                .expect("resources")
                .iter()
                .find(|r| r["name"] == "waiting");
            assert_eq!(waiting.expect("it is there")["instances"][0]["status"], "tainted");
            // The object stays tainted even after everything has been reported.
            let again = w.run(&["plan", "-no-color"]).ok();
            assert!(
                again.stdout.contains("terraform_data.waiting is tainted"),
                "{}",
                again.all()
            );
        }
        if let Some(plan) = text.find("Terraform will perform") {
            assert!(
                text.find("provision terraform_data.waiting") < Some(plan),
                "it is told first: {text}"
            );
        }
        assert!(!journal.exists());
    }
}

#[test]
fn a_plan_without_the_lock_sees_what_a_crash_left_and_changes_nothing() {
    let w = Workspace::with(&[("main.tf", crate::WAITING)]).env("TF_STATE_PERSIST_INTERVAL", "1000");
    let run = start(&w, &["apply", "-no-color", "-auto-approve"]);
    until("the provisioner runs", || w.exists("started"));
    kill(&[run.id()]);
    run.ends();
    w.write("go", "");
    no_orphans(&w);
    let before = crate::files(&w);
    w.run(&["plan", "-no-color", "-lock=false"]).ok().shows(&[
        "terraform_data.before: Refreshing state",
        "2 to add, 0 to change, 1 to destroy",
        "is as it was, since it is not",
    ]);
    assert!(w.run(&["show", "-no-color"]).ok().stdout.contains("done before"));
    assert!(before == crate::files(&w));
    w.run(&["apply", "-no-color", "-auto-approve"])
        .ok()
        .shows(&["2 added, 0 changed, 1 destroyed"]);
}

#[test]
fn another_directory_replaces_what_a_kill_has_cut_short() {
    // Another directory does not have the journal, so this test needs a state that is saved during the apply.
    let w = Workspace::with(&[("main.tf", crate::WAITING)]);
    let run = start(&w, &["apply", "-no-color", "-auto-approve"]);
    until("the provisioner runs", || w.exists("started"));
    until("the object is saved", || {
        std::fs::read_to_string(w.dir().join("terraform.tfstate")).is_ok_and(|text| text.contains("\"waiting\""))
    });
    kill(&[run.id()]);
    run.ends();
    w.write("go", "");
    no_orphans(&w);
    let other = Workspace::with(&[("main.tf", crate::WAITING)]);
    other.write("terraform.tfstate", &w.read("terraform.tfstate"));
    other
        .run(&["plan", "-no-color"])
        .ok()
        .shows(&["terraform_data.waiting is tainted, so must be replaced"]);
}

#[test]
fn a_creation_without_an_answer_is_named_by_this_run_and_the_next() {
    let w = Workspace::with(&[(
        "main.tf",
        "resource \"local_file\" \"a\" {\n  filename = \"out/a\"\n  source   = \"fifo\"\n}\n",
    )]);
    let fifo = w.dir().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let journal = w.dir().join(".terraform.tfstate.journal");
    let run = start(&w, &["apply", "-no-color", "-auto-approve"]);
    until("the creation begins", || {
        std::fs::read(&journal).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains("\"action\":\"create\""))
    });
    until("the provider is killed", || {
        let providers = crate::numbered_processes(&w);
        let provider = providers.iter().find(|(_, line)| line.contains("provider local"));
        provider.is_some_and(|(id, _)| {
            kill(&[*id]);
            true
        })
    });
    let words = |ran: &support::Ran| {
        let all = ran.all().replace('│', " ");
        all.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let first = run.ends();
    assert_eq!(first.status, 1, "{}", first.all());
    assert!(
        words(&first).contains("Object may exist without being in the state"),
        "{}",
        first.all()
    );
    drop(std::fs::OpenOptions::new().read(true).write(true).open(&fifo));
    no_orphans(&w);
    // Read-only commands change nothing.
    w.run(&["plan", "-no-color", "-lock=false", "-refresh=false"]);
    assert!(journal.exists());
    std::fs::remove_file(&fifo).expect("a file");
    w.write("fifo", "content");
    let second = w.run(&["plan", "-no-color"]).ok();
    for part in [
        "Operations of an earlier run whose result is unknown",
        "has saved its results, but got no answer to some requests",
        "create local_file.a with provider",
        "the object may exist without being in the state",
    ] {
        assert!(words(&second).contains(part), "{part}\n{}", second.all());
    }
    assert!(!journal.exists());
    let third = w.run(&["plan", "-no-color"]).ok();
    assert!(!third.all().contains("earlier run"), "{}", third.all());
}

#[test]
fn what_another_program_wrote_since_is_not_overwritten() {
    let w = Workspace::with(&[("main.tf", crate::WAITING)]).env("TF_STATE_PERSIST_INTERVAL", "1000");
    let run = start(&w, &["apply", "-no-color", "-auto-approve"]);
    until("the provisioner runs", || w.exists("started"));
    kill(&[run.id()]);
    run.ends();
    w.write("go", "");
    no_orphans(&w);
    let other = r#"{"version":4,"terraform_version":"1.11.4","serial":3,"lineage":"another","outputs":{},"resources":[],"check_results":null}"#;
    w.write("terraform.tfstate", other);
    let next = w.run(&["plan", "-no-color"]).ok();
    let text = next.all();
    for part in [
        "Journal of an earlier run not used",
        "terraform_data.before",
        "3 to add",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(w.read("terraform.tfstate"), other);
    let kept: Vec<PathBuf> = crate::files(&w)
        .into_keys()
        .filter(|p| p.extension().is_some_and(|e| e == "journal"))
        .collect();
    let [kept] = &kept[..] else {
        panic!("one journal is kept: {kept:?}")
    };
    assert!(
        text.replace(['│', '\n', ' '], "")
            .contains(&*kept.file_name().expect("a name").to_string_lossy()),
        "{text}"
    );
}

#[test]
fn on_a_full_disk_nothing_begins_that_cannot_be_written_down() {
    const TEST: &str = "on_a_full_disk_nothing_begins_that_cannot_be_written_down";
    let config = r#"
variable "n" {
  type = number
}

resource "terraform_data" "n" {
  count = var.n
  input = join("", [for i in range(1000) : "01234567890123456789"])
}

resource "terraform_data" "later" {
  depends_on = [terraform_data.n]
}
"#;
    let w = Workspace::with(&[("main.tf", config)]);
    let disk = w.dir().join("disk");
    std::fs::create_dir(&disk).expect("a directory");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m", "none"])
        .arg(&disk)
        .output();
    if !mounted.is_ok_and(|o| o.status.success()) {
        support::skip(TEST, "mount", "a file system of 1 MiB cannot be mounted");
        return;
    }
    let state = "-state=disk/s.tfstate";
    let run = |n: &str| w.run(&["apply", "-no-color", "-auto-approve", state, n]);
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let full = run("-var=n=100");
        let first = w.exists("errored.tfstate");
        (full, first, w.run(&["state", "list", state]))
    }));
    let unmounted = Command::new("umount").arg(&disk).output();
    assert!(unmounted.is_ok_and(|o| o.status.success()));
    let (full, rescued, _) = checked.expect("it runs");
    let full = full.fails_with(&["Cannot write the journal", "o space left on device"]);
    // The disk may have space to record that the first operations begin, but none for their results. Then no other operation begins.
    assert!(
        !full.stdout.contains("terraform_data.later: Creating"),
        "{}",
        full.all()
    );
    // All created objects are in the rescue file or in the state file.
    let created = full
        .stdout
        .lines()
        .filter(|line| line.contains("Creation complete"))
        .count();
    if rescued {
        let saved: serde_json::Value = serde_json::from_str(&w.read("errored.tfstate")).expect("JSON");
        let instances = saved["resources"][0]["instances"].as_array().map_or(0, Vec::len);
        assert_eq!(instances, created, "{}", full.all());
    }
    assert!(created > 0, "{}", full.all());
}
