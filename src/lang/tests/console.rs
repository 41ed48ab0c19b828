//! What Terraform 1.11.4's console answers, expression by expression, recorded in `console.txt`.
//!
//! A case is a line `> EXPRESSION` and the lines of the answer; a line that begins with `! ` is an error, summary and
//! detail in one line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use addrs::Referenceable;
use cty::{Marks, Type, Value};
use lang::eval::{Context, evaluate};
use lang::render::format_value;
use lang::scope::{FunctionSettings, Reference, Scope};
use syntax::{Diagnostic, Diagnostics, Pos};

/// The configuration in whose directory the answers were recorded.
struct Recorded(FunctionSettings);

fn variable(name: &str) -> Option<Value> {
    let strings = |items: &[&str]| items.iter().map(Value::string).collect::<Vec<_>>();
    let map = |items: Vec<(&str, Value)>| {
        items
            .into_iter()
            .map(|(k, v)| (k.into(), v))
            .collect::<BTreeMap<_, _>>()
    };
    Some(match name {
        "s" => Value::string("secret").with_marks(Marks::SENSITIVE),
        "list" => Value::list(Type::String, strings(&["a", "b", "c"])),
        "nums" => Value::list(Type::Number, [3i64, 1, 2].into_iter().map(Value::number).collect()),
        "map" => Value::map(
            Type::Number,
            map(vec![("a", Value::number(1i64)), ("b", Value::number(2i64))]),
        ),
        "set" => Value::set(Type::String, strings(&["x", "y"])),
        "null" => Value::null(Type::String),
        "nulllist" => Value::null(Type::list(Type::String)),
        "objs" => {
            let item = |id: &str, n: i64| Value::object([("id", Value::string(id)), ("n", Value::number(n))]);
            let items = vec![item("i0", 0), item("i1", 1)];
            Value::list(items[0].ty().clone(), items)
        }
        "obj" => Value::object([
            ("name", Value::string("nm")),
            ("tags", Value::map(Type::String, map(vec![("k", Value::string("v"))]))),
            ("opt", Value::null(Type::String)),
        ]),
        _ => return None,
    })
}

impl Scope for Recorded {
    fn lookup(&self, reference: &Reference) -> Result<Value, Diagnostics> {
        let missing =
            |summary: &str, detail: String| Err(Diagnostic::error(summary, detail).at(&reference.range).into());
        match &reference.subject {
            Referenceable::Variable(name) => match variable(name) {
                Some(value) => Ok(value),
                None => missing(
                    "Reference to undeclared input variable",
                    format!(
                        "An input variable with the name \"{name}\" has not been declared. This variable can be declared with \
                         a variable \"{name}\" {{}} block."
                    ),
                ),
            },
            Referenceable::Local(name) => match &**name {
                "t" => Ok(Value::string("hello ${name}!")),
                "u" => Ok(Value::dynamic()),
                _ => missing(
                    "Reference to undeclared local value",
                    format!("A local value with the name \"{name}\" has not been declared."),
                ),
            },
            Referenceable::Resource(r) if r.to_string() == "terraform_data.u" => Ok(Value::dynamic()),
            Referenceable::Path(_) => Ok(Value::string(".")),
            Referenceable::Terraform(_) => Ok(Value::string("default")),
            other => missing("Unknown", format!("{other} is not part of the recording.")),
        }
    }

    fn functions(&self) -> Option<&FunctionSettings> {
        Some(&self.0)
    }
}

fn answer(expression: &str, scope: &Recorded) -> String {
    let (expr, mut problems) = syntax::parse_expression("<console-input>", expression, Pos::default());
    let mut value = Value::dynamic();
    if !problems.has_errors() {
        (value, problems) = evaluate(&expr, Context::new(scope));
    }
    if !problems.has_errors() {
        return format_value(&value, 0);
    }
    let one = |d: &Diagnostic| {
        let words: Vec<&str> = d.detail.split_whitespace().collect();
        format!("! {}: {}", d.summary, words.join(" "))
    };
    problems.iter().map(one).collect::<Vec<_>>().join("\n")
}

#[test]
fn expressions_have_the_recorded_values() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/console");
    let scope = Recorded(FunctionSettings {
        base_dir: root.clone(),
        console: true,
        ..FunctionSettings::default()
    });
    let recorded = std::fs::read_to_string(root.with_extension("txt")).unwrap();
    let mut cases: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in recorded.lines() {
        match line.strip_prefix("> ") {
            Some(expression) => cases.push((expression, Vec::new())),
            None => cases.last_mut().unwrap().1.push(line),
        }
    }
    let mut wrong = Vec::new();
    for (expression, expected) in &cases {
        let (expected, found) = (expected.join("\n"), answer(expression, &scope));
        if expected != found {
            wrong.push(format!("> {expression}\n--- expected\n{expected}\n--- found\n{found}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n\n")
    );
}
