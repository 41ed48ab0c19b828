//! Bugs of Monoform: the state is saved, a report without values is written, and the exit status is that of a bug.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use support::running::Running;
use support::{Workspace, monoform, needs};

use crate::{no_orphans, until};

/// Library that makes one request of the core for random bytes fail if a file `panic` exists. The request then panics.
const NO_RANDOM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <stdio.h>
#include <unistd.h>
static int plugin = -1;
ssize_t getrandom(void *buffer, size_t length, unsigned flags) {
  if (plugin < 0) {
    char line[4096];
    FILE *f = fopen("/proc/self/cmdline", "r");
    size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
    if (f) fclose(f);
    line[n] = 0;
    plugin = memmem(line, n, "internal-plugin", 15) != NULL;
  }
  if (!plugin && unlink("panic") == 0) { errno = EIO; return -1; }
  return syscall(SYS_getrandom, buffer, length, flags);
}
"#;

/// Configuration with a random number that is computed after the provisioner.
const RANDOM: &str = r#"
variable "planted" {
  default = "planted-secret-4711"
}

resource "terraform_data" "random" {
  input = "${terraform_data.waiting.id} ${uuid()} ${var.planted}"
}
"#;

#[test]
fn a_panic_saves_the_state_and_writes_a_report_without_values() {
    const TEST: &str = "a_panic_saves_the_state_and_writes_a_report_without_values";
    if needs("cc", TEST).is_none() {
        return;
    }
    let w =
        Workspace::with(&[("main.tf", crate::WAITING), ("random.tf", RANDOM)]).env("TF_STATE_PERSIST_INTERVAL", "1000");
    let (source, library) = (w.home().join("random.c"), w.home().join("random.so"));
    std::fs::write(&source, NO_RANDOM).expect("a file");
    let mut cc = w.command("cc");
    let built = cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(built.expect("cc starts").success());
    let mut command = w.command(monoform());
    command
        .args(["apply", "-no-color", "-auto-approve"])
        .env("LD_PRELOAD", &library);
    let apply = Running::start(&mut command);
    until("the provisioner runs", || w.exists("started"));
    w.write("panic", "");
    w.write("go", "");
    let apply = apply.ends();
    assert_eq!(apply.status, 11, "{}", apply.all());
    assert!(apply.stderr.contains("MONOFORM CRASH"), "{}", apply.all());
    no_orphans(&w);

    // Completed operations are saved, and the lock is released.
    assert!(w.read("terraform.tfstate").contains("done before"), "{}", apply.all());
    assert!(!w.exists(".terraform.tfstate.lock.info"));

    let reports: Vec<PathBuf> = crate::files(&w)
        .into_keys()
        .filter(|path| {
            path.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with("monoform-crash-"))
        })
        .collect();
    let [report] = &reports[..] else {
        panic!("one report: {reports:?}\n{}", apply.all())
    };
    assert!(
        apply
            .stderr
            .contains(&*report.file_name().expect("a name").to_string_lossy())
    );
    let mode = std::fs::metadata(report).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = std::fs::read_to_string(report).expect("text");
    for part in ["Monoform ", "command: apply", "place: ", "rng.rs"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    for secret in ["planted-secret-4711", "done before"] {
        assert!(
            !text.contains(secret) && !apply.stderr.contains(secret),
            "{secret}\n{text}"
        );
    }
    // The next run completes the work.
    w.run(&["apply", "-no-color", "-auto-approve"]).ok();
}
