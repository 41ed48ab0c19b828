//! Output of commands with `-json`, checked against the JSON Schemas that `help json` shows.

use std::collections::BTreeSet;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;
use support::{Ran, Workspace};

pub const TESTS: &[(&str, fn())] = &[
    ("documents::fit_their_schemas", fit),
    ("documents::each_command_with_json_has_a_schema", complete),
    ("documents::a_graph_has_actions", graph),
    ("documents::a_schema_refuses_what_is_missing_and_unknown", strict),
];

/// The schemas that the executable prints, their compiler, and the names of those that were used.
struct Documents {
    schemas: Schemas,
    compiler: Compiler,
    used: BTreeSet<String>,
}

impl Documents {
    fn new() -> Documents {
        Documents {
            schemas: Schemas::new(),
            compiler: Compiler::new(),
            used: BTreeSet::new(),
        }
    }

    fn schema(&mut self, name: &str) -> SchemaIndex {
        let place = format!("{name}.json");
        if self.used.insert(name.to_owned()) {
            let shown = Workspace::new().run(&["help", "json", name]).ok().json();
            self.compiler.add_resource(&place, shown).expect("a schema");
        }
        let compiled = self.compiler.compile(&place, &mut self.schemas);
        compiled.unwrap_or_else(|error| panic!("{name}: {error:#}"))
    }

    #[track_caller]
    fn fits(&mut self, name: &str, document: &Value) {
        let schema = self.schema(name);
        if let Err(error) = self.schemas.validate(document, schema) {
            panic!("{name}: {error:#}\n{document:#}");
        }
    }

    /// Checks the document of a command against its schema, and returns it.
    #[track_caller]
    fn record(&mut self, name: &str, ran: &Ran) -> Value {
        let document = ran.json();
        self.fits(name, &document);
        document
    }

    #[track_caller]
    fn stream(&mut self, ran: &Ran) {
        assert!(!ran.stdout.is_empty(), "{}", ran.all());
        for line in ran.stdout.lines() {
            let document = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
            self.fits("stream", &document);
        }
    }
}

const MAIN: &str = r#"
terraform {
  required_providers {
    random = {
      source  = "hashicorp/random"
      version = ">= 3.0.0"
    }
  }
}

variable "name" {
  default = "x"
  validation {
    condition     = var.name != ""
    error_message = "empty"
  }
}

resource "terraform_data" "each" {
  for_each = toset(["x"])
  input    = var.name
  lifecycle {
    precondition {
      condition     = var.name != ""
      error_message = "empty"
    }
  }
}

resource "random_password" "secret" {
  length = 8
}

data "terraform_remote_state" "none" {
  count   = 0
  backend = "local"
}

module "below" {
  source = "./below"
  count  = 1
  name   = terraform_data.each["x"].output
}

check "named" {
  assert {
    condition     = var.name != "z"
    error_message = "z"
  }
}

output "secret" {
  value     = random_password.secret.result
  sensitive = true
}

output "object" {
  value       = { a = [1, true], b = null }
  description = "an object"
}
"#;

const BELOW: &str = r#"
variable "name" {}

resource "terraform_data" "inner" {
  input            = var.name
  triggers_replace = [var.name]
  provisioner "local-exec" {
    command = "echo made"
  }
}

output "id" {
  value = terraform_data.inner.id
}
"#;

const TESTS_OF: &str = r#"
run "one" {
  assert {
    condition     = terraform_data.each["x"].output == "x"
    error_message = "not x"
  }
}

run "fails" {
  command = plan
  assert {
    condition     = var.name == "y"
    error_message = "not y"
  }
}
"#;

fn workspace() -> Workspace {
    Workspace::with(&[
        ("main.tf", MAIN),
        ("below/main.tf", BELOW),
        ("one.tftest.hcl", TESTS_OF),
        ("untidy.tf", "locals {\n a = 1\n}\n"),
    ])
}

fn fit() {
    let mut d = Documents::new();
    let w = workspace();
    d.stream(&w.run(&["init", "-json"]).ok());
    d.record("validate", &w.run(&["validate", "-json"]).ok());
    d.record("graph", &w.run(&["graph", "-json"]).ok());
    d.record("show", &w.run(&["show", "-json"]).ok());
    d.stream(&w.run(&["plan", "-json", "-out=p"]).ok());
    d.record("show", &w.run(&["show", "-json", "p"]).ok());
    d.record(
        "explain",
        &w.run(&["explain", "-json", "-plan=p", "terraform_data.each"]).ok(),
    );
    d.stream(&w.run(&["apply", "-json", "p"]).ok());
    d.record("show", &w.run(&["show", "-json"]).ok());
    d.record(
        "explain",
        &w.run(&["explain", "-json", "module.below[0].terraform_data.inner"])
            .ok(),
    );
    d.record("output", &w.run(&["output", "-json"]).ok());
    w.run(&["taint", "random_password.secret"]).ok();
    d.record("state-list", &w.run(&["state", "list", "-json"]).ok());
    d.record(
        "state-show",
        &w.run(&["state", "show", "-json", "random_password.secret"]).ok(),
    );
    let missing = w.run(&["state", "show", "-json", "random_password.secrets"]);
    assert_eq!(d.record("state-show", &missing)["diagnostics"][0]["severity"], "error");
    d.record("state-identities", &w.run(&["state", "identities", "-json"]).ok());
    d.record("workspace-list", &w.run(&["workspace", "list", "-json"]).ok());
    d.record("providers", &w.run(&["providers", "-json"]).ok());
    d.record("providers-schema", &w.run(&["providers", "schema", "-json"]).ok());
    d.record("version", &w.run(&["version", "-json"]).ok());
    d.record("modules", &w.run(&["modules", "-json"]).ok());
    d.record("metadata-functions", &w.run(&["metadata", "functions", "-json"]).ok());
    d.record("doctor", &w.run(&["doctor", "-json"]));
    d.record("self-check", &w.run(&["self-check", "-json"]).ok());
    d.record("fmt", &w.run(&["fmt", "-json", "-check", "-diff"]));
    d.stream(&w.run(&["refresh", "-json"]).ok());
    d.stream(&w.run(&["test", "-json"]));
    w.run(&["test", "-coverage", "-coverage-json=coverage.json"]);
    d.fits(
        "coverage",
        &serde_json::from_str(&w.read("coverage.json")).expect("JSON"),
    );
    w.run(&["plan", "-out=replace", "-var=name=y"]).ok();
    d.record("show", &w.run(&["show", "-json", "replace"]).ok());
    d.record(
        "explain",
        &w.run(&[
            "explain",
            "-json",
            "-plan=replace",
            "module.below[0].terraform_data.inner",
        ])
        .ok(),
    );
    let summary = d.record("plan-summary", &w.run(&["show", "-json", "-summary", "replace"]).ok());
    let streamed = w.run(&["plan", "-json", "-summary", "-fail-on=update,replace", "-var=name=y"]);
    d.stream(&streamed);
    assert_eq!(streamed.status, 3, "{}", streamed.all());
    let lines = streamed
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let lines: Vec<Value> = lines.collect();
    let of = |ty: &str| lines.iter().filter(|line| line["type"] == ty).collect::<Vec<_>>();
    assert_eq!(of("plan_summary")[0]["plan_summary"], summary);
    // Objects are only in the summary, not in messages of their own.
    for left_out in ["refresh_start", "refresh_complete", "planned_change"] {
        assert!(of(left_out).is_empty(), "{left_out}: {}", streamed.stdout);
    }
    d.record("graph", &w.run(&["graph", "-json", "-plan=replace"]).ok());
    d.record(
        "graph",
        &w.run(&["graph", "-json", "-type=apply", "-plan=replace"]).ok(),
    );
    d.record("graph", &w.run(&["graph", "-json", "-type=plan"]).ok());
    d.stream(&w.run(&["destroy", "-json", "-auto-approve"]).ok());
    // These configurations have mistakes, so the documents contain lines of the source.
    w.write("untidy.tf", "locals {\n  a = upper(\n}\n");
    d.record("fmt", &w.run(&["fmt", "-json"]));
    d.record("validate", &w.run(&["validate", "-json"]));
    w.write("untidy.tf", "locals {\n  a = max(var.name, [])\n}\n");
    d.stream(&w.run(&["plan", "-json"]));
    d.record("validate", &w.run(&["validate", "-json", "-nothing"]));
    let pack = w
        .run_program(support::lean(), &["pack", "-out=packed", "-config=below"])
        .ok();
    assert!(w.exists("packed"), "{}", pack.all());
    d.record("pack-list", &w.run(&["pack", "-list", "-json", "packed"]).ok());
    d.record(
        "self-check",
        &w.run_program(w.dir().join("packed"), &["self-check", "-json"]).ok(),
    );
    std::os::unix::fs::symlink(support::lean(), w.dir().join("terraform-provider-random")).expect("a link");
    let checked = w.run(&[
        "provider",
        "check",
        "-json",
        "-timeout=60s",
        "terraform-provider-random",
    ]);
    d.record("provider-check", &checked.ok());
    let mut all: BTreeSet<String> = named(&w).into_iter().map(|(name, _)| name).collect();
    // These two documents need a server; tests/backends/postgres_objects.rs checks them.
    all.retain(|name| !matches!(name.as_str(), "state-history" | "state-query"));
    assert_eq!(d.used, all, "a document that no command was seen to print");
}

/// Returns the documents that `help json` lists, with the commands that print them.
fn named(w: &Workspace) -> Vec<(String, String)> {
    let page = w.run(&["help", "json"]).ok().stdout;
    let mut out: Vec<(String, String)> = Vec::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("  ")) {
        match (line.trim().split_once("  "), out.last_mut()) {
            (Some((name, command)), _) if !line.starts_with(' ') => {
                out.push((name.to_owned(), command.trim().to_owned()));
            }
            (_, Some((_, commands))) => commands.push_str(&format!(" {}", line.trim())),
            _ => {}
        }
    }
    assert!(out.len() > 15, "{page}");
    out
}

/// Each command with the flag `-json` is listed with a document.
fn complete() {
    let w = Workspace::new();
    let commands: Vec<String> = named(&w)
        .into_iter()
        .flat_map(|(_, commands)| commands.split(", ").map(str::to_owned).collect::<Vec<_>>())
        .collect();
    for path in crate::flags::commands(&w) {
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        let page = w.run(&[&words[..], &["-help"]].concat()).ok().stdout;
        let has = crate::flags::flags(&page).iter().any(|(name, _)| name == "json");
        let prefix = format!("{} ", path.join(" "));
        let is_named = commands
            .iter()
            .any(|command| command.starts_with(&prefix) && command.ends_with(" -json"));
        assert_eq!(has, is_named, "{path:?}\n{commands:#?}");
    }
    w.run(&["help", "json", "stat-list"])
        .fails_with(&["No such document", "Did you mean \"state-list\"?"]);
}

fn graph() {
    let w = workspace();
    w.run(&["init"]).ok();
    let drawn = w.run(&["graph", "-json"]).ok().json();
    assert_eq!(drawn["kind"], "resources");
    let node = |drawn: &Value, id: &str| {
        let nodes = drawn["nodes"].as_array().expect("nodes").clone();
        nodes.into_iter().find(|node| node["id"] == id)
    };
    let inner = node(&drawn, "module.below.terraform_data.inner").expect("the node");
    assert_eq!(
        inner,
        serde_json::json!({
            "id": "module.below.terraform_data.inner",
            "address": "module.below.terraform_data.inner",
            "module_address": "module.below",
            "mode": "managed",
            "type": "terraform_data",
            "name": "inner",
        })
    );
    let edge = serde_json::json!({"from": "module.below.terraform_data.inner", "to": "terraform_data.each"});
    assert!(drawn["edges"].as_array().expect("edges").contains(&edge), "{drawn:#}");
    w.run(&["plan", "-out=p"]).ok();
    let planned = w.run(&["graph", "-json", "-plan=p"]).ok().json();
    assert_eq!(
        node(&planned, "terraform_data.each").expect("the node")["changes"],
        serde_json::json!([{"address": "terraform_data.each[\"x\"]", "actions": ["create"]}])
    );
    let operation = w.run(&["graph", "-json", "-type=plan"]).ok().json();
    assert_eq!(operation["kind"], "operation");
    let ids: BTreeSet<String> = operation["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .map(|node| node["id"].to_string())
        .collect();
    assert_eq!(
        ids.len(),
        operation["nodes"].as_array().expect("nodes").len(),
        "{operation:#}"
    );
    for edge in operation["edges"].as_array().expect("edges") {
        for end in ["from", "to"] {
            assert!(ids.contains(&edge[end].to_string()), "{edge}");
        }
    }
    // Resources that only the state has keep the order that the state records.
    w.run(&["apply", "-auto-approve"]).ok();
    let orphans = Workspace::with(&[("main.tf", "")]);
    orphans.write("terraform.tfstate", &w.read("terraform.tfstate"));
    orphans.run(&["init"]).ok();
    let gone = orphans.run(&["graph", "-json"]).ok().json();
    assert!(gone["edges"].as_array().expect("edges").contains(&edge), "{gone:#}");
    orphans
        .run(&["graph"])
        .ok()
        .shows(&["\"module.below.terraform_data.inner\" -> \"terraform_data.each\""]);
    w.write("cycle.tf", "locals {\n  c = local.d\n  d = local.c\n}\n");
    w.run(&["graph", "-json"]).fails_with(&["Cycle: local.c, local.d"]);
    let cycles = w.run(&["graph", "-json", "-type=plan", "-draw-cycles"]).ok().json();
    assert!(cycles["edges"].to_string().contains("\"in_cycle\":true"), "{cycles:#}");
    w.run(&["graph", "-json", "-format=mermaid"])
        .fails_with(&["leave out -format"]);
}

fn strict() {
    let mut d = Documents::new();
    let schema = d.schema("workspace-list");
    let document = |extra: &str| -> Value {
        let text = format!("{{\"format_version\": \"1.0\", \"workspaces\": [{extra}], \"diagnostics\": []}}");
        serde_json::from_str(&text).expect("JSON")
    };
    for (workspace, fits) in [
        ("{\"name\": \"x\"}", true),
        ("{}", false),
        ("{\"name\": 1}", false),
        ("{\"name\": \"x\", \"unknown\": 1}", false),
    ] {
        let document = document(workspace);
        let result = d.schemas.validate(&document, schema);
        assert_eq!(result.is_ok(), fits, "{workspace}");
    }
}
