//! Fuzz target: any text as a template and as an expression, evaluated among known, unknown, null and sensitive values.

#![no_main]

use cty::{Marks, Type, Value};
use lang::eval::{Context, evaluate};
use lang::scope::{EvaluationError, FunctionSettings, Reference, Scope};
use libfuzzer_sys::fuzz_target;
use syntax::Pos;

/// Functions that are slow or use the machine's files by design, so that a finding in them would be no bug.
const LEFT_OUT: [&str; 4] = ["file", "bcrypt", "abspath", "pathexpand"];

fuzz_target!(|text: &str| {
    if LEFT_OUT.iter().any(|word| text.contains(word)) {
        return;
    }
    let scope = FuzzScope(FunctionSettings::default());
    let (template, problems) = syntax::parse_template("t", text, Pos::default());
    if !problems.has_errors() {
        drop(evaluate(&template, Context::new(&scope)));
    }
    let (expression, problems) = syntax::parse_expression("e", text, Pos::default());
    if !problems.has_errors() {
        let (value, _) = evaluate(&expression, Context::new(&scope));
        drop(lang::render::format_value(&value, 0));
    }
});

struct FuzzScope(FunctionSettings);

impl Scope for FuzzScope {
    fn lookup(&self, reference: &Reference) -> Result<Value, EvaluationError> {
        let name = reference.subject.to_string();
        Ok(match name.bytes().last().unwrap_or(0) % 8 {
            0 => Value::string("text\u{301}"),
            1 => Value::number(cty::Number::from(7_i64)),
            2 => Value::unknown(Type::Dynamic),
            3 => Value::unknown(Type::String),
            4 => Value::null(Type::Dynamic),
            5 => Value::string("secret").with_marks(Marks::SENSITIVE),
            6 => Value::tuple(vec![Value::bool(true), Value::string("b"), Value::null(Type::String)]),
            _ => Value::object([("a", Value::string("x")), ("b", Value::tuple(Vec::new()))]),
        })
    }

    fn functions(&self) -> Option<&FunctionSettings> {
        Some(&self.0)
    }
}
