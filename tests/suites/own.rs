//! Features of `test` beyond Terraform's: coverage, reruns of failures, watching of files, and the output on a terminal.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::Value;
use support::Workspace;
use support::terminal::Terminal;

/// Time limit for a suite, far longer than a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn trials() -> Vec<Trial> {
    let all: [(&str, fn()); 12] = [
        ("coverage", coverage),
        ("coverage of modules and objects", coverage_of_modules),
        ("only what failed is run again", rerun),
        ("watched files", watch),
        ("what only a terminal shows", live),
        ("flags that exclude each other", exclusive),
        ("a schema is asked for once", one_schema),
        ("plans and states for programs", verbose_json),
        ("values that must not be shown", hidden),
        ("values of ephemeral resources in assertions", opened),
        ("ephemeral resources of a mocked provider", mocked_ephemeral),
        ("providers that no module requires", unknown_provider),
    ];
    let trial = |(name, test): (&str, fn())| {
        Trial::test(format!("own/{name}"), move || {
            test();
            Ok(())
        })
    };
    all.into_iter().map(trial).collect()
}

const MODULE: &str = r#"variable "big" {
  default = false
  validation {
    condition     = var.big != null
    error_message = "Big or not."
  }
}

locals {
  size = var.big ? (var.big == true ? 10 : 20) : 4
}

resource "random_string" "a" {
  length = local.size
}

resource "random_pet" "big" {
  count = var.big ? 1 : 0
}

output "a" {
  value = random_string.a.result
}

check "long" {
  assert {
    condition     = length(random_string.a.result) > 2
    error_message = "Short."
  }
}
"#;

const SMALL: &str = "mock_provider \"random\" {}\nrun \"small\" {}\n";

fn coverage() {
    let w = Workspace::with(&[("main.tf", MODULE), ("main.tftest.hcl", SMALL)]);
    let ran = w
        .run(&[
            "test",
            "-no-color",
            "-coverage",
            "-coverage-json=c.json",
            "-coverage-lcov=c.lcov",
        ])
        .ok();
    assert!(
        ran.stdout.ends_with(
            "\nSuccess! 1 passed, 0 failed.\n\nCoverage of the module by its tests:\n  resources      1 of 2\n  output values  1 of 1\n  \
             local values   1 of 1\n  conditions     2 of 2\n  branches       2 of 6\n\nWhat no run has come upon:\n  main.tf:10: \
             result for true\n  main.tf:10: result for true\n  main.tf:10: result for false\n  main.tf:17: random_pet.big\n  \
             main.tf:18: result for true\n"
        ),
        "{}",
        ran.all()
    );
    let report: Value = serde_json::from_str(&w.read("c.json")).expect("JSON");
    assert_eq!(
        report["totals"]["resource"],
        serde_json::json!({"covered": 1, "total": 2})
    );
    let items = report["items"].as_array().expect("items");
    let pet = items
        .iter()
        .find(|i| i["name"] == "random_pet.big")
        .expect("the resource");
    assert_eq!(
        (&pet["line"], &pet["hits"], &pet["kind"]),
        (&17.into(), &0.into(), &"resource".into())
    );
    let lcov = w.read("c.lcov");
    assert!(lcov.starts_with("TN:\nSF:main.tf\nBRDA:10,0,0,0\n"), "{lcov}");
    assert!(
        lcov.contains("\nBRF:6\nBRH:2\n") && lcov.contains("\nDA:17,0\n"),
        "{lcov}"
    );
    assert!(lcov.ends_with("end_of_record\n"), "{lcov}");

    // Another run covers the rest, except for code that no run can reach.
    let more = format!("{SMALL}run \"big\" {{\n  command = plan\n  variables {{\n    big = true\n  }}\n}}\n");
    w.write("main.tftest.hcl", &more);
    let ran = w.run(&["test", "-json", "-coverage"]).ok();
    let line = ran
        .stdout
        .lines()
        .find(|l| l.contains("\"type\":\"test_coverage\""))
        .expect("a report");
    let report: Value = serde_json::from_str(line).expect("JSON");
    let totals = &report["test_coverage"]["totals"];
    assert_eq!(totals["branch"], serde_json::json!({"covered": 5, "total": 6}));
    assert_eq!(totals["resource"], serde_json::json!({"covered": 2, "total": 2}));
    w.run(&["test", "-coverage-json=no/such/dir.json"])
        .fails_with(&["Failed to write the coverage", "no/such/dir.json"]);
}

fn coverage_of_modules() {
    let w = Workspace::with(&[
        (
            "main.tf",
            "module \"m\" {\n  source = \"./m\"\n  count = 0\n}\nmodule \"n\" {\n  source = \"./n\"\n}\n",
        ),
        ("m/main.tf", "output \"x\" {\n  value = 1\n}\n"),
        (
            "n/main.tf",
            "output \"y\" {\n  value = 1\n}\nresource \"terraform_data\" \"d\" {}\n",
        ),
        ("main.tftest.hcl", "run \"r\" {}\n"),
    ]);
    let ran = w.run(&["test", "-no-color", "-coverage"]).ok();
    assert!(
        ran.stdout.ends_with(
            "  resources      1 of 1\n  output values  1 of 2\n\nWhat no run has come upon:\n  m/main.tf:1: output.x\n"
        ),
        "{}",
        ran.all()
    );
    // A run in the module itself counts, too.
    w.write(
        "m.tftest.hcl",
        "run \"r\" {\n  module {\n    source = \"./m\"\n  }\n}\n",
    );
    w.run(&["test", "-no-color", "-coverage"])
        .ok()
        .shows(&["output values  2 of 2"]);
}

fn rerun() {
    let fails = "run \"r\" {\n  assert {\n    condition = terraform_data.d.input == 1\n    error_message = \"not one\"\n  }\n}\n";
    let w = Workspace::with(&[
        ("main.tf", "resource \"terraform_data\" \"d\" {\n  input = 2\n}\n"),
        ("a.tftest.hcl", "run \"r\" {}\n"),
    ]);
    w.run(&["test", "-no-color"]).ok();
    assert!(!w.exists(".terraform"), "where nothing fails, nothing is recorded");
    w.run(&["test", "-no-color", "-rerun-failed"])
        .ok()
        .shows(&["No test file is known to have failed", "Success! 0 passed, 0 failed."]);
    w.write("tests/b.tftest.hcl", fails);
    w.run(&["test", "-no-color"]).fails_with(&["not one"]);
    let again = w.run(&["test", "-no-color", "-rerun-failed"]).fails_with(&["not one"]);
    assert!(!again.stdout.contains("a.tftest.hcl"), "{}", again.all());
    // A separate run does not change the record of failures.
    w.run(&["test", "-no-color", "-filter=a.tftest.hcl"]).ok();
    w.write("main.tf", "resource \"terraform_data\" \"d\" {\n  input = 1\n}\n");
    w.run(&["test", "-no-color", "-rerun-failed"])
        .ok()
        .shows(&["tests/b.tftest.hcl... pass", "Success! 1 passed, 0 failed."]);
    w.run(&["test", "-no-color", "-rerun-failed"])
        .ok()
        .shows(&["Success! 0 passed"]);
    w.write(".terraform/failed_tests.json", "{");
    w.run(&["test", "-rerun-failed"])
        .fails_with(&["Failed to read which tests have failed"]);
    w.run(&["test"]).ok();
}

/// Reads lines until one contains this text. Returns the lines before it.
fn until(lines: &Receiver<String>, text: &str) -> String {
    let mut seen = String::new();
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) if line.contains(text) => return seen,
            Ok(line) => seen.push_str(&format!("{line}\n")),
            Err(_) => panic!("{text:?} was not seen after\n{seen}"),
        }
    }
}

fn watch() {
    let w = Workspace::with(&[
        (
            "main.tf",
            "resource \"local_file\" \"written\" {\n  filename = \"out.txt\"\n  content = \"x\"\n}\n",
        ),
        ("m/main.tf", "output \"x\" {\n  value = 1\n}\n"),
        ("a.tftest.hcl", "run \"root\" {}\n"),
        (
            "b.tftest.hcl",
            "run \"called\" {\n  module {\n    source = \"./m\"\n  }\n  assert {\n    condition = output.x == 1\n    error_message = \"no\"\n  }\n}\n",
        ),
    ]);
    let mut child = w
        .command(support::monoform())
        .args(["test", "-no-color", "-watch"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let out = BufReader::new(child.stdout.take().expect("its output"));
    let (send, lines) = channel();
    std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    let first = until(&lines, "Waiting for changes");
    assert!(first.contains("Success! 2 passed, 0 failed."), "{first}");
    // Files that a run writes do not count as changes, but files of the module do.
    w.write("m/main.tf", "output \"x\" {\n  value = 22\n}\n");
    assert_eq!(until(&lines, "Changed: m/main.tf"), "\n");
    let second = until(&lines, "Waiting for changes");
    assert!(second.contains("Failure! 0 passed, 1 failed."), "{second}");
    assert!(!second.contains("a.tftest.hcl"), "{second}");
    w.write("a.tftest.hcl", "run \"renamed\" {}\n");
    until(&lines, "Changed: a.tftest.hcl");
    let third = until(&lines, "Waiting for changes");
    assert!(
        third.contains("run \"renamed\"... pass") && !third.contains("b.tftest.hcl"),
        "{third}"
    );
    // A configuration with errors is reported, and still watched.
    w.write("main.tf", "resource {\n");
    until(&lines, "Changed: main.tf");
    until(&lines, "Waiting for changes");
    w.write("main.tf", "");
    until(&lines, "Changed: main.tf");
    let last = until(&lines, "Waiting for changes");
    assert!(last.contains("Failure! 1 passed, 1 failed."), "{last}");
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", "INT", &id])
            .status()
            .expect("kill")
            .success()
    );
    assert_eq!(
        child.wait().expect("its status").code(),
        Some(1),
        "the status of what was run last"
    );
}

fn live() {
    let runs = "run \"one\" {}\nrun \"two\" {}\n";
    let files = [
        ("main.tf", "resource \"terraform_data\" \"d\" {}\n"),
        ("main.tftest.hcl", runs),
    ];
    let w = Workspace::with(&files);
    let mut terminal = Terminal::start(w.command(support::monoform()).arg("test"));
    terminal.sees("running \"one\"");
    terminal.sees("run \"one\"... pass 0.");
    terminal.sees("Slowest runs:");
    terminal.sees("2 passed");
    let piped = w.run(&["test"]).ok();
    assert_eq!(
        piped.stdout,
        "main.tftest.hcl... in progress\n  run \"one\"... pass\n  run \"two\"... pass\nmain.tftest.hcl... tearing down\n\
         main.tftest.hcl... pass\n\nSuccess! 2 passed, 0 failed.\n"
    );
}

fn exclusive() {
    let w = Workspace::with(&[("main.tf", "")]);
    for other in ["-json", "-junit-xml=x"] {
        let ran = w.run(&["test", "-watch", other]);
        assert_eq!(ran.status, 1);
        assert!(ran.all().contains("Incompatible command-line flags"), "{}", ran.all());
    }
}

fn one_schema() {
    let runs: String = (0..4)
        .map(|i| {
            format!(
                "run \"r{i}\" {{\n  state_key = \"k{i}\"\n  command = {}\n}}\n",
                ["plan", "apply"][i % 2]
            )
        })
        .collect();
    let w = Workspace::with(&[
        ("main.tf", "resource \"random_pet\" \"p\" {}\n"),
        ("a.tftest.hcl", &runs),
        ("b.tftest.hcl", &format!("mock_provider \"random\" {{}}\n{runs}")),
    ])
    .env("TF_LOG", "trace");
    let ran = w.run(&["test", "-no-color"]).ok();
    let asked = ran.stderr.matches("request=GetProviderSchema").count();
    assert_eq!(asked, 1, "{}", ran.stderr);
}

/// With -json, -verbose writes the plan of a run that plans, and the state after one that applies, each with the schemas.
fn verbose_json() {
    let w = Workspace::with(&[
        ("main.tf", MODULE),
        (
            "a.tftest.hcl",
            "run \"planned\" {\n  command = plan\n  expect_failures = [check.long]\n}\nrun \"applied\" {\n  variables {\n    big = true\n  }\n}\n",
        ),
    ]);
    let documents = |arguments: &[&str]| -> Vec<Value> {
        let ran = w.run(arguments).ok();
        let lines = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap());
        lines
            .filter(|object: &Value| object.get("test_plan").or(object.get("test_state")).is_some())
            .collect()
    };
    assert!(documents(&["test", "-json"]).is_empty());
    let found = documents(&["test", "-json", "-verbose"]);
    let [planned, applied] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(
        (&planned["type"], &planned["@testrun"]),
        (&"test_plan".into(), &"planned".into())
    );
    assert_eq!(
        (&applied["type"], &applied["@testrun"]),
        (&"test_state".into(), &"applied".into())
    );
    let (plan, state) = (&planned["test_plan"], &applied["test_state"]);
    assert_eq!(plan["resource_changes"][0]["address"], "random_string.a");
    assert_eq!(plan["resource_changes"][0]["change"]["after"]["length"], 4);
    assert_eq!(plan["output_changes"]["a"]["after_unknown"], true);
    let resources = state["root_module"]["resources"].as_array().unwrap();
    assert_eq!(resources.len(), 2, "{state}");
    assert_eq!(state["outputs"]["a"]["value"].as_str().unwrap().len(), 10);
    for document in [plan, state] {
        let schema = &document["provider_schemas"]["registry.terraform.io/hashicorp/random"];
        assert!(schema["resource_schemas"]["random_string"].is_object(), "{document}");
    }
}

fn hidden() {
    let module = r#"
variable "token" {
  ephemeral = true
  default   = "abc"
}
variable "secret" {
  sensitive = true
  default   = "SECRET"
}
output "token" {
  value     = upper(var.token)
  ephemeral = true
}
output "secret" {
  value     = var.secret
  sensitive = true
}
output "plain" {
  value = "plain"
}
"#;
    let assert =
        |condition: &str| format!("  assert {{\n    condition     = {condition}\n    error_message = \"m\"\n  }}\n");
    let asserts = [
        "output.token == \"q\"",
        "!(output.token != \"q\" && output.plain == \"plain\")",
        "!(output.secret != \"q\")",
        "run.one.token == \"q\" || run.one.secret == \"q\"",
    ];
    let suite = format!("run \"one\" {{}}\nrun \"two\" {{\n{}}}\n", asserts.map(assert).concat());
    let w = Workspace::with(&[("main.tf", module), ("main.tftest.hcl", suite.as_str())]);
    for args in [
        &["test", "-no-color"][..],
        &["test", "-no-color", "-verbose"],
        &["test", "-json"],
    ] {
        let ran = w.run(args);
        let text = ran.all();
        assert_eq!(ran.status, 1, "{text}");
        for value in ["abc", "ABC", "SECRET"] {
            assert!(!text.contains(value), "{value} is in\n{text}");
        }
        for statement in [
            "output.token is \"(ephemeral value)\"",
            "output.plain is \"plain\"",
            "output.secret is \"(sensitive value)\"",
        ] {
            let in_json = args.contains(&"-json");
            assert!(in_json || text.contains(statement), "{statement} is not in\n{text}");
        }
    }
}

const EPHEMERAL: &str = r#"
terraform {
  required_providers {
    random = {
      source = "hashicorp/random"
    }
  }
}
variable "number" {
  default = 1
}
ephemeral "random_password" "a" {
  count  = var.number
  length = 8
}
locals {
  passwords = ephemeral.random_password.a[*].result
}
"#;

fn opened() {
    let run = |name: &str, command: &str| {
        format!(
            "run \"{name}\" {{\n  command = {command}\n  assert {{\n    condition     = length(local.passwords[0]) == 8\n    error_message = \
             \"no\"\n  }}\n}}\n"
        )
    };
    let suite = run("planned", "plan") + &run("applied", "apply");
    let w = Workspace::with(&[("main.tf", EPHEMERAL), ("main.tftest.hcl", suite.as_str())]);
    w.run(&["test", "-no-color"]).ok().shows(&["2 passed, 0 failed"]);
}

fn mocked_ephemeral() {
    // As in Terraform, the error is reported even if the ephemeral resource has no instances.
    let suite = "mock_provider \"random\" {}\nrun \"none\" {\n  variables {\n    number = 0\n  }\n}\nrun \"next\" {}\n";
    let w = Workspace::with(&[("main.tf", EPHEMERAL), ("main.tftest.hcl", suite)]);
    let ran = w.run(&["test", "-no-color"]);
    assert_eq!(ran.status, 1, "{}", ran.all());
    let said = support::words(&ran.all());
    for text in [
        "No ephemeral resource types in mock providers",
        "ephemeral.random_password.a",
        "0 passed, 1 failed, 1 skipped",
    ] {
        assert!(said.contains(text), "{text:?} is not in\n{}", ran.all());
    }
}

fn unknown_provider() {
    for block in ["mock_provider \"randm\" {}", "provider \"randm\" {}"] {
        let wrong = format!("{block}\nrun \"a\" {{}}\n");
        let w = Workspace::with(&[
            ("main.tf", EPHEMERAL),
            ("a.tftest.hcl", wrong.as_str()),
            ("b.tftest.hcl", "run \"b\" {}\n"),
        ]);
        let ran = w.run(&["test", "-no-color"]);
        assert_eq!(ran.status, 1, "{}", ran.all());
        let said = support::words(&ran.all());
        for text in [
            "Unknown provider",
            "hashicorp/randm",
            "Did you mean \"random\"?",
            "run \"b\"... pass",
            "1 passed, 0 failed",
        ] {
            assert!(said.contains(text), "{text:?} is not in\n{}", ran.all());
        }
        assert!(!said.contains("run \"a\"... pass"), "{}", ran.all());
    }
}
