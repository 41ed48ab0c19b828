//! Values of variables: sources, precedence, conversion.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use cty::{Type, Value};

use super::module;
use crate::files::{FileSource, MemoryFiles};
use crate::manifest::Manifest;
use crate::values::{
    CollectedValues, SetVariables, ValueInputs, ValueSource, VariableFlag, collect, from_prompt, missing_variable,
};
use crate::{LoadOptions, RootVariables, load};

const VARIABLES: &str = "variable \"s\" {\n type = string\n}\nvariable \"l\" {\n type = list(number)\n default = []\n}\nvariable \"u\" \
                         {\n default = null\n}\nvariable \"nn\" {\n nullable = false\n type = string\n default = \"d\"\n}\n";

fn given(files: &[(&str, &str)], environment: &[(&str, &str)], flags: &[VariableFlag]) -> CollectedValues {
    let files: MemoryFiles = files.iter().copied().collect();
    let environment: BTreeMap<String, String> = environment
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    collect(
        &module(VARIABLES),
        &SetVariables::read(&ValueInputs {
            files: &files,
            environment: &environment,
            flags,
        }),
    )
}

fn var(text: &str) -> VariableFlag {
    VariableFlag::Var(text.into())
}

fn problems(collected: &CollectedValues) -> Vec<String> {
    lines(&collected.diagnostics)
}

fn lines(diagnostics: &syntax::Diagnostics) -> Vec<String> {
    let line = |d: &syntax::Diagnostic| match &d.subject {
        Some(range) => format!("{range} {}", d.summary),
        None => format!("- {}", d.summary),
    };
    diagnostics.iter().map(line).collect()
}

/// File source whose variable file contains the number of the current read, so that its content changes with every
/// read. Only the module "1" exists.
struct Changing(AtomicU32);

impl FileSource for Changing {
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        match dir {
            "." => Ok(vec!["main.tf".to_owned(), "terraform.tfvars".to_owned()]),
            "1" => Ok(vec!["main.tf".to_owned()]),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match path {
            "main.tf" => Ok("variable \"v\" {\n const = true\n}\nmodule \"m\" {\n source = \"./${var.v}\"\n}\n".into()),
            "1/main.tf" => Ok(Vec::new()),
            "terraform.tfvars" => {
                let count = self.0.fetch_add(1, Ordering::Relaxed) + 1;
                Ok(format!("v = \"{count}\"\n").into_bytes())
            }
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

#[test]
fn variable_file_that_changes_meanwhile_gives_module_source_and_plan_the_same_value() {
    let files = Changing(AtomicU32::new(0));
    let set = SetVariables::read(&ValueInputs {
        files: &files,
        environment: &BTreeMap::new(),
        flags: &[],
    });
    let manifest = Manifest::default();
    let options = LoadOptions {
        variables: RootVariables::Set(&set),
        ..LoadOptions::new("1.16.0", &manifest)
    };
    let loaded = load(&files, ".", &options);
    assert_eq!(lines(&loaded.diagnostics), Vec::<String>::new());
    let collected = collect(&loaded.config.root.module, &set);
    assert_eq!(collected.values["v"].value.as_str(), Some("1"));
    assert_eq!(files.0.into_inner(), 1, "how often the file was read");
}

#[test]
fn later_sources_win() {
    let files = [
        ("terraform.tfvars", "s = \"1\"\n"),
        ("terraform.tfvars.json", "{\"s\": \"2\"}"),
        ("b.auto.tfvars", "s = \"4\"\n"),
        ("a.auto.tfvars.json", "{\"s\": \"3\"}"),
        ("x.tfvars", "s = \"6\"\n"),
        ("ignored.tfvars", "s = \"0\"\n"),
    ];
    let environment = [("s", "0")];
    let flags = [var("s=5"), VariableFlag::File("x.tfvars".into()), var("s=7")];
    let s = |count: usize, flags: &[VariableFlag]| {
        given(&files[..count], &environment, flags).values["s"]
            .value
            .as_str()
            .map(str::to_owned)
    };
    for (count, expected) in [(0, "0"), (1, "1"), (2, "2"), (3, "4"), (4, "4")] {
        assert_eq!(s(count, &[]).as_deref(), Some(expected));
    }
    assert_eq!(s(6, &flags[..1]).as_deref(), Some("5"));
    assert_eq!(s(6, &flags[..2]).as_deref(), Some("6"));
    assert_eq!(s(6, &flags).as_deref(), Some("7"));
}

#[test]
fn text_is_an_expression_only_for_types_other_than_string() {
    let collected = given(&[], &[("l", "[1, \"2\"]")], &[var("s=[1]"), var("u=true")]);
    assert_eq!(problems(&collected), [""; 0]);
    assert_eq!(collected.values["s"].value, Value::string("[1]"));
    assert_eq!(
        collected.values["u"].value,
        Value::string("true"),
        "no type: the text itself"
    );
    let numbers = vec![Value::number(1_i64), Value::number(2_i64)];
    assert_eq!(collected.values["l"].value, Value::list(Type::Number, numbers));
    assert_eq!(collected.values["l"].source, ValueSource::Environment);
}

#[test]
fn null_means_the_default_for_variables_that_are_not_nullable() {
    let collected = given(&[("terraform.tfvars", "s = null\nnn = null\n")], &[], &[]);
    assert!(collected.values["s"].value.is_null());
    assert_eq!(collected.values["nn"].value, Value::string("d"));
    assert!(collected.missing.is_empty());
}

#[test]
fn missing_values_are_listed() {
    let collected = given(&[], &[], &[]);
    assert_eq!(problems(&collected), [""; 0]);
    assert_eq!(collected.missing, ["s".into()]);
    assert_eq!(collected.values["nn"].source, ValueSource::Default);
    let module = module(VARIABLES);
    assert_eq!(
        missing_variable(&module.variables["s"]).summary,
        "No value for required variable"
    );
    assert_eq!(from_prompt(&module.variables["l"], "[3]").unwrap().value.len(), Some(1));
    assert!(from_prompt(&module.variables["l"], "[").is_err());
}

#[test]
fn undeclared_names_matter_by_where_they_are() {
    let files = [("terraform.tfvars", "zz = 1\nyy = 2\nxx = 3\nww = 4\ns = \"\"\n")];
    let collected = given(&files, &[("unknown", "1")], &[var("cli=1")]);
    assert_eq!(
        lines(&collected.undeclared),
        [
            "- Value for undeclared variable",
            "- Value for undeclared variable",
            "- Value for undeclared variable",
            "- Values for undeclared variables"
        ]
    );
    assert_eq!(collected.undeclared.iter().filter(|d| d.is_error()).count(), 1);
    assert!(collected.diagnostics.is_empty());
}

#[test]
fn invalid_values_are_reported_with_their_range() {
    for (files, environment, flags, expected) in [
        (vec![], vec![], vec![var("s")], "- Invalid -var option"),
        (vec![], vec![], vec![var("s = 1")], "- Invalid -var option"),
        (
            vec![],
            vec![],
            vec![var("l=[\"a\"]")],
            "main.tf:4,1-13 Invalid value for input variable",
        ),
        (
            vec![],
            vec![("l", "[x.y]")],
            vec![],
            "<value for var.l>:1,2-5 Variables not allowed",
        ),
        (
            vec![],
            vec![],
            vec![VariableFlag::File("no".into())],
            "- Failed to read variables file",
        ),
        (
            vec![("a.auto.tfvars", "l = [\"x\"]\n")],
            vec![],
            vec![],
            "a.auto.tfvars:1,5-10 Invalid value for input variable",
        ),
        (
            vec![("terraform.tfvars.json", "{\"l\": [1,\"x\"]}")],
            vec![],
            vec![],
            "terraform.tfvars.json:1,7-14 Invalid value for input variable",
        ),
        (
            vec![("terraform.tfvars", "b {}\n")],
            vec![],
            vec![],
            "terraform.tfvars:1,1-2 Unexpected \"b\" block",
        ),
        (
            vec![("terraform.tfvars", "variable \"x\" {}\n")],
            vec![],
            vec![],
            "terraform.tfvars:1,1-9 Variable declaration in .tfvars file",
        ),
        (
            vec![("terraform.tfvars.json", "[]")],
            vec![],
            vec![],
            "terraform.tfvars.json:1,1-2 Incorrect JSON value type",
        ),
        (
            vec![("terraform.tfvars.json", "{\"s\": 1, \"s\": 2}")],
            vec![],
            vec![],
            "terraform.tfvars.json:1,10-13 Duplicate attribute definition",
        ),
    ] {
        assert_eq!(problems(&given(&files, &environment, &flags)), [expected]);
    }
}

#[test]
fn strings_in_json_are_not_templates() {
    let collected = given(&[("terraform.tfvars.json", "{\"s\": \"${x}\"}")], &[], &[]);
    assert_eq!(collected.values["s"].value, Value::string("${x}"));
}

#[test]
fn secrets_are_not_in_debug_text() {
    let collected = given(&[], &[], &[var("s=hunter2")]);
    let text = format!("{collected:?} {:?}", var("s=hunter2"));
    assert!(text.contains("-var s=…") && !text.contains("hunter2"), "{text}");
}

#[test]
fn invalid_default_in_a_test_file_is_reported_once() {
    let text = "variable \"v\" {\n type = number\n default = \"x\"\n}\n";
    let files: MemoryFiles = [("a.tftest.hcl", text)].into_iter().collect();
    let read = crate::test_files::read(&files, ".", "tests", false);
    let summaries: Vec<_> = read.diagnostics.iter().map(|d| d.summary.to_string()).collect();
    assert_eq!(summaries, ["Invalid default value for variable"]);
}
