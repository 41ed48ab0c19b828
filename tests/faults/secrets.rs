//! Planted secrets of every kind, searched for in everything that is written, logged and printed: only the state, its backup, a
//! saved plan and the journal may have them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use support::{Ran, Workspace, monoform, ran};

const VARIABLE: &str = "planted-variable-8f1c";
const EPHEMERAL: &str = "planted-ephemeral-2a77";
const PROVIDER: &str = "planted-provider-93be";
const BACKEND: &str = "planted-backend-c04d";
const MARKED: &str = "planted-marked-51e0";
const ENVIRONMENT: &str = "planted-environment-66aa";

const ALL: [&str; 6] = [VARIABLE, EPHEMERAL, PROVIDER, BACKEND, MARKED, ENVIRONMENT];

const CONFIG: &str = r#"
terraform {
  required_providers {
    local = { source = "hashicorp/local" }
    http  = { source = "hashicorp/http" }
    null  = { source = "hashicorp/null" }
  }
}

variable "secret" {
  type      = string
  sensitive = true
}

variable "passing" {
  type      = string
  ephemeral = true
}

variable "breaks" {
  default = ""
}

locals {
  marked = sensitive("planted-marked-51e0")
}

# What `terraform_data` gives back as its output is not marked, here as in Terraform.
resource "null_resource" "holder" {
  triggers = { both = "${var.secret} ${local.marked}" }
  provisioner "local-exec" {
    command     = "sleep 0.3; echo done with $PASSING"
    environment = { PASSING = var.passing, KEPT = var.secret }
  }
}

resource "local_sensitive_file" "file" {
  filename = "out/secret"
  content  = var.secret
}

resource "null_resource" "broken" {
  count = var.breaks == "condition" ? 1 : 0
  triggers = { marked = local.marked }
  lifecycle {
    postcondition {
      condition     = self.triggers.marked == "another ${var.secret}"
      error_message = "It is not what it should be."
    }
  }
}

data "http" "unreachable" {
  count           = var.breaks == "read" ? 1 : 0
  url             = "http://127.0.0.1:9/"
  request_headers = { Authorization = "Bearer planted-provider-93be ${var.secret}" }
}

output "secret" {
  value     = "${var.secret} ${local.marked}"
  sensitive = true
}
"#;

/// Places that have a secret, each with the secret's name.
type Finds = BTreeSet<(String, &'static str)>;

fn search(what: &str, text: &[u8], finds: &mut Finds) {
    for secret in ALL {
        if text.windows(secret.len()).any(|part| part == secret.as_bytes()) {
            finds.insert((what.to_owned(), secret));
        }
    }
}

/// Returns true for files that may have secrets: the state and its companions, and files that the test itself wrote.
fn may(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    use std::os::unix::fs::PermissionsExt as _;
    let private = || std::fs::metadata(path).is_ok_and(|m| m.permissions().mode() & 0o777 == 0o600);
    // A temporary file, which will be renamed to one of the names above.
    let unfinished = name.starts_with(".monoform-") && private();
    unfinished
        || name.contains(".tfstate")
        || name.ends_with(".plan")
        || name.ends_with(".journal")
        || name == "secret"
        || name.ends_with(".tf")
}

fn search_files(dir: &Path, finds: &mut Finds) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for path in entries.filter_map(Result::ok).map(|e| e.path()) {
        if path.is_dir() && !path.is_symlink() {
            search_files(&path, finds);
        } else if path.is_file()
            && !may(&path)
            && let Ok(text) = std::fs::read(&path)
        {
            search(
                &format!("the file {}", path.file_name().unwrap_or_default().to_string_lossy()),
                &text,
                finds,
            );
        }
    }
}

/// Searches the command lines of all processes that were started for a workspace.
fn search_processes(home: &Path, finds: &mut Finds) {
    let mark = format!("HOME={}", home.display()).into_bytes();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return;
    };
    for path in entries.filter_map(Result::ok).map(|e| e.path()) {
        let ours = std::fs::read(path.join("environ")).is_ok_and(|e| e.split(|b| *b == 0).any(|v| v == mark));
        if ours && let Ok(line) = std::fs::read(path.join("cmdline")) {
            search("a command line", &line, finds);
        }
    }
}

fn run(w: &Workspace, args: &[&str]) -> Ran {
    let mut command = w.command(monoform());
    command
        .args(args)
        .env("TF_LOG", "TRACE")
        .env("TF_VAR_secret", VARIABLE)
        .env("TF_VAR_passing", EPHEMERAL)
        .env("TF_HTTP_PASSWORD", ENVIRONMENT);
    ran(command.stdin(Stdio::null()).output().expect("it starts"))
}

#[test]
fn only_the_state_the_plan_and_the_journal_have_secrets() {
    let w = Workspace::with(&[("main.tf", CONFIG)]);
    let root = w.dir().parent().expect("a parent").to_owned();
    let finds = Mutex::new(Finds::new());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                let mut found = Finds::new();
                search_processes(&w.home(), &mut found);
                search_files(&root, &mut found);
                finds.lock().expect("finds").extend(found);
                std::thread::sleep(std::time::Duration::from_millis(15));
            }
        });
        let commands: &[&[&str]] = &[
            &["init"],
            &["validate", "-json"],
            &["plan", "-no-color", "-out=the.plan"],
            &["plan", "-json"],
            &["show", "-no-color", "the.plan"],
            &["apply", "-no-color", "-auto-approve"],
            &["apply", "-no-color", "-auto-approve", "-replace=null_resource.holder"],
            &["apply", "-json", "-auto-approve", "-replace=null_resource.holder"],
            &["refresh", "-no-color"],
            &["output", "-no-color"],
            &["show", "-no-color"],
            &["state", "list"],
            &["state", "show", "-no-color", "null_resource.holder"],
            &["plan", "-no-color", "-var=breaks=read"],
            &["plan", "-json", "-var=breaks=read"],
            &["apply", "-no-color", "-auto-approve", "-var=breaks=condition"],
            &["apply", "-json", "-auto-approve", "-var=breaks=condition"],
            &["plan", "-no-color", "-var=nothing=1"],
            &["destroy", "-no-color", "-auto-approve"],
        ];
        for args in commands {
            let ran = run(&w, args);
            let broken = args.iter().any(|arg| arg.starts_with("-var="));
            assert_eq!(
                ran.status != 0,
                broken,
                "{args:?}: {}",
                ran.stderr.lines().rev().take(30).collect::<Vec<_>>().join("\n")
            );
            let mut found = finds.lock().expect("finds");
            search(&format!("the output of {args:?}"), ran.stdout.as_bytes(), &mut found);
            for line in ran.stderr.lines() {
                if ALL.iter().any(|secret| line.contains(secret)) {
                    search(&format!("the log of {args:?}: {line}"), line.as_bytes(), &mut found);
                }
            }
        }
        over.store(true, Ordering::SeqCst);
    });
    let finds = finds.into_inner().expect("finds");
    assert!(finds.is_empty(), "{finds:#?}");
}

#[test]
fn credentials_of_a_backend_are_in_its_record_and_nowhere_else() {
    let w = Workspace::with(&[
        ("main.tf", "resource \"terraform_data\" \"a\" {}\n"),
        (
            "backend.tf",
            "terraform {\n  backend \"http\" {\n    address   = \"http://127.0.0.1:9/state\"\n    username  = \"me\"\n    retry_max = 0\n  }\n}\n",
        ),
    ]);
    let mut finds = Finds::new();
    let setting = format!("-backend-config=password={BACKEND}");
    w.write("backend.hcl", &format!("password = \"{BACKEND}\"\n"));
    // Values that the user types are in the command line of that command, and in no other process.
    for args in [
        &["init", "-backend-config=backend.hcl"][..],
        &["plan", "-no-color"],
        &["apply", "-no-color", "-auto-approve"],
        &["workspace", "list"],
        &["state", "pull"],
        &["init", "-reconfigure", &setting],
        &["plan", "-no-color"],
    ] {
        let ran = run(&w, args);
        search(&format!("the output of {args:?}"), ran.stdout.as_bytes(), &mut finds);
        search(&format!("the log of {args:?}"), ran.stderr.as_bytes(), &mut finds);
    }
    std::fs::remove_file(w.dir().join("backend.hcl")).expect("it is there");
    search_files(w.dir().parent().expect("a parent"), &mut finds);
    assert!(finds.is_empty(), "{finds:#?}");
    use std::os::unix::fs::PermissionsExt as _;
    let record = w.dir().join(".terraform/terraform.tfstate");
    let mode = std::fs::metadata(record).expect("the record").permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}
