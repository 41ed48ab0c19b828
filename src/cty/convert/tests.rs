//! Tests of conversion and unification: known cases, and properties of random types and values.

use proptest::prelude::*;

use super::{can_convert, conditional_mismatch, convert, unify, unify_values};
use crate::testing::{concrete_type, typed_value};
use crate::types::{ObjectAttribute, ObjectType};
use crate::{Marks, Refinements, Type, Value};

fn object_type(attributes: &[(&str, Type, bool)]) -> Type {
    let attributes = attributes.iter().map(|(name, ty, optional)| ObjectAttribute {
        name: (*name).into(),
        ty: ty.clone(),
        optional: *optional,
    });
    Type::Object(ObjectType::new(attributes).into())
}

#[track_caller]
fn fails(value: &Value, to: &Type, path: &str, message: &str) {
    let error = convert(value, to).unwrap_err();
    assert_eq!(
        (error.path.to_string().as_str(), error.message.as_str()),
        (path, message)
    );
}

#[test]
fn primitives() {
    assert_eq!(
        convert(&Value::string("12.50"), &Type::Number)
            .unwrap()
            .as_number()
            .unwrap()
            .to_string(),
        "12.5"
    );
    assert_eq!(convert(&Value::number(7), &Type::String).unwrap(), Value::string("7"));
    assert_eq!(convert(&Value::string("1"), &Type::Bool).unwrap(), Value::bool(true));
    fails(&Value::string("x"), &Type::Number, "", "a number is required");
    fails(&Value::string("x"), &Type::Bool, "", "a bool is required");
    fails(
        &Value::string("TRUE"),
        &Type::Bool,
        "",
        "a bool is required; as a string it is written \"true\", in lower case",
    );
    fails(&Value::bool(true), &Type::Number, "", "number required, but have bool");
    fails(
        &Value::empty_tuple(),
        &Type::String,
        "",
        "string required, but have tuple",
    );
}

#[test]
fn objects_get_nulls_for_optional_attributes_and_lose_extra_ones() {
    let inner = object_type(&[("x", Type::Number, true)]);
    let ty = Type::list(object_type(&[("a", Type::String, false), ("b", inner.clone(), true)]));
    let value = Value::tuple(vec![
        Value::object([("a", Value::number(1)), ("extra", Value::bool(true))]),
        Value::object([("a", Value::string("s")), ("b", Value::empty_object())]),
    ]);
    let out = convert(&value, &ty).unwrap();
    assert_eq!(*out.ty(), ty.without_optional());
    let items = out.as_seq().unwrap();
    assert_eq!(items[0].get("a"), Some(&Value::string("1")));
    assert_eq!(items[0].get("b"), Some(&Value::null(inner.without_optional())));
    assert_eq!(items[1].get("b").unwrap().get("x"), Some(&Value::null(Type::Number)));
}

#[test]
fn errors_name_the_place_and_the_reason() {
    let ty = object_type(&[
        ("a", Type::String, false),
        ("b", Type::Bool, false),
        ("c", Type::Bool, false),
    ]);
    fails(
        &Value::empty_object(),
        &ty,
        "",
        "attributes \"a\", \"b\", and \"c\" are required",
    );
    let ty = Type::map(object_type(&[("n", Type::list(Type::Number), false)]));
    let bad = Value::tuple(vec![Value::string("1"), Value::string("x")]);
    fails(
        &Value::object([("k", Value::object([("n", bad)]))]),
        &ty,
        "[\"k\"].n[1]",
        "a number is required",
    );
    let bad = Value::tuple(vec![Value::empty_tuple()]);
    fails(
        &Value::object([("k", Value::object([("n", bad)]))]),
        &ty,
        "",
        "element \"k\": attribute \"n\": element 0: number required, but have tuple",
    );
    let bad = Value::tuple(vec![Value::number(1), Value::empty_object()]);
    fails(
        &bad,
        &Type::list(Type::Dynamic),
        "",
        "all list elements must have the same type",
    );
    fails(
        &Value::string("x"),
        &Type::list(Type::Dynamic),
        "",
        "list of any single type required, but have string",
    );
    let map = Value::map(Type::String, [("a".into(), Value::string("x"))].into());
    let ty = object_type(&[("b", Type::String, false)]);
    fails(&map, &ty, "", "map has no element for required attribute \"b\"");
}

#[test]
fn element_type_any_becomes_the_common_type_of_the_elements() {
    let any = Type::list(Type::Dynamic);
    let out = convert(
        &Value::tuple(vec![Value::number(1), Value::string("a"), Value::null(Type::Dynamic)]),
        &any,
    );
    assert_eq!(*out.unwrap().ty(), Type::list(Type::String));
    let items = vec![
        Value::object([("a", Value::number(1))]),
        Value::object([("a", Value::string("x"))]),
    ];
    let out = convert(&Value::tuple(items), &any).unwrap();
    assert_eq!(out.ty().to_string(), "list(object({a=string}))");
    let nested = Value::object([("k", Value::tuple(vec![Value::number(1), Value::bool(true)]))]);
    assert!(convert(&nested, &Type::map(any.clone())).is_err());
    assert_eq!(
        convert(&Value::empty_tuple(), &any).unwrap(),
        Value::list(Type::Dynamic, vec![])
    );
    let set = Value::set(Type::Bool, vec![]);
    assert_eq!(convert(&set, &any).unwrap(), Value::list(Type::Bool, vec![]));
}

#[test]
fn nulls_unknowns_and_marks_survive_conversion() {
    let list = Type::list(Type::String);
    assert_eq!(
        convert(&Value::null(Type::Dynamic), &list).unwrap(),
        Value::null(list.clone())
    );
    assert_eq!(convert(&Value::dynamic(), &list).unwrap(), Value::unknown(list.clone()));
    let known = Refinements {
        length_min: Some(2),
        length_max: Some(4),
        ..Refinements::not_null()
    };
    let numbers = Value::unknown_refined(Type::list(Type::Number), known.clone());
    assert_eq!(convert(&numbers, &list).unwrap().refinements(), Some(&known));
    let set = convert(&numbers, &Type::set(Type::Number)).unwrap();
    assert_eq!(set.refinements().unwrap().length_min, Some(1));
    // The length of a list made of a tuple is certain. It makes the list known only if it is also certain not to be
    // null.
    let tuple = Value::unknown_not_null(Type::tuple([Type::Bool, Type::Bool]));
    assert_eq!(convert(&tuple, &Type::list(Type::Bool)).unwrap().len(), Some(2));
    let secret = Value::tuple(vec![Value::number(1).with_marks(Marks::SENSITIVE)]);
    let out = convert(&secret, &list).unwrap();
    assert_eq!((out.marks(), out.deep_marks()), (Marks::NONE, Marks::SENSITIVE));
    assert_eq!(
        convert(&secret, &Type::set(Type::String)).unwrap().marks(),
        Marks::SENSITIVE
    );
}

#[test]
fn unification() {
    let s = || Type::String;
    let n = || Type::Number;
    let tuple = |types: &[Type]| Type::tuple(types.iter().cloned());
    let object = |types: &[(&'static str, Type)]| Type::object(types.iter().cloned());
    for (types, expected) in [
        (vec![n(), s()], Some(s())),
        (vec![Type::Bool, n()], None),
        (vec![Type::Dynamic, n()], Some(n())),
        (vec![Type::Dynamic, tuple(&[n()])], Some(Type::Dynamic)),
        (vec![tuple(&[n(), s()]), tuple(&[s(), n()])], Some(tuple(&[s(), s()]))),
        (vec![tuple(&[n()]), tuple(&[s(), n()])], Some(Type::list(s()))),
        (vec![tuple(&[n()]), Type::list(s())], Some(Type::list(s()))),
        (
            vec![object(&[("a", n())]), object(&[("a", s())])],
            Some(object(&[("a", s())])),
        ),
        (vec![object(&[("a", n())]), object(&[("b", s())])], Some(Type::map(s()))),
        (vec![object(&[("a", n())]), object(&[("b", Type::Bool)])], None),
        (vec![object(&[]), tuple(&[])], None),
        (vec![s(), Type::list(s())], None),
        (vec![Type::set(n()), Type::list(s())], Some(Type::list(s()))),
    ] {
        assert_eq!(unify(&types), expected, "{types:?}");
    }
    assert_eq!(unify(&[]), None);
    let (ty, values) = unify_values(&[Value::number(1), Value::string("a")]).unwrap().unwrap();
    assert_eq!((ty, values), (s(), vec![Value::string("1"), Value::string("a")]));
    assert_eq!(
        conditional_mismatch(&object(&[("a", n())]), &object(&[("a", Type::Bool)])),
        "in the attribute \"a\": the result after \"?\" is number, and the one after \":\" is bool"
    );
}

#[test]
fn many_elements_take_linear_time() {
    let object = |i: usize| Value::object([("id", Value::number(i)), ("name", Value::string("n"))]);
    let tuple = Value::tuple((0..20_000).map(object).collect());
    assert_eq!(convert(&tuple, &Type::list(Type::Dynamic)).unwrap().len(), Some(20_000));
    let objects = Value::object((0..20_000).map(|i| (format!("k{i}"), object(i))));
    assert_eq!(
        convert(&objects, &Type::map(Type::Dynamic)).unwrap().len(),
        Some(20_000)
    );
}

proptest! {
    #[test]
    fn conversion_to_the_own_type_changes_nothing(value in typed_value(true)) {
        prop_assert_eq!(&convert(&value, value.ty()).unwrap(), &value);
        prop_assert_eq!(&convert(&value, &Type::Dynamic).unwrap(), &value);
    }

    #[test]
    fn conversions_that_exist_give_a_value_of_the_target_type(value in typed_value(true), to in concrete_type()) {
        let out = convert(&value, &to);
        if let Ok(out) = &out {
            prop_assert_eq!(out.ty(), &to);
            prop_assert_eq!(&convert(out, &to).unwrap(), out);
            prop_assert!(can_convert(value.ty(), &to, false));
        }
        if can_convert(value.ty(), &to, true) {
            prop_assert!(out.is_ok());
        }
    }

    #[test]
    fn all_types_convert_to_the_common_one(types in prop::collection::vec(concrete_type(), 1..4)) {
        if let Some(common) = unify(&types) {
            for ty in &types {
                prop_assert!(can_convert(ty, &common, false));
            }
            let mut reversed = types.clone();
            reversed.reverse();
            prop_assert!(unify(&reversed).is_some());
        }
    }
}
