//! Tests of both JSON forms.

use proptest::prelude::*;
use serde_json::json;

use super::{
    from_json, from_json_text, from_simple_json, to_json, to_json_text, to_simple_json, to_simple_text, to_text,
    type_from_json, type_text, type_to_json,
};
use crate::testing::{concrete_type, has_infinity, typed_value};
use crate::types::{ObjectAttribute, ObjectType};
use crate::{Number, Type, Value};

fn parse(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn numbers_keep_all_their_digits() {
    let text = "[12345678901234567890123456789.5,1e3,-0,0.1]";
    let value = from_simple_json(&parse(text)).unwrap();
    assert_eq!(
        to_text(&to_simple_json(&value).unwrap(), None),
        "[12345678901234567890123456789.5,1000,-0,0.1]"
    );
    assert!(to_json(&Value::number(Number::infinity()), &Type::Number).is_err());
}

#[test]
fn text_is_escaped_as_go_does() {
    let text = to_text(&json!({"a<b": "<&>\u{2028}\u{1}\u{7f}\"\\\n\r\t\u{8}\u{c}é"}), None);
    assert_eq!(
        text,
        r#"{"a\u003cb":"\u003c\u0026\u003e\u2028\u0001"#.to_owned() + "\u{7f}" + r#"\"\\\n\r\t\b\fé"}"#
    );
}

#[test]
fn empty_collections_stay_on_one_line_when_indented() {
    let text = to_text(&json!({"a": [1, {"b": null}], "c": [], "d": {}}), Some(2));
    assert_eq!(
        text,
        "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ],\n  \"c\": [],\n  \"d\": {}\n}"
    );
}

#[test]
fn objects_may_leave_attributes_out_but_not_add_any() {
    let ty = Type::object([("a", Type::String), ("b", Type::Number)]);
    let value = from_json(&json!({"b": "7"}), &ty).unwrap();
    assert_eq!(
        value,
        Value::object([("a", Value::null(Type::String)), ("b", Value::number(7))])
    );
    let error = from_json(&json!({"x": 1}), &ty).unwrap_err();
    assert_eq!(error.to_string(), "unsupported attribute \"x\"");
    let error = from_json(&json!([{"b": true}]), &Type::list(ty)).unwrap_err();
    assert_eq!(error.to_string(), "[0].b: number is required");
}

#[test]
fn text_with_members_in_any_order_is_read_and_the_last_of_equal_names_counts() {
    let ty = Type::object([("a", Type::String), ("b", Type::Number)]);
    let value = from_json_text(r#" {"b" : 1, "a": "x\n", "b": 2.50 } "#, &ty).unwrap();
    assert_eq!(
        value,
        Value::object([
            ("a", Value::string("x\n")),
            ("b", Value::number(Number::parse("2.5").unwrap()))
        ])
    );
    let error = from_json_text("{\"a\": }", &ty).unwrap_err();
    assert_eq!(error.to_string(), "a value is expected (at byte 6)");
}

#[test]
fn values_of_type_any_are_encoded_with_their_type() {
    let value = Value::tuple(vec![Value::string("x"), Value::null(Type::Bool)]);
    let json = to_json(&value, &Type::Dynamic).unwrap();
    assert_eq!(
        to_text(&json, None),
        r#"{"value":["x",null],"type":["tuple",["string","bool"]]}"#
    );
    assert_eq!(from_json(&json, &Type::Dynamic).unwrap(), value);
    assert_eq!(
        from_json(&json!(null), &Type::Dynamic).unwrap(),
        Value::null(Type::Dynamic)
    );
    assert!(from_json(&json!({"value": 1}), &Type::Dynamic).is_err());
    assert!(from_json(&json!({"value": 1, "type": "number", "more": 1}), &Type::Dynamic).is_err());
}

#[test]
fn types() {
    let optional = ObjectAttribute {
        name: "b".into(),
        ty: Type::set(Type::Bool),
        optional: true,
    };
    let plain = ObjectAttribute {
        name: "a".into(),
        ty: Type::Dynamic,
        optional: false,
    };
    let ty = Type::tuple([
        Type::Object(ObjectType::new([optional, plain]).into()),
        Type::map(Type::Number),
    ]);
    let json = type_to_json(&ty);
    assert_eq!(
        to_text(&json, None),
        r#"["tuple",[["object",{"a":"dynamic","b":["set","bool"]},["b"]],["map","number"]]]"#
    );
    assert_eq!(type_from_json(&json).unwrap(), ty);
    for bad in [
        json!("text"),
        json!(["list"]),
        json!(["list", "string", "bool"]),
        json!(["object", {}, ["a"]]),
        json!(7),
    ] {
        assert!(type_from_json(&bad).is_err(), "{bad}");
    }
    let deep = (0..1000).fold(json!("string"), |inner, _| json!(["list", inner]));
    assert!(type_from_json(&deep).is_err());
}

#[test]
fn document_without_type_gets_its_implied_type() {
    let value = from_simple_json(&parse(r#"{"a": [1, "x", null], "b": {}}"#)).unwrap();
    assert_eq!(
        value.ty().to_string(),
        "object({a=tuple([number,string,any]),b=object({})})"
    );
}

proptest! {
    #[test]
    fn known_values_round_trip(value in typed_value(false)) {
        prop_assume!(!has_infinity(&value));
        let text = to_text(&to_json(&value, value.ty()).unwrap(), Some(2));
        prop_assert_eq!(&from_json(&parse(&text), value.ty()).unwrap(), &value);
        let text = to_text(&to_json(&value, &Type::Dynamic).unwrap(), None);
        prop_assert_eq!(&from_json(&parse(&text), &Type::Dynamic).unwrap(), &value);
    }

    #[test]
    fn direct_text_equals_the_text_of_the_document(value in typed_value(false)) {
        prop_assume!(!has_infinity(&value));
        for ty in [value.ty(), &Type::Dynamic] {
            let text = to_text(&to_json(&value, ty).unwrap(), None);
            prop_assert_eq!(&to_json_text(&value, ty).unwrap(), &text);
            prop_assert_eq!(from_json_text(&text, ty).unwrap(), from_json(&parse(&text), ty).unwrap());
        }
        prop_assert_eq!(to_simple_text(&value).unwrap(), to_text(&to_simple_json(&value).unwrap(), None));
    }

    #[test]
    fn types_round_trip(ty in concrete_type()) {
        prop_assert_eq!(type_text(&ty), to_text(&type_to_json(&ty), None));
        prop_assert_eq!(type_from_json(&type_to_json(&ty)).unwrap(), ty);
    }
}
