//! State stores of third parties: one in Go on the newest framework (`keep`), one in Rust on our SDK (`notes`).
//!
//! Results of Terraform 1.16 were recorded with a build of 1.16.0-rc2 that has experiments enabled; released builds refuse the
//! `state_store` block.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::authors::notes;
use crate::{apply, build, install, install_in_mirror, nothing_to_do, platform, with_cli_config};
use support::Workspace;

pub(crate) const HEAD: &str = r#"
terraform {
  required_providers {
    keep = {
      source  = "example.com/test/keep"
      version = "~> 1.0"
    }
  }
"#;

pub(crate) const STORE: &str = r#"
  state_store "keep_dir" {
    provider "keep" {
      root = "states"
    }
    path = "one"
  }
}
"#;

pub(crate) const OBJECT: &str = r#"
resource "terraform_data" "a" {
  input = "x"
}

output "o" {
  value = terraform_data.a.input
}
"#;

pub(crate) fn keep() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("keep", "keep"))
}

pub(crate) fn workspace(store: &str) -> Workspace {
    let w = Workspace::with(&[("main.tf", &format!("{HEAD}{store}{OBJECT}"))]);
    install_in_mirror(&w, keep(), "example.com/test/keep");
    w
}

/// Changes the state store in the configuration.
fn moved(w: &Workspace, store: &str) {
    w.write("main.tf", &format!("{HEAD}{store}{OBJECT}"));
}

pub(crate) fn record(w: &Workspace) -> Value {
    serde_json::from_str(&w.read(".terraform/terraform.tfstate")).expect("JSON")
}

/// Returns the state that a store has for a workspace.
pub(crate) fn kept(w: &Workspace, file: &str) -> Value {
    serde_json::from_str(&w.read(file)).expect("a state")
}

pub fn the_life_of_a_state() {
    let w = workspace(STORE);
    w.run(&["plan", "-no-color"])
        .fails_with(&["State store initialization required, please run"]);
    w.run(&["init", "-no-color"]).ok().shows(&[
        "Initializing provider plugin for state store \"keep_dir\"...",
        "Initializing the state store \"keep_dir\"...",
        "Successfully configured the state store \"keep_dir\"!",
        "Experimental state store",
        "lock file",
    ]);
    // The record is equal byte for byte to Terraform's.
    assert_eq!(
        record(&w),
        json!({
            "version": 3,
            "terraform_version": "1.16.0",
            "state_store": {
                "type": "keep_dir",
                "provider": {"version": "1.0.0", "source": "example.com/test/keep", "config": {"root": "states"}},
                "config": {"fault": null, "path": "one"},
                "hash": 3_540_007_166_u32,
                "provider_supply_mode": "managed_by_terraform",
            },
        })
    );
    w.run(&["validate", "-no-color"]).ok();
    w.run(&["plan", "-no-color", "-out=plan"]).ok();
    w.run(&["apply", "-no-color", "plan"]).ok().shows(&["1 added"]);
    assert!(!w.exists("terraform.tfstate"));
    assert!(!w.exists("states/one/default.lock"));
    assert_eq!(kept(&w, "states/one/default.state")["serial"], 2);
    nothing_to_do(&w);
    w.run(&["output", "-raw", "o"]).ok().shows(&["x"]);
    w.run(&["state", "list"]).ok().shows(&["terraform_data.a"]);
    w.run(&["workspace", "new", "two"]).ok();
    apply(&w, "1 added");
    w.run(&["workspace", "list"]).ok().shows(&["  default\n", "* two\n"]);
    w.run(&["workspace", "select", "default"]).ok();
    w.run(&["workspace", "delete", "two"])
        .fails_with(&["Workspace is not empty"]);
    w.run(&["workspace", "delete", "-force", "two"]).ok();
    assert!(!w.exists("states/one/two.state"));
    let pulled = w.run(&["state", "pull"]).ok().stdout;
    w.write("pulled", &pulled.replace("\"serial\": 2", "\"serial\": 7"));
    w.run(&["state", "push", "pulled"]).ok();
    assert_eq!(kept(&w, "states/one/default.state")["serial"], 7);
    w.run(&["destroy", "-no-color", "-auto-approve"]).ok();
}

pub fn locks_of_others() {
    let w = workspace(STORE);
    w.run(&["init"]).ok();
    apply(&w, "1 added");
    let lock = r#"{"id":"abc","operation":"apply","who":"somebody@there","created":"2026-01-01T00:00:00Z"}"#;
    w.write("states/one/default.lock", lock);
    w.run(&["apply", "-no-color", "-auto-approve"]).fails_with(&[
        "Workspace Already Locked",
        "somebody@there",
        "2026-01-01",
        "force-unlock",
    ]);
    w.run(&["apply", "-no-color", "-auto-approve", "-lock=false"]).ok();
    w.run(&["force-unlock", "-no-color", "-force", "other"])
        .fails_with(&["There is no lock \"other\""]);
    w.run(&["force-unlock", "-no-color", "-force", "abc"]).ok();
    apply(&w, "0 added");
}

const FAULTS: [(&str, &str); 2] = [("die", "exit status 3"), ("refuse", "Nothing can be written now")];

pub fn writes_that_fail() {
    for (fault, text) in FAULTS {
        let w = workspace(STORE);
        w.run(&["init"]).ok();
        let mut failing = w.command(support::monoform());
        failing.args(["apply", "-no-color", "-auto-approve"]);
        failing.env("KEEP_FAULT", fault);
        // The first state of a workspace is written before any operation runs.
        let ran = support::ran(failing.output().expect("it starts"));
        ran.fails_with(&[text]);
        let _ = std::fs::remove_file(w.dir().join("states/one/default.lock"));
        // The created object is not lost: the journal or the rescue file contains it.
        apply(&w, "Apply complete!");
        nothing_to_do(&w);
        let mut failing = w.command(support::monoform());
        failing.args(["apply", "-no-color", "-auto-approve", "-replace=terraform_data.a"]);
        failing.env("KEEP_FAULT", fault);
        let ran = support::ran(failing.output().expect("it starts"));
        ran.fails_with(&["Failed to save state", text, "errored.tfstate"]);
        // The lock of a dead process is left over.
        let _ = std::fs::remove_file(w.dir().join("states/one/default.lock"));
        w.run(&["state", "push", "errored.tfstate"]).ok();
        nothing_to_do(&w);
        let id = &kept(&w, "errored.tfstate")["resources"][0]["instances"][0]["attributes"]["id"];
        let now = kept(&w, "states/one/default.state");
        assert_eq!(&now["resources"][0]["instances"][0]["attributes"]["id"], id, "{fault}");
    }
}

pub fn states_move_in_every_direction() {
    let local = "}\n";
    let file = "\n  backend \"local\" {\n    path = \"other.tfstate\"\n  }\n}\n";
    let other = STORE.replace("\"one\"", "\"two\"");
    let w = workspace(local);
    w.run(&["init"]).ok();
    apply(&w, "1 added");
    let init = |arguments: &[&str]| w.run(&[&["init", "-no-color", "-input=false"], arguments].concat());
    let lineage = kept(&w, "terraform.tfstate")["lineage"].clone();
    // A migration from the default location only asks about the copy.
    moved(&w, STORE);
    w.run(&["plan", "-no-color"])
        .fails_with(&["State store initialization required"]);
    init(&["-force-copy"]).ok();
    assert_eq!(kept(&w, "states/one/default.state")["lineage"], lineage);
    nothing_to_do(&w);
    let places: [(&str, &str, &str); 4] = [
        (&other, "states/two/default.state", "configuration changed"),
        (file, "other.tfstate", "Migrating from state store"),
        (STORE, "states/one/default.state", "Migrating from backend"),
        (local, "terraform.tfstate", "Unsetting the previously set state store"),
    ];
    for (place, kept_in, reason) in places {
        // A state file from an earlier step would prevent the migration.
        let _ = std::fs::remove_file(w.dir().join(kept_in));
        moved(&w, place);
        w.run(&["plan", "-no-color"])
            .fails_with(&["nitialization required", reason]);
        init(&[]).fails_with(&["Backend configuration changed"]);
        init(&["-migrate-state", "-force-copy"]).ok();
        assert_eq!(kept(&w, kept_in)["lineage"], lineage, "{place}");
        nothing_to_do(&w);
    }
    assert!(record(&w).get("state_store").is_none());
}

pub fn versions_and_settings_that_change() {
    let w = workspace(STORE);
    w.run(&["init", "-backend-config=path=three"]).ok();
    apply(&w, "1 added");
    assert!(w.exists("states/three/default.state"));
    nothing_to_do(&w);
    // A new version is installed only on request.
    let name = format!(
        "example.com/test/keep/1.1.0/{}/terraform-provider-keep_v1.1.0",
        platform()
    );
    install(keep(), &w.home().join(".terraform.d/plugins"), &name);
    w.run(&["init", "-no-color", "-upgrade"])
        .ok()
        .shows(&["State store provider is not upgraded"]);
    assert_eq!(record(&w)["state_store"]["provider"]["version"], "1.0.0");
    nothing_to_do(&w);
    w.write(
        ".terraform.lock.hcl",
        &w.read(".terraform.lock.hcl").replace("1.0.0", "1.1.0"),
    );
    let lock = w.read(".terraform.lock.hcl");
    let without_sums: Vec<&str> = lock.lines().filter(|line| !line.contains("h1:")).collect();
    w.write(".terraform.lock.hcl", &without_sums.join("\n"));
    w.run(&["plan", "-no-color"])
        .fails_with(&["initialization required", "version changed from 1.0.0 to 1.1.0"]);
    w.run(&[
        "init",
        "-no-color",
        "-reconfigure",
        "-upgrade",
        "-backend-config=path=three",
    ])
    .ok();
    assert_eq!(record(&w)["state_store"]["provider"]["version"], "1.1.0");
    nothing_to_do(&w);
    // If the provider is missing, that is an error without other consequences.
    std::fs::remove_dir_all(w.home().join(".terraform.d/plugins")).expect("removed");
    let _ = std::fs::remove_dir_all(w.dir().join(".terraform/providers"));
    w.run(&["plan", "-no-color"]).fails_with(&["example.com/test/keep"]);
    w.run(&["state", "list"]).fails_with(&["example.com/test/keep"]);
}

pub fn mistakes() {
    let store = |inner: &str| format!("\n  state_store \"keep_dir\" {{\n{inner}\n  }}\n}}\n");
    let provider = "provider \"keep\" {\n root = \"states\"\n}\n";
    let cases: &[(String, &[&str])] = &[
        (store("path = \"p\""), &["Missing provider block"]),
        (
            store(&format!("{provider}{provider}path = \"p\"")),
            &["Duplicate provider block"],
        ),
        (
            store("provider \"keep\" {\n alias = \"a\"\n root = \"r\"\n}\n path = \"p\""),
            &["Unexpected provider alias"],
        ),
        (
            store("provider \"other\" {}\n path = \"p\""),
            &["Missing entry in required_providers", "other"],
        ),
        (store(provider), &["Missing required argument", "path"]),
        (
            store("provider \"keep\" {}\n path = \"p\""),
            &["Missing required argument", "root"],
        ),
        (
            store("provider \"keep\" {\n root = \"nowhere\"\n}\n path = \"p\""),
            &["No such root"],
        ),
        (store(&format!("{provider}path = \"../p\"")), &["Path leads elsewhere"]),
        (
            store(&format!("{provider}path = \"p\"\nmore = 1")),
            &["Unsupported argument", "more"],
        ),
        (
            store(&format!("{provider}path = var.p")),
            &["Reference to undeclared input variable", "no variable \"p\""],
        ),
        (
            STORE.replace("keep_dir", "keep_box"),
            &["Unsupported state store", "keep_box", "It has: keep_dir"],
        ),
        (
            STORE.replace("  path = \"one\"\n  }", "  path = \"one\"\n  }\n  backend \"local\" {}"),
            &["Conflicting 'state_store' and 'backend' configuration blocks are present"],
        ),
        (
            STORE.replace("  path = \"one\"\n  }", "  path = \"one\"\n  }\n  cloud {}"),
            &["Conflicting 'cloud' and 'state_store' configuration blocks are present"],
        ),
    ];
    let w = workspace("}\n");
    for (place, texts) in cases {
        moved(&w, place);
        w.run(&["init", "-no-color", "-input=false"]).fails_with(texts);
        assert!(!w.exists(".terraform/terraform.tfstate"), "{place}");
    }
}

/// A provider on the SDK has resources and a state store in one executable.
pub fn a_store_on_our_sdk() {
    let config = r#"
terraform {
  required_providers {
    notes = { source = "example/notes" }
  }
  state_store "notes_state" {
    provider "notes" {
      directory = "notes"
    }
    directory = "states"
  }
}

provider "notes" {
  directory = "notes"
}

resource "notes_note" "list" {
  name = "shopping"
  text = "bread\n"
}
"#;
    let w = Workspace::with(&[("main.tf", config)]);
    let mirror = w.home().join("mirror");
    let path = format!(
        "registry.terraform.io/example/notes/1.0.0/{}/terraform-provider-notes_v1.0.0",
        platform()
    );
    install(notes(), &mirror, &path);
    let w = with_cli_config(w, &support::only_from(&mirror));
    w.run(&["init", "-no-color"]).ok();
    apply(&w, "1 added");
    nothing_to_do(&w);
    assert_eq!(kept(&w, "states/default.tfstate")["serial"], 2);
    // The lock contains the command that holds it, and can be waited for.
    let lock = json!({"ID": "abc", "Operation": "OperationTypeApply", "Who": "somebody@there", "Version": "1.16.0",
        "Created": "2026-01-01T00:00:00Z", "Path": ""});
    w.write("states/default.lock", &lock.to_string());
    w.run(&["apply", "-no-color", "-auto-approve"]).fails_with(&[
        "Error acquiring the state lock",
        "somebody@there",
        "abc",
    ]);
    w.run(&["force-unlock", "-force", "abc"]).ok();
    w.run(&["workspace", "new", "two"]).ok();
    assert!(w.exists("states/two.tfstate"));
    w.run(&["workspace", "select", "default"]).ok();
    w.run(&["workspace", "delete", "two"]).ok();
    assert!(!w.exists("states/two.tfstate"));
    w.run(&["destroy", "-no-color", "-auto-approve"])
        .ok()
        .shows(&["1 destroyed"]);
}
