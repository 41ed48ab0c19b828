//! Invalid configurations, most with a single mistake, which their name describes. The first diagnostic of `validate` must have
//! the severity, the position and the summary of Terraform's recorded one. Details are worded by each program and not compared.
//!
//! The files of `cases/` hold many configurations each. A line `== name` begins one; the following text is its `main.tf`, up to a
//! line `-- file --`, which begins another file. `== name | reason` marks a case in which Monoform reports more than Terraform
//! does: it must be invalid here, whatever Terraform reports.
//!
//! All diagnostics are compared in the collections whose names begin with `since-1.11`. They are about features that Terraform 1.16 has and
//! 1.11.4 lacks. Everything is recorded with `terraform-1.16`, except for a few mistakes in calls of local modules: 1.11.4 reports these
//! mistakes, while 1.16 reports that the module is not installed, because its `init` fails first.
//!
//! `several/` holds configurations with several independent mistakes each, in the same form. Monoform's report of them is pinned,
//! word for word, in the `.golden` file beside each collection (`MONOFORM_GOLDEN=1 cargo test --test validate` rewrites it; read
//! the difference before committing it); and Terraform's first error must be among Monoform's.
//!
//! `MONOFORM_RECORD=1 cargo test --test validate` records the diagnostics of `terraform-1.16`. It runs with the plugins of the
//! executable under test, so that nothing is fetched. `MONOFORM_RECORD=since-1.11` records only that collection.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment, and need the time"
)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

mod fix;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::Trial;
use serde_json::{Value, json};
use support::Workspace;

/// A configuration of a collection.
#[derive(Clone)]
struct Case {
    /// Name of the collection, a slash, and the case's own name.
    name: String,
    files: Vec<(String, String)>,
    /// Reason why the first diagnostic is not Terraform's.
    differs: Option<String>,
}

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/validate").join(name)
}

fn cases(directory: &str) -> Vec<Case> {
    let mut out: Vec<Case> = Vec::new();
    let mut collections: Vec<PathBuf> = std::fs::read_dir(here(directory))
        .expect("cases")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    collections.sort();
    for path in collections {
        let collection = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a collection");
        let mut inside = false;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("== ") {
                let (name, differs) = match name.split_once(" | ") {
                    Some((name, reason)) => (name, Some(reason.to_owned())),
                    None => (name, None),
                };
                out.push(Case {
                    name: format!("{collection}/{name}"),
                    files: vec![("main.tf".to_owned(), String::new())],
                    differs,
                });
                inside = true;
            } else if inside && let Some(case) = out.last_mut() {
                let file = line.strip_prefix("-- ").and_then(|l| l.strip_suffix(" --"));
                match file {
                    Some(file) => case.files.push((file.to_owned(), String::new())),
                    None => {
                        let (_, text) = case.files.last_mut().expect("a file");
                        text.push_str(line);
                        text.push('\n');
                    }
                }
            }
        }
    }
    // The blank line before the next case does not belong to the file.
    for (_, text) in out.iter_mut().flat_map(|c| &mut c.files) {
        let kept = text.trim_end_matches('\n').len();
        text.truncate(kept);
        text.push('\n');
    }
    out
}

fn workspace(case: &Case) -> Workspace {
    let written = case
        .files
        .iter()
        .filter(|(n, t)| n != "main.tf" || !t.trim().is_empty());
    let files: Vec<(&str, &str)> = written.map(|(n, t)| (&**n, &**t)).collect();
    // The recordings are from Terraform. Under its own name, this program also accepts the language of
    // OpenTofu.
    Workspace::with(&files).env("MONOFORM_MODE", "terraform")
}

/// Returns the compared part of a document of `validate -json`: severity, summary and position of each diagnostic.
fn compared(document: &Value) -> Vec<Value> {
    let all = document["diagnostics"].as_array().cloned().unwrap_or_default();
    all.iter()
        .map(|d| {
            let start = &d["range"]["start"];
            json!([
                d["severity"],
                d["summary"],
                d["range"]["filename"],
                start["line"],
                start["column"]
            ])
        })
        .collect()
}

/// Beginning of the names of collections for which all diagnostics are compared.
const SINCE: &str = "since-1.11";

/// Returns each diagnostic once, in a fixed order: a module with several calls is reported once or for each call.
fn sorted(diagnostics: &[Value]) -> BTreeSet<String> {
    diagnostics.iter().map(Value::to_string).collect()
}

/// Returns the first error or, without errors, the first diagnostic. Warnings come before errors, but a user reads the
/// errors first.
fn first(diagnostics: &[Value]) -> Option<&Value> {
    let error = diagnostics.iter().find(|d| d[0] == "error");
    error.or(diagnostics.first())
}

fn check(case: &Case, expected: Option<&Vec<Value>>) -> Result<(), String> {
    let expected = expected.ok_or("Terraform's answer is not recorded: see the beginning of tests/validate/main.rs")?;
    let document = workspace(case).run(&["validate", "-json"]).json();
    let found = compared(&document);
    let invalid = found.iter().any(|d| d[0] == "error");
    if document["valid"] == Value::Bool(invalid) {
        return Err(format!("\"valid\" is wrong in\n{document:#}"));
    }
    match &case.differs {
        Some(_) if invalid => Ok(()),
        Some(reason) => Err(format!("should be refused ({reason})\n{document:#}")),
        None if case.name.starts_with(SINCE) && sorted(&found) != sorted(expected) => Err(format!(
            "Terraform: {}\nours: {document:#}",
            Value::from(expected.clone())
        )),
        None if first(&found) == first(expected) || case.name.starts_with(SINCE) => Ok(()),
        None => Err(format!(
            "Terraform: {}\nours: {document:#}",
            first(expected).unwrap_or(&Value::Null)
        )),
    }
}

/// Summaries of diagnostics whose details are not pinned here, since they name directories and versions.
const UNPINNED: &[&str] = &["Provider not available"];

/// Returns the pinned form of all diagnostics of a configuration.
fn report(document: &Value) -> String {
    let mut out = String::new();
    for d in document["diagnostics"].as_array().into_iter().flatten() {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        let start = &d["range"]["start"];
        let place = match d["range"]["filename"].as_str() {
            Some(file) => format!("{file}:{},{}", start["line"], start["column"]),
            None => "-".to_owned(),
        };
        out.push_str(&format!("{} {place} {}\n", text(&d["severity"]), text(&d["summary"])));
        // The list of directories depends on the machine, so it is removed.
        let detail = text(&d["detail"]);
        let detail = match detail.split_once("; these directories were searched:") {
            Some((detail, _)) => format!("{detail}."),
            None => detail,
        };
        for line in detail
            .lines()
            .filter(|_| !UNPINNED.contains(&d["summary"].as_str().unwrap_or_default()))
        {
            out.push_str(format!("    {line}").trim_end());
            out.push('\n');
        }
    }
    out
}

fn golden_file(name: &str) -> PathBuf {
    let collection = name.split('/').next().unwrap_or_default();
    here("several").join(format!("{collection}.golden"))
}

/// Reads the pinned reports, by case.
fn golden(cases: &[Case]) -> BTreeMap<String, String> {
    let mut out: BTreeMap<String, String> = BTreeMap::new();
    let files: BTreeSet<PathBuf> = cases.iter().map(|c| golden_file(&c.name)).collect();
    for file in files {
        let collection = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        for part in format!("\n{text}").split("\n== ").skip(1) {
            let (name, report) = part.split_once('\n').unwrap_or((part, ""));
            out.insert(format!("{collection}/{name}"), format!("{}\n", report.trim_end()));
        }
    }
    out
}

fn write_golden(cases: &[Case]) {
    let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
    for case in cases {
        let (_, name) = case.name.split_once('/').expect("a collection");
        let document = workspace(case).run(&["validate", "-json"]).json();
        let text = files.entry(golden_file(&case.name)).or_default();
        text.push_str(&format!("== {name}\n{}\n", report(&document)));
    }
    for (file, text) in files {
        std::fs::write(file, format!("{}\n", text.trim_end())).expect("the golden file");
    }
}

fn check_several(case: &Case, expected: Option<&Vec<Value>>, golden: Option<&String>) -> Result<(), String> {
    let expected = expected.ok_or("Terraform's answer is not recorded: see the beginning of tests/validate/main.rs")?;
    let document = workspace(case).run(&["validate", "-json"]).json();
    let report = report(&document);
    if golden != Some(&report) {
        let golden = golden.map_or("nothing", String::as_str);
        return Err(format!("--- pinned\n{golden}\n--- reported\n{report}"));
    }
    let found = compared(&document);
    let is_error = |d: &&Value| d[0] == "error";
    if document["valid"] == Value::Bool(found.iter().any(|d| is_error(&d))) {
        return Err(format!("\"valid\" is wrong in\n{document:#}"));
    }
    if found.iter().filter(is_error).count() < 2 && case.differs.is_none() {
        return Err(format!("a single mistake was reported\n{report}"));
    }
    match expected.iter().find(is_error) {
        Some(first) if case.differs.is_none() && !found.iter().any(|d| d[1] == first[1] && d[2] == first[2]) => {
            Err(format!("Terraform's first error is not among them: {first}\n{report}"))
        }
        _ => Ok(()),
    }
}

/// Checks that a plan of an invalid configuration reports the errors of `validate`.
fn plan_reports_all(case: &Case) -> Result<(), String> {
    let document = workspace(case).run(&["validate", "-json"]).json();
    let planned = workspace(case).run(&["plan", "-no-color", "-input=false"]).all();
    let errors = document["diagnostics"].as_array().cloned().unwrap_or_default();
    let missing: Vec<&str> = errors
        .iter()
        .filter_map(|d| d["summary"].as_str())
        .filter(|summary| !planned.contains(&format!("Error: {summary}")))
        .collect();
    if errors.len() < 8 || !missing.is_empty() {
        return Err(format!("{missing:?} not in\n{planned}"));
    }
    Ok(())
}

/// Checks that `validate -fix` leaves fewer errors, or all files as they are.
fn fix_makes_fewer_errors(case: &Case) -> Result<(), String> {
    let errors = |w: &Workspace| {
        let document = w.run(&["validate", "-json"]).json();
        document["error_count"].as_u64().unwrap_or_default()
    };
    let w = workspace(case);
    let before = errors(&w);
    let fixed = w.run(&["validate", "-no-color", "-fix"]);
    let after = errors(&w);
    let read = |name: &str| std::fs::read_to_string(w.dir().join(name)).unwrap_or_default();
    let changed = case
        .files
        .iter()
        .any(|(name, text)| w.exists(name) && read(name) != *text);
    let fits = if changed { after < before } else { after == before };
    if fits {
        Ok(())
    } else {
        Err(format!("{before} errors, then {after}\n{}", fixed.all()))
    }
}

/// Reads the recorded diagnostics, by case.
fn recorded() -> BTreeMap<String, Vec<Value>> {
    let text = std::fs::read_to_string(here("recorded.json")).unwrap_or_else(|_| "{}".to_owned());
    serde_json::from_str(&text).expect("the record is JSON")
}

/// Records Terraform's diagnostics of every case, or only of those of one collection. A recording stays if Terraform
/// now stops at modules that are not installed.
fn record(cases: &[Case], collection: Option<&str>) {
    let plugins = tempfile::tempdir().expect("a directory");
    let settings = support::our_plugins(plugins.path());
    let mut recorded = recorded();
    recorded.retain(|name, _| cases.iter().any(|c| c.name == *name));
    let chosen = |c: &&Case| collection.is_none_or(|only| c.name.split('/').next() == Some(only));
    for case in cases.iter().filter(chosen) {
        let w = workspace(case).env("TF_CLI_CONFIG_FILE", settings.to_string_lossy());
        // If this fails, the next command reports it.
        let program = "terraform-1.16";
        w.run_program(program, &["init", "-backend=false", "-input=false"]);
        let answer = compared(&w.run_program(program, &["validate", "-json"]).json());
        let stopped = !answer.is_empty() && answer.iter().all(|d| d[1] == "Module not installed");
        if !(stopped && recorded.contains_key(&case.name)) {
            recorded.insert(case.name.clone(), answer);
        }
    }
    // Each case is one line.
    let lines: Vec<String> = recorded
        .iter()
        .map(|(name, diagnostics)| format!("  {}: {}", json!(name), json!(diagnostics)))
        .collect();
    std::fs::write(here("recorded.json"), format!("{{\n{}\n}}\n", lines.join(",\n"))).expect("the record");
}

fn main() -> ExitCode {
    let single = cases("cases");
    let several = cases("several");
    if let Ok(which) = std::env::var("MONOFORM_RECORD") {
        let all = [single.clone(), several.clone()].concat();
        record(&all, Some(&*which).filter(|which| *which != "1"));
    }
    if std::env::var_os("MONOFORM_GOLDEN").is_some() {
        write_golden(&several);
    }
    let golden = golden(&several);
    let recorded = recorded();
    let mut trials: Vec<Trial> = Vec::new();
    for (name, test) in fix::TESTS {
        trials.push(Trial::test(*name, move || {
            test();
            Ok(())
        }));
    }
    for case in several.clone() {
        let name = format!("{}/fix", case.name);
        trials.push(Trial::test(name, move || {
            fix_makes_fewer_errors(&case).map_err(Into::into)
        }));
    }
    for case in single {
        let expected = recorded.get(&case.name).cloned();
        trials.push(Trial::test(case.name.clone(), move || {
            check(&case, expected.as_ref()).map_err(Into::into)
        }));
    }
    if let Some(case) = several
        .iter()
        .find(|c| c.name == "layers/eight independent mistakes")
        .cloned()
    {
        trials.push(Trial::test("a plan reports every mistake", move || {
            plan_reports_all(&case).map_err(Into::into)
        }));
    }
    for case in several {
        let (expected, golden) = (recorded.get(&case.name).cloned(), golden.get(&case.name).cloned());
        trials.push(Trial::test(format!("several/{}", case.name), move || {
            check_several(&case, expected.as_ref(), golden.as_ref()).map_err(Into::into)
        }));
    }
    support::run_trials(trials)
}
