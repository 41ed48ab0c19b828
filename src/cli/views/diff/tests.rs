//! Differences as they are written, compared with what Terraform 1.11 writes for the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Marks, Path, Type, Value};
use lang::schema::{AttributeSchema, AttributeType, BlockSchema, NestedBlock, Nesting};

use super::build;
use super::render::{Options, Writer};

fn attribute(ty: Type) -> AttributeSchema {
    AttributeSchema {
        ty: AttributeType::Plain(ty),
        optional: true,
        ..AttributeSchema::default()
    }
}

fn schema(attributes: &[(&str, Type)], blocks: &[(&str, BlockSchema, Nesting)]) -> BlockSchema {
    BlockSchema {
        attributes: attributes
            .iter()
            .map(|(n, t)| (Arc::from(*n), attribute(t.clone())))
            .collect(),
        blocks: blocks
            .iter()
            .map(|(n, block, nesting)| {
                let nested = NestedBlock {
                    block: block.clone(),
                    nesting: *nesting,
                    min_items: 0,
                    max_items: 0,
                };
                (Arc::from(*n), nested)
            })
            .collect(),
        ..BlockSchema::default()
    }
}

/// The object of a schema in which only these attributes are not null.
fn object(schema: &BlockSchema, values: &[(&str, Value)]) -> Value {
    let given: BTreeMap<&str, &Value> = values.iter().map(|(n, v)| (*n, v)).collect();
    Value::object(schema.implied_object().attributes().iter().map(|a| {
        let value = given
            .get(&*a.name)
            .map_or_else(|| Value::null(a.ty.clone()), |v| (*v).clone());
        (a.name.clone(), value)
    }))
}

fn shown(schema: &BlockSchema, before: &Value, after: &Value, replace: &[Path]) -> String {
    Writer::default().render(&build::object(before, after, schema, replace), 1, Options::default())
}

fn any(before: &Value, after: &Value) -> String {
    Writer::default().render(&build::anything(Some(before), Some(after)), 1, Options::default())
}

fn strings(items: &[&str]) -> Value {
    Value::tuple(items.iter().map(Value::string).collect())
}

#[test]
fn only_what_changes_is_shown_and_columns_stay() {
    let s = schema(
        &[
            ("id", Type::String),
            ("triggers_replace", Type::Dynamic),
            ("input", Type::Dynamic),
        ],
        &[],
    );
    let before = [
        ("id", "x".into()),
        ("triggers_replace", "t".into()),
        ("input", "a".into()),
    ];
    let after = [
        ("id", "x".into()),
        ("triggers_replace", "t".into()),
        ("input", Value::dynamic()),
    ];
    assert_eq!(
        shown(&s, &object(&s, &before), &object(&s, &after), &[]),
        r#"{
        id               = "x"
      ~ input            = "a" -> (known after apply)
        # (1 unchanged attribute hidden)
    }"#
    );
}

#[test]
fn what_goes_becomes_null_and_what_was_null_is_not_mentioned() {
    let s = schema(
        &[
            ("id", Type::String),
            ("list", Type::list(Type::String)),
            ("none", Type::Bool),
        ],
        &[],
    );
    let before = object(
        &s,
        &[
            ("id", "x".into()),
            ("list", Value::list(Type::String, vec!["a".into()])),
        ],
    );
    assert_eq!(
        shown(&s, &before, &Value::null(s.implied_type()), &[]),
        r#"{
      - id   = "x" -> null
      - list = [
          - "a",
        ] -> null
    }"#
    );
}

#[test]
fn what_asks_for_a_new_object_says_so() {
    let s = schema(&[("keepers", Type::map(Type::String)), ("length", Type::Number)], &[]);
    let map = |v: &str| Value::map(Type::String, BTreeMap::from([("k".into(), Value::string(v))]));
    let before = object(&s, &[("keepers", map("1")), ("length", 1.into())]);
    let after = object(&s, &[("keepers", map("2")), ("length", 2.into())]);
    let paths = [Path::root().attribute("keepers"), Path::root().attribute("length")];
    assert_eq!(
        shown(&s, &before, &after, &paths),
        r#"{
      ~ keepers = { # forces replacement
          ~ "k" = "1" -> "2"
        }
      ~ length  = 1 -> 2 # forces replacement
    }"#
    );
}

#[test]
fn nested_blocks_follow_the_attributes() {
    let rule = schema(&[("port", Type::Number)], &[]);
    let one = |port: i64| object(&rule, &[("port", port.into())]);
    let s = schema(
        &[("id", Type::String)],
        &[
            ("rule", rule.clone(), Nesting::List),
            ("set", rule.clone(), Nesting::Set),
        ],
    );
    let with = |list: &[i64], set: &[i64]| {
        object(
            &s,
            &[
                ("id", "x".into()),
                (
                    "rule",
                    Value::list(rule.implied_type(), list.iter().map(|p| one(*p)).collect()),
                ),
                (
                    "set",
                    Value::set(rule.implied_type(), set.iter().map(|p| one(*p)).collect()),
                ),
            ],
        )
    };
    assert_eq!(
        shown(&s, &with(&[1, 2], &[5]), &with(&[1, 3, 4], &[5]), &[]),
        r#"{
        id = "x"

      ~ rule {
          ~ port = 2 -> 3
        }
      + rule {
          + port = 4
        }

        # (2 unchanged blocks hidden)
    }"#
    );
}

#[test]
fn lists_show_the_neighbours_of_what_changes() {
    assert_eq!(
        any(
            &strings(&["a", "b", "c", "d", "e"]),
            &strings(&["a", "b", "X", "d", "e", "f"])
        ),
        r#"[
        # (1 unchanged element hidden)
        "b",
      - "c",
      + "X",
        "d",
        "e",
      + "f",
    ]"#
    );
    assert_eq!(
        any(&strings(&["a", "b"]), &strings(&["a", "c"])),
        "[\n        \"a\",\n      ~ \"b\" -> \"c\",\n    ]"
    );
}

#[test]
fn text_of_several_lines_is_compared_by_lines() {
    assert_eq!(
        any(&"a\nb1\nc".into(), &"a\nb2\n${c}".into()),
        "<<-EOT\n        a\n      - b1\n      - c\n      + b2\n      + $${c}\n    EOT"
    );
}

#[test]
fn json_in_text_is_compared_as_structure() {
    assert_eq!(
        any(&r#"{"a":1,"b":2}"#.into(), &r#"{"a":1,"b":3}"#.into()),
        "jsonencode(
      ~ {
          ~ b = 2 -> 3
            # (1 unchanged attribute hidden)
        }
    )"
    );
    assert_eq!(
        any(&r#"{"a":1}"#.into(), &r#"{"a": 1}"#.into()),
        "jsonencode( # whitespace changes
        {
            a = 1
        }
    )"
    );
}

#[test]
fn secrets_are_hidden_and_changes_of_secrecy_announced() {
    let s = schema(&[("a", Type::String)], &[]);
    let plain = object(&s, &[("a", "x".into())]);
    let secret = object(&s, &[("a", Value::string("x").with_marks(Marks::SENSITIVE))]);
    let text = shown(&s, &plain, &secret, &[]);
    assert_eq!(
        text,
        "{
      # Warning: this attribute value will be marked as sensitive and will not
      # display in UI output after applying this change. The value is unchanged.
      ~ a = (sensitive value)
    }"
    );
    let nothing = Value::null(s.implied_type());
    assert_eq!(
        shown(&s, &nothing, &secret, &[]),
        "{\n      + a = (sensitive value)\n    }"
    );
}

#[test]
fn kinds_may_change() {
    let list = Value::object([("x", strings(&["y"]))]);
    let text = Value::object([("x", Value::string("z"))]);
    assert_eq!(
        any(&list, &text),
        "{\n      ~ x = [\n          - \"y\",\n        ] -> \"z\"\n    }"
    );
}
