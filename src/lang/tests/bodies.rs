//! Block bodies under a schema, type expressions, references, and values in diagnostics.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::Referenceable;
use cty::{Marks, Path, Type, Value};
use lang::body::{decode_body, path_range};
use lang::eval::{Context, evaluate};
use lang::refs::references_in_body;
use lang::render::format_value;
use lang::scope::{EvaluationError, FunctionSettings, Reference, Scope};
use lang::typeexpr::type_constraint;
use schema::marking::{mark_sensitive, misplaced_ephemeral, sensitive_paths, without_write_only};
use schema::{AttributeSchema, AttributeType, BlockSchema, NestedBlock, NestedObject, Nesting};
use syntax::Pos;
use syntax::ast::Body;

#[derive(Default)]
struct Variables(BTreeMap<&'static str, Value>, FunctionSettings);

impl Scope for Variables {
    fn lookup(&self, reference: &Reference) -> Result<Value, EvaluationError> {
        match &reference.subject {
            Referenceable::Variable(name) => Ok(self.0.get(&**name).cloned().unwrap_or_else(Value::dynamic)),
            _ => Ok(Value::dynamic()),
        }
    }

    fn functions(&self) -> Option<&FunctionSettings> {
        Some(&self.1)
    }
}

fn attribute(ty: Type) -> AttributeSchema {
    AttributeSchema {
        ty: AttributeType::Plain(ty),
        optional: true,
        ..AttributeSchema::default()
    }
}

fn nested(nesting: Nesting, block: BlockSchema) -> NestedBlock {
    NestedBlock {
        block,
        nesting,
        min_items: 0,
        max_items: 0,
    }
}

fn schema(attributes: Vec<(&str, AttributeSchema)>, blocks: Vec<(&str, NestedBlock)>) -> BlockSchema {
    BlockSchema {
        attributes: attributes.into_iter().map(|(n, a)| (Arc::from(n), a)).collect(),
        blocks: blocks.into_iter().map(|(n, b)| (Arc::from(n), b)).collect(),
        ..BlockSchema::default()
    }
}

fn body(text: &str) -> Arc<Body> {
    let (body, problems) = syntax::parse_file("main.tf", text.as_bytes());
    assert!(!problems.has_errors(), "{problems:?}");
    body
}

fn decode(text: &str, schema: &BlockSchema, scope: &Variables) -> (String, Vec<String>) {
    let (value, problems) = decode_body(&body(text), schema, Context::new(scope));
    let reported = problems
        .iter()
        .map(|d| format!("{}: {}", d.summary, d.detail))
        .collect();
    (
        format_value(&value, 0).split_whitespace().collect::<Vec<_>>().join(" "),
        reported,
    )
}

fn rule() -> BlockSchema {
    schema(
        vec![(
            "port",
            AttributeSchema {
                required: true,
                optional: false,
                ..attribute(Type::Number)
            },
        )],
        vec![],
    )
}

#[test]
fn blocks_and_dynamic_blocks_form_collections() {
    let s = schema(
        vec![("name", attribute(Type::String))],
        vec![("rule", nested(Nesting::List, rule()))],
    );
    let text = r#"
name = 5
rule {
  port = "80"
}
dynamic "rule" {
  for_each = { a = 1, b = 2 }
  iterator = it
  content {
    port = it.value + 1
  }
}
"#;
    let (value, problems) = decode(text, &s, &Variables::default());
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(
        value,
        r#"{ "name" = "5" "rule" = tolist([ { "port" = 80 }, { "port" = 2 }, { "port" = 3 }, ]) }"#
    );
}

#[test]
fn dynamic_blocks_nest_and_see_outer_iterators() {
    let outer = schema(
        vec![("name", attribute(Type::String))],
        vec![("rule", nested(Nesting::List, rule()))],
    );
    let s = schema(vec![], vec![("group", nested(Nesting::Map, outer))]);
    let text = r#"
dynamic "group" {
  for_each = { x = [1, 2], y = [] }
  labels   = [group.key]
  content {
    name = "g-${group.key}"
    dynamic "rule" {
      for_each = group.value
      content {
        port = rule.value * 10 + length(group.key)
      }
    }
  }
}
"#;
    let (value, problems) = decode(text, &s, &Variables::default());
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(
        value,
        "{ \"group\" = tomap({ \"x\" = { \"name\" = \"g-x\" \"rule\" = tolist([ { \"port\" = 11 }, { \"port\" = 21 }, ]) } \
         \"y\" = { \"name\" = \"g-y\" \"rule\" = tolist([]) } }) }"
    );
}

#[test]
fn unknown_for_each_makes_the_blocks_unknown_but_content_is_checked() {
    let mut block = nested(Nesting::List, rule());
    block.min_items = 2;
    let s = schema(vec![], vec![("rule", block)]);
    let unknown = "dynamic \"rule\" {\n  for_each = var.unknown\n  content {\n    port = rule.value\n  }\n}\n";
    let (value, problems) = decode(unknown, &s, &Variables::default());
    assert_eq!(
        (value.as_str(), problems.len()),
        ("{ \"rule\" = (known after apply) }", 0)
    );
    let wrong = unknown.replace("port", "prot");
    let (_, problems) = decode(&wrong, &s, &Variables::default());
    assert_eq!(
        problems[0],
        "Unsupported argument: An argument named \"prot\" is not expected here. Did you mean \"port\"?"
    );
}

#[test]
fn violations_of_the_schema_are_reported() {
    let mut few = nested(Nesting::List, rule());
    few.max_items = 1;
    let s = schema(
        vec![(
            "name",
            AttributeSchema {
                required: true,
                ..attribute(Type::String)
            },
        )],
        vec![("rule", few), ("one", nested(Nesting::Single, rule()))],
    );
    let text = "nmae = 1\nrule {\n  port = []\n}\nrule {\n}\none {\n  port = 1\n}\none {\n  port = 1\n}\nrle {\n}\n";
    let (_, mut problems) = decode(text, &s, &Variables::default());
    problems.sort();
    assert_eq!(
        problems,
        [
            "Duplicate one block: There can be one \"one\" block here, and one stands at main.tf:7,1-4. Remove one of \
             the two.",
            "Incorrect attribute value type: Inappropriate value for attribute \"port\": number required, but have tuple.",
            "Missing required argument: This block must set the argument \"name\", and it does not.",
            "Missing required argument: This block must set the argument \"port\", and it does not.",
            "Too many rule blocks: No more than 1 \"rule\" blocks are allowed",
            "Unsupported argument: An argument named \"nmae\" is not expected here. Did you mean \"name\"?",
            "Unsupported block type: Blocks of type \"rle\" are not expected here. Did you mean \"rule\"?",
        ]
    );
}

#[test]
fn attributes_of_objects_may_be_written_as_blocks() {
    let object = Type::object([("a", Type::String), ("b", Type::Number)]);
    let s = schema(vec![("item", attribute(Type::list(object)))], vec![]);
    let expected = "{ \"item\" = tolist([ { \"a\" = \"x\" \"b\" = tonumber(null) }, ]) }";
    assert_eq!(
        decode("item {\n  a = \"x\"\n}\n", &s, &Variables::default()).0,
        expected
    );
    assert_eq!(
        decode("item = [{ a = \"x\", b = null }]\n", &s, &Variables::default()).0,
        expected
    );
    assert_eq!(
        decode("item = []\n", &s, &Variables::default()).0,
        "{ \"item\" = tolist([]) }"
    );
    assert!(decode("", &s, &Variables::default()).0.contains("tolist(null)"));
}

#[test]
fn nested_attribute_types_know_what_is_required() {
    let inner = BTreeMap::from([
        (
            Arc::from("id"),
            AttributeSchema {
                required: true,
                optional: false,
                ..attribute(Type::String)
            },
        ),
        (Arc::from("note"), attribute(Type::String)),
    ]);
    let nested = NestedObject {
        attributes: inner,
        nesting: Nesting::Map,
    };
    let s = schema(
        vec![(
            "items",
            AttributeSchema {
                ty: AttributeType::Nested(nested),
                optional: true,
                ..AttributeSchema::default()
            },
        )],
        vec![],
    );
    let (value, problems) = decode("items = { x = { id = 1 } }\n", &s, &Variables::default());
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(
        value,
        "{ \"items\" = tomap({ \"x\" = { \"id\" = \"1\" \"note\" = tostring(null) } }) }"
    );
    let (_, problems) = decode("items = { x = { note = 1 } }\n", &s, &Variables::default());
    assert!(problems[0].contains("attribute \"id\" is required"), "{problems:?}");
}

#[test]
fn parts_of_an_object_are_found_in_the_source() {
    let s = schema(
        vec![("tags", attribute(Type::map(Type::String)))],
        vec![("rule", nested(Nesting::List, rule()))],
    );
    let b = body("tags = {\n  a = \"x\"\n}\nrule {\n  port = 1\n}\nrule {\n  port = 2\n}\n");
    let at = |path: &Path| path_range(&b, &s, path).to_string();
    let tags = Path::root().attribute("tags");
    assert_eq!(at(&tags.index(Value::string("a"))), "main.tf:2,7-10");
    let rules = Path::root().attribute("rule");
    assert_eq!(
        at(&rules.index(Value::number(1i64)).attribute("port")),
        "main.tf:8,10-11"
    );
    assert_eq!(at(&rules.index(Value::number(1i64))), "main.tf:7,1-5");
    assert_eq!(at(&Path::root().attribute("absent")), b.end.to_string());
}

#[test]
fn sensitive_write_only_and_ephemeral_attributes_are_known_by_the_schema() {
    let secret = AttributeSchema {
        sensitive: true,
        ..attribute(Type::String)
    };
    let fleeting = AttributeSchema {
        write_only: true,
        ..attribute(Type::String)
    };
    let inner = schema(vec![("key", secret.clone())], vec![]);
    let s = schema(
        vec![("plain", attribute(Type::String)), ("wo", fleeting)],
        vec![("b", nested(Nesting::List, inner))],
    );
    let scope = Variables(
        BTreeMap::from([("e", Value::string("e").with_marks(Marks::EPHEMERAL))]),
        FunctionSettings::default(),
    );
    let text = "plain = var.e\nwo = var.e\nb {\n  key = \"k\"\n}\nb {\n}\n";
    let (value, problems) = decode_body(&body(text), &s, Context::new(&scope));
    assert!(problems.is_empty());
    let paths = |found: Vec<Path>| found.iter().map(Path::to_string).collect::<Vec<_>>();
    assert_eq!(paths(sensitive_paths(&s, &value)), [".b[0].key"]);
    assert_eq!(paths(misplaced_ephemeral(&s, &value)), [".plain"]);
    assert!(without_write_only(&s, &value).get("wo").unwrap().is_null());
    let shown = format_value(&mark_sensitive(&s, value), 0);
    assert!(shown.contains("\"key\" = (sensitive value)"), "{shown}");
}

#[test]
fn types_are_read_with_their_defaults() {
    let read = |text: &str| {
        let (expr, _) = syntax::parse_expression("x", text, Pos::default());
        type_constraint(&expr)
    };
    let (ty, defaults, problems) =
        read("object({ a = optional(string, 5), b = list(object({ c = optional(bool, true) })), d = any })");
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(
        ty.to_string(),
        "object({a=optional(string),b=list(object({c=optional(bool)})),d=any})"
    );
    let partial = Value::object([
        ("b", Value::tuple(vec![Value::empty_object()])),
        ("d", Value::bool(false)),
    ]);
    let value = cty::convert(&defaults.apply(partial), &ty).unwrap();
    assert_eq!(
        format_value(&value, 0).split_whitespace().collect::<Vec<_>>().join(" "),
        "{ \"a\" = \"5\" \"b\" = tolist([ { \"c\" = true }, ]) \"d\" = false }"
    );
    for (text, reported) in [
        (
            "strng",
            "The keyword \"strng\" is not a valid type specification. Did you mean \"string\"?",
        ),
        (
            "list",
            "A list type names the type of its elements, such as list(string).",
        ),
        (
            "list(string, 1)",
            "A list type has one argument: the type of its elements, such as list(string).",
        ),
        ("string(1)", "The type string has no arguments."),
        (
            "optional(string)",
            "Only the type of an attribute in object({ … }) can be optional.",
        ),
        (
            "lst(string)",
            "The keyword \"lst\" is not a valid type constructor. Did you mean \"list\"?",
        ),
    ] {
        assert_eq!(read(text).2.0[0].detail, reported);
    }
}

#[test]
fn references_leave_out_iterators() {
    let s = schema(vec![], vec![("rule", nested(Nesting::List, rule()))]);
    let text = r#"
x = [for v in var.a : v.id if local.b]
dynamic "rule" {
  for_each = aws_x.y[0].z
  content {
    port = rule.value + module.m["k"].out + data.t.n.q
  }
}
"#;
    let (found, problems) = references_in_body(&body(text), &s);
    assert!(problems.is_empty());
    let names: Vec<String> = found.iter().map(|r| r.subject.to_string()).collect();
    assert_eq!(
        names,
        ["var.a", "local.b", "aws_x.y[0]", "module.m[\"k\"].out", "data.t.n"]
    );
    assert_eq!(found[2].remaining.len(), 1);
}

#[test]
fn diagnostics_describe_the_values_involved() {
    let scope = Variables(
        BTreeMap::from([
            ("name", Value::string("n")),
            (
                "list",
                Value::list(Type::String, vec![Value::string("a"), Value::string("b")]),
            ),
            ("secret", Value::string("s").with_marks(Marks::SENSITIVE)),
            ("later", Value::unknown(Type::Number)),
        ]),
        FunctionSettings::default(),
    );
    let (expr, _) = syntax::parse_expression("x", "[var.name, var.list, var.secret, var.later][9]", Pos::default());
    let (_, problems) = evaluate(&expr, Context::new(&scope));
    let reported = problems.0[0].expression.as_ref().unwrap().values.clone();
    let reported: Vec<String> = reported
        .into_iter()
        .map(|(name, what)| format!("{name} {what}"))
        .collect();
    assert_eq!(
        reported,
        [
            "var.later is a number",
            "var.list is list of string with 2 elements",
            "var.name is \"n\""
        ]
    );
}

#[test]
fn deep_and_long_expressions_do_not_overflow_the_stack() {
    let scope = Variables::default();
    let long = vec!["1"; 20_000].join(" + ");
    let (expr, problems) = syntax::parse_expression("x", &long, Pos::default());
    if !problems.has_errors() {
        assert_eq!(format_value(&evaluate(&expr, Context::new(&scope)).0, 0), "20000");
    }
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let (expr, mut problems) = syntax::parse_expression("x", &deep, Pos::default());
    problems.extend(evaluate(&expr, Context::new(&scope)).1);
    assert!(problems.has_errors());
}

#[test]
fn a_body_in_the_json_syntax_means_the_same() {
    let inner = schema(vec![("port", attribute(Type::Number))], vec![]);
    let outer = schema(
        vec![
            ("name", attribute(Type::String)),
            ("list", attribute(Type::list(Type::String))),
        ],
        vec![
            ("rule", nested(Nesting::List, inner.clone())),
            ("one", nested(Nesting::Single, inner.clone())),
            ("named", nested(Nesting::Map, inner)),
        ],
    );
    let native = r#"
        name = "n-${var.n}"
        list = ["a", "$${b}"]
        rule { port = 1 }
        rule { port = 2 }
        one { port = var.n }
        named "x" { port = 3 }
        dynamic "rule" {
          for_each = var.ports
          iterator = it
          content { port = it.value + 1 }
        }
    "#;
    let json = br#"{
        "//": "nobody reads this",
        "name": "n-${var.n}",
        "list": ["a", "$${b}"],
        "rule": [{"port": 1}, {"port": 2}],
        "one": {"port": "${var.n}"},
        "named": {"x": {"port": 3}},
        "dynamic": {"rule": {"for_each": "${var.ports}", "iterator": "it", "content": {"port": "${it.value + 1}"}}}
    }"#;
    let mut scope = Variables::default();
    scope.0.insert("n", Value::number(7));
    scope
        .0
        .insert("ports", Value::tuple(vec![Value::number(5), Value::number(6)]));
    let (json, problems) = syntax::json::parse_file("main.tf.json", json);
    assert!(problems.is_empty(), "{problems:?}");
    let (expected, problems) = decode_body(&body(native), &outer, Context::new(&scope));
    assert!(problems.is_empty(), "{problems:?}");
    let (value, problems) = decode_body(&json, &outer, Context::new(&scope));
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(value, expected);

    let (references, problems) = references_in_body(&json, &outer);
    assert!(problems.is_empty(), "{problems:?}");
    let names: Vec<String> = references.iter().map(|r| r.subject.to_string()).collect();
    assert_eq!(names, ["var.n", "var.n", "var.ports"]);

    let second = Path(vec![
        cty::Step::Attribute("list".into()),
        cty::Step::Index(Value::number(1)),
    ]);
    assert_eq!(path_range(&json, &outer, &second).to_string(), "main.tf.json:4,23-30");
}

#[test]
fn problems_of_a_json_body_have_their_places() {
    let outer = schema(
        vec![("name", attribute(Type::String))],
        vec![("rule", nested(Nesting::List, rule()))],
    );
    for (text, expected) in [
        (r#"{"nam": 1}"#, "Extraneous JSON object property at main.tf.json:1,2-7"),
        (r#"{"rule": {}}"#, "Missing required argument at main.tf.json:1,11-12"),
        (r#"{"rule": [{}]}"#, "Missing required argument at main.tf.json:1,12-13"),
        (r#"{"rule": 1}"#, "Incorrect JSON value type at main.tf.json:1,10-11"),
        (r#"{"rule": [1]}"#, "Incorrect JSON value type at main.tf.json:1,11-12"),
        (
            r#"{"name": {"a": 1}}"#,
            "Incorrect attribute value type at main.tf.json:1,10-18",
        ),
        (r#"{"name": "a${"}"#, "Missing expression at main.tf.json:1,14-14"),
        (
            r#"{"name": {"a": 1, "a": 2}}"#,
            "Duplicate object attribute at main.tf.json:1,19-22",
        ),
    ] {
        let (json, _) = syntax::json::parse_file("main.tf.json", text.as_bytes());
        let (_, problems) = decode_body(&json, &outer, Context::new(&Variables::default()));
        let first = problems.iter().next().map(|d| {
            let place = d.subject.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{} at {place}", d.summary)
        });
        assert_eq!(first.as_deref(), Some(expected), "{text}");
    }
}
