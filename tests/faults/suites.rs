//! Test suites that are stopped: in each case their objects are destroyed, or reported and saved in a state file.

use std::process::Command;
use std::time::Instant;

use crate::processes::{ids, signal};
use crate::{no_orphans, start, until};
use nix::sys::signal::Signal;
use support::Workspace;
use support::running::Running;

/// A module that makes an object, and one whose object waits for a file `go`.
const MODULE: &str = r#"
variable "waits" {
  default = false
}

resource "terraform_data" "made" {
  input = "made"
}

resource "terraform_data" "waiting" {
  count      = var.waits ? 1 : 0
  depends_on = [terraform_data.made]
  provisioner "local-exec" {
    command = "touch started; while [ ! -e go ]; do sleep 0.05; done"
  }
}
"#;

const RUNS: &str = r#"
run "one" {}

run "two" {
  state_key = "second"
  variables {
    waits = true
  }
}

run "three" {}
"#;

fn left_files(w: &Workspace) -> Vec<String> {
    let names = std::fs::read_dir(w.dir()).expect("a directory");
    let names = names.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|n| n.ends_with(".tfstate")).collect();
    names.sort();
    names
}

fn objects(w: &Workspace, file: &str) -> Vec<String> {
    let state: serde_json::Value = serde_json::from_str(&w.read(file)).expect("a state");
    let all = state["resources"].as_array().expect("resources");
    all.iter()
        .map(|r| r["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn one_interrupt_finishes_the_run_and_destroys() {
    let w = Workspace::with(&[("main.tf", MODULE), ("main.tftest.hcl", RUNS)]);
    let mut test = start(&w, &["test", "-no-color"]);
    until("the run waits", || w.exists("started"));
    crate::interrupt(&mut test);
    w.write("go", "");
    let test = test.ends();
    let text = test.all();
    for line in [
        "Interrupt received.",
        "run \"one\"... pass",
        "run \"two\"... pass",
        "run \"three\"... skip",
        "main.tftest.hcl... tearing down",
        "Failure! 2 passed, 0 failed, 1 skipped.",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    // Skipped runs do not count as passed, so the command fails.
    assert_eq!(test.status, 1, "{text}");
    assert_eq!(left_files(&w), [""; 0]);
    no_orphans(&w);
}

#[test]
fn two_interrupts_end_at_once_and_keep_what_exists() {
    let w = Workspace::with(&[("main.tf", MODULE), ("main.tftest.hcl", RUNS)]);
    let mut test = start(&w, &["test", "-no-color"]);
    until("the run waits", || w.exists("started"));
    let began = Instant::now();
    crate::interrupt(&mut test);
    test.signal(Signal::SIGINT);
    let test = test.ends();
    let text = test.all();
    assert_eq!(test.status, 1, "{text}");
    assert!(began.elapsed().as_secs() < 25, "{:?}", began.elapsed());
    for line in [
        "Test interrupted",
        "The tests in main.tftest.hcl were interrupted",
        "These objects are in the main state and were not destroyed:\n  - terraform_data.made\nThey are recorded in the state file \
         errored_test.main.tftest.hcl.tfstate.",
        "These objects are in the state \"second\" and were not destroyed:\n  - terraform_data.made\n",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("tearing down"), "{text}");
    assert_eq!(
        left_files(&w),
        [
            "errored_test.main.tftest.hcl.second.tfstate",
            "errored_test.main.tftest.hcl.tfstate"
        ]
    );
    assert_eq!(objects(&w, "errored_test.main.tftest.hcl.tfstate"), ["made"]);
    no_orphans(&w);
}

#[test]
fn objects_of_a_killed_test_are_reported_and_recorded_by_the_next() {
    let w = Workspace::with(&[("main.tf", MODULE), ("main.tftest.hcl", RUNS)]);
    let test = start(&w, &["test", "-no-color"]);
    until("the run waits", || w.exists("started"));
    test.signal(Signal::SIGKILL);
    test.ends();
    assert_eq!(left_files(&w), [""; 0]);
    w.write("main.tftest.hcl", "run \"one\" {\n  command = plan\n}\n");
    let next = w.run(&["test", "-no-color"]).ok().all();
    for line in [
        "Objects of an earlier test may still exist",
        "An earlier run (test of main.tftest.hcl, begun at",
        "terraform_data.made",
        "errored_test.main.tftest.hcl.tfstate",
        "errored_test.main.tftest.hcl.second.tfstate",
        "These operations had begun, and their result is not known:",
        "terraform_data.waiting[0]",
        "Success! 1 passed, 0 failed.",
    ] {
        assert!(next.contains(line), "{line} is not in\n{next}");
    }
    assert_eq!(
        left_files(&w),
        [
            "errored_test.main.tftest.hcl.second.tfstate",
            "errored_test.main.tftest.hcl.tfstate"
        ]
    );
    assert_eq!(objects(&w, "errored_test.main.tftest.hcl.tfstate"), ["made"]);
    let second = objects(&w, "errored_test.main.tftest.hcl.second.tfstate");
    assert!(second.contains(&"made".to_owned()), "{second:?}");
    // The report appears once, and a test that is not killed leaves no journal.
    let again = w.run(&["test", "-no-color"]).ok().all();
    assert!(!again.contains("earlier"), "{again}");
    assert!(!w.exists(".terraform/test_journals"));
    no_orphans(&w);
}

#[test]
fn a_test_without_a_journal_is_run_with_a_warning() {
    let w = Workspace::with(&[
        ("main.tf", "resource \"terraform_data\" \"a\" {}\n"),
        ("main.tftest.hcl", "run \"one\" {}\n"),
        (".terraform/test_journals", "in the way"),
    ]);
    let text = w.run(&["test", "-no-color"]).ok().all();
    assert!(text.contains("Test without a journal"), "{text}");
}

#[test]
fn a_state_that_was_left_is_not_overwritten() {
    let w = Workspace::with(&[
        (
            "main.tf",
            "resource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" {\n    when = destroy\n    command = \"exit 3\"\n  }\n}\n",
        ),
        ("tests/a.tftest.hcl", "run \"one\" {}\n"),
    ]);
    let test = w.run(&["test", "-no-color"]).fails_with(&[
        "exit status 3",
        "The run tests/a.tftest.hcl/one left the following resources in state",
        "  - terraform_data.a",
        "state file errored_test.tests_a.tftest.hcl.tfstate",
    ]);
    assert!(test.stdout.contains("Failure! 1 passed, 0 failed."), "{}", test.all());
    let first = w.read("errored_test.tests_a.tftest.hcl.tfstate");
    let test = w.run(&["test", "-json"]);
    assert_eq!(test.status, 1);
    assert!(
        test.stdout
            .contains("\"state_file\":\"errored_test.tests_a.tftest.hcl.2.tfstate\""),
        "{}",
        test.all()
    );
    assert_eq!(w.read("errored_test.tests_a.tftest.hcl.tfstate"), first);
    assert_ne!(w.read("errored_test.tests_a.tftest.hcl.2.tfstate"), first);

    // Commands can use the state that was kept.
    w.write("fixed/main.tf", "");
    let fixed = w.run(&["state", "list", "-state=errored_test.tests_a.tftest.hcl.tfstate"]);
    assert_eq!(fixed.ok().stdout, "terraform_data.a\n");
}

/// Returns a workspace with a suite whose second run reads a pipe.
fn reading() -> Workspace {
    let w = Workspace::with(&[
        ("main.tf", MODULE),
        (
            "reads/main.tf",
            "data \"local_file\" \"a\" {\n  filename = \"fifo\"\n}\n",
        ),
        (
            "main.tftest.hcl",
            "run \"one\" {}\nrun \"two\" {\n  module {\n    source = \"./reads\"\n  }\n}\nrun \"three\" {}\n",
        ),
    ]);
    let fifo = w.dir().join("fifo");
    assert!(Command::new("mkfifo").arg(fifo).status().expect("mkfifo").success());
    w
}

/// Starts the suite, and waits until its second run reads the pipe. The run continues when the returned file is
/// dropped.
fn until_it_reads(w: &Workspace) -> (Running, std::fs::File) {
    let mut test = start(w, &["test", "-no-color"]);
    test.sees("run \"one\"... pass");
    let writer = crate::open_when_read(&w.dir().join("fifo"));
    (test, writer)
}

#[test]
fn a_provider_that_dies_ends_its_run_and_the_rest_is_destroyed() {
    let w = reading();
    let (test, _fifo) = until_it_reads(&w);
    signal(&ids(&w, "provider local"), "KILL");
    let test = test.ends();
    let (status, text) = (test.status, test.all());
    assert_eq!(status, 1, "{text}");
    for line in [
        "run \"two\"... fail",
        "signal",
        "run \"three\"... skip",
        "tearing down",
        "Failure! 1 passed, 1 failed, 1 skipped.",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("left the following"), "{text}");
    assert_eq!(left_files(&w), [""; 0]);
    no_orphans(&w);
}

#[test]
fn a_provider_that_hangs_is_ended_by_two_interrupts() {
    let w = reading();
    let (mut test, _fifo) = until_it_reads(&w);
    signal(&ids(&w, "provider local"), "STOP");
    let began = Instant::now();
    crate::interrupt(&mut test);
    test.signal(Signal::SIGINT);
    let test = test.ends();
    let (status, text) = (test.status, test.all());
    assert_eq!(status, 1, "{text}");
    assert!(began.elapsed().as_secs() < 25, "{:?}", began.elapsed());
    assert!(text.contains("Test interrupted"), "{text}");
    assert_eq!(left_files(&w), ["errored_test.main.tftest.hcl.tfstate"], "{text}");
    assert_eq!(objects(&w, "errored_test.main.tftest.hcl.tfstate"), ["made"]);
    no_orphans(&w);
}
