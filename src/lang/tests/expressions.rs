//! Expressions in a scope with values of every kind.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use cty::{Marks, Type, Value};
use lang::eval::{Context, evaluate};
use lang::render::format_value;
use lang::scope::{EvaluationError, FunctionSettings, Reference, Scope};
use syntax::Pos;

/// Scope in which `var.later`, `var.text` and `var.items` are unknown, `var.nothing` is a null object, and `var.secret` is a
/// sensitive `true`.
#[derive(Default)]
struct Values(FunctionSettings);

impl Scope for Values {
    fn lookup(&self, reference: &Reference) -> Result<Value, EvaluationError> {
        Ok(match reference.subject.to_string().as_str() {
            "var.later" => Value::unknown(Type::Bool),
            "var.text" => Value::unknown(Type::String),
            "var.items" => Value::unknown(Type::list(Type::String)),
            "var.nothing" => Value::null(Type::object([("a", Type::Bool)])),
            "var.secret" => Value::bool(true).with_marks(Marks::SENSITIVE),
            other => panic!("{other} has no value"),
        })
    }

    fn functions(&self) -> Option<&FunctionSettings> {
        Some(&self.0)
    }
}

/// Returns the value as text, or the summaries of the errors.
fn answer(text: &str) -> String {
    let (expr, problems) = syntax::parse_expression("x", text, Pos::default());
    assert!(problems.is_empty(), "{text}: {problems:?}");
    let scope = Values::default();
    let (value, problems) = evaluate(&expr, Context::new(&scope));
    if problems.is_empty() {
        return format_value(&value, 0);
    }
    let summaries: Vec<&str> = problems.iter().map(|d| &*d.summary).collect();
    format!("! {}", summaries.join(", "))
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(answer(text), *expected, "{text}");
    }
}

#[test]
fn only_the_problems_of_the_deciding_operand_count() {
    check(&[
        ("var.nothing != null && var.nothing.a", "false"),
        ("var.nothing == null || var.nothing.a", "true"),
        ("var.nothing.a && false", "false"),
        ("true && var.nothing.a", "! Attempt to get attribute from null value"),
        ("false || var.nothing.a", "! Attempt to get attribute from null value"),
        ("var.nothing.a || false", "! Attempt to get attribute from null value"),
        ("var.later && var.nothing.a", "(known after apply)"),
        (
            "var.nothing.a && var.later",
            "! Attempt to get attribute from null value",
        ),
        ("false && tolist([true])[3] && tolist([true])[4]", "false"),
        ("true && false && var.nothing.a || true", "true"),
        ("null && true", "false"),
        ("true && null", "false"),
        ("null || true", "true"),
        ("null || false", "! Operation failed"),
        ("false && [] == {} && []", "! Invalid operand"),
        ("false && var.secret", "(sensitive value)"),
    ]);
}

/// Results are those of OpenTofu 1.12.6, except for bytes that are not text.
#[test]
fn functions_of_opentofu_answer_as_it_does() {
    check(&[
        ("base64gunzip(base64gzip(\"abc\"))", "\"abc\""),
        ("base64gunzip(\"x\")", "! Error in function call"),
        ("base64gunzip(\"YWJj\")", "! Error in function call"),
        (
            "base64gunzip(\"H4sIAAAAAAAA/0pMSgYEAAD//w==\")",
            "! Error in function call",
        ),
        ("urldecode(\"a+b%20c%C3%A4ä+\")", "\"a b cää \""),
        ("urldecode(urlencode(\"ü/?&=% +\"))", "\"ü/?&=% +\""),
        ("urldecode(\"\")", "\"\""),
        ("urldecode(\"%zz\")", "! Error in function call"),
        ("urldecode(\"a%2\")", "! Error in function call"),
        ("urldecode(\"%ä\")", "! Error in function call"),
        ("urldecode(\"%ff\")", "! Error in function call"),
        ("cidrcontains(\"192.168.2.0/20\", \"192.168.2.1\")", "true"),
        ("cidrcontains(\"192.168.2.0/20\", \"192.168.2.0/22\")", "true"),
        ("cidrcontains(\"192.168.2.0/20\", \"192.126.2.0/18\")", "false"),
        ("cidrcontains(\"10.0.0.0/8\", \"10.0.0.0/7\")", "false"),
        ("cidrcontains(\"10.0.0.5/8\", \"10.0.0.1/8\")", "true"),
        ("cidrcontains(\"0.0.0.0/0\", \"1.2.3.4/0\")", "true"),
        ("cidrcontains(\"010.0.0.0/8\", \"10.0.0.1\")", "true"),
        ("cidrcontains(\"2001:db8::/32\", \"2001:db8::/33\")", "true"),
        ("cidrcontains(\"::ffff:10.0.0.0/104\", \"10.0.0.1\")", "true"),
        (
            "cidrcontains(\"10.0.0.0/8\", \"2001:db8::1\")",
            "! Error in function call",
        ),
        ("cidrcontains(\"10.0.0.0/8\", \"x\")", "! Error in function call"),
        ("cidrcontains(\"x\", \"10.0.0.1\")", "! Error in function call"),
        (
            "cidrsubnets(\"fd00::/8\", 60, 60, 100)",
            "tolist([\n  \"fd00::/68\",\n  \"fd00::1000:0:0:0/68\",\n  \"fd00::2000:0:0:0/108\",\n])",
        ),
        ("cidrsubnets(\"fd00::/8\", 121)", "! Invalid function argument"),
        ("cidrsubnets(\"10.0.0.0/8\", 33)", "! Invalid function argument"),
    ]);
}

#[test]
fn assumptions_about_unknown_values_are_known_afterwards() {
    check(&[
        ("assumeequal(var.text, \"a\")", "\"a\""),
        ("assumeequal(\"a\", var.text)", "(known after apply)"),
        ("assumenotnull(var.text) == null", "false"),
        (
            "startswith(assumestringprefix(var.text, \"https://\"), \"https:\")",
            "true",
        ),
        (
            "assumestringprefix(assumestringprefix(var.text, \"https://\"), \"http://\")",
            "! Invalid function argument",
        ),
        ("length(assumelistlength(assumenotnull(var.items), 2, 2))", "2"),
        ("length(assumelistlengthmin(var.items, 1)) > 0", "true"),
        (
            "assumelistlengthmax(assumelistlengthmin(var.items, 3), 2)",
            "! Invalid function argument",
        ),
        ("assumelistlength(var.items, 2, 1)", "! Invalid function argument"),
        ("assumelistlengthmax(var.items, -1)", "! Invalid function argument"),
    ]);
}

#[test]
fn assumptions_that_hold_return_the_value_and_others_are_errors() {
    check(&[
        ("assumeequal(\"1\", 1)", "1"),
        ("assumeequal([\"a\"], tolist([\"a\"]))", "tolist([\n  \"a\",\n])"),
        ("assumeequal(\"howdy\", \"hello\")", "! Invalid function argument"),
        ("assumeequal(\"a\", [\"a\"])", "! Invalid function argument"),
        ("assumeequal(sensitive(\"a\"), \"a\")", "\"a\""),
        ("assumenotnull(\"a\")", "\"a\""),
        ("assumenotnull(tostring(null))", "! Invalid function argument"),
        ("assumenotnull(null)", "! Invalid function argument"),
        ("assumestringprefix(\"https://x\", \"https://\")", "\"https://x\""),
        (
            "assumestringprefix(\"http://x\", \"https://\")",
            "! Invalid function argument",
        ),
        ("assumelistlength([1, 2], 1, 2)", "tolist([\n  1,\n  2,\n])"),
        ("assumelistlength([1, 2], 3, 4)", "! Invalid function argument"),
        ("assumelistlengthmin([1], 2)", "! Invalid function argument"),
        ("assumelistlengthmax([1], 1.5)", "! Invalid function argument"),
        ("assumemaplengthmax({ a = 1 }, 1)", "tomap({\n  \"a\" = 1\n})"),
        ("assumemaplengthmax({ a = 1 }, 0)", "! Invalid function argument"),
        ("assumesetlengthmin([\"a\", \"a\"], 2)", "! Invalid function argument"),
        ("assumesetlengthmin(null, 0)", "! Invalid function argument"),
        (
            "assumesetlengthmin([\"a\", var.text], 2)",
            "toset([\n  \"a\",\n  (known after apply),\n])",
        ),
    ]);
}

#[test]
fn convert_puts_defaults_in_after_the_conversion() {
    check(&[
        ("convert(1, string)", "\"1\""),
        ("convert(null, number)", "tonumber(null)"),
        (
            "convert({ a = 1 }, object({ a = string, b = optional(number, 2) })).b",
            "2",
        ),
        ("convert({}, object({ b = optional(number) })).b", "tonumber(null)"),
        (
            "convert([1, true], list(string))",
            "tolist([\n  \"1\",\n  \"true\",\n])",
        ),
        ("convert(var.secret, any)", "(sensitive value)"),
        ("convert(var.later, string)", "(known after apply)"),
        ("convert(\"x\", number)", "! Invalid function argument"),
        ("convert(1)", "! Not enough function arguments"),
        ("convert(1, string, 2)", "! Too many function arguments"),
        ("convert(1, list)", "! Invalid type specification"),
        ("try(convert(1, \"string\"), 2)", "2"),
        ("string", "! Unknown variable"),
    ]);
}

#[test]
fn null_and_unknown_arguments_of_functions() {
    check(&[
        ("format(\"%v\", null)", "\"null\""),
        ("format(\"%s\", null)", "! Error in function call"),
        ("contains([tostring(null)], tostring(null))", "true"),
        ("contains([1], tostring(null))", "false"),
        ("contains([1], null)", "false"),
        ("jsondecode(\"{\\\"a\\\":1,\\\"a\\\":2}\").a", "2"),
        (
            "jsondecode(\"{\\\"a\\\":1,\\\"a\\\":\\\"2\\\"}\")",
            "! Error in function call",
        ),
    ]);
}

#[test]
fn null_is_found_or_not_found_in_a_collection() {
    check(&[
        ("contains([1, null], null)", "true"),
        ("contains([1, 2], null)", "false"),
        ("contains([], null)", "false"),
        ("contains(toset([\"a\"]), null)", "false"),
        ("contains(tolist([\"a\", null]), null) ? \"yes\" : \"no\"", "\"yes\""),
        ("contains([[null], [1]], [null])", "true"),
        ("contains([[1]], [null])", "false"),
        ("contains([var.later], null)", "(known after apply)"),
        ("index([[1], [null]], [null])", "1"),
    ]);
}

#[test]
fn nulls_and_empty_collections_are_compared_when_all_is_known() {
    check(&[
        ("[null] == [null]", "true"),
        ("[null] == [1]", "false"),
        ("[null] == [tostring(null)]", "false"),
        ("{ a = null } == { a = null }", "true"),
        ("{ a = null, b = 1 } != { a = 1, b = null }", "true"),
        (
            "concat(tolist([null]), tolist([\"a\"]))",
            "tolist([\n  tostring(null),\n  \"a\",\n])",
        ),
        ("concat(tolist([]), tolist([\"a\"]))", "tolist([\n  \"a\",\n])"),
        ("{ a = null } == { b = null }", "false"),
        ("[null] == tolist([null])", "false"),
        ("tolist([]) == tolist([\"a\"])", "false"),
        ("tolist([]) == tolist([])", "true"),
        ("tomap({}) == tomap({ a = null })", "false"),
        ("toset([null]) == toset([null])", "true"),
    ]);
}

/// Known values of every kind, with many nulls and untyped values.
const KNOWN: [&str; 18] = [
    "null",
    "tostring(null)",
    "\"a\"",
    "\"1\"",
    "1",
    "true",
    "[]",
    "[null]",
    "[\"a\", null]",
    "[[null], []]",
    "{}",
    "{ a = null }",
    "tolist([])",
    "tolist([\"a\", null])",
    "tolist(null)",
    "tomap({ a = null })",
    "toset([\"a\"])",
    "toset([null])",
];

#[test]
fn known_arguments_make_known_results() {
    // Functions that have no result before apply, read files, or take much time.
    const LEFT_OUT: [&str; 3] = ["bcrypt", "rsadecrypt", "templatefile"];
    let mut open = Vec::new();
    let mut ask = |text: String| {
        let (expr, problems) = syntax::parse_expression("x", &text, Pos::default());
        assert!(problems.is_empty(), "{text}: {problems:?}");
        let scope = Values::default();
        let (value, problems) = evaluate(&expr, Context::new(&scope));
        if !problems.has_errors() && !value.is_wholly_known() {
            open.push(text);
        }
    };
    let mut names: Vec<_> = lang::functions::names()
        .filter(|name| !LEFT_OUT.contains(name))
        .collect();
    names.sort_unstable();
    for name in names {
        let most =
            lang::functions::find(name).map_or(2, |f| f.parameters.len() + 2 * usize::from(f.variadic.is_some()));
        for a in KNOWN {
            ask(format!("{name}({a})"));
            for b in KNOWN.iter().filter(|_| most > 1) {
                ask(format!("{name}({a}, {b})"));
                for c in KNOWN[..4].iter().filter(|_| most > 2) {
                    ask(format!("{name}({a}, {b}, {c})"));
                }
            }
        }
    }
    for a in KNOWN {
        for b in KNOWN {
            for op in ["==", "!=", "&&", "||", "+", "<"] {
                ask(format!("({a}) {op} ({b})"));
            }
            ask(format!("true ? ({a}) : ({b})"));
            ask(format!("[for x in [{a}, {b}] : x]"));
            ask(format!("{{ for x in [{a}, {b}] : \"k\" => x... }}"));
        }
        ask(format!("({a})[*]"));
        ask(format!("({a})[0]"));
        ask(format!("\"x${{{a}}}\""));
    }
    assert_eq!(open, [""; 0]);
}

#[test]
fn elements_are_limited_and_the_limit_can_be_set() {
    let ask = |text: &str, most: u64| {
        let (expr, problems) = syntax::parse_expression("x", text, Pos::default());
        assert!(problems.is_empty(), "{text}: {problems:?}");
        let scope = Values(FunctionSettings {
            max_elements: Some(most),
            ..FunctionSettings::default()
        });
        let (value, problems) = evaluate(&expr, Context::new(&scope));
        let summaries: Vec<String> = problems
            .iter()
            .map(|d| format!("{}: {}", d.summary, d.detail))
            .collect();
        (format_value(&value, 0), summaries.join("\n"))
    };
    let nested = "length(flatten([for a in range(5) : [for b in range(5) : b]]))";
    assert_eq!(ask(nested, 30), ("25".into(), String::new()));
    let (_, problem) = ask(nested, 29);
    assert!(
        problem.starts_with("Too many elements: ") && problem.contains("more than 29 elements"),
        "{problem}"
    );
    assert_eq!(problem.lines().count(), 1, "it is said once");
    assert_eq!(ask("length(range(2000))", 2000).0, "2000");
    assert!(ask("range(2000)", 1999).1.contains("more than 1999 numbers"));
    assert_eq!(answer("range(1025)"), "! Error in function call");
    assert_eq!(answer("length(range(1024))"), "1024");
    assert!(ask("setproduct([1, 2], [1, 2])", 3).1.contains("more than 3"));
}
