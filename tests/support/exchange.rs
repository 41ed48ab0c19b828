//! Tests with an executable that was built for another system or processor than that of this machine.

use std::path::Path;
use std::process::Command;

use crate::{REPOSITORY, Ran, Workspace};

/// Configuration of the provider in Go, `example.com/test/shelf`, whose objects are files in the directory `books`.
pub const PROVIDER_CONFIGURATION: &str = r#"
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

/// Builds a provider in Go, on the official plugin framework, for a platform such as `linux_arm64`, into the directory `mirror` of a
/// workspace. Variables of `settings` go to the compiler.
pub fn build_provider(files: &Workspace, platform: &str, settings: &[(&str, &str)]) {
    let (os, processor) = platform.split_once('_').expect("a platform");
    let suffix = if os == "windows" { ".exe" } else { "" };
    let package = files.dir().join("mirror/example.com/test/shelf/1.0.0").join(platform);
    std::fs::create_dir_all(&package).expect("a directory");
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(package.join(format!("terraform-provider-shelf_v1.0.0{suffix}")))
        .arg(".")
        .current_dir(Path::new(REPOSITORY).join("tests/interop/framework"))
        .envs([("GOOS", os), ("GOARCH", processor), ("CGO_ENABLED", "0")])
        .envs(settings.iter().copied())
        .output();
    crate::ran(built.expect("go starts")).ok();
}

/// Installs the provider that [`build_provider`] has built, and creates and destroys an object with it. `run` runs the executable under
/// test, with a CLI configuration that names the mirror.
pub fn provider_manages_objects(files: &Workspace, run: &dyn Fn(&[&str]) -> Ran) {
    run(&["init", "-no-color"])
        .ok()
        .shows(&["Installed example.com/test/shelf v1.0.0"]);
    assert!(files.read(".terraform.lock.hcl").contains("\"h1:"));
    run(&["apply", "-no-color", "-auto-approve"])
        .ok()
        .shows(&["Apply complete! Resources: 1 added"]);
    run(&["plan", "-no-color", "-detailed-exitcode"])
        .ok()
        .shows(&["No changes."]);
    run(&["destroy", "-no-color", "-auto-approve"]).ok();
    let left: Vec<_> = std::fs::read_dir(files.dir().join("books"))
        .expect("a directory")
        .collect();
    assert_eq!(left.len(), 1, "only the file from before is left");
}

/// Passes a state and a saved plan from the executable of this machine to the other executable and back. `run` runs the other one, in the
/// same workspace.
pub fn state_goes_there_and_back(files: &Workspace, run: &dyn Fn(&[&str]) -> Ran) {
    let configure = |text: &str| {
        files.write(
            "main.tf",
            &format!(
                "resource \"random_pet\" \"name\" {{}}\n\nresource \"local_file\" \"file\" {{\n  filename = \"out/${{random_pet.name.id}}.txt\"\n  \
                 content  = {text:?}\n}}\n\nresource \"terraform_data\" \"sum\" {{\n  input = local_file.file.content_sha256\n}}\n"
            ),
        );
    };
    configure("one");
    files.run(&["apply", "-no-color", "-auto-approve"]).ok();
    let before = files.read("terraform.tfstate");
    run(&["plan", "-no-color", "-detailed-exitcode"])
        .ok()
        .shows(&["No changes."]);
    run(&["apply", "-no-color", "-auto-approve", "-refresh-only"]).ok();
    assert_eq!(files.read("terraform.tfstate"), before, "equal states are equal bytes");

    configure("two\n");
    run(&["apply", "-no-color", "-auto-approve"]).ok();
    let after = files.read("terraform.tfstate");
    files
        .run(&["plan", "-no-color", "-detailed-exitcode"])
        .ok()
        .shows(&["No changes."]);
    assert!(!after.contains('\r'), "lines end as on Linux");
    // A saved plan of one system is applied on the other.
    configure("three\n");
    run(&["plan", "-no-color", "-out=saved"]).ok();
    files
        .run(&["apply", "-no-color", "saved"])
        .ok()
        .shows(&["1 added, 1 changed, 1 destroyed"]);
}
