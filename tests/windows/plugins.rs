//! A provider in Go on the official plugin framework, built for Windows.

use std::path::Path;
use std::process::Command;

use crate::machine::{Windows, quoted};

const CONFIGURATION: &str = r#"
terraform {
  required_providers {
    shelf = {
      source  = "example.com/test/shelf"
      version = "~> 1.0"
    }
  }
}

provider "shelf" {
  directory = "books"
}

resource "shelf_book" "dune" {
  title    = "Dune"
  language = "en"
  pages    = 412
  author   = { name = "Frank Herbert", born = 1920 }
  chapters = [{ title = "Dune" }]
}
"#;

#[test]
fn provider_in_go_is_installed_and_manages_objects() {
    let test = "provider_in_go_is_installed_and_manages_objects";
    let Some(w) = Windows::with(&[("main.tf", CONFIGURATION), ("books/x", "")], test) else {
        return;
    };
    if support::needs("go", test).is_none() {
        return;
    }
    let package = w.files.dir().join("mirror/example.com/test/shelf/1.0.0/windows_amd64");
    std::fs::create_dir_all(&package).expect("a directory");
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(package.join("terraform-provider-shelf_v1.0.0.exe"))
        .arg(".")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/framework"))
        .envs([("GOOS", "windows"), ("GOARCH", "amd64"), ("CGO_ENABLED", "0")])
        .output();
    support::ran(built.expect("go starts")).ok();
    let mirror = quoted(&w.path("mirror"));
    w.files.write(
        "cli.tfrc",
        &format!("provider_installation {{\n  filesystem_mirror {{\n    path = {mirror}\n  }}\n}}\n"),
    );
    let mut w = w;
    let settings = w.path("cli.tfrc");
    w.files = w.files.env("TF_CLI_CONFIG_FILE", settings);

    w.run(&["init", "-no-color"])
        .ok()
        .shows(&["Installed example.com/test/shelf v1.0.0"]);
    assert!(w.files.read(".terraform.lock.hcl").contains("\"h1:"));
    let installed =
        ".terraform/providers/example.com/test/shelf/1.0.0/windows_amd64/terraform-provider-shelf_v1.0.0.exe";
    assert!(w.files.exists(installed), "it is copied where there are no links");
    w.run(&["apply", "-no-color", "-auto-approve"])
        .ok()
        .shows(&["Apply complete! Resources: 1 added"]);
    w.run(&["plan", "-no-color", "-detailed-exitcode"])
        .ok()
        .shows(&["No changes."]);
    w.run(&["destroy", "-no-color", "-auto-approve"]).ok();
    let left: Vec<_> = std::fs::read_dir(w.files.dir().join("books"))
        .expect("a directory")
        .collect();
    assert_eq!(left.len(), 1, "only the file from before is left");
}
