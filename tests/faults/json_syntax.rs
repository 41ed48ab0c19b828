//! Configurations in the JSON syntax: errors are Terraform's, at the same positions.
//!
//! `json_syntax.json` holds documents and the output of `terraform validate -json` for each. To record it again, run the
//! test with `RECORD_WITH_TERRAFORM=1` and terraform on the PATH.

use serde_json::{Value, json};

use support::{Workspace, monoform};

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faults/json_syntax.json");

/// Returns severity, summary and range of each diagnostic of a document.
fn said(program: &str, document: &str) -> Value {
    let w = Workspace::with(&[("main.tf.json", document)]);
    let ran = w.run_program(program, &["validate", "-json"]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {}", ran.all()));
    let place = |p: &Value| format!("{},{},{}", p["line"], p["column"], p["byte"]);
    let told = answer["diagnostics"].as_array().expect("diagnostics").iter().map(|d| {
        let range = &d["range"];
        let at = if range.is_null() {
            Value::Null
        } else {
            format!("{}-{}", place(&range["start"]), place(&range["end"])).into()
        };
        json!([d["severity"], d["summary"], at])
    });
    let mut told: Vec<Value> = told.collect();
    told.sort_by_key(ToString::to_string);
    told.into()
}

#[test]
fn problems_are_those_of_terraform() {
    let text = std::fs::read_to_string(FIXTURE).expect("the fixture");
    let mut cases: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    if std::env::var_os("RECORD_WITH_TERRAFORM").is_some() {
        for case in &mut cases {
            case["said"] = said("terraform", case["document"].as_str().expect("a document"));
        }
        let lines: Vec<String> = cases.iter().map(ToString::to_string).collect();
        std::fs::write(FIXTURE, format!("[\n{}\n]\n", lines.join(",\n"))).expect("the fixture can be written");
    }
    let mut wrong = Vec::new();
    for case in &cases {
        let document = case["document"].as_str().expect("a document");
        let said = said(monoform(), document);
        let expected = case["said"].as_array().expect("a list");
        // Monoform continues where Terraform stops, and reports providers that are not available here.
        let mut told = said.as_array().expect("a list").clone();
        if !expected.is_empty() {
            told.retain(|d| d[1] != "Provider not available");
        }
        // If a document is not JSON, only its first error is reported, while Terraform continues.
        let broken = serde_json::from_str::<Value>(document).is_err();
        let fits = told.iter().all(|d| expected.contains(d)) && !told.is_empty();
        if !(fits && (broken || expected.iter().all(|d| told.contains(d)))) {
            wrong.push(format!("{document}\n  expected {}\n  said     {said}", case["said"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
