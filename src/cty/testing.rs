//! Generated types and values for property tests.

use proptest::prelude::*;

use crate::{Kind, Number, Refinements, Type, Value};

/// Generates types that do not contain `any`.
pub fn concrete_type() -> impl Strategy<Value = Type> {
    prop_oneof![Just(Type::String), Just(Type::Number), Just(Type::Bool)].prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(Type::list),
            inner.clone().prop_map(Type::set),
            inner.clone().prop_map(Type::map),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Type::tuple),
            prop::collection::btree_map("[a-cé]{1,2}", inner, 0..3).prop_map(Type::object),
        ]
    })
}

pub fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        4 => (-20_i64..20).prop_map(Number::from),
        2 => any::<i64>().prop_map(Number::from),
        1 => any::<u64>().prop_map(Number::from),
        // Doubles above this limit are rounded whole numbers, which encodings do not distinguish from exact ones.
        2 => (-1e15..1e15).prop_filter_map("a number", Number::from_f64),
        1 => (-1e-9..1e-9).prop_filter_map("a number", Number::from_f64),
        2 => "-?[0-9]{1,30}\\.[0-9]{1,30}(e-?[0-9]{1,2})?".prop_filter_map("a number", |s| Number::parse(&s)),
        1 => "-?[1-9][0-9]{1,30}e[0-9]{1,3}".prop_filter_map("a number", |s| Number::parse(&s)),
    ]
}

/// Generates a value of this type: wholly known, or with unknown parts if `unknowns` is set.
pub fn value_of(ty: &Type, unknowns: bool) -> BoxedStrategy<Value> {
    let present = present_value_of(ty, unknowns);
    let null = Just(Value::null(ty.clone()));
    if unknowns {
        prop_oneof![8 => present, 1 => null, 1 => unknown_of(ty)].boxed()
    } else {
        prop_oneof![8 => present, 1 => null].boxed()
    }
}

fn present_value_of(ty: &Type, unknowns: bool) -> BoxedStrategy<Value> {
    match ty {
        Type::Dynamic => Just(Value::null(Type::Dynamic)).boxed(),
        Type::String => prop_oneof!["[a-c<&\"\\\\\n]{0,3}", "(true|false|0|1|-7|1\\.50)", "\\PC{0,4}"]
            .prop_map(Value::string)
            .boxed(),
        Type::Number => number().prop_map(Value::number).boxed(),
        Type::Bool => any::<bool>().prop_map(Value::bool).boxed(),
        Type::List(e) => {
            let e = e.clone();
            prop::collection::vec(value_of(&e, unknowns), 0..4)
                .prop_map(move |v| Value::list((*e).clone(), v))
                .boxed()
        }
        Type::Set(e) => {
            let e = e.clone();
            prop::collection::vec(value_of(&e, unknowns), 0..4)
                .prop_map(move |v| Value::set((*e).clone(), v))
                .boxed()
        }
        Type::Map(e) => {
            let e = e.clone();
            prop::collection::btree_map("[a-c]{0,2}", value_of(&e, unknowns), 0..4)
                .prop_map(move |v| Value::map((*e).clone(), v.into_iter().map(|(k, v)| (k.into(), v)).collect()))
                .boxed()
        }
        Type::Tuple(types) => types
            .iter()
            .map(|t| value_of(t, unknowns))
            .collect::<Vec<_>>()
            .prop_map(Value::tuple)
            .boxed(),
        Type::Object(o) => {
            let o = o.clone();
            let parts: Vec<_> = o.attributes().iter().map(|a| value_of(&a.ty, unknowns)).collect();
            parts.prop_map(move |parts| Value::object_of(&o, parts)).boxed()
        }
    }
}

fn unknown_of(ty: &Type) -> BoxedStrategy<Value> {
    let ty = ty.clone();
    (
        any::<bool>(),
        "[a-c]{0,2}-",
        -3_i64..3,
        any::<bool>(),
        0_usize..3,
        prop::option::of(0_usize..3),
    )
        .prop_map(move |(not_null, prefix, min, inclusive, length_min, longer)| {
            let known = Refinements {
                not_null,
                prefix: Some(prefix.into()),
                number_min: Some((min.into(), inclusive)),
                number_max: longer.map(|n| (Number::from(min + 1 + n as i64), inclusive)),
                length_min: Some(length_min),
                length_max: longer.map(|n| length_min + n),
            };
            Value::unknown_refined(ty.clone(), known)
        })
        .boxed()
}

/// Generates a value of a random type.
pub fn typed_value(unknowns: bool) -> impl Strategy<Value = Value> {
    concrete_type().prop_flat_map(move |ty| value_of(&ty, unknowns))
}

/// Returns true if there is an infinity anywhere in the value.
pub fn has_infinity(value: &Value) -> bool {
    let mut found = false;
    value.walk(|_, part| {
        found |= matches!(part.kind(), Kind::Number(n) if n.is_infinite());
        true
    });
    found
}
