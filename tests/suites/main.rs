//! Test suites, most about a single feature, which their name describes. The output of `test -json` must agree with the record of
//! Terraform 1.16: the exit status, the status of each run and file, the totals, and the severity, summary, run and position of
//! each diagnostic. Details are worded by each program and not compared.
//!
//! The files of `cases/` hold many suites each. Text after the line `== *` is a configuration that all later suites have. A line
//! `== name` begins a suite; the following text is its `main.tftest.hcl`, up to a line `-- file --`, which begins another file. In
//! `== name | reason`, the reason explains a difference to Terraform; Monoform's output is then recorded beside it. Words after
//! `%` are arguments of the command.
//!
//! `MONOFORM_RECORD=1 cargo test --test suites` records the output of the `terraform-1.16` on the search path (a collection's name
//! instead of 1: of that one only). It runs with the plugins of the executable under test, so that nothing is fetched.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment"
)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

mod own;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::Trial;
use serde_json::{Value, json};
use support::Workspace;

/// A test suite of a collection.
#[derive(Clone, Default)]
struct Case {
    /// Name of the collection, a slash, and the suite's own name.
    name: String,
    files: Vec<(String, String)>,
    arguments: Vec<String>,
    /// Reason of a difference to Terraform.
    differs: Option<String>,
}

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suites").join(name)
}

/// Parses the header line of a case.
fn begun(collection: &str, header: &str, base: &[(String, String)]) -> Case {
    let (header, differs) = match header.split_once(" | ") {
        Some((header, reason)) => (header, Some(reason.to_owned())),
        None => (header, None),
    };
    let (name, arguments) = header.split_once(" % ").unwrap_or((header, ""));
    let mut files = base.to_vec();
    files.push(("main.tftest.hcl".to_owned(), String::new()));
    Case {
        name: format!("{collection}/{name}"),
        files,
        arguments: arguments.split_whitespace().map(str::to_owned).collect(),
        differs,
    }
}

fn collection(path: &Path) -> Vec<Case> {
    let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).expect("a collection");
    let mut out: Vec<Case> = Vec::new();
    let mut base: Vec<(String, String)> = Vec::new();
    let mut in_base = false;
    for line in text.lines() {
        if line == "== *" {
            in_base = true;
            base = vec![("main.tf".to_owned(), String::new())];
            continue;
        }
        if let Some(header) = line.strip_prefix("== ") {
            in_base = false;
            out.push(begun(&name, header, &base));
            continue;
        }
        let files = match out.last_mut() {
            _ if in_base => &mut base,
            Some(case) => &mut case.files,
            None => continue,
        };
        match line.strip_prefix("-- ").and_then(|l| l.strip_suffix(" --")) {
            Some(file) => {
                files.retain(|(name, _)| name != file);
                files.push((file.to_owned(), String::new()));
            }
            None => {
                let (_, text) = files.last_mut().expect("a file");
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    out
}

fn cases() -> Vec<Case> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(here("cases"))
        .expect("cases")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    paths.sort();
    paths.iter().flat_map(|path| collection(path)).collect()
}

fn workspace(case: &Case) -> Workspace {
    let written = case.files.iter().filter(|(_, text)| !text.trim().is_empty());
    let files: Vec<(&str, &str)> = written.map(|(n, t)| (&**n, &**t)).collect();
    Workspace::with(&files)
}

/// Sorts the lines of a summary, such as the members of a cycle.
fn in_one_order(summary: &str) -> String {
    let mut lines: Vec<&str> = summary.lines().map(str::trim).collect();
    lines.sort_unstable_by_key(|line| (!line.ends_with(':'), *line));
    lines.join(" ")
}

/// Returns the compared parts of the objects that `test -json` writes.
fn compared(status: i32, text: &str) -> Value {
    let (mut runs, mut diagnostics, mut summary) = (Vec::new(), Vec::new(), Value::Null);
    for line in text.lines() {
        let Ok(object) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let word = |v: &Value| v.as_str().unwrap_or("-").to_owned();
        match object["type"].as_str() {
            Some("test_run") if object["test_run"]["progress"] == "complete" => {
                let run = &object["test_run"];
                runs.push(format!(
                    "{}/{} {}",
                    word(&run["path"]),
                    word(&run["run"]),
                    word(&run["status"])
                ));
            }
            Some("test_file") if object["test_file"]["progress"] == "complete" => {
                let file = &object["test_file"];
                runs.push(format!("{} {}", word(&file["path"]), word(&file["status"])));
            }
            Some("diagnostic") => {
                let d = &object["diagnostic"];
                let start = &d["range"]["start"];
                let place = match d["range"]["filename"].as_str() {
                    Some(file) => format!("{file}:{},{}", start["line"], start["column"]),
                    None => "-".to_owned(),
                };
                diagnostics.push(format!(
                    "{} {}: {} at {place}",
                    word(&d["severity"]),
                    word(&object["@testrun"]),
                    in_one_order(&word(&d["summary"]))
                ));
            }
            Some("test_summary") => {
                let s = &object["test_summary"];
                summary = json!([s["status"], s["passed"], s["failed"], s["errored"], s["skipped"]]);
            }
            _ => {}
        }
    }
    // The problems of a run come in any order.
    diagnostics.sort();
    json!({"status": status, "summary": summary, "runs": runs, "diagnostics": diagnostics})
}

fn said(w: &Workspace, program: &str, case: &Case) -> Value {
    let mut arguments = vec!["test", "-json"];
    arguments.extend(case.arguments.iter().map(String::as_str));
    let ran = w.run_program(program, &arguments);
    compared(ran.status, &ran.stdout)
}

fn check(case: &Case, expected: Option<&Value>) -> Result<(), String> {
    let expected = expected.ok_or("Terraform's answer is not recorded: see the beginning of tests/suites/main.rs")?;
    let w = workspace(case);
    let found = said(&w, support::monoform(), case);
    let expected = match &case.differs {
        None => expected,
        Some(_) => &expected["ours"],
    };
    if found == *expected {
        return Ok(());
    }
    Err(format!("expected: {expected:#}\nours: {found:#}"))
}

fn recorded() -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(here("recorded.json")).unwrap_or_else(|_| "{}".to_owned());
    serde_json::from_str(&text).expect("the record is JSON")
}

/// Records Terraform's output of every case, or only of those of one collection. For cases with a known difference,
/// also records Monoform's output.
fn record(cases: &[Case], only: Option<&str>) {
    let plugins = tempfile::tempdir().expect("a directory");
    let settings = support::our_plugins(plugins.path());
    let mut recorded = recorded();
    recorded.retain(|name, _| cases.iter().any(|c| c.name == *name));
    let chosen = |c: &&Case| only.is_none_or(|only| c.name.split('/').next() == Some(only));
    for case in cases.iter().filter(chosen) {
        let w = workspace(case).env("TF_CLI_CONFIG_FILE", settings.to_string_lossy());
        // If this fails, the next command reports it.
        w.run_program("terraform-1.16", &["init", "-backend=false", "-input=false"]);
        let mut answer = said(&w, "terraform-1.16", case);
        if case.differs.is_some() {
            answer["ours"] = said(&workspace(case), support::monoform(), case);
        }
        recorded.insert(case.name.clone(), answer);
    }
    // Each case is one line.
    let lines: Vec<String> = recorded
        .iter()
        .map(|(name, answer)| format!("  {}: {answer}", json!(name)))
        .collect();
    std::fs::write(here("recorded.json"), format!("{{\n{}\n}}\n", lines.join(",\n"))).expect("the record");
}

fn main() -> ExitCode {
    let cases = cases();
    if let Ok(which) = std::env::var("MONOFORM_RECORD") {
        record(&cases, Some(&*which).filter(|which| *which != "1"));
    }
    let recorded = recorded();
    let trials: Vec<Trial> = cases
        .into_iter()
        .map(|case| {
            let expected = recorded.get(&case.name).cloned();
            Trial::test(case.name.clone(), move || {
                check(&case, expected.as_ref()).map_err(Into::into)
            })
        })
        .chain(own::trials())
        .collect();
    support::run_trials(trials)
}
