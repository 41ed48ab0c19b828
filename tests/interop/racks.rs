//! Features of version 2 of the plugin SDK beyond a plain resource: identities, write-only arguments, blocks of each kind, timeouts, plans
//! that the provider customizes, differences that it suppresses, and states of earlier versions. Also nulls and empty values, which this
//! SDK does not distinguish. The same steps under Monoform and under Terraform give the same plans and states.

use serde_json::{Value, json};

use crate::catalog::Both;
use crate::{equal, shed};

const HEAD: &str = r#"
terraform {
  required_providers {
    shed = { source = "example.com/test/shed" }
  }
}
provider "shed" {
  directory = "racks"
}
variable "later" { default = "x" }
resource "terraform_data" "later" {
  input = var.later
}
"#;

/// Arguments of a rack from one step to the next: from none to all and back.
const STEPS: &[&str] = &[
    "",
    "note = \"A note\"\nweight = 1.5\nopen = true\nsecret = \"s\"\nnames = [\"a\", \"b\"]\nnumbers = [3, 1]\nlabels = { a = \"b\" }",
    // A difference in case is suppressed, and one in blanks changes nothing.
    "note = \"A NOTE\"\nweight = 1.5\nopen = false\nsecret = \"t\"\nnames = []\nnumbers = []\nlabels = {}\npolicy = \"x   y\"",
    "note = \"\"\nweight = 0\nopen = null\nnames = [\"\"]\nlabels = { a = \"\" }\npolicy = \"x y\"",
    // One or more blocks of each kind are added.
    r#"
height = 20
peg {
  label = "one"
}
peg {
  label  = "two"
  width  = 0
  colour = "red"
  fixed  = false
}
slot {
  label = "s"
  inner {
    label = "i"
  }
  inner {
    label = "j"
    width = 2
  }
}
slot {
  label = "t"
}
door {
  label = "d"
  lock {
    label = "l"
  }
}
timeouts {
  create = "5m"
}
"#,
    // A block of a set changes, one of a list is removed, and the single one changes; the height makes a new revision.
    r#"
height = 30
peg {
  label = "one"
  width = 1
}
peg {
  label  = "two"
  colour = "red"
  fixed  = false
}
slot {
  label = "t"
}
door {
  label = ""
  lock {
    label = "l"
    width = 3
  }
}
timeouts {
  create = "5m"
  delete = "1m"
}
either = [{ label = "attribute", width = null, fixed = null, colour = null }]
"#,
    // Unknown values in blocks of each kind.
    r#"
height = 30
note   = terraform_data.later.output
peg {
  label = terraform_data.later.output
}
dynamic "slot" {
  for_each = toset([terraform_data.later.input])
  content {
    label = terraform_data.later.id == "" ? "x" : "known"
  }
}
either {
  label = "block"
}
"#,
    // A smaller height replaces the object.
    "height = 5\neither = []",
    "height      = 5\nkey_wo      = \"abc\"\nkey_version = 1\nlifecycle {\n  ignore_changes = [note]\n}\nnote = \"ignored\"",
    "height      = 5\nkey_wo      = \"abcd\"\nkey_version = 2\nroom = \"other\"",
    "lifecycle {\n  create_before_destroy = true\n}\nheight = 4\nroom   = \"other\"",
];

fn rack(body: &str) -> String {
    format!("{HEAD}resource \"shed_rack\" \"a\" {{\nname = \"Anna\"\n{body}\n}}\n")
}

fn both(program: &'static str) -> Both {
    let files = [("racks/.keep", "")];
    let mut both = Both::new(shed(), "example.com/test/shed", "shed", &[], &files);
    both.program = program;
    both
}

fn life(both: &Both) {
    for (step, body) in STEPS.iter().enumerate() {
        both.apply(&rack(&body.replace("var.later", &step.to_string())));
    }
    // Another program changes the object.
    for w in [&both.ours, &both.theirs] {
        w.write(
            "racks/rack-anna.rack.json",
            r#"{"name":"Anna","room":"other","note":"","height":4,"weight":0,"names":[],"labels":{"x":"y"},"peg":[{"label":"p","width":0,"fixed":true,"colour":""}],"numbers":[7]}"#,
        );
    }
    both.apply(&rack("height = 4\nroom = \"other\""));
    // The state has the first version of the schema, as an old release of the provider wrote it.
    both.write("main.tf", &rack("height = 4\nroom = \"other\""));
    for w in [&both.ours, &both.theirs] {
        let mut state = w.state();
        let resources = state["resources"].as_array_mut().expect("resources");
        let rack = resources.iter_mut().find(|r| r["type"] == "shed_rack").expect("a rack");
        let instance = &mut rack["instances"][0];
        instance["schema_version"] = json!(0);
        instance["attributes"] = json!({"id": "rack-anna", "title": "Anna"});
        if both.program != "terraform" {
            instance["identity_schema_version"] = json!(0);
            instance["identity"] = json!({"rack": "Anna"});
        }
        w.write("terraform.tfstate", &state.to_string());
    }
    both.apply(&rack("height = 4\nroom = \"other\""));
    for (body, summary) in [
        ("height = 101", "a rack is at most 100 high"),
        ("key_wo = \"x\"", "Missing required argument"),
        (
            "door {\nlabel = \"a\"\n}\ndoor {\nlabel = \"b\"\n}",
            "Too many door blocks",
        ),
        ("door {}", "Missing required argument"),
        ("timeouts {\ncreate = \"soon\"\n}", "Error parsing \"create\" timeout"),
        ("timeouts {\nread = \"1m\"\n}", "Unsupported argument"),
        ("size = \"h\"", "Value for unconfigurable attribute"),
    ] {
        both.write("main.tf", &rack(body));
        both.fails(&["plan", "-no-color"], summary);
    }
    both.write("main.tf", &rack("height = 4\nroom = \"other\""));
    for ran in both.run(&["destroy", "-no-color", "-auto-approve"]) {
        ran.ok();
    }
    both.same_state();
}

pub fn as_in_terraform_1_16() {
    let both = both("terraform-1.16");
    both.write("main.tf", HEAD);
    let [ours, theirs] = both.run(&["providers", "schema", "-json"]).map(|ran| ran.json());
    let of = |all: &Value| all["provider_schemas"]["example.com/test/shed"].clone();
    equal("schema", &of(&ours), &of(&theirs));
    life(&both);
}

pub fn as_in_terraform_1_11() {
    life(&both("terraform"));
}

pub fn imported_by_identity() {
    let both = both("terraform-1.16");
    for name in ["anna", "bert"] {
        for w in [&both.ours, &both.theirs] {
            w.write(
                &format!("racks/rack-{name}.rack.json"),
                &json!({"name": name, "room": "main", "height": 10, "peg": [{"label": "p", "width": 1, "fixed": true, "colour": "red"}]}).to_string(),
            );
        }
    }
    let named = |label: &str, import: &str| {
        format!(
            "import {{\n  to = shed_rack.{label}\n  {import}\n}}\nresource \"shed_rack\" \"{label}\" {{\n  name = \"{label}\"\n}}\n"
        )
    };
    both.apply(&format!(
        "{HEAD}{}{}",
        named("anna", "identity = { name = \"anna\" }"),
        named("bert", "id = \"rack-bert\"")
    ));
    for (identity, summary) in [
        ("{ room = \"main\" }", "Incorrect value type"),
        (
            "{ name = \"nobody\", room = null }",
            "Cannot import non-existent remote object",
        ),
        ("{ name = terraform_data.next.id }", "Invalid import identity argument"),
    ] {
        both.write(
            "main.tf",
            &format!(
                "{HEAD}resource \"terraform_data\" \"next\" {{}}\n{}",
                named("nobody", &format!("identity = {identity}"))
            ),
        );
        both.fails(&["plan", "-no-color"], summary);
    }
}
