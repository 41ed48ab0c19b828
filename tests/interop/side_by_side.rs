//! The same configuration and the same Go provider under Terraform and under Monoform: the same plans, the same states.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::{equal, install_in_mirror, shed, shelf};
use support::{Ran, Workspace};

/// Replaces every ID by the same text, and drops values that differ from run to run.
fn comparable(document: &Value) -> Value {
    fn identities(value: &Value, out: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(id)) = map.get("id") {
                    out.insert(id.clone());
                }
                map.values().for_each(|v| identities(v, out));
            }
            Value::Array(list) => list.iter().for_each(|v| identities(v, out)),
            _ => {}
        }
    }
    let mut ids = BTreeSet::new();
    identities(document, &mut ids);
    let mut text = document.to_string();
    for id in ids {
        text = text.replace(&id, "ID");
    }
    let mut value: Value = serde_json::from_str(&text).expect("JSON");
    for name in ["timestamp", "lineage", "serial"] {
        if value.get(name).is_some() {
            value[name] = json!("");
        }
    }
    // Terraform lacks this information here for replaced objects, but the changes contain all of it.
    if let Some(planned) = value.get_mut("planned_values") {
        without(planned, "sensitive_values");
    }
    // The order has no meaning, and Terraform's differs from run to run.
    if let Some(relevant) = value.get_mut("relevant_attributes").and_then(Value::as_array_mut) {
        relevant.sort_by_key(ToString::to_string);
    }
    sort_checks(&mut value);
    support::scenario::compare::drop_forgotten(&mut value);
    without_what_1_11_lacks(&mut value);
    value
}

/// Returns true if the installed `terraform` has the release 1.11.
pub fn peer_is_1_11() -> bool {
    static IS: LazyLock<bool> = LazyLock::new(|| {
        let version = Workspace::new().terraform(&["version", "-json"]).ok().json();
        version["terraform_version"]
            .as_str()
            .is_some_and(|v| v.starts_with("1.11."))
    });
    *IS
}

/// Removes the version; with `terraform` 1.11.4 also the differences to the later release that Monoform answers as:
/// identities, the `store` of a `terraform_data`, and the parts of schemas that 1.11.4 does not have.
pub fn without_what_1_11_lacks(document: &mut Value) {
    without(document, "terraform_version");
    if !peer_is_1_11() {
        return;
    }
    for key in [
        "identity",
        "before_identity",
        "after_identity",
        "identity_schema_version",
        "resource_identity_schemas",
        "action_schemas",
        "list_resource_schemas",
        "state_store_schemas",
        "deprecation_message",
        "store",
    ] {
        without(document, key);
    }
}

/// Sorts the results of checks in a state: Terraform's order differs from run to run.
pub fn sort_checks(state: &mut Value) {
    let Some(results) = state.get_mut("check_results").and_then(Value::as_array_mut) else {
        return;
    };
    results.sort_by_key(|r| r["config_addr"].to_string());
    for objects in results.iter_mut().filter_map(|r| r["objects"].as_array_mut()) {
        objects.sort_by_key(|o| o["object_addr"].to_string());
    }
}

/// Removes a key everywhere.
fn without(value: &mut Value, key: &str) {
    match value {
        Value::Object(map) => {
            map.remove(key);
            map.values_mut().for_each(|v| without(v, key));
        }
        Value::Array(list) => list.iter_mut().for_each(|v| without(v, key)),
        _ => {}
    }
}

#[track_caller]
pub fn same(what: &str, ours: &Value, theirs: &Value) {
    equal(what, &comparable(ours), &comparable(theirs));
}

/// Runs both programs through these configurations, one after the other.
pub fn compare(new: impl Fn() -> Workspace, configurations: &[&str]) {
    compare_with("terraform", new, configurations);
}

/// Works like [`compare`], with this program in place of `terraform`.
pub fn compare_with(program: &str, new: impl Fn() -> Workspace, configurations: &[&str]) {
    let workspaces = [new(), new()];
    let run = |ours: bool, args: &[&str]| -> Ran {
        if ours {
            workspaces[0].run(args).ok()
        } else {
            workspaces[1].run_program(program, args).ok()
        }
    };
    let both = |args: &[&str]| [run(true, args), run(false, args)];
    let compare = |what: &str, args: &[&str]| {
        let [ours, theirs] = both(args);
        same(what, &ours.json(), &theirs.json());
    };
    for (step, configuration) in configurations.iter().enumerate() {
        for w in &workspaces {
            w.write("main.tf", configuration);
        }
        if step == 0 {
            both(&["init", "-no-color"]);
            let [mut ours, mut theirs] = both(&["providers", "schema", "-json"]).map(|ran| ran.json());
            // This provider is built into both programs, and has its own descriptions in each.
            for schemas in [&mut ours, &mut theirs] {
                without(schemas, "terraform.io/builtin/terraform");
            }
            same("providers schema", &ours, &theirs);
        }
        both(&["plan", "-no-color", "-out=the.plan"]);
        compare(&format!("plan {step}"), &["show", "-json", "the.plan"]);
        both(&["apply", "-no-color", "the.plan"]);
        compare(&format!("state {step} as shown"), &["show", "-json"]);
        same(&format!("state {step}"), &workspaces[0].state(), &workspaces[1].state());
        compare(&format!("outputs {step}"), &["output", "-json"]);
    }
    // The programs exchange their workspaces.
    workspaces[0].run_program(program, &["init", "-no-color"]).ok();
    workspaces[0]
        .run_program(program, &["plan", "-no-color", "-detailed-exitcode"])
        .ok();
    workspaces[1].run(&["plan", "-no-color", "-detailed-exitcode"]).ok();
}

pub fn books() {
    let provider = shelf();
    let new = || {
        let w = Workspace::new();
        std::fs::create_dir(w.dir().join("books")).expect("a directory");
        install_in_mirror(&w, provider, "example.com/test/shelf");
        w
    };
    let head = r#"
terraform {
  required_providers {
    shelf = {
      source  = "example.com/test/shelf"
      version = "~> 1.0"
    }
  }
}

variable "where" {
  default = "books"
}

provider "shelf" {
  directory = var.where
}
"#;
    let first = format!(
        "{head}{}",
        r#"
resource "shelf_book" "dune" {
  title    = "Dune"
  language = "en"
  author   = { name = "Frank Herbert", born = 1920 }
  chapters = [{ title = "One" }, { title = "Two" }]
}

resource "shelf_book" "many" {
  for_each = { a = 1, b = 2 }
  title    = "Volume ${each.key} after ${shelf_book.dune.title}"
  pages    = each.value
  author   = { name = "Somebody" }
}

data "shelf_title" "dune" {
  id = shelf_book.dune.id
}

output "title" {
  value = data.shelf_title.dune.title
}

output "dune" {
  value     = shelf_book.dune
  sensitive = true
}
"#
    );
    let second = first
        .replace("title = \"Two\"", "title = \"Zwei\"")
        .replace(", b = 2", ", c = 3")
        .replace("born = 1920", "born = 1921");
    let third = second.replace("\"en\"", "\"fr\"");
    compare(new, &[&first, &second, &third, head]);
}

pub fn refactoring() {
    let new = || Workspace::with(&[("m/main.tf", "resource \"terraform_data\" \"x\" {\n  input = \"m\"\n}\n")]);
    let first = r#"
resource "terraform_data" "old" {
  input = 1
}
resource "terraform_data" "counted" {
  input = 1
}
resource "terraform_data" "blocked" {
  input = 1
}
resource "terraform_data" "blocking" {
  input = 1
}
resource "terraform_data" "nowhere" {}
resource "terraform_data" "forgotten" {}
resource "terraform_data" "removed" {
  count = 2
}
"#;
    let second = r#"
variable "v" {
  default = 1
  validation {
    condition     = var.v > 0
    error_message = "Not positive."
  }
}
resource "terraform_data" "new" {
  input = 2
  lifecycle {
    postcondition {
      condition     = self.output == 2
      error_message = "Not two."
    }
  }
}
resource "terraform_data" "counted" {
  count = 2
  input = 1
}
resource "terraform_data" "blocking" {
  input = 3
}
moved {
  from = terraform_data.old
  to   = terraform_data.new
}
moved {
  from = terraform_data.blocked
  to   = terraform_data.blocking
}
moved {
  from = terraform_data.nowhere
  to   = terraform_data.gone
}
removed {
  from = terraform_data.forgotten
  lifecycle {
    destroy = false
  }
}
removed {
  from = terraform_data.removed
  lifecycle {
    destroy = true
  }
}
check "c" {
  assert {
    condition     = terraform_data.new.output == 3
    error_message = "Not three but ${terraform_data.new.output}."
  }
}
output "o" {
  value = terraform_data.counted[*].output
  precondition {
    condition     = terraform_data.new.output == 2
    error_message = "Not two."
  }
}
"#;
    let third = second.replace("input = 2\n", "input = 2\n  triggers_replace = var.v\n");
    compare(new, &[first, second, &third]);
}

pub fn tools() {
    let provider = shed();
    let new = || {
        let w = Workspace::new();
        std::fs::create_dir(w.dir().join("tools")).expect("a directory");
        install_in_mirror(&w, provider, "registry.terraform.io/hashicorp/shed");
        w
    };
    // Paths in the configuration are relative, so that the states are the same in both directories.
    let head = "provider \"shed\" {\n  directory = \"tools\"\n}\n";
    let first = format!(
        "{head}{}",
        // A collection that is left out is null after the creation, but empty after a refresh. For an object that is no
        // longer configured, Terraform shows the values from before the refresh, and Monoform those from after it. So
        // no collection is left out here.
        r#"
resource "shed_tool" "axe" {
  name   = "Axe"
  weight = 3
  tags   = ["sharp", "heavy"]
  labels = { owner = "me" }

  handle {
    material = "ash"
    length   = 60
  }

  part {
    name = "head"
  }

  dynamic "part" {
    for_each = ["wedge", "pin"]
    content {
      name   = part.value
      serial = "S-${part.key}"
    }
  }
}

resource "shed_tool" "plain" {
  count  = 2
  name   = "Tool ${count.index}"
  tags   = ["plain"]
  labels = { owner = "all" }
}

data "shed_weight" "axe" {
  tool = shed_tool.axe.id
}

output "weight" {
  value = data.shed_weight.axe.weight
}
"#
    );
    let second = first
        .replace("\"heavy\"", "\"light\"")
        .replace(", \"pin\"", "")
        .replace("count  = 2", "count  = 1");
    let third = second.replace("\"Axe\"", "\"Hatchet\"");
    compare(new, &[&first, &second, &third, head]);
}
