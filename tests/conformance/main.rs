//! Expressions have the values and errors of Terraform's console.
//!
//! - `expressions/` contains the answers of Terraform 1.16.0-rc2, a file for each subject: a line `> EXPRESSION`, then the lines of its
//!   value, or a line `! SUMMARY` for each error. The answers were recorded in the directory of the configuration `module/`; values that it
//!   does not have are unknown. `scripts/record-expressions` records again with an installed Terraform.
//! - `since-1.11.txt` lists, in the same form, the answers of Terraform 1.11.4 that differ from those of 1.16 or are missing there. Each is
//!   below the change, and the release that made it.
//! - `deviations.txt` contains the intended deviations of Monoform, each below its reason. Monoform must answer exactly that.
//!
//! Values are compared as they are printed. Of errors, only the summaries are compared, because Monoform words the details itself. After a
//! syntax error, Terraform also reports errors that follow from it ([`FOLLOWING`]): these are compared only if they come first.
//!
//! `MONOFORM_EXPRESSIONS=FILE` compares the expressions of another recorded file instead, such as thousands that were generated for one
//! question, of which only a few are worth keeping.

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

mod console;
mod terminal;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::files::Disk;
use config::values::{self, SetVariables, ValueInputs};
use config::{LoadOptions, manifest::Manifest};
use cty::{Type, Value};
use engine::console::{Console, View};
use engine::functions::Functions;
use engine::inputs::EvaluationEnvironment;
use lang::render::format_value;
use lang::scope::FunctionSettings;
use provider::{NoProviders, ProviderSchema, Schemas};
use schema::{AttributeSchema, AttributeType, BlockSchema, NestedBlock, Nesting, Schema};
use state::State;
use syntax::Diagnostics;

/// Summaries of errors that follow from an earlier error of the parser.
const FOLLOWING: &[&str] = &[
    "! Invalid expression",
    "! Extra characters after expression",
    "! Unexpected endfor directive",
    "! Unexpected endif directive",
];

/// Returns the compared part of an answer: its first line, and errors that do not follow from an earlier one.
fn compared(answer: &str) -> String {
    let counts = |(i, line): &(usize, &str)| *i == 0 || !FOLLOWING.contains(line);
    let lines: Vec<&str> = answer.lines().enumerate().filter(counts).map(|(_, l)| l).collect();
    lines.join("\n")
}

struct Case {
    file: String,
    expression: String,
    answer: String,
}

fn cases(mut files: Vec<PathBuf>) -> Vec<Case> {
    let mut out: Vec<Case> = Vec::new();
    files.sort();
    for path in files {
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        let lines = std::fs::read_to_string(&path).unwrap();
        for line in lines.lines().filter(|l| !l.starts_with("# ")) {
            if let Some(expression) = line.strip_prefix("> ") {
                out.push(Case {
                    file: file.clone(),
                    expression: expression.to_owned(),
                    answer: String::new(),
                });
                continue;
            }
            let case = out.last_mut().expect("an expression comes before its answer");
            if !case.answer.is_empty() {
                case.answer.push('\n');
            }
            case.answer.push_str(line);
        }
    }
    out
}

/// Adds the cases of the list of changes whose expressions are not recorded. A recorded expression must have the same
/// answer in the list.
fn add_changed(recorded: &mut Vec<Case>, changed: Vec<Case>) {
    for case in changed {
        match recorded.iter().find(|r| r.expression == case.expression) {
            Some(same) => assert_eq!(
                same.answer, case.answer,
                "> {} is listed with another answer",
                case.expression
            ),
            None => recorded.push(case),
        }
    }
}

fn summaries(problems: &Diagnostics) -> String {
    let errors = problems.iter().filter(|d| d.is_error());
    let lines: Vec<String> = errors.map(|d| format!("! {}", d.summary)).collect();
    lines.join("\n")
}

/// Returns the schema of `terraform_data`.
fn schemas() -> Schemas {
    let attribute = |ty: Type| AttributeSchema {
        ty: AttributeType::Plain(ty),
        ..AttributeSchema::default()
    };
    let store = BlockSchema {
        attributes: BTreeMap::from([
            ("input".into(), attribute(Type::Dynamic)),
            ("output".into(), attribute(Type::Dynamic)),
            ("replace".into(), attribute(Type::Bool)),
            ("sensitive".into(), attribute(Type::Bool)),
            (
                "sensitive_output".into(),
                AttributeSchema {
                    sensitive: true,
                    ..attribute(Type::Dynamic)
                },
            ),
            ("version".into(), attribute(Type::Dynamic)),
        ]),
        ..BlockSchema::default()
    };
    let store = NestedBlock {
        block: store,
        nesting: Nesting::Single,
        min_items: 0,
        max_items: 1,
    };
    let block = BlockSchema {
        blocks: BTreeMap::from([("store".into(), store)]),
        attributes: BTreeMap::from([
            ("id".into(), attribute(Type::String)),
            ("input".into(), attribute(Type::Dynamic)),
            ("output".into(), attribute(Type::Dynamic)),
            ("triggers_replace".into(), attribute(Type::Dynamic)),
        ]),
        ..BlockSchema::default()
    };
    let provider = ProviderSchema {
        resources: BTreeMap::from([("terraform_data".into(), Schema::new(0, block))]).into(),
        ..ProviderSchema::default()
    };
    Schemas {
        providers: BTreeMap::from([(addrs::Provider::builtin("terraform"), Arc::new(provider))]),
        ..Schemas::default()
    }
}

#[test]
fn expressions_have_the_recorded_values() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let others = std::env::var_os("MONOFORM_EXPRESSIONS").map(PathBuf::from);
    let files = match &others {
        Some(file) => vec![file.clone()],
        None => here
            .join("expressions")
            .read_dir()
            .unwrap()
            .map(|f| f.unwrap().path())
            .collect(),
    };
    let mut recorded = cases(files);
    if others.is_none() {
        add_changed(&mut recorded, cases(vec![here.join("since-1.11.txt")]));
    }
    let deviations = cases(vec![here.join("deviations.txt")]);
    let mut own: BTreeMap<&str, &str> = deviations
        .iter()
        .map(|c| (c.expression.as_str(), c.answer.as_str()))
        .collect();
    // Paths in expressions are relative to the working directory, as they were when the answers were recorded.
    std::env::set_current_dir(here.join("module")).unwrap();
    let manifest = Manifest::default();
    let options = LoadOptions::new("1.16.0", &manifest);
    let loaded = config::load(&Disk, ".", &options);
    assert!(!loaded.diagnostics.has_errors(), "{:?}", loaded.diagnostics);
    let root = loaded.config.root.module.clone();
    let collected = values::collect(
        &root,
        &SetVariables::read(&ValueInputs {
            files: &Disk,
            environment: &BTreeMap::new(),
            flags: &[],
        }),
    );
    let mut variables: BTreeMap<Arc<str>, Value> =
        collected.values.into_iter().map(|(name, v)| (name, v.value)).collect();
    for name in collected.missing {
        let unknown = Value::unknown(root.variables[&name].value_type());
        variables.insert(name, unknown);
    }
    let environment = EvaluationEnvironment {
        workspace: "default".into(),
        cwd: "/".into(),
        applying: false,
        functions: FunctionSettings::default(),
        ..EvaluationEnvironment::default()
    };
    let (state, schemas, functions) = (State::new(), schemas(), Functions::new(&NoProviders));
    let view = View {
        state: &state,
        plan: None,
        schemas: &schemas,
        variables: &variables,
        functions: &functions,
        environment: &environment,
    };
    let (console, problems) = Console::new(&loaded.config, view);
    assert!(!problems.has_errors(), "{problems:?}");
    let mut console = console.unwrap();
    let mut wrong = Vec::new();
    for case in &recorded {
        let found = match console.evaluate(&case.expression) {
            Ok(value) => format_value(&value, 0),
            Err(problems) => compared(&summaries(&problems)),
        };
        let answer = compared(&case.answer);
        let deviation = own.remove(case.expression.as_str());
        if deviation == Some(answer.as_str()) {
            wrong.push(format!("> {} does not deviate any more", case.expression));
        }
        if found != deviation.unwrap_or(&answer) {
            wrong.push(format!(
                "[{}] > {}\n--- Terraform\n{}\n--- Monoform\n{found}",
                case.file, case.expression, case.answer
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\n\n{} of {} differ",
        wrong.join("\n\n"),
        wrong.len(),
        recorded.len()
    );
    assert!(
        own.is_empty() || others.is_some(),
        "deviations of expressions that nobody recorded: {own:?}"
    );
}
