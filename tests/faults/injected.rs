//! Errors and kills at every write of a file: `strace` makes one system call after the other fail, or ends the program at that call. In all
//! cases the existing objects are known afterwards, and the message names the remedy.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use support::crash::{self, CrashTest};
use support::disk::traceable;
use support::running::Running;
use support::{Ran, Workspace, monoform, ran};

use crate::no_orphans;

/// System calls that bring a state and its journal to the disk.
const CALLS: &[&str] = &["fdatasync", "fsync", "rename", "ftruncate", "unlink", "fallocate"];

/// Runs a command with a fault at one system call. `when` counts the calls of each thread separately. Returns the
/// result, and true if the fault has happened.
fn injected(w: &Workspace, call: &str, what: &str, when: usize, paths: &[PathBuf], args: &[&str]) -> (Ran, bool) {
    let trace = w.home().join("trace");
    let mut command = w.command("strace");
    command.arg("-f").arg("-o").arg(&trace);
    command.args([
        "-e",
        &format!("trace={call}"),
        "-e",
        &format!("inject={call}:{what}:when={when}"),
    ]);
    for path in paths {
        command.arg("-P").arg(path);
    }
    let ran = ran(command.arg(monoform()).args(args).output().expect("strace starts"));
    let log = std::fs::read_to_string(&trace).unwrap_or_default();
    let happened = log.contains("(INJECTED)") || log.contains("+++ killed by SIGKILL +++");
    (ran, happened)
}

fn crash_test(w: &Workspace) -> CrashTest<'_> {
    CrashTest {
        workspace: w,
        program: monoform().into(),
        objects: 4,
        window: 1,
        plans_repeat_reports: false,
    }
}

const VARIABLES: [&str; 2] = ["-var=objects=4", "-var=version_of_all=1"];

/// Returns the paths of the files that hold a state or its changes, with links resolved, for `strace`.
fn files_of(w: &Workspace) -> Vec<PathBuf> {
    let dir = w.dir().canonicalize().expect("a directory");
    [
        "terraform.tfstate",
        ".terraform.tfstate.journal",
        "terraform.tfstate.backup",
    ]
    .iter()
    .map(|name| dir.join(name))
    .collect()
}

/// Fails the test if a run with a fault leaves an object that is not known.
fn nothing_is_lost(w: &Workspace, ran: &Ran, what: &str) {
    w.write("log", &ran.all());
    let outcome = crash_test(w).compare(1, 4);
    // If the state could not be written, its objects are in the rescue file.
    let rescued: BTreeSet<String> = match w.exists("errored.tfstate") {
        true => crash::files_in(&w.read("errored.tfstate")),
        false => BTreeSet::new(),
    };
    let lost: Vec<_> = outcome.lost.iter().filter(|name| !rescued.contains(*name)).collect();
    assert!(
        lost.is_empty(),
        "{what}: lost {lost:?}, named {:?}\n{}",
        outcome.named,
        outcome.text
    );
}

#[test]
fn an_error_at_any_write_loses_nothing_and_names_the_way_out() {
    const TEST: &str = "an_error_at_any_write_loses_nothing_and_names_the_way_out";
    if !traceable(TEST) {
        return;
    }
    let mut injections = 0;
    for error in ["EIO", "ENOSPC"] {
        for call in CALLS.iter().chain(&["write"]) {
            for when in 1.. {
                let w = Workspace::with(&[("main.tf", crash::CONFIG)]);
                let mut args = vec!["apply", "-no-color", "-auto-approve"];
                args.extend(VARIABLES);
                // Only writes to files fail, because the program also writes to pipes and sockets.
                let paths = if *call == "write" { files_of(&w) } else { Vec::new() };
                let (ran, happened) = injected(&w, call, &format!("error={error}"), when, &paths, &args);
                if !happened {
                    break;
                }
                injections += 1;
                let what = format!("{error} at {call} {when}");
                assert!(!ran.all().contains("CRASH"), "{what}: {}", ran.all());
                no_orphans(&w);
                if ran.status != 0 {
                    let told = ran.stderr.contains("Error: ");
                    assert!(told, "{what}: {}", ran.all());
                }
                nothing_is_lost(&w, &ran, &what);
                // The next apply completes the work.
                let mut args = vec!["apply", "-no-color", "-auto-approve"];
                args.extend(VARIABLES);
                w.run(&args).ok();
                if when >= 12 {
                    break;
                }
            }
        }
    }
    assert!(injections > 20, "{injections}");
    eprintln!("{injections} errors injected");
}

#[test]
fn killed_at_any_write_an_apply_loses_nothing() {
    const TEST: &str = "killed_at_any_write_an_apply_loses_nothing";
    if !traceable(TEST) {
        return;
    }
    let mut kills = 0;
    for call in CALLS {
        for when in 1..12 {
            let w = Workspace::with(&[("main.tf", crash::CONFIG)]);
            let mut args = vec!["apply", "-no-color", "-auto-approve"];
            args.extend(VARIABLES);
            let (ran, happened) = injected(&w, call, "signal=KILL", when, &[], &args);
            if !happened {
                break;
            }
            kills += 1;
            no_orphans(&w);
            nothing_is_lost(&w, &ran, &format!("killed at {call} {when}"));
        }
    }
    assert!(kills > 10, "{kills}");
    eprintln!("{kills} kills");
}

/// Returns the addresses that `state list` prints with these flags.
fn addresses(w: &Workspace, flag: &[&str]) -> BTreeSet<String> {
    let mut args = vec!["state", "list"];
    args.extend(flag);
    w.run(&args).stdout.lines().map(str::to_owned).collect()
}

/// A command that changes a state with the objects `a` and `b`.
struct Edit {
    args: &'static [&'static str],
    /// Addresses after the command.
    after: &'static [&'static str],
}

const EDITS: &[Edit] = &[
    Edit {
        args: &["state", "mv", "terraform_data.a", "terraform_data.c"],
        after: &["terraform_data.b", "terraform_data.c"],
    },
    Edit {
        args: &["state", "rm", "terraform_data.a"],
        after: &["terraform_data.b"],
    },
    Edit {
        args: &["taint", "terraform_data.a"],
        after: &["terraform_data.a", "terraform_data.b"],
    },
    Edit {
        args: &[
            "state",
            "replace-provider",
            "-auto-approve",
            "terraform.io/builtin/terraform",
            "example.com/other/terraform",
        ],
        after: &["terraform_data.a", "terraform_data.b"],
    },
    Edit {
        args: &["state", "push", "-force", "pushed.tfstate"],
        after: &["terraform_data.a", "terraform_data.b"],
    },
];

#[test]
fn killed_at_any_write_a_command_on_the_state_leaves_the_old_or_the_new_one() {
    const TEST: &str = "killed_at_any_write_a_command_on_the_state_leaves_the_old_or_the_new_one";
    if !traceable(TEST) {
        return;
    }
    let first = Workspace::with(&[(
        "main.tf",
        "resource \"terraform_data\" \"a\" {}\nresource \"terraform_data\" \"b\" {}\n",
    )]);
    first.run(&["apply", "-no-color", "-auto-approve"]).ok();
    let text = first.read("terraform.tfstate");
    let before = addresses(&first, &[]);
    let mut kills = 0;
    for edit in EDITS {
        let after: BTreeSet<String> = edit.after.iter().map(|a| (*a).to_owned()).collect();
        for call in CALLS {
            for when in 1..10 {
                let w = Workspace::with(&[("terraform.tfstate", &text), ("pushed.tfstate", &text)]);
                let (ran, happened) = injected(&w, call, "signal=KILL", when, &[], edit.args);
                if !happened {
                    break;
                }
                kills += 1;
                let what = format!("{:?} killed at {call} {when}: {}", edit.args, ran.all());
                let seen = addresses(&w, &[]);
                assert!(seen == before || seen == after, "{seen:?}, {what}");
                // The next command that changes the state continues from one of the two snapshots.
                w.run(&["state", "rm", "-dry-run", "terraform_data.b"]).ok();
                let seen = addresses(&w, &[]);
                assert!(seen == before || seen == after, "{seen:?}, {what}");
                assert!(!w.exists(".terraform.tfstate.journal"), "{what}");
            }
        }
    }
    assert!(kills > 10, "{kills}");
    eprintln!("{kills} kills");
}

#[test]
fn killed_at_any_write_a_move_between_two_states_leaves_the_object_in_one_of_them() {
    const TEST: &str = "killed_at_any_write_a_move_between_two_states_leaves_the_object_in_one_of_them";
    if !traceable(TEST) {
        return;
    }
    let first = Workspace::with(&[("main.tf", "resource \"terraform_data\" \"a\" {}\n")]);
    first.run(&["apply", "-no-color", "-auto-approve"]).ok();
    let text = first.read("terraform.tfstate");
    for call in CALLS {
        for when in 1..16 {
            let w = Workspace::with(&[("terraform.tfstate", &text)]);
            let args = [
                "state",
                "mv",
                "-state-out=other.tfstate",
                "terraform_data.a",
                "terraform_data.a",
            ];
            let (ran, happened) = injected(&w, call, "signal=KILL", when, &[], &args);
            if !happened {
                break;
            }
            let (here, there) = (addresses(&w, &[]), addresses(&w, &["-state=other.tfstate"]));
            assert!(
                here.contains("terraform_data.a") || there.contains("terraform_data.a"),
                "killed at {call} {when}: {}",
                ran.all()
            );
        }
    }
}

#[test]
fn an_import_that_is_killed_is_named_or_done() {
    const TEST: &str = "an_import_that_is_killed_is_named_or_done";
    if !traceable(TEST) {
        return;
    }
    let config = "terraform {\n  required_providers {\n    random = { source = \"hashicorp/random\" }\n  }\n}\nresource \
                  \"random_integer\" \"i\" {\n  min = 1\n  max = 9\n}\n";
    let mut named = 0;
    for call in CALLS {
        for when in 1..10 {
            let w = Workspace::with(&[("main.tf", config)]);
            let args = ["import", "-no-color", "random_integer.i", "5,1,9"];
            let (_, happened) = injected(&w, call, "signal=KILL", when, &[], &args);
            if !happened {
                break;
            }
            no_orphans(&w);
            let next = w.run(&["plan", "-no-color", "-refresh=false"]).ok();
            let told = next.all().contains("import random_integer.i with ");
            named += usize::from(told);
            if addresses(&w, &[]).is_empty() && !told {
                // The operation had not begun, so it has left no trace on the disk.
                assert!(!next.all().contains("earlier run"), "{}", next.all());
            }
            let again = w.run(&args);
            assert!(
                again.status == 0 || again.stderr.contains("Resource already managed"),
                "{}",
                again.all()
            );
        }
    }
    assert!(named > 0, "none was named");
}

#[test]
fn what_was_written_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let w = Workspace::with(&[("main.tf", crate::WAITING)]);
    let mut command = w.command("sh");
    command.args([
        "-c",
        "umask 000; exec \"$0\" \"$@\"",
        monoform(),
        "apply",
        "-no-color",
        "-auto-approve",
    ]);
    let apply = Running::start(&mut command);
    crate::until("the provisioner runs", || {
        w.exists("started") && w.exists("terraform.tfstate")
    });
    let mode = |name: &str| {
        let metadata = std::fs::metadata(w.dir().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        metadata.permissions().mode() & 0o777
    };
    for name in ["terraform.tfstate", ".terraform.tfstate.journal"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    w.write("go", "");
    apply.ends().ok();
    let run = |args: &str| {
        let mut command = w.command("sh");
        command.args(["-c", &format!("umask 000; exec \"$0\" {args}"), monoform()]);
        ran(command.output().expect("sh starts")).ok()
    };
    run("apply -no-color -auto-approve -replace=terraform_data.before");
    run("plan -no-color -out=the.plan");
    run("state rm terraform_data.before");
    for entry in std::fs::read_dir(w.dir()).expect("a directory") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_string_lossy();
        let secret = name.contains("tfstate") || Path::new(&*name).extension().is_some_and(|e| e == "plan");
        if secret {
            assert_eq!(mode(&name), 0o600, "{name}");
        }
    }
}
