//! The executable for Windows, run by Wine. `scripts/check-wine` builds it and runs these tests; without it they are skipped.
//!
//! Only a machine with Windows can test features that Wine lacks or implements differently: mandatory locks, symbolic links, access lists,
//! consoles and their events, renames over open files.
//!
//! - [`machine`]: the program and its environment.
//! - [`paths`]: paths in values and sources.
//! - [`states`]: locks, crashes, states of Linux.
//! - [`plugins`]: third-party providers.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

mod machine;
mod paths;
mod plugins;
mod states;

use machine::Windows;

/// The README's quickstart.
#[test]
fn quickstart_is_planned_applied_changed_and_destroyed() {
    let Some(w) = Windows::copy_of(
        "tests/quickstart/config",
        "quickstart_is_planned_applied_changed_and_destroyed",
    ) else {
        return;
    };
    w.run(&["plan", "-no-color", "-out=first.plan"])
        .ok()
        .shows(&["Plan: 11 to add, 0 to change, 0 to destroy."]);
    let apply = w.run(&["apply", "-no-color", "first.plan"]).ok().shows(&[
        "Apply complete! Resources: 11 added, 0 changed, 0 destroyed.",
        // Arguments are quoted as by Go's library, and cmd prints the quotes.
        r#"(local-exec): \"the fleet "#,
    ]);
    let fleet = w.run(&["output", "-raw", "fleet"]).ok().stdout;
    assert!(fleet.starts_with("demo-"), "{}", apply.all());
    assert!(
        w.files
            .read("out/api.conf")
            .starts_with(&format!("# api of {fleet}\nlisten {fleet}-api-01 8080\n"))
    );
    w.run(&["plan", "-no-color", "-detailed-exitcode"])
        .ok()
        .shows(&["No changes."]);
    w.files.write(
        "terraform.tfvars",
        "services = {\n  api = { port = 8000, replicas = 2 }\n  worker = { port = 9090 }\n}\n",
    );
    let change = w.run(&["plan", "-no-color", "-detailed-exitcode"]);
    assert_eq!(change.status, 2, "{}", change.all());
    let list = w.run(&["state", "list"]).ok();
    assert!(
        list.stdout.contains("module.service[\"api\"].local_file.settings\n"),
        "{}",
        list.all()
    );
    w.run(&["destroy", "-no-color", "-auto-approve"])
        .ok()
        .shows(&["Destroy complete! Resources: 11 destroyed."]);
    assert!(!w.files.exists("out/api.conf"));
    assert!(!w.files.exists(".terraform.tfstate.lock.info"), "the lock is gone");
}

#[test]
fn program_knows_itself_and_its_plugins() {
    let Some(w) = Windows::with(&[], "program_knows_itself_and_its_plugins") else {
        return;
    };
    w.run(&["version"]).ok().shows(&["on windows_amd64"]);
    w.run(&["self-check"])
        .ok()
        .shows(&["for windows_amd64, linking: dynamic", "hashicorp/random"]);
    // The version stays in the name of the executable, before the extension.
    w.run(&["internal-plugin", "link", "links"]).ok();
    let null = "links/registry.terraform.io/hashicorp/null/3.3.1/windows_amd64/terraform-provider-null_v3.3.1.exe";
    assert!(w.files.exists(null));
    let started = w.run_program(null, &[]);
    assert_eq!(started.status, 1, "{}", started.all());
    assert!(started.stderr.contains("This program is a plugin"), "{}", started.all());
}

#[test]
fn commands_are_run_by_cmd() {
    let config = r#"
        data "external" "answer" {
          program = ["cmd", "/C", "answer.bat"]
        }

        resource "terraform_data" "commands" {
          provisioner "local-exec" {
            command     = "echo one two& echo %GREETING% && dir /b main.tf"
            environment = { GREETING = "hello you" }
          }
          provisioner "local-exec" {
            command     = "cd> here.txt"
            working_dir = "sub"
          }
          provisioner "local-exec" {
            command     = "Write-Output x"
            interpreter = ["cmd", "/C", "echo", "by its own interpreter"]
          }
          provisioner "local-exec" {
            command    = "exit 3"
            on_failure = continue
          }
        }

        output "answer" {
          value = data.external.answer.result.os
        }
    "#;
    let files = [
        ("main.tf", config),
        ("answer.bat", "@echo off\r\necho {\"os\":\"windows\"}\r\n"),
        ("sub/x", ""),
    ];
    let Some(w) = Windows::with(&files, "commands_are_run_by_cmd") else {
        return;
    };
    w.run(&["apply", "-no-color", "-auto-approve"]).ok().shows(&[
        "(local-exec): one two\n",
        "(local-exec): hello you",
        "(local-exec): main.tf\n",
        "by its own interpreter",
        "answer = \"windows\"",
    ]);
    assert!(w.files.read("sub/here.txt").trim_end().ends_with(r"\work\sub"));
}
