//! States that are damaged, locked by another program, or cannot be written.

use std::process::Command;

use crate::{WAITING, files, no_orphans, refused, start, until};
use support::running::Running;
use support::{Workspace, monoform, needs, ran};

fn applied() -> Workspace {
    let w = Workspace::with(&[("main.tf", "resource \"terraform_data\" \"a\" {\n  input = \"x\"\n}\n")]);
    w.run(&["apply", "-no-color", "-auto-approve"]).ok();
    w
}

#[test]
fn a_truncated_state() {
    let w = applied();
    let whole = w.read("terraform.tfstate");
    for length in [1, whole.len() / 2, whole.len() - 3] {
        w.write("terraform.tfstate", &whole[..length]);
        for command in [
            &["plan", "-no-color"][..],
            &["apply", "-no-color", "-auto-approve"],
            &["destroy", "-no-color", "-auto-approve"],
            &["state", "list"],
            &["output", "-no-color"],
            &["show", "-no-color"],
        ] {
            refused(&w, command, &["terraform.tfstate"]);
        }
        refused(
            &w,
            &["plan", "-no-color"],
            &[
                "cannot be read",
                "ends too early",
                "Nothing was changed. Restore the file",
            ],
        );
    }
    // The suggested command uses the backup, if there is one.
    w.write("terraform.tfstate", &whole);
    w.write("main.tf", "resource \"terraform_data\" \"a\" {\n  input = \"y\"\n}\n");
    w.run(&["apply", "-no-color", "-auto-approve"]).ok();
    w.write("terraform.tfstate", &whole[..whole.len() / 2]);
    refused(&w, &["plan", "-no-color"], &["terraform.tfstate.backup"]);
}

#[test]
fn stale_pending_snapshot_is_reported_and_stays() {
    let w = applied();
    let old = w.read("terraform.tfstate");
    let pending = ".terraform.tfstate.pending";
    for input in ["y", "z"] {
        w.write(
            "main.tf",
            &format!("resource \"terraform_data\" \"a\" {{\n  input = \"{input}\"\n}}\n"),
        );
        w.run(&["apply", "-no-color", "-auto-approve"]).ok();
    }
    let newest = w.read("terraform.tfstate");
    // The pending snapshot is newer as a file, but has the lower serial, so it is ignored.
    w.write(pending, &old.replace("\"x\"", "\"lost\""));
    let plan = w.run(&["plan", "-no-color", "-detailed-exitcode"]).ok();
    assert!(
        plan.stdout.contains("Warning: Pending state snapshot not used"),
        "{}",
        plan.all()
    );
    assert_eq!(w.read("terraform.tfstate"), newest);
    assert!(!w.exists(pending));
    let kept: Vec<_> = files(&w)
        .into_iter()
        .filter(|(path, text)| {
            path.extension().is_some_and(|e| e == "backup") && text.windows(6).any(|t| t == b"\"lost\"")
        })
        .collect();
    assert_eq!(kept.len(), 1);
    // A pending snapshot with a higher serial means that a write was interrupted.
    let next = newest.replace("\"z\"", "\"recovered\"");
    let serial: serde_json::Value = serde_json::from_str(&newest).expect("JSON");
    let serial = serial["serial"].as_u64().expect("a number");
    w.write(
        pending,
        &next.replace(&format!("\"serial\": {serial}"), &format!("\"serial\": {}", serial + 1)),
    );
    let plan = w.run(&["plan", "-no-color"]).ok();
    assert!(plan.stdout.contains("State recovered"), "{}", plan.all());
    assert!(w.read("terraform.tfstate").contains("recovered"));
}

#[test]
fn a_state_that_is_not_for_us() {
    let w = applied();
    let whole = w.read("terraform.tfstate");
    w.write("terraform.tfstate", &whole.replace("\"version\": 4", "\"version\": 5"));
    refused(&w, &["plan", "-no-color"], &["terraform.tfstate", "version"]);
    w.write("terraform.tfstate", &whole.replace("1.16.0", "99.0.0"));
    // The version of the program that wrote a state does not matter; the version of the format does.
    w.run(&["plan", "-no-color"]).ok().shows(&["No changes."]);
    w.write("terraform.tfstate", "[]");
    refused(&w, &["plan", "-no-color"], &["terraform.tfstate"]);
}

#[test]
fn a_lock_that_another_monoform_holds() {
    let w = Workspace::with(&[("main.tf", WAITING)]);
    let first = start(&w, &["apply", "-no-color", "-auto-approve"]);
    until("the provisioner runs", || w.exists("started"));
    for command in [
        &["plan", "-no-color"][..],
        &["apply", "-no-color", "-auto-approve"],
        &["destroy", "-no-color", "-auto-approve", "-lock-timeout=200ms"],
    ] {
        w.run(command).fails_with(&[
            "Error acquiring the state lock",
            "Lock Info:",
            "ID:",
            "Path: terraform.tfstate",
            "Operation: OperationTypeApply",
            "Who:",
            "Version: 1.16.0",
            "Created:",
        ]);
    }
    if needs("terraform", "a_lock_that_another_monoform_holds").is_some() {
        w.run_program("terraform", &["plan", "-no-color"])
            .fails_with(&["Error acquiring the state lock", "Operation: OperationTypeApply"]);
    }
    w.run(&["plan", "-no-color", "-lock=false"]).ok();
    // A waiting command gets the lock once it is free.
    let mut patient = start(&w, &["plan", "-no-color", "-lock-timeout=60s", "-detailed-exitcode"]);
    patient.sees("Acquiring state lock. This may take a few moments...");
    w.write("go", "");
    first.ends().ok();
    patient.ends().ok();
    w.run(&["plan", "-no-color", "-detailed-exitcode"]).ok();
    no_orphans(&w);
}

#[test]
fn a_lock_that_terraform_holds() {
    if needs("terraform", "a_lock_that_terraform_holds").is_none() {
        return;
    }
    let w = Workspace::with(&[("main.tf", WAITING)]);
    let mut command = w.command("terraform");
    command.args(["apply", "-no-color", "-auto-approve"]);
    let first = Running::start(&mut command);
    until("the provisioner runs", || w.exists("started"));
    w.run(&["plan", "-no-color"]).fails_with(&[
        "Error acquiring the state lock",
        "Lock Info:",
        "Operation: OperationTypeApply",
        "Version: 1.",
    ]);
    w.write("go", "");
    first.ends().ok();
    w.run(&["plan", "-no-color", "-detailed-exitcode"]).ok();
}

/// Returns a command that may not write into protected directories: root loses the capabilities that usually allow it.
/// `None` if root lacks `setpriv`, which is reported as a skipped test.
fn humble(w: &Workspace, args: &[&str]) -> Option<Command> {
    let root = Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout == b"0\n");
    if !root {
        let mut command = w.command(monoform());
        command.args(args);
        return Some(command);
    }
    let mut command = w.command(needs("setpriv", "a_directory_that_is_read_only")?);
    command
        .args([
            "--bounding-set=-dac_override,-dac_read_search",
            "--inh-caps=-all",
            monoform(),
        ])
        .args(args);
    Some(command)
}

#[test]
fn a_directory_that_is_read_only() {
    use std::os::unix::fs::PermissionsExt;
    let w = Workspace::with(&[("main.tf", "resource \"terraform_data\" \"a\" {\n  input = \"x\"\n}\n")]);
    let mode =
        |mode: u32| std::fs::set_permissions(w.dir(), std::fs::Permissions::from_mode(mode)).expect("permissions");
    mode(0o555);
    let run = |args: &[&str]| humble(&w, args).map(|mut c| ran(c.output().expect("it starts")));
    let before = files(&w);
    if let Some(apply) = run(&["apply", "-no-color", "-auto-approve"]) {
        apply.fails_with(&["terraform.tfstate", "ermission denied"]);
        assert!(before == files(&w));
        run(&["validate", "-no-color"]).expect("as before").ok();
        run(&["plan", "-no-color", "-lock=false"]).expect("as before").ok();
    }
    mode(0o755);
}

#[test]
fn a_state_that_cannot_be_saved_is_not_lost() {
    // The directory of the state is removed while the command runs.
    let config = r#"
resource "terraform_data" "a" {
  input = "precious"
  provisioner "local-exec" {
    command = "rm -rf states && touch states"
  }
}
"#;
    let w = Workspace::with(&[("main.tf", config)]);
    std::fs::create_dir(w.dir().join("states")).expect("a directory");
    w.run(&["apply", "-no-color", "-auto-approve", "-state=states/s.tfstate"])
        .fails_with(&["Failed to save state", "errored.tfstate"]);
    let saved: serde_json::Value = serde_json::from_str(&w.read("errored.tfstate")).expect("JSON");
    assert_eq!(
        saved["resources"][0]["instances"][0]["attributes"]["input"]["value"],
        "precious"
    );
    // Each later run names the rescue file, until the state has the content of that file.
    std::fs::remove_file(w.dir().join("states")).expect("a file");
    std::fs::create_dir(w.dir().join("states")).expect("a directory");
    let state = w.dir().join("states/s.tfstate");
    let named = || {
        let next = w.run(&["plan", "-no-color", "-state=states/s.tfstate"]).ok();
        let words = next
            .all()
            .replace('│', " ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        words.contains("Results of an earlier run are not in the state")
            && words.contains("left it in the file errored.tfstate")
            && words.contains("- terraform_data.a")
            && words.contains("copy that file over the state file")
    };
    assert!(named());
    std::fs::copy(w.dir().join("errored.tfstate"), &state).expect("a copy");
    assert!(!named());
    std::fs::remove_dir_all(w.dir().join("states")).expect("a directory");
    w.write("states", "");
    // A second failure keeps the rescue file of the first one.
    let first = w.read("errored.tfstate");
    std::fs::remove_file(w.dir().join("states")).expect("a file");
    std::fs::create_dir(w.dir().join("states")).expect("a directory");
    w.run(&["apply", "-no-color", "-auto-approve", "-state=states/s.tfstate"])
        .fails_with(&["Failed to save state"]);
    let kept = |(path, text): (std::path::PathBuf, Vec<u8>)| {
        path.extension().is_some_and(|e| e == "backup") && text == first.as_bytes()
    };
    assert!(files(&w).into_iter().any(kept));
}

#[test]
fn state_of_a_read_only_working_directory_is_saved_in_a_temporary_file_that_is_reported() {
    const TEST: &str = "state_of_a_read_only_working_directory_is_saved_in_a_temporary_file_that_is_reported";
    // The provisioner repeats its step, because a save during the command may create the directory again before the
    // file that blocks it exists.
    let w = Workspace::with(&[(
        "main.tf",
        "resource \"terraform_data\" \"a\" {\n  input = \"precious\"\n  provisioner \"local-exec\" {\n    command = \"while :; do rm -rf ../home/states; (set -C; : > \
         ../home/states) 2>/dev/null && break; done\"\n  }\n}\n",
    )]);
    std::fs::create_dir(w.home().join("states")).expect("a directory");
    let mount = |args: &[&str]| {
        let mut mount = Command::new("mount");
        mount.args(args).arg(w.dir());
        mount.output().is_ok_and(|o| o.status.success())
    };
    let dir = w.dir().display().to_string();
    let mounted = mount(&["--bind", &dir]) && mount(&["-o", "remount,bind,ro"]);
    let run = mounted.then(|| w.run(&["apply", "-no-color", "-auto-approve", "-state=../home/states/s.tfstate"]));
    // The directory may have been mounted even if it could not be made read-only.
    let _ = Command::new("umount").arg(w.dir()).output();
    let Some(run) = run else {
        support::skip(TEST, "mount", "a directory cannot be made read-only");
        return;
    };
    let run = run.fails_with(&[
        "Failed to save state",
        "Failed to persist state to backend",
        "copy that file over",
    ]);
    let plain: String = run.stderr.replace(['│', '\n', ' '], "");
    let place = plain
        .split('"')
        .find(|part| part.ends_with("errored.tfstate"))
        .expect("a place");
    let place = std::path::Path::new(place);
    assert!(std::fs::read_to_string(place).expect("the state").contains("precious"));
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(place).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
