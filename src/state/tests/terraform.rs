//! Tests with the real Terraform: each program respects the other's lock and reads the other's states.
//!
//! Skipped if there is no `terraform` on the PATH, or if its version is not the one that this program implements.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use state::store::read_copy;
use state::{Codec, LocalStore, LockInfo, ObjectStatus, StateError, document};

const CONFIG: &str = r#"
resource "terraform_data" "a" {
  count = 2
  input = { n = 12345678901234567890, text = "<é>", list = [] }
}
resource "terraform_data" "slow" {
  provisioner "local-exec" {
    command = "while [ ! -e go ]; do sleep 0.05; done"
  }
}
output "o" {
  value     = { a = 1.5, b = terraform_data.a[0].id }
  sensitive = true
}
"#;

fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("terraform");
    command
        .args(arguments)
        .current_dir(dir)
        .env("TF_CLI_CONFIG_FILE", "/dev/null")
        .env("CHECKPOINT_DISABLE", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(dir: &Path, arguments: &[&str]) -> Output {
    command(dir, arguments).output().unwrap()
}

fn output_text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Creates a directory with a configuration, if the right version of Terraform is installed.
fn place(test: &str) -> Option<tempfile::TempDir> {
    let version = command(Path::new("."), &["version"]).output();
    if !version.is_ok_and(|v| String::from_utf8_lossy(&v.stdout).starts_with("Terraform v1.11.4")) {
        eprintln!("{test} is skipped: it needs Terraform 1.11.4 on the PATH");
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("main.tf"), CONFIG).unwrap();
    let init = run(dir.path(), &["init", "-no-color"]);
    assert!(init.status.success(), "{}", output_text(&init));
    Some(dir)
}

fn info() -> LockInfo {
    LockInfo {
        info: "told to the others".into(),
        ..LockInfo::new("OperationTypeApply", "1.11.4")
    }
}

/// Removes the identity versions from a state: Terraform 1.11 writes none, and since 1.12 every object has one.
fn without_identities(state: &str) -> String {
    let mut kept = String::new();
    let mut parts = state.split("\"identity_schema_version\": 0");
    kept.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let before = kept.trim_end().trim_end_matches(',').len();
        kept.truncate(before);
        kept.push_str(part);
    }
    kept
}

#[test]
fn monoform_and_terraform_read_each_others_states() {
    let Some(dir) = place("monoform_and_terraform_read_each_others_states") else {
        return;
    };
    let path = dir.path().join("terraform.tfstate");
    fs::write(dir.path().join("go"), "").unwrap();
    let apply = run(dir.path(), &["apply", "-auto-approve", "-no-color"]);
    assert!(apply.status.success(), "{}", output_text(&apply));

    let text = fs::read(&path).unwrap();
    let mut store = LocalStore::new(&path);
    store.lock(&info(), Duration::ZERO, &|| false).unwrap();
    let before = store.read().unwrap().unwrap();
    let ours = String::from_utf8(document::encode(&before).unwrap()).unwrap();
    assert_eq!(without_identities(&ours), String::from_utf8(text).unwrap());

    let address = addrs::parse::resource_instance("terraform_data.a[1]").unwrap();
    let provider = before.resources.values().next().unwrap().provider.clone();
    let mut after = before.clone();
    let tainted = before.current(&address).unwrap().with_status(ObjectStatus::Tainted);
    after.set_current(&address, &provider, Some(Arc::new(tainted)));
    store.write(&after, "1.11.4").unwrap();
    store.unlock().unwrap();

    let pulled = run(dir.path(), &["state", "pull"]);
    let ours = fs::read_to_string(&path).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&pulled.stdout).trim_end(),
        without_identities(&ours).trim_end()
    );
    let plan = run(dir.path(), &["plan", "-no-color"]);
    assert!(
        output_text(&plan).contains("terraform_data.a[1] is tainted, so must be replaced"),
        "{}",
        output_text(&plan)
    );
}

#[test]
fn our_lock_keeps_terraform_out() {
    let Some(dir) = place("our_lock_keeps_terraform_out") else {
        return;
    };
    let path = dir.path().join("terraform.tfstate");
    let mut store = LocalStore::new(&path);
    let info = info();
    store.lock(&info, Duration::ZERO, &|| false).unwrap();
    let plan = run(dir.path(), &["plan", "-no-color"]);
    let text = output_text(&plan);
    assert!(!plan.status.success());
    for part in [
        "Error acquiring the state lock",
        &info.id,
        &info.who,
        "OperationTypeApply",
        "told to the others",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    store.unlock().unwrap();
    assert!(!path.exists());
    let plan = run(dir.path(), &["plan", "-no-color"]);
    assert!(plan.status.success(), "{}", output_text(&plan));
}

#[test]
fn terraforms_lock_keeps_us_out() {
    let Some(dir) = place("terraforms_lock_keeps_us_out") else {
        return;
    };
    let path = dir.path().join("terraform.tfstate");
    let apply = command(dir.path(), &["apply", "-auto-approve", "-no-color"])
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while state::lock::read_info(&path).is_none() {
        assert!(begin.elapsed() < Duration::from_secs(20), "Terraform takes no lock");
        std::thread::sleep(Duration::from_millis(20));
    }
    let theirs = state::lock::read_info(&path).unwrap();
    let mut store = LocalStore::new(&path);
    let Err(StateError::Locked(held)) = store.lock(&info(), Duration::ZERO, &|| false) else {
        panic!("locked twice")
    };
    assert_eq!(held.info.as_ref(), Some(&theirs));
    assert_eq!(
        (&*theirs.operation, &*theirs.path),
        ("OperationTypeApply", "terraform.tfstate")
    );
    assert!(
        state::lock::force_unlock(&path, &theirs.id)
            .unwrap_err()
            .to_string()
            .contains("still running")
    );
    // Lets the apply end, and the test waits for that.
    fs::write(dir.path().join("go"), "").unwrap();
    store.lock(&info(), Duration::from_secs(20), &|| false).unwrap();
    let read = store.read().unwrap().unwrap();
    store.unlock().unwrap();
    let output = apply.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    assert_eq!(
        read.instance_count(),
        3,
        "all that Terraform did was written before it gave up the lock"
    );
}

/// The reason why a locked state is written in place: Terraform opens the file long before it gets the lock.
#[test]
fn a_terraform_that_waits_for_our_lock_goes_on_from_our_state() {
    let Some(dir) = place("a_terraform_that_waits_for_our_lock_goes_on_from_our_state") else {
        return;
    };
    let path = dir.path().join("terraform.tfstate");
    fs::write(dir.path().join("go"), "").unwrap();
    let apply = run(dir.path(), &["apply", "-auto-approve", "-no-color"]);
    assert!(apply.status.success(), "{}", output_text(&apply));

    let mut store = LocalStore::new(&path);
    store.lock(&info(), Duration::ZERO, &|| false).unwrap();
    let waiting = command(
        dir.path(),
        &["apply", "-auto-approve", "-no-color", "-lock-timeout=30s"],
    )
    .spawn()
    .unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let mut ours = store.read().unwrap().unwrap();
    let address = addrs::parse::resource_instance("terraform_data.a[1]").unwrap();
    ours.remove_instance(&address);
    store.write(&ours, "1.11.4").unwrap();
    let serial = read_copy(&path, &Codec::PLAIN).unwrap().unwrap().serial;
    store.unlock().unwrap();

    let output = waiting.wait_with_output().unwrap();
    assert!(
        output_text(&output).contains("1 added, 0 changed, 0 destroyed"),
        "{}",
        output_text(&output)
    );
    let after = read_copy(&path, &Codec::PLAIN).unwrap().unwrap();
    assert!(after.serial > serial && after.current(&address).is_some());
}
