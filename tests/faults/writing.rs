//! Faults of outputs: full devices, closed pipes, and pipes and devices that are named as files.

use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::start;
use support::{Workspace, monoform, ran};

const CONFIG: &str = r#"
terraform {
  required_providers {
    random = { source = "hashicorp/random" }
  }
}

resource "terraform_data" "a" {
  input = "x"
}

output "o" {
  value = "1"
}
"#;

fn applied() -> Workspace {
    let w = Workspace::with(&[("main.tf", CONFIG)]);
    w.run(&["apply", "-no-color", "-auto-approve"]).ok();
    w.run(&["plan", "-no-color", "-destroy", "-out=the.plan"]).ok();
    w
}

/// Commands that print a result.
const PRINTING: &[&[&str]] = &[
    &["-help"],
    &["apply", "-help"],
    &["version"],
    &["version", "-json"],
    &["state", "pull"],
    &["state", "list"],
    &["state", "show", "-no-color", "terraform_data.a"],
    &["show", "-no-color"],
    &["show", "-json"],
    &["show", "-json", "the.plan"],
    &["plan", "-no-color"],
    &["plan", "-json"],
    &["plan", "-no-color", "-destroy", "-detailed-exitcode"],
    &["output"],
    &["output", "-json"],
    &["output", "-raw", "o"],
    &["providers"],
    &["providers", "schema", "-json"],
    &["metadata", "functions", "-json"],
    &["validate", "-no-color"],
    &["validate", "-json"],
    &["workspace", "list"],
    &["workspace", "show"],
    &["fmt", "-"],
    &["console"],
    &["apply", "-no-color", "-auto-approve"],
    &["apply", "-json", "-auto-approve"],
];

/// Returns a command whose standard input is an expression or, for `fmt`, a configuration of one line.
fn command(w: &Workspace, args: &[&str]) -> Command {
    let input = w.dir().join("input");
    std::fs::write(&input, "[1,2]\n").expect("a file");
    if args.first() == Some(&"fmt") {
        std::fs::write(&input, "a   = 1\n").expect("a file");
    }
    let mut command = w.command(monoform());
    command.args(args).stdin(File::open(input).expect("a file"));
    command
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let w = applied();
    for args in PRINTING {
        let full = File::options().write(true).open("/dev/full").expect("the device");
        let ran = ran(command(&w, args).stdout(full).output().expect("it starts"));
        ran.fails_with(&["Failed to write output", "no space left on device"]);
    }
}

#[test]
fn a_reader_that_has_gone_away_is_no_error_to_report() {
    let w = applied();
    for args in PRINTING {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let ran = ran(command(&w, args).stdout(writer).output().expect("it starts"));
        let expected = if args.contains(&"-detailed-exitcode") { 2 } else { 141 };
        assert_eq!(ran.status, expected, "{args:?}: {}", ran.all());
        assert!(!ran.stderr.contains("Error"), "{args:?}: {}", ran.all());
    }
    // The command completes its work nevertheless.
    w.write("main.tf", &CONFIG.replace("\"x\"", "\"y\""));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let apply = command(&w, &["apply", "-no-color", "-auto-approve"])
        .stdout(writer)
        .output();
    assert_eq!(ran(apply.expect("it starts")).status, 141);
    assert!(w.read("terraform.tfstate").contains("\"y\""));
}

fn fifo(w: &Workspace, name: &str) -> PathBuf {
    let path = w.dir().join(name);
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
    path
}

#[test]
fn output_files_that_are_pipes_are_written_into() {
    let flag = |w: &Workspace, args: &[&str], name: &str| {
        let path = fifo(w, name);
        let mut reader = Command::new("cat");
        let reader = reader.arg(&path).stdout(Stdio::piped()).spawn().expect("cat starts");
        start(w, args).ends().ok();
        let read = reader.wait_with_output().expect("its output").stdout;
        assert!(
            std::fs::metadata(&path).expect("the pipe").file_type().is_fifo(),
            "{args:?}"
        );
        read
    };
    let w = applied();
    let plan = flag(&w, &["plan", "-no-color", "-out=pipe1"], "pipe1");
    assert!(plan.starts_with(b"PK"));
    w.write("main.tf", &CONFIG.replace("\"x\"", "\"y\""));
    let before = w.read("terraform.tfstate");
    let backup = flag(&w, &["apply", "-no-color", "-auto-approve", "-backup=pipe2"], "pipe2");
    assert_eq!(String::from_utf8_lossy(&backup), before);
    w.write("main.tf", &CONFIG.replace("\"x\"", "\"z\""));
    let out = flag(
        &w,
        &["apply", "-no-color", "-auto-approve", "-state-out=pipe3"],
        "pipe3",
    );
    let state: serde_json::Value = serde_json::from_slice(&out).expect("one state");
    assert_eq!(
        state["resources"][0]["instances"][0]["attributes"]["input"]["value"],
        "z"
    );
    w.write("imports.tf", "import {\n  to = random_integer.i\n  id = \"5,1,9\"\n}\n");
    let generated = flag(&w, &["plan", "-no-color", "-generate-config-out=pipe4"], "pipe4");
    assert!(String::from_utf8_lossy(&generated).contains("resource \"random_integer\" \"i\""));
}

#[test]
fn devices_stay_devices_and_links_stay_links() {
    let w = applied();
    w.write("main.tf", &CONFIG.replace("\"x\"", "\"y\""));
    w.run(&["plan", "-no-color", "-out=/dev/null"]).ok();
    w.run(&[
        "apply",
        "-no-color",
        "-auto-approve",
        "-backup=/dev/null",
        "-state-out=/dev/null",
    ])
    .ok();
    let null = std::fs::metadata("/dev/null").expect("the device");
    assert!(null.file_type().is_char_device());
    w.run(&["plan", "-no-color", "-out=/dev/full"])
        .fails_with(&["Failed to write plan file", "/dev/full"]);

    std::fs::create_dir(w.dir().join("kept")).expect("a directory");
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, w.dir().join(name)).expect("a link");
    link("kept/a.plan", "link.plan");
    link("kept/lock.hcl", ".terraform.lock.hcl");
    link("kept/formatted.tf", "formatted.tf");
    w.write("kept/formatted.tf", "locals {\n  a   = 1\n}\n");
    w.run(&["fmt"]).ok();
    w.run(&["plan", "-no-color", "-out=link.plan"]).ok();
    for name in ["link.plan", "formatted.tf", ".terraform.lock.hcl"] {
        let path = w.dir().join(name);
        assert!(path.symlink_metadata().expect("the link").is_symlink(), "{name}");
    }
    let plan = std::fs::read(w.dir().join("kept/a.plan")).expect("the plan");
    assert!(plan.starts_with(b"PK"));
    assert_eq!(w.read("kept/formatted.tf"), "locals {\n  a = 1\n}\n");
}
