//! Unusual machines: long paths of temporary directories, few threads or processes, and leftovers of earlier runs.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::{WAITING, no_orphans, start, until};
use support::running::Running;
use support::{Workspace, monoform, needs, ran};

/// Returns the files and directories that are named like temporary ones of Monoform.
fn temporary(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .expect("a directory")
        .map(|e| e.expect("an entry").path());
    entries
        .filter(|p| {
            p.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with(".monoform-"))
        })
        .collect()
}

#[test]
fn socket_directories_are_private_whatever_the_umask() {
    for umask in ["000", "022", "377"] {
        let w = Workspace::with(&[("main.tf", WAITING)]);
        let mut command = w.command("sh");
        let script = format!("umask {umask}; exec \"$0\" \"$@\"");
        command.args(["-c", &script, monoform(), "apply", "-no-color", "-auto-approve"]);
        let apply = Running::start(&mut command);
        let root = w.dir().parent().expect("a parent").to_owned();
        until("the provisioner runs", || w.exists("started"));
        let dirs = temporary(&root);
        assert!(!dirs.is_empty());
        for dir in dirs {
            let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
            assert_eq!(mode(&dir), 0o700, "{umask}");
            for inner in fs::read_dir(&dir).expect("a directory") {
                assert_eq!(mode(&inner.expect("an entry").path()), 0o700, "{umask}");
            }
        }
        w.write("go", "");
        apply.ends().ok();
        assert!(temporary(&root).is_empty());
    }
}

#[test]
fn a_directory_for_temporary_files_with_a_long_path() {
    let w = Workspace::with(&[("main.tf", "resource \"terraform_data\" \"a\" {\n  input = \"x\"\n}\n")]);
    let long = w.home().join("long".repeat(30)).join("path".repeat(30));
    fs::create_dir_all(&long).expect("a directory");
    let w = w.env("TMPDIR", long.to_str().expect("text"));
    w.run(&["apply", "-no-color", "-auto-approve"]).ok();
    assert_eq!(fs::read_dir(&long).expect("a directory").count(), 0);
}

#[test]
fn leftovers_of_a_killed_run_are_swept_by_the_next() {
    let w = Workspace::with(&[("main.tf", "resource \"terraform_data\" \"a\" {\n  input = \"x\"\n}\n")]);
    let root = w.dir().parent().expect("a parent").to_owned();
    let sockets = root.join(".monoform-dead01.tmp");
    fs::create_dir(&sockets).expect("a directory");
    fs::write(sockets.join("socket"), "").expect("a file");
    let state = w.dir().join(".monoform-dead02.tmp");
    fs::write(&state, "{}").expect("a file");
    // This temporary file is in use, so it must not be removed.
    let used = w.dir().join(".monoform-used01.tmp");
    fs::write(&used, "{}").expect("a file");
    let holder = File::open(&used).expect("a file");
    holder.lock().expect("a lock");
    for path in [&sockets, &state, &used] {
        let old = SystemTime::now() - Duration::from_secs(3600);
        File::open(path).expect("it").set_modified(old).expect("its time");
    }
    w.run(&["apply", "-no-color", "-auto-approve"]).ok();
    assert!(!sockets.exists() && !state.exists());
    assert!(used.exists());
}

#[test]
fn a_pipe_in_place_of_the_lock_information() {
    let w = Workspace::with(&[("main.tf", WAITING)]);
    let info = w.dir().join(".terraform.tfstate.lock.info");
    assert!(Command::new("mkfifo").arg(&info).status().expect("mkfifo").success());
    for args in [
        &["plan", "-no-color"][..],
        &["force-unlock", "-force", "6638d6ee-0b2f-4e0e-8a9b-2e1f5f0c7b4a"],
    ] {
        let ran = start(&w, args).ends();
        assert_eq!(ran.status, 1, "{}", ran.all());
    }
    start(&w, &["plan", "-no-color"])
        .ends()
        .fails_with(&["not a regular file", ".terraform.tfstate.lock.info"]);
    no_orphans(&w);
}

#[test]
fn fewer_threads_than_wanted_are_an_error_and_no_crash() {
    let name = "fewer_threads_than_wanted_are_an_error_and_no_crash";
    let root = Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout == b"0\n");
    if !root {
        support::skip(name, "root", "is not the user");
        return;
    }
    if needs("setpriv", name).is_none() || needs("prlimit", name).is_none() {
        return;
    }
    let w = Workspace::with(&[("main.tf", "resource \"terraform_data\" \"a\" {\n  input = \"x\"\n}\n")]);
    for dir in [w.dir(), w.home(), w.dir().parent().expect("a parent").to_owned()] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).expect("permissions");
    }
    // The executable is copied to a place where this user can read it.
    let executable = w.home().join("monoform");
    fs::hard_link(monoform(), &executable)
        .or_else(|_| fs::copy(monoform(), &executable).map(drop))
        .expect("a copy");
    let (mut worked, mut refused) = (0, 0);
    for limit in [1, 2, 3, 4, 6, 8, 10, 14, 20, 30, 60, 200] {
        let mut command = w.command("setpriv");
        // The limit is by user, so this user has no other processes.
        command.args(["--reuid=61517", "--regid=61517", "--clear-groups", "prlimit"]);
        command.arg(format!("--nproc={limit}")).arg(&executable);
        let ran = ran(command.args(["plan", "-no-color"]).output().expect("it starts"));
        // A plugin that cannot start a thread panics. Its last lines are quoted, with the limit as the cause.
        let named = ran.stderr.contains("ulimit -u");
        assert!(
            !ran.stderr.contains("CRASH") && (named || !ran.stderr.contains("panicked")),
            "{limit}: {}",
            ran.all()
        );
        match ran.status {
            0 => worked += 1,
            1 => {
                assert!(ran.stderr.contains("Error: "), "{limit}: {}", ran.all());
                refused += 1;
            }
            _ => panic!("{limit}: {}", ran.all()),
        }
    }
    assert!(worked > 0 && refused > 0, "{worked} worked, {refused} refused");
}

/// The limit does not apply to root, and counts all other processes of a user, so the command runs as a user without
/// any.
#[test]
fn a_low_limit_of_processes_is_named() {
    const TEST: &str = "a_low_limit_of_processes_is_named";
    let (Some(setpriv), Some(_)) = (needs("setpriv", TEST), needs("bash", TEST)) else {
        return;
    };
    if !rustix::process::geteuid().is_root() {
        return support::skip(TEST, "root", "is needed to run a command as another user");
    }
    let user = 60_000 + std::process::id() % 5_000;
    let w = Workspace::with(&[("main.tf", "resource \"terraform_data\" \"a\" {}\n")]);
    let own = w.dir().join("monoform");
    fs::copy(support::lean(), &own).expect("a copy");
    let root = w.dir().parent().expect("a parent").to_owned();
    for dir in [&root, &w.dir(), &w.home()] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).expect("permissions");
    }
    for limit in [4, 15] {
        let script = format!("ulimit -u {limit}; exec ./monoform apply -no-color -auto-approve");
        let id = [format!("--reuid={user}"), format!("--regid={user}")];
        let mut command = w.command(&setpriv);
        command.args(id).args(["--clear-groups", "bash", "-c", &script]);
        let ran = ran(command.output().expect("it starts"));
        assert!(
            ran.status == 1 && ran.stderr.contains("\"ulimit -u\""),
            "{limit}\n{}",
            ran.all()
        );
        assert!(!ran.stderr.contains("CRASH"), "{limit}\n{}", ran.all());
    }
}
