//! Features of version 2 of the plugin SDK beyond plain attributes, under Terraform and under Monoform: identities, write-only
//! attributes, timeouts, customised plans, suppressed differences, states of earlier versions.

use serde_json::{Value, json};

use crate::side_by_side::{compare, same};
use crate::{install_in_mirror, shed};
use support::Workspace;

const HEAD: &str = "provider \"shed\" {\n  directory = \"machines\"\n}\n";

fn new() -> Workspace {
    let w = Workspace::new();
    std::fs::create_dir(w.dir().join("machines")).expect("a directory");
    install_in_mirror(&w, shed(), "registry.terraform.io/hashicorp/shed");
    w
}

const FIRST: &str = r#"
resource "shed_machine" "all" {
  name             = "all"
  size             = 20
  zone             = "north"
  note             = "  kept without blanks "
  password         = "secret"
  password_version = 1

  disk {
    label = "system"
  }
  disk {
    label = "data"
    size  = 5
  }
  network {
    public = true
  }
  timeouts {
    create = "30s"
  }
}

resource "shed_machine" "least" {
  name = "least"
}

resource "terraform_data" "after" {
  input = shed_machine.all.label
}

output "label" {
  value = shed_machine.all.label
}
"#;

/// Each step of a machine's life has the same plan and the same state.
pub fn lives() {
    // In upper case, the zone is unchanged for the provider. A larger size makes the label unknown, and a block of a set is removed.
    let second = FIRST
        .replace("\"north\"", "\"NORTH\"")
        .replace("size             = 20", "size             = 30")
        .replace("  disk {\n    label = \"system\"\n  }\n", "");
    // A smaller size replaces the object, and the password is written again.
    let third = second
        .replace("size             = 30", "size             = 5")
        .replace("\"secret\"", "\"other secret\"")
        .replace("password_version = 1", "password_version = 2");
    // The computed block does not change; the timeouts and the rest are removed.
    let fourth = third
        .replace("  network {\n    public = true\n  }\n", "")
        .replace("  timeouts {\n    create = \"30s\"\n  }\n", "")
        .replace("  note             = \"  kept without blanks \"\n", "")
        .replace("  password         = \"other secret\"\n", "");
    let steps: Vec<String> = [FIRST, &second, &third, &fourth, ""]
        .iter()
        .map(|text| format!("{HEAD}{text}"))
        .collect();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    compare(new, &steps);
}

/// Returns two workspaces with the same configuration, the first applied by Monoform and the second by Terraform.
fn applied(configuration: &str) -> [Workspace; 2] {
    let both = [new(), new()];
    for w in &both {
        w.write("main.tf", &format!("{HEAD}{configuration}"));
    }
    both[0].run(&["apply", "-auto-approve"]).ok();
    both[1].terraform(&["init"]).ok();
    both[1].terraform(&["apply", "-auto-approve"]).ok();
    both
}

/// Plans and applies with Monoform in the first workspace, and with Terraform in the second. Checks that the plans and
/// the new states are the same, and returns the plans.
fn same_from_here(what: &str, both: &[Workspace; 2]) -> [Value; 2] {
    let plan = ["plan", "-out=the.plan"];
    both[0].run(&plan).ok();
    both[1].terraform(&plan).ok();
    let show = ["show", "-json", "the.plan"];
    let plans = [both[0].run(&show).ok().json(), both[1].terraform(&show).ok().json()];
    same(&format!("plan of {what}"), &plans[0], &plans[1]);
    both[0].run(&["apply", "the.plan"]).ok();
    both[1].terraform(&["apply", "the.plan"]).ok();
    same(&format!("state of {what}"), &both[0].state(), &both[1].state());
    plans
}

/// The provider upgrades a state of the resource's earlier version.
pub fn states_of_an_earlier_version() {
    let both = applied("resource \"shed_machine\" \"m\" {\n  name = \"mill\"\n  size = 12\n}\n");
    for w in &both {
        let mut state = w.state();
        let instance = &mut state["resources"][0]["instances"][0];
        instance["schema_version"] = json!(0);
        instance["attributes"] = json!({"id": "mill", "name": "mill", "size_gb": "12"});
        w.write("terraform.tfstate", &state.to_string());
    }
    let [ours, _] = same_from_here("an upgraded state", &both);
    assert_eq!(ours["resource_changes"][0]["change"]["actions"], json!(["no-op"]));
    // If a state cannot be upgraded, the error contains the provider's reason, and the state does not change.
    for (index, w) in both.iter().enumerate() {
        let mut state = w.state();
        let instance = &mut state["resources"][0]["instances"][0];
        instance["schema_version"] = json!(0);
        instance["attributes"] = json!({"id": "mill", "name": "mill", "size_gb": "much"});
        w.write("terraform.tfstate", &state.to_string());
        let before = w.read("terraform.tfstate");
        let ran = match index {
            0 => w.run(&["apply", "-auto-approve"]),
            _ => w.terraform(&["apply", "-auto-approve"]),
        };
        ran.fails_with(&["expected integer"]);
        assert_eq!(w.read("terraform.tfstate"), before);
    }
}

/// Objects are imported by their IDs, and by their identities if the other program knows them.
pub fn imports() {
    let make = "resource \"shed_machine\" \"m\" {\n  name = \"mill\"\n  zone = \"south\"\n\n  disk {\n    label = \"d\"\n  }\n}\n";
    let mut ways = vec!["  id = \"mill\"\n"];
    if !crate::side_by_side::peer_is_1_11() {
        ways.push("  identity = {\n    name = \"mill\"\n  }\n");
    }
    for way in ways {
        let both = applied(make);
        for (index, w) in both.iter().enumerate() {
            match index {
                0 => w.run(&["state", "rm", "shed_machine.m"]).ok(),
                _ => w.terraform(&["state", "rm", "shed_machine.m"]).ok(),
            };
            w.write("import.tf", &format!("import {{\n  to = shed_machine.m\n{way}}}\n"));
        }
        let [ours, _] = same_from_here("an import", &both);
        assert!(ours["resource_changes"][0]["change"]["importing"].is_object(), "{ours}");
    }
    // The object to import does not exist, which is an error.
    let w = new();
    w.write(
        "main.tf",
        &format!("{HEAD}{make}import {{\n  to = shed_machine.m\n  id = \"nobody\"\n}}\n"),
    );
    w.run(&["plan"])
        .fails_with(&["Cannot import non-existent remote object"]);
}

/// No file that either program leaves contains a write-only value.
pub fn write_only_values_are_nowhere() {
    let both = applied(FIRST);
    for w in &both {
        let state = w.state();
        let machine = state["resources"]
            .as_array()
            .expect("resources")
            .iter()
            .find(|r| r["name"] == "all");
        let attributes = &machine.expect("the machine")["instances"][0]["attributes"];
        assert_eq!(
            (&attributes["password"], &attributes["password_length"]),
            (&json!(null), &json!(6))
        );
        assert!(!w.read("terraform.tfstate").contains("secret"));
    }
    let w = &both[0];
    w.write(
        "main.tf",
        &format!("{HEAD}{}", FIRST.replace("  password_version = 1\n", "")),
    );
    w.run(&["validate"]).fails_with(&["password_version"]);
}
