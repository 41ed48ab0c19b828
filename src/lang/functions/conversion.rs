//! Conversions, and functions about marks.

use std::collections::BTreeMap;

use cty::{Kind, Marks, Type, Value};

use super::{CallError, CallResult, Function, FunctionEnvironment, Returns, any};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("tobool", &[any("v").everything()], Returns::Bool, to).nullable(),
    Function::new(
        "tolist",
        &[any("v").everything()],
        Returns::By(|_| Ok(Type::list(Type::Dynamic))),
        to,
    )
    .nullable(),
    Function::new(
        "tomap",
        &[any("v").everything()],
        Returns::By(|_| Ok(Type::map(Type::Dynamic))),
        to,
    )
    .nullable(),
    Function::new("tonumber", &[any("v").everything()], Returns::Number, to).nullable(),
    Function::new(
        "toset",
        &[any("v").everything()],
        Returns::By(|_| Ok(Type::set(Type::Dynamic))),
        to,
    )
    .nullable(),
    Function::new("tostring", &[any("v").everything()], Returns::String, to).nullable(),
    Function::new(
        "sensitive",
        &[any("value").everything()],
        Returns::By(same),
        |a, _, _| Ok(a[0].clone().with_marks(Marks::SENSITIVE)),
    )
    .nullable(),
    Function::new(
        "nonsensitive",
        &[any("value").everything()],
        Returns::By(same),
        |a, _, _| {
            let (value, marks) = a[0].clone().unmark();
            Ok(value.with_marks(marks.without(Marks::SENSITIVE)))
        },
    )
    .nullable(),
    Function::new("issensitive", &[any("value").everything()], Returns::Bool, |a, t, _| {
        if a[0].marks().is_sensitive() {
            Ok(Value::bool(true))
        } else if a[0].is_known() {
            Ok(Value::bool(false))
        } else {
            // An unknown value may turn out to be sensitive.
            Ok(Value::unknown(t.clone()))
        }
    })
    .nullable(),
    Function::new(
        "ephemeralasnull",
        &[any("value").everything()],
        Returns::By(same),
        |a, _, _| Ok(ephemeral_as_null(&a[0])),
    )
    .nullable(),
];

fn same(args: &[Value]) -> CallResult<Type> {
    Ok(args[0].ty().clone())
}

fn to(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let value = &args[0];
    // A set cannot contain marked elements: conversion moves their marks to the set.
    cty::convert(value, ty).map_err(|_| {
        let hidden = value.deep_marks().is_sensitive();
        let message = match (value.ty(), ty) {
            (Type::String, Type::Number | Type::Bool) if value.is_known() => {
                let wanted = if *ty == Type::Bool { "bool" } else { "number" };
                // The text may be secret, so the message must not contain it.
                if hidden {
                    format!("cannot convert this sensitive string to {wanted}")
                } else if *ty == Type::Bool {
                    let text = value.as_str().unwrap_or_default();
                    format!("{text:?} does not convert to bool: a string must be \"true\" or \"false\"")
                } else {
                    let text = value.as_str().unwrap_or_default();
                    format!("{text:?} does not convert to number: it is not a number in decimal notation")
                }
            }
            _ => {
                let wanted = match ty {
                    Type::List(_) => "list of any single type".to_owned(),
                    Type::Set(_) => "set of any single type".to_owned(),
                    Type::Map(_) => "map of any single type".to_owned(),
                    other => other.friendly_name(),
                };
                format!("cannot convert {} to {wanted}", value.ty().friendly_name())
            }
        };
        CallError::argument(0, message)
    })
}

/// Replaces every ephemeral part of a value by null. An unknown value stays unknown and only loses the mark.
fn ephemeral_as_null(value: &Value) -> Value {
    if !value.deep_marks().is_ephemeral() {
        return value.clone();
    }
    if !value.is_known() {
        // The value may turn out to be null.
        let (bare, marks) = value.clone().unmark();
        return bare.with_marks(marks.without(Marks::EPHEMERAL));
    }
    if value.marks().is_ephemeral() {
        let rest = value.marks().without(Marks::EPHEMERAL);
        return Value::null(value.ty().clone()).with_marks(rest);
    }
    match value.kind() {
        Kind::Map(items) => {
            let element = value.ty().element().cloned().unwrap_or(Type::Dynamic);
            let items: BTreeMap<_, _> = items.iter().map(|(k, v)| (k.clone(), ephemeral_as_null(v))).collect();
            Value::map(element, items).with_marks(value.marks())
        }
        _ => value.map_parts(|_, part| ephemeral_as_null(part)),
    }
}
