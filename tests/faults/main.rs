//! Faults of the environment. Each has a clear message and the right exit status, and changes no file that it should not change.
//!
//! - [`actions`]: actions that are stopped.
//! - [`configuration`], [`arguments`]: mistakes in configurations and on the command line.
//! - [`states`], [`plans`]: files that are damaged, locked or from another program.
//! - [`encryption`]: encrypted states and plans.
//! - [`formatting`]: files that `fmt` rewrites.
//! - [`writing`]: output that cannot be written.
//! - [`plugins`], [`processes`]: plugins that misbehave at their start or later, and readers that close their pipe.
//! - [`interrupts`]: interrupts, graceful or not.
//! - [`kills`], [`crashes`]: `kill -9`, and the report of the next command.
//! - [`machine`]: unusual machines. [`clock`]: a wrong clock.
//! - [`prompts`]: questions on the terminal.
//! - [`injected`]: errors and kills at every write.
//! - [`suites`]: test suites that are stopped, or leave objects behind.
//! - [`panics`]: bugs of Monoform.
//! - [`secrets`]: files and output that may contain secrets.

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

mod actions;
mod arguments;
mod clock;
mod configuration;
mod crashes;
mod encryption;
mod formatting;
mod injected;
mod interrupts;
mod json_syntax;
mod kills;
mod machine;
mod panics;
mod plans;
mod plugins;
mod processes;
mod prompts;
mod secrets;
mod states;
mod suites;
mod writing;

use std::collections::BTreeMap;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use support::running::{Running, until};
use support::{Ran, Workspace};

/// Returns the files of a workspace by name, with their contents.
fn files(w: &Workspace) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(dir: &Path, out: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in std::fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, out);
            } else {
                out.insert(path.clone(), std::fs::read(&path).expect("a file"));
            }
        }
    }
    let mut out = BTreeMap::new();
    walk(&w.dir(), &mut out);
    out
}

/// Runs a command that must fail with these texts, and change no file.
#[track_caller]
fn refused(w: &Workspace, args: &[&str], texts: &[&str]) -> Ran {
    let before = files(w);
    let ran = w.run(args).fails_with(texts);
    let after = files(w);
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after), "{args:?} changed which files there are");
    assert!(before == after, "{args:?} changed a file");
    ran
}

/// Returns the command lines of all processes that were started in a workspace. They are recognized by the workspace's home directory in
/// their environment.
fn processes(w: &Workspace) -> Vec<String> {
    numbered_processes(w).into_iter().map(|(_, line)| line).collect()
}

/// Returns the IDs and command lines of the processes of a workspace.
fn numbered_processes(w: &Workspace) -> Vec<(u32, String)> {
    let mark = format!("HOME={}", w.home().display()).into_bytes();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let of = |path: PathBuf| {
        let environment = std::fs::read(path.join("environ")).ok()?;
        environment.split(|b| *b == 0).any(|v| v == mark).then_some(())?;
        let line = std::fs::read(path.join("cmdline")).ok()?;
        // A zombie process has no command line.
        let id = path.file_name()?.to_str()?.parse().ok()?;
        (!line.is_empty()).then(|| (id, String::from_utf8_lossy(&line).replace('\0', " ")))
    };
    entries.filter_map(Result::ok).filter_map(|e| of(e.path())).collect()
}

/// Fails the test unless all processes of a workspace end soon.
#[track_caller]
fn no_orphans(w: &Workspace) {
    let began = Instant::now();
    loop {
        let left = processes(w);
        if left.is_empty() {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "left behind: {left:#?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn start(w: &Workspace, args: &[&str]) -> Running {
    Running::monoform(w, args)
}

/// Interrupts a command and waits for its message. Without the wait, two signals in a row may count as one.
#[track_caller]
fn interrupt(run: &mut Running) {
    run.signal(Signal::SIGINT);
    run.sees("Interrupt received.");
}

/// Opens a FIFO for writing as soon as a program reads it. The reader waits until something is written, or the file is closed.
#[track_caller]
fn open_when_read(fifo: &Path) -> std::fs::File {
    let mut opened = None;
    until("a program reads the pipe", || {
        // Opening a FIFO for writing fails until it has a reader.
        let mut options = std::fs::OpenOptions::new();
        opened = options.write(true).custom_flags(nix::libc::O_NONBLOCK).open(fifo).ok();
        opened.is_some()
    });
    opened.expect("it is open")
}

/// Writes a script into the plugin directory of a workspace's user.
fn script_plugin(w: &Workspace, name: &str, script: &str) -> PathBuf {
    let dir = w.home().join(".terraform.d/plugins");
    std::fs::create_dir_all(&dir).expect("a directory");
    let path = dir.join(format!("terraform-provider-{name}_v1.0.0"));
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    path
}

/// Configuration of a resource whose creation makes a file `started` and waits for a file `go`.
const WAITING: &str = r#"
resource "terraform_data" "before" {
  input = "done before"
}

resource "terraform_data" "waiting" {
  depends_on = [terraform_data.before]
  provisioner "local-exec" {
    command = "touch started; while [ ! -e go ]; do sleep 0.05; done; echo went on"
  }
}

resource "terraform_data" "after" {
  input = terraform_data.waiting.id
}
"#;
