//! A wrong clock: long past, or jumping forward and back while a command runs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use support::running::Running;
use support::{Ran, Workspace, monoform, needs};

use crate::{WAITING, no_orphans, start, until};

/// Replacement of the functions that return the time of day, with an offset.
const SHIM: &str = r"
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static _Atomic unsigned calls;
static long shift(void) {
  const char *clock = getenv(CLOCK);
  if (clock && !strcmp(clock, JUMPING)) {
    /* Forward by years, back, and into the past. */
    switch (calls++ % 4) {
    case 0: return 300000000L;
    case 1: return 0;
    case 2: return -300000000L;
    default: return 7200;
    }
  }
  return clock ? atol(clock) : 0;
}
int clock_gettime(clockid_t clock, struct timespec *t) {
  int result = syscall(SYS_clock_gettime, clock, t);
  if (clock == CLOCK_REALTIME) t->tv_sec += shift();
  return result;
}
int gettimeofday(struct timeval *t, void *zone) {
  int result = syscall(SYS_gettimeofday, t, zone);
  t->tv_sec += shift();
  return result;
}
";

/// Environment variable with the offset of the replaced functions: seconds, or [`JUMPING`].
const CLOCK: &str = "CLOCK_OF_THE_TEST";
/// Value of [`CLOCK`] for a clock that jumps forward and back.
const JUMPING: &str = "jumping";

/// Builds the library that replaces the clock; without a C compiler the test is skipped by name.
fn library(w: &Workspace, test: &str) -> Option<PathBuf> {
    needs("cc", test)?;
    let (source, library) = (w.home().join("clock.c"), w.home().join("clock.so"));
    fs::write(&source, SHIM).expect("a file");
    let mut cc = Command::new("cc");
    cc.arg(format!("-DCLOCK=\"{CLOCK}\""))
        .arg(format!("-DJUMPING=\"{JUMPING}\""));
    let built = cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(built.expect("cc starts").success());
    Some(library)
}

/// Returns a command with another clock, for the program and its plugins.
fn with_clock(w: &Workspace, library: &PathBuf, clock: &str, args: &[&str]) -> Command {
    let mut command = w.command(monoform());
    command.args(args).env("LD_PRELOAD", library).env(CLOCK, clock);
    command
}

fn run(w: &Workspace, library: &PathBuf, clock: &str, args: &[&str]) -> Ran {
    Running::start(&mut with_clock(w, library, clock, args)).ends()
}

#[test]
fn a_clock_before_1970_is_an_error_and_no_crash() {
    let w = Workspace::with(&[("main.tf", WAITING), ("go", "")]);
    let Some(library) = library(&w, "a_clock_before_1970_is_an_error_and_no_crash") else {
        return;
    };
    for args in [
        &["plan", "-no-color"][..],
        &["apply", "-no-color", "-auto-approve"],
        &["validate", "-no-color"],
    ] {
        let ran = run(&w, &library, "-3000000000", args);
        assert!(!ran.all().contains("CRASH"), "{}", ran.all());
        ran.fails_with(&["Invalid system clock", "before 1970"]);
    }
    run(&w, &library, "-3000000000", &["version"]).ok();
}

#[test]
fn a_clock_that_jumps_changes_neither_results_nor_how_long_anything_waits() {
    let w = Workspace::with(&[(
        "main.tf",
        r#"
resource "terraform_data" "many" {
  count = 50
  input = count.index
}

resource "time_sleep" "second" {
  create_duration = "1s"
  triggers        = { all = join(",", terraform_data.many[*].output) }
}

resource "terraform_data" "last" {
  input = time_sleep.second.triggers.all
  provisioner "local-exec" {
    command = "echo once >> ran"
  }
}
"#,
    )]);
    let test = "a_clock_that_jumps_changes_neither_results_nor_how_long_anything_waits";
    let Some(library) = library(&w, test) else { return };
    let began = Instant::now();
    run(&w, &library, JUMPING, &["apply", "-no-color", "-auto-approve"])
        .ok()
        .shows(&["Apply complete! Resources: 52 added"]);
    assert!(began.elapsed() >= Duration::from_secs(1), "the sleep was cut short");
    assert_eq!(w.read("ran"), "once\n");
    w.run(&["plan", "-no-color", "-detailed-exitcode"])
        .ok()
        .shows(&["No changes"]);
    run(&w, &library, JUMPING, &["destroy", "-no-color", "-auto-approve"])
        .ok()
        .shows(&["52 destroyed"]);
    no_orphans(&w);
}

/// Starts an apply that holds the state lock until it is killed or released.
fn holder(w: &Workspace, library: &PathBuf, clock: &str) -> Running {
    let run = Running::start(&mut with_clock(
        w,
        library,
        clock,
        &["apply", "-no-color", "-auto-approve"],
    ));
    until("the provisioner runs", || w.exists("started"));
    run
}

#[test]
fn lock_timeout_does_not_depend_on_the_clock() {
    let test = "lock_timeout_does_not_depend_on_the_clock";
    let w = Workspace::with(&[("main.tf", WAITING)]);
    let Some(library) = library(&w, test) else { return };
    let holder = start(&w, &["apply", "-no-color", "-auto-approve"]);
    until("the provisioner runs", || w.exists("started"));
    let began = Instant::now();
    run(&w, &library, JUMPING, &["plan", "-no-color", "-lock-timeout=2s"])
        .fails_with(&["Error acquiring the state lock"]);
    let waited = began.elapsed();
    assert!(waited >= Duration::from_secs(2), "{waited:?}");
    w.write("go", "");
    holder.ends().ok();
}

#[test]
fn a_journal_and_a_lock_from_the_future_are_recovered_like_others() {
    let test = "a_journal_and_a_lock_from_the_future_are_recovered_like_others";
    for clock in ["300000000", "-300000000", JUMPING] {
        let w = Workspace::with(&[("main.tf", WAITING)]);
        let Some(library) = library(&w, test) else { return };
        let killed = holder(&w, &library, clock);
        killed.signal(Signal::SIGKILL);
        killed.ends();
        w.write("go", "");
        no_orphans(&w);
        let listed = w.run(&["state", "list"]).ok();
        assert_eq!(listed.stdout.lines().count(), 2, "{clock}: {}", listed.all());
        w.run(&["apply", "-no-color", "-auto-approve"]).ok().shows(&[
            "provision terraform_data.waiting with local-exec, since ",
            "2 added, 0 changed, 1 destroyed",
        ]);
        w.run(&["plan", "-no-color", "-detailed-exitcode"]).ok();
    }
}
