//! Identities, list resources, queries and generated configuration: the same configuration and the same provider under
//! Terraform 1.16 and under Monoform, with the same plans, states and events. The provider `catalog` is written in Go on the
//! plugin framework; `notes` is the example of our SDK.

use std::path::Path;

use serde_json::{Value, json};

use crate::authors::notes;
use crate::side_by_side::without_what_1_11_lacks;
use crate::{catalog_provider, equal, install, with_cli_config};
use support::{Ran, Workspace};

const THEIRS: &str = "terraform-1.16";

/// Equal workspaces for both programs, with development overrides for a provider.
pub struct Both {
    pub ours: Workspace,
    pub theirs: Workspace,
    /// Name of the Terraform to compare.
    pub program: &'static str,
}

impl Both {
    pub fn new(
        provider: &Path,
        address: &str,
        name: &str,
        environment: &[(&str, &str)],
        files: &[(&str, &str)],
    ) -> Both {
        let workspace = || {
            let mut w = Workspace::with(files);
            for (name, value) in environment {
                w = w.env(name, *value);
            }
            let bin = w.home().join("bin");
            install(provider, &bin, &format!("terraform-provider-{name}"));
            let text = format!(
                "provider_installation {{\n  dev_overrides {{\n    \"{address}\" = \"{}\"\n  }}\n  direct {{}}\n}}\n",
                bin.display()
            );
            with_cli_config(w, &text)
        };
        Both {
            ours: workspace(),
            theirs: workspace(),
            program: THEIRS,
        }
    }

    pub fn write(&self, name: &str, text: &str) {
        for w in [&self.ours, &self.theirs] {
            w.write(name, text);
        }
    }

    pub fn run(&self, args: &[&str]) -> [Ran; 2] {
        let ran = [self.ours.run(args), self.theirs.run_program(self.program, args)];
        assert_eq!(
            ran[0].status,
            ran[1].status,
            "{args:?}:\n{}\n{}",
            ran[0].all(),
            ran[1].all()
        );
        ran
    }

    /// Checks that both programs succeed with the same document.
    pub fn same_document(&self, args: &[&str]) {
        let [ours, theirs] = self.run(args);
        let [ours, theirs] = [ours.json(), theirs.json()].map(|document| self.comparable(document));
        equal(&args.join(" "), &ours, &theirs);
    }

    fn comparable(&self, document: Value) -> Value {
        let mut document = comparable(document);
        if self.program != THEIRS {
            without_what_1_11_lacks(&mut document);
        }
        document
    }

    pub fn same_state(&self) {
        equal(
            "state",
            &self.comparable(self.ours.state()),
            &self.comparable(self.theirs.state()),
        );
    }

    /// Plans, applies the plan, and checks that plan, state and output are the same.
    pub fn apply(&self, configuration: &str) {
        self.write("main.tf", configuration);
        for ran in self.run(&["plan", "-no-color", "-out=the.plan"]) {
            ran.ok();
        }
        self.same_document(&["show", "-json", "the.plan"]);
        for ran in self.run(&["apply", "-no-color", "the.plan"]) {
            ran.ok();
        }
        self.same_document(&["show", "-json"]);
        if self.program == THEIRS {
            self.same_document(&["state", "identities", "-json"]);
        }
        self.same_state();
    }

    /// Checks that both programs fail with an error of this summary.
    pub fn fails(&self, args: &[&str], summary: &str) {
        for ran in self.run(args) {
            assert_eq!(ran.status, 1, "{}", ran.all());
            assert!(
                ran.all().contains(&format!("Error: {summary}")),
                "{args:?}: {}",
                ran.all()
            );
        }
    }

    /// Returns the messages about lists in a query's stream, sorted, after checking that both programs write the same
    /// ones.
    fn same_events(&self, args: &[&str]) -> Vec<Value> {
        let [ours, theirs] = self.run(args).map(|ran| {
            let messages = ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON"));
            let mut messages: Vec<Value> = messages
                .filter(|m: &Value| m["type"].as_str().is_some_and(|ty| ty.starts_with("list")))
                .map(comparable)
                .collect();
            messages.sort_by_key(ToString::to_string);
            messages
        });
        equal(&args.join(" "), &json!(ours), &json!(theirs));
        ours
    }
}

/// Returns a document without values that differ from run to run, or from release to release.
fn comparable(mut document: Value) -> Value {
    fn drop(value: &mut Value) {
        match value {
            Value::Object(map) => {
                // Since 1.16 `terraform_data` has a block `store`.
                for name in [
                    "timestamp",
                    "@timestamp",
                    "lineage",
                    "serial",
                    "terraform_version",
                    "store",
                ] {
                    map.remove(name);
                }
                map.values_mut().for_each(drop);
            }
            Value::Array(list) => list.iter_mut().for_each(drop),
            // The ID of a `terraform_data` is random.
            Value::String(text) if text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12]) => {
                "UUID".clone_into(text);
            }
            _ => {}
        }
    }
    drop(&mut document);
    document
}

const HEAD: &str = r#"
terraform {
  required_providers {
    catalog = { source = "example.com/test/catalog" }
  }
}
provider "catalog" {
  directory = "items"
}
"#;

fn catalog(environment: &[(&str, &str)]) -> Both {
    let files = [(
        "items/item-carl.item.json",
        r#"{"name":"Carl","shelf":"","note":"n","tags":null}"#,
    )];
    Both::new(
        catalog_provider(),
        "example.com/test/catalog",
        "catalog",
        environment,
        &files,
    )
}

fn item(label: &str, arguments: &str) -> String {
    format!("resource \"catalog_item\" \"{label}\" {{\n{arguments}\n}}\n")
}

fn life(both: &Both) {
    let anna = |shelf: &str| {
        item(
            "a",
            &format!("name = \"Anna\"\nshelf = \"{shelf}\"\npassword = \"abc\""),
        )
    };
    let config = |items: &[String]| format!("{HEAD}{}", items.concat());
    let bert = item("b", "name = \"Bert\"\ntags = { x = provider::catalog::shout(\"y\") }");
    both.apply(&config(&[anna("one"), bert.clone()]));
    // The object is updated in place, and its identity changes; then it is replaced.
    both.apply(&config(&[anna("two"), bert.clone()]));
    both.apply(&config(&[anna("two"), bert.replace("Bert", "Bob")]));
    // The object is imported by identity, without the attributes that are optional for import.
    let import = |identity: &str| format!("import {{\n to = catalog_item.c\n identity = {identity}\n}}\n");
    let carl = item("c", "name = \"Carl\"\nnote = \"changed\"");
    both.apply(&config(&[carl.clone(), import("{ id = \"item-carl\" }")]));
    for (identity, summary) in [
        ("{ shelf = \"x\" }", "Incorrect value type"),
        ("null", "Invalid import identity argument"),
        ("{ id = \"none\" }", "Cannot import non-existent remote object"),
    ] {
        let other = |text: String| {
            text.replace("catalog_item.c", "catalog_item.d")
                .replace("\"c\"", "\"d\"")
        };
        both.write(
            "main.tf",
            &config(&[carl.clone(), other(carl.clone()), other(import(identity))]),
        );
        both.fails(&["plan", "-no-color"], summary);
    }
    // An identity of an earlier version is upgraded.
    both.write("main.tf", &config(std::slice::from_ref(&carl)));
    for w in [&both.ours, &both.theirs] {
        let mut state = w.state();
        state["resources"][0]["instances"][0]["identity_schema_version"] = json!(1);
        state["resources"][0]["instances"][0]["identity"] = json!({"item": "item-carl"});
        w.write("terraform.tfstate", &state.to_string());
    }
    both.apply(&config(std::slice::from_ref(&carl)));
    // Each program continues from the other program's state.
    both.theirs.run(&["plan", "-no-color", "-detailed-exitcode"]).ok();
    both.ours
        .run_program(THEIRS, &["plan", "-no-color", "-detailed-exitcode"])
        .ok();
    // An object that moved from another type gets its new identity.
    let data = "resource \"terraform_data\" \"old\" {\n  input = \"Dora\"\n}\n".to_owned();
    both.apply(&config(&[carl.clone(), data]));
    for ran in both.run(&["destroy", "-no-color", "-auto-approve"]) {
        ran.ok();
    }
}

pub fn identities_as_in_terraform_1_16() {
    let both = catalog(&[]);
    both.write("main.tf", HEAD);
    let [ours, theirs] = both.run(&["providers", "schema", "-json"]).map(|ran| ran.json());
    let of = |all: &Value| all["provider_schemas"]["example.com/test/catalog"].clone();
    equal("schema", &of(&ours), &of(&theirs));
    life(&both);
}

pub fn identities_over_protocol_5() {
    life(&catalog(&[("CATALOG_PROTOCOL", "5")]));
}

const LISTS: &str = r#"
list "catalog_item" "all" {
  provider = catalog
}
list "catalog_item" "some" {
  provider         = catalog
  include_resource = true
  limit            = 1
  config {
    prefix = var.begin
    secret = sensitive("s")
  }
}
list "catalog_item" "none" {
  provider = catalog
  config { prefix = "zzz" }
}
list "catalog_item" "each" {
  provider = catalog
  for_each = { for r in list.catalog_item.some.data : r.display_name => r.identity.id }
}
"#;

pub fn queries_as_in_terraform_1_16() {
    let both = catalog(&[]);
    both.write(
        "main.tf",
        &format!("{HEAD}variable \"begin\" {{\n  default = \"C\"\n}}\n"),
    );
    both.write(
        "items/item-ada.item.json",
        r#"{"name":"Ada","shelf":"s","note":"n","tags":{"a":"b"}}"#,
    );
    both.fails(&["query", "-no-color"], "No resources to query");
    both.write("all.tfquery.hcl", LISTS);
    for ran in both.run(&["validate", "-query", "-no-color"]) {
        ran.ok();
    }
    let events = both.same_events(&["query", "-json"]);
    assert_eq!(events.iter().filter(|e| e["type"] == "list_complete").count(), 4);
    both.same_events(&["query", "-json", "-generate-config-out=generated.txt"]);
    let lines = |ran: &Ran| {
        let mut lines: Vec<String> = ran
            .stdout
            .lines()
            .filter(|l| l.starts_with("list."))
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    };
    let [ours, theirs] = both.run(&["query", "-no-color", "-var", "begin=A"]);
    assert_eq!(lines(&ours), lines(&theirs));
    assert!(
        ours.stdout
            .contains("list block(s) [list.catalog_item.none] returned 0 results."),
        "{}",
        ours.all()
    );

    // The generated configuration plans no changes except the imports.
    both.write(
        "all.tfquery.hcl",
        "list \"catalog_item\" \"all\" {\n  provider = catalog\n}\n",
    );
    for ran in both.run(&["query", "-no-color", "-generate-config-out=generated.tf"]) {
        ran.ok();
    }
    let text = |w: &Workspace| {
        let lines: Vec<String> = w.read("generated.tf").lines().skip(1).map(str::to_owned).collect();
        lines
            .into_iter()
            .filter(|line| !line.starts_with("# __generated__"))
            .collect::<Vec<_>>()
    };
    assert_eq!(text(&both.ours), text(&both.theirs));
    both.fails(
        &["query", "-no-color", "-generate-config-out=generated.tf"],
        "Target generated file already exists",
    );
    for ran in both.run(&["apply", "-no-color", "-auto-approve"]) {
        ran.ok().shows(&["2 imported, 0 added, 0 changed, 0 destroyed"]);
    }
    both.same_state();
    for (query, summary) in [
        ("config { prefix = \"forbidden\" }", "Forbidden prefix"),
        ("config { wrong = 1 }", "Unsupported argument"),
        ("limit = -1", "Invalid limit argument"),
    ] {
        let query = format!("list \"catalog_item\" \"all\" {{\n  provider = catalog\n  {query}\n}}\n");
        both.write("all.tfquery.hcl", &query);
        both.fails(&["query", "-no-color"], summary);
    }
}

pub fn notes_as_in_terraform_1_16() {
    const NOTES: &str = r#"
terraform {
  required_providers {
    notes = { source = "example/notes" }
  }
}
provider "notes" {
  directory = "notes"
}
"#;
    let files = [("notes/one", "1\n"), ("notes/other", "2\n")];
    let both = Both::new(notes(), "registry.terraform.io/example/notes", "notes", &[], &files);
    both.apply(&format!(
        "{NOTES}resource \"notes_note\" \"a\" {{\n  name = \"a\"\n  text = \"x\"\n}}\n"
    ));
    both.write(
        "all.tfquery.hcl",
        "list \"notes_note\" \"all\" {\n  provider = notes\n  config {\n    prefix = \"o\"\n  }\n}\n",
    );
    let events = both.same_events(&["query", "-json", "-generate-config-out=generated.txt"]);
    assert_eq!(events.len(), 4, "{events:#?}");
    both.apply(&format!(
        "{NOTES}import {{\n  to = notes_note.one\n  identity = {{ name = \"one\" }}\n}}\nresource \"notes_note\" \"one\" {{\n  name = \
         \"one\"\n  text = \"1\\n\"\n}}\n"
    ));
}
