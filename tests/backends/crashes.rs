//! `kill -9` during an apply with a remote state. No result is lost, because the journal in the data directory has all of them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use support::Workspace;
use support::crash::{self, Counts, CrashTest, Random};

use crate::lab::{Lab, Tool, run};
use crate::scenarios::wait_for;

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
"#;

/// Returns the journals in the data directory.
pub fn journals(w: &Workspace) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(w.dir().join(".terraform/journals")) else {
        return Vec::new();
    };
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

fn directory(lab: &Lab) -> Workspace {
    // With this interval, no state is saved before the end of the run, so only the journal has the results until then.
    let w = lab.without().env("TF_STATE_PERSIST_INTERVAL", "1000");
    w.write("main.tf", WAITING);
    w.write("backend.tf", &lab.block(""));
    run(&w, Tool::Monoform, &["init", "-input=false"]).ok();
    w
}

fn start(w: &Workspace) -> Child {
    let mut command = w.command(Tool::Monoform.path());
    let child = command
        .args(["apply", "-auto-approve", "-no-color"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    wait_for("the provisioner", || w.exists("started"));
    child
}

/// Kills an apply during a provisioner.
fn killed(w: &Workspace) {
    let mut child = start(w);
    let found = journals(w);
    let [journal] = &found[..] else {
        panic!("one journal: {found:?}")
    };
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(journal), 0o600);
    assert_eq!(mode(journal.parent().expect("a directory")), 0o700);
    crash::kill(&[child.id()]);
    child.wait().expect("it has ended");
    w.write("go", "");
}

fn test(w: &Workspace) -> CrashTest<'_> {
    CrashTest {
        workspace: w,
        program: Tool::Monoform.path().into(),
        objects: 40,
        window: 400_000,
        plans_repeat_reports: false,
    }
}

/// Completed operations are in the state that the next command saves; the operation in progress is reported, once.
pub fn recovered(lab: &Lab) {
    let w = directory(lab);
    killed(&w);
    // Read-only commands see the recovered state and change nothing.
    let listed = run(&w, Tool::Monoform, &["state", "list"]).ok();
    assert_eq!(listed.stdout.lines().count(), 2, "{}", listed.all());
    assert_eq!(journals(&w).len(), 1);
    let next = test(&w).unlocked(&["plan", "-no-color"]).ok();
    let text = next.all().replace(['│', '\n'], " ");
    for part in [
        "provision terraform_data.waiting with local-exec, since ",
        &format!("the state of the workspace \"default\" in the backend \"{}\"", lab.ty),
        "terraform_data.before",
    ] {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&text).contains(&words(part)), "{part}\n{text}");
    }
    assert!(journals(&w).is_empty());
    // After the recovery, other working directories have the recovered state, too.
    let other = lab.directory(Tool::Monoform);
    let listed = run(&other, Tool::Monoform, &["state", "list"]).ok();
    assert_eq!(listed.stdout.lines().count(), 2, "{}", listed.all());
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    assert!(journals(&w).is_empty());
    run(&w, Tool::Monoform, &["destroy", "-auto-approve"]).ok();
}

/// Another program has the state but not the journal. It replaces the object whose provisioner was interrupted, because that object is
/// tainted in every state that is saved.
pub fn replaced_by_others(lab: &Lab) {
    let w = lab.without().env("TF_STATE_PERSIST_INTERVAL", "1");
    w.write("main.tf", WAITING);
    w.write("backend.tf", &lab.block(""));
    run(&w, Tool::Monoform, &["init", "-input=false"]).ok();
    let mut child = start(&w);
    let other = lab.directory(Tool::Monoform);
    other.write("main.tf", WAITING);
    wait_for("the object in the store", || {
        let listed = run(&other, Tool::Monoform, &["state", "list"]);
        listed.stdout.contains("terraform_data.waiting")
    });
    crash::kill(&[child.id()]);
    child.wait().expect("it has ended");
    w.write("go", "");
    let planned = test(&other).unlocked(&["plan", "-no-color"]).ok();
    assert!(
        planned
            .stdout
            .contains("terraform_data.waiting is tainted, so must be replaced"),
        "{}",
        planned.all()
    );
    test(&w).unlocked(&["destroy", "-auto-approve"]).ok();
}

/// If another program has written the state since the journal was begun, the journal is set aside, and its results are reported.
pub fn set_aside(lab: &Lab) {
    let w = directory(lab);
    killed(&w);
    // A working directory without the journal writes the state.
    let other = lab.directory(Tool::Monoform);
    test(&other).unlocked(&["apply", "-no-color", "-auto-approve"]).ok();
    let before = run(&other, Tool::Monoform, &["state", "pull"]).ok().stdout;
    let next = run(&w, Tool::Monoform, &["plan"]).ok();
    let text = next.all();
    for part in ["Journal of an earlier run not used", "terraform_data.before"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(run(&other, Tool::Monoform, &["state", "pull"]).ok().stdout, before);
    let kept = journals(&w);
    assert_eq!(kept.len(), 1, "it is kept: {kept:?}");
    // The report appears once, and a new journal can be started beside the old one.
    let again = run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    assert!(!again.all().contains("Journal of an earlier run"), "{}", again.all());
    assert_eq!(journals(&w), kept);
    run(&w, Tool::Monoform, &["destroy", "-auto-approve"]).ok();
}

/// Other settings of the same store, such as a new password, do not hide the journal.
pub fn found_after_a_change_of_settings(lab: &Lab) {
    let w = directory(lab);
    w.write("main.tf", "resource \"terraform_data\" \"first\" {}\n");
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    w.write(
        "main.tf",
        &format!("resource \"terraform_data\" \"first\" {{}}\n{WAITING}"),
    );
    killed(&w);
    let Some((setting, changed)) = changed_setting(lab) else {
        return;
    };
    w.write("backend.tf", &lab.block("").replacen(setting, changed, 1));
    run(&w, Tool::Monoform, &["init", "-reconfigure"]).ok();
    let next = test(&w).unlocked(&["plan", "-no-color"]).ok();
    assert!(next.all().contains("State recovered"), "{}", next.all());
    assert!(journals(&w).is_empty());
    let listed = run(&w, Tool::Monoform, &["state", "list"]).ok();
    assert_eq!(listed.stdout.lines().count(), 3, "{}", listed.all());
    run(&w, Tool::Monoform, &["destroy", "-auto-approve"]).ok();
}

/// Returns a part of the settings and its replacement, with which the settings still lead to the same state. `None`
/// for stores without such a setting.
fn changed_setting(lab: &Lab) -> Option<(&'static str, &'static str)> {
    match lab.ty {
        "http" => Some(("lock_address", "retry_max = 1\nlock_address")),
        "pg" => Some(("sslmode=disable", "sslmode=disable&application_name=other")),
        "s3" => Some(("use_path_style", "max_retries = 3\nuse_path_style")),
        _ => None,
    }
}

/// Kills applies at random times: `MONOFORM_CRASH_ROUNDS` of them, at times that `MONOFORM_SEED` selects.
pub fn at_any_moment(lab: &Lab) {
    let rounds = crash::setting("MONOFORM_CRASH_ROUNDS", 3);
    let mut random = Random(crash::setting("MONOFORM_SEED", 1));
    let mut counts = Counts::default();
    let w = lab.without();
    w.write("main.tf", crash::CONFIG);
    w.write("backend.tf", &lab.block(""));
    run(&w, Tool::Monoform, &["init", "-input=false"]).ok();
    let test = CrashTest {
        plans_repeat_reports: lab.keeps_objects(),
        ..test(&w)
    };
    test.nothing_is_lost(rounds, &mut random, &mut counts);
    eprintln!("{}: {counts}", lab.ty);
}
