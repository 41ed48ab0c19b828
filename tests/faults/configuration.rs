//! Configurations with mistakes.

use crate::{files, refused};
use support::Workspace;

/// Checks the errors of commands about a configuration of one file.
#[track_caller]
fn mistaken(config: &str, texts: &[&str]) {
    let w = Workspace::with(&[("main.tf", config)]);
    refused(&w, &["plan", "-no-color"], texts);
    refused(&w, &["apply", "-no-color", "-auto-approve"], texts);
}

#[test]
fn syntax_errors_in_three_places_are_reported_at_once() {
    let w = Workspace::with(&[
        (
            "main.tf",
            "resource \"terraform_data\" \"a\" {\n  input = \n}\n\nlocals {\n  list = [1,\n}\n",
        ),
        (
            "outputs.tf",
            "output \"good\" {\n  value = 1\n}\n\noutput \"bad\" {\n  value = \"${1 +}\"\n}\n",
        ),
    ]);
    for command in [
        &["validate", "-no-color"][..],
        &["plan", "-no-color"],
        &["apply", "-no-color", "-auto-approve"],
    ] {
        let ran = refused(
            &w,
            command,
            &["on main.tf line 2", "on main.tf line 7", "on outputs.tf line 6"],
        );
        assert_eq!(ran.stderr.matches("Error: ").count(), 3, "{}", ran.all());
    }
    let report = w.run(&["validate", "-json"]);
    assert_eq!(report.status, 1);
    let report = report.json();
    assert_eq!((&report["valid"], &report["error_count"]), (&false.into(), &3.into()));
}

#[test]
fn names_that_do_not_exist_get_a_suggestion() {
    mistaken(
        r#"
variable "name" { default = "x" }
locals { size = 1 }
resource "terraform_data" "first" {}
output "a" { value = terraform_data.frist.id }
output "b" { value = local.sise }
output "c" { value = var.nam }
output "d" { value = module.child.x }
"#,
        &[
            "A managed resource \"terraform_data\" \"frist\" has not been declared in the root module. Did you mean \
             terraform_data.first?",
            "This module has no local value \"sise\". Did you mean \"size\"?",
            "This module has no input variable \"nam\". Did you mean \"name\"?",
            "No module call named \"child\" is declared in the root module.",
        ],
    );
    mistaken(
        "output \"d\" {\n  value = uper(\"x\")\n}\n",
        &["Call to unknown function", "\"uper\"", "Did you mean \"upper\"?"],
    );
    mistaken(
        "resource \"terraform_data\" \"a\" {}\noutput \"o\" {\n  value = terraform_data.a.outptu\n}\n",
        &["Unsupported attribute", "on main.tf line 3, in output \"o\"", "outptu"],
    );
    mistaken(
        "resource \"terraform_data\" \"a\" {\n  inptu = 1\n}\n",
        &[
            "Unsupported argument",
            "An argument named \"inptu\" is not expected here. Did you mean \"input\"?",
        ],
    );
    mistaken("resource \"terraform_dat\" \"a\" {}\n", &["terraform_dat"]);
}

#[test]
fn cycle_is_reported_as_a_path() {
    mistaken(
        r#"
resource "terraform_data" "a" { input = terraform_data.b.output }
resource "terraform_data" "b" { input = local.x }
locals { x = terraform_data.a.output }
"#,
        &[
            "Cycle: ",
            "local.x is needed by terraform_data.b is needed by terraform_data.a is needed by local.x",
        ],
    );
    // The error is inside a module.
    let w = Workspace::with(&[
        ("main.tf", "module \"m\" {\n  source = \"./m\"\n  x = module.m.y\n}\n"),
        ("m/main.tf", "variable \"x\" {}\noutput \"y\" {\n  value = var.x\n}\n"),
    ]);
    refused(
        &w,
        &["plan", "-no-color"],
        &["Cycle: ", "module.m.var.x", "module.m.output.y"],
    );
}

#[test]
fn wrong_types() {
    mistaken(
        "variable \"v\" {\n  type = number\n  default = \"many\"\n}\n",
        &["Invalid default value", "on main.tf line 3"],
    );
    mistaken(
        "resource \"random_id\" \"r\" {\n  byte_length = \"many\"\n}\n",
        &[
            "Inappropriate value for attribute \"byte_length\": a number is required.",
            "on main.tf line 2, in resource \"random_id\" \"r\"",
        ],
    );
    mistaken(
        "resource \"terraform_data\" \"a\" {\n  for_each = [\"x\"]\n}\n",
        &[
            "Invalid for_each argument",
            "is of type tuple; it must be a map or a set of strings",
        ],
    );
    mistaken(
        "resource \"terraform_data\" \"a\" {\n  count = \"many\"\n}\n",
        &["Incorrect value type", "number is required"],
    );
    mistaken(
        "output \"o\" {\n  value = 1 + \"one\"\n}\n",
        &["Invalid operand", "number"],
    );
}

#[test]
fn a_missing_variable_without_a_terminal() {
    let w = Workspace::with(&[("main.tf", "variable \"size\" {\n  type = number\n}\n")]);
    for command in [
        &["plan", "-no-color"][..],
        &["apply", "-no-color", "-auto-approve"],
        &["plan", "-no-color", "-input=false"],
    ] {
        refused(
            &w,
            command,
            &[
                "No value for required variable",
                "\"size\"",
                "-var",
                "TF_VAR_size",
                "on main.tf line 1",
            ],
        );
    }
    refused(
        &w,
        &["plan", "-no-color", "-var=size=large"],
        &["Invalid value for input variable", "a number is required"],
    );
    refused(&w, &["plan", "-no-color", "-var=size"], &["size"]);
    refused(&w, &["plan", "-no-color", "-var-file=none.tfvars"], &["none.tfvars"]);
    w.run(&["plan", "-no-color", "-var=size=3"]).ok();
}

#[test]
fn checks_that_fail() {
    mistaken(
        r#"
variable "v" {
  default = 1
  validation {
    condition     = var.v > 1
    error_message = "It must be more than one, not ${var.v}."
  }
}
"#,
        &["Invalid value for variable", "It must be more than one, not 1."],
    );
    mistaken(
        r#"
locals {
  one = 1
}

resource "terraform_data" "a" {
  lifecycle {
    precondition {
      condition     = local.one > 2
      error_message = "One is not more than two."
    }
  }
}
"#,
        &["Resource precondition failed", "One is not more than two."],
    );
}

#[test]
fn what_a_plan_refuses_stays_as_it_is() {
    let w = Workspace::with(&[(
        "main.tf",
        "resource \"terraform_data\" \"a\" {\n  input = 1\n  lifecycle {\n    prevent_destroy = true\n  }\n}\n",
    )]);
    w.run(&["apply", "-no-color", "-auto-approve"]).ok();
    let before = files(&w);
    refused(
        &w,
        &["destroy", "-no-color", "-auto-approve"],
        &["Instance cannot be destroyed", "terraform_data.a"],
    );
    refused(
        &w,
        &["apply", "-no-color", "-auto-approve", "-replace=terraform_data.a"],
        &["Instance cannot be destroyed", "prevent_destroy"],
    );
    assert!(before == files(&w));
}

#[test]
fn hostile_depth_is_an_error() {
    let deep = format!(
        "output \"o\" {{\n  value = {}1{}\n}}\n",
        "(".repeat(50_000),
        ")".repeat(50_000)
    );
    let w = Workspace::with(&[("main.tf", &deep)]);
    refused(
        &w,
        &["plan", "-no-color"],
        &["Error: Nesting too deep", "on main.tf line 2, in output \"o\""],
    );
}

#[test]
fn a_file_that_is_not_text() {
    let w = Workspace::new();
    std::fs::write(w.dir().join("main.tf"), b"locals {\n  a = \"\xff\xfe\"\n}\n").expect("a file");
    refused(&w, &["plan", "-no-color"], &["main.tf", "UTF-8"]);
}
