//! Functions of OpenTofu 1.13 that state an assumption about an unknown value, so that a plan can rely on it. If the value turns out not to
//! meet the assumption, that is an error.

use cty::refine::safe_prefix;
use cty::{Kind, Marks, Refinements, Type, Value};

use super::{
    CallError, CallResult, Function, FunctionEnvironment, Parameter, Returns, Takes, any, number, param, string,
};

/// Parameter for the value that the assumption is about.
const fn value(takes: Takes) -> Parameter {
    param("value", takes).null().unknown().dynamic()
}

const MIN: Parameter = number("min_length");
const MAX: Parameter = number("max_length");

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new(
        "assumeequal",
        &[any("actual_value").everything(), any("expected_value").everything()],
        Returns::By(|args| Ok(args[1].ty().clone())),
        equal,
    )
    .nullable(),
    Function::new("assumenotnull", &[value(Takes::Any)], Returns::By(same), not_null).nullable(),
    Function::new(
        "assumestringprefix",
        &[value(Takes::String), string("prefix")],
        Returns::By(same),
        string_prefix,
    )
    .nullable(),
    Function::new(
        "assumelistlength",
        &[value(Takes::ListOfAny), MIN, MAX],
        Returns::By(same),
        between,
    )
    .nullable(),
    Function::new(
        "assumelistlengthmin",
        &[value(Takes::ListOfAny), MIN],
        Returns::By(same),
        at_least,
    )
    .nullable(),
    Function::new(
        "assumelistlengthmax",
        &[value(Takes::ListOfAny), MAX],
        Returns::By(same),
        at_most,
    )
    .nullable(),
    Function::new(
        "assumemaplength",
        &[value(Takes::MapOfAny), MIN, MAX],
        Returns::By(same),
        between,
    )
    .nullable(),
    Function::new(
        "assumemaplengthmin",
        &[value(Takes::MapOfAny), MIN],
        Returns::By(same),
        at_least,
    )
    .nullable(),
    Function::new(
        "assumemaplengthmax",
        &[value(Takes::MapOfAny), MAX],
        Returns::By(same),
        at_most,
    )
    .nullable(),
    Function::new(
        "assumesetlength",
        &[value(Takes::SetOfAny), MIN, MAX],
        Returns::By(same),
        between,
    )
    .nullable(),
    Function::new(
        "assumesetlengthmin",
        &[value(Takes::SetOfAny), MIN],
        Returns::By(same),
        at_least,
    )
    .nullable(),
    Function::new(
        "assumesetlengthmax",
        &[value(Takes::SetOfAny), MAX],
        Returns::By(same),
        at_most,
    )
    .nullable(),
];

fn same(args: &[Value]) -> CallResult<Type> {
    Ok(args[0].ty().clone())
}

fn not_upheld() -> CallError {
    CallError::argument(0, "assumption was not upheld")
}

fn equal(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let (actual, expected) = (&args[0], &args[1]);
    let converted = cty::convert(actual, ty).map_err(|_| {
        let (actual, expected) = (actual.ty().friendly_name(), ty.friendly_name());
        CallError::argument(
            0,
            format!("actual value type {actual} does not match assumed value type {expected}"),
        )
    })?;
    let (plain, marks) = converted.unmark_deep();
    if cty::ops::equals(&plain, &expected.clone().unmark_deep().0).as_bool() == Some(false) {
        // The message contains neither value, because they may be secret.
        return Err(CallError::argument(
            0,
            "the actual value does not match the assumed value",
        ));
    }
    // The assumed value has its own sensitive and ephemeral marks, so those of the actual value are not added. Other marks of the actual
    // value, such as deprecations, are added.
    let marks = marks.without(Marks::SENSITIVE).without(Marks::EPHEMERAL);
    Ok(expected.clone().with_marks(marks))
}

fn not_null(args: &[Value], _: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    if *args[0].ty() == Type::Dynamic {
        return Err(CallError::argument(
            0,
            "given value must have a known type; consider using the \"convert\" function to specify a type to assume",
        ));
    }
    match args[0].is_null() {
        true => Err(not_upheld()),
        false => Ok(args[0].clone().refine_not_null()),
    }
}

fn string_prefix(args: &[Value], _: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    // Text that follows the prefix may combine with its last character, so only the part before that is certain.
    let prefix = safe_prefix(super::text(args, 1));
    // As in OpenTofu, only the characters that both texts have are compared, because either may be followed by more.
    let fits = |text: &str| text.starts_with(&prefix) || prefix.starts_with(text);
    let known = args[0].as_str().or_else(|| args[0].refinements()?.prefix.as_deref());
    if known.is_some_and(|known| !fits(known)) {
        return Err(not_upheld());
    }
    let more = Refinements {
        prefix: Some(prefix.into()),
        ..Refinements::default()
    };
    Ok(args[0].clone().refine(&more))
}

fn between(args: &[Value], _: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    length(&args[0], Some(bound(args, 1)?), Some(bound(args, 2)?))
}

fn at_least(args: &[Value], _: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    length(&args[0], Some(bound(args, 1)?), None)
}

fn at_most(args: &[Value], _: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    length(&args[0], None, Some(bound(args, 1)?))
}

fn bound(args: &[Value], i: usize) -> CallResult<i64> {
    let number = args[i]
        .as_number()
        .and_then(cty::Number::to_i64)
        .filter(|number| *number < i64::MAX);
    number.ok_or_else(|| CallError::argument(i, format!("must be a whole number between 0 and {}", i64::MAX)))
}

/// Assumes that the length of a collection is between inclusive bounds.
fn length(value: &Value, min: Option<i64>, max: Option<i64>) -> CallResult {
    if *value.ty() == Type::Dynamic && !value.is_known() {
        // A value of unknown type has no length that could be refined.
        return Ok(value.clone());
    }
    let upheld = |known_min: Option<usize>, known_max: Option<usize>| {
        let lower = known_min
            .and_then(|n| i64::try_from(n).ok())
            .max(min)
            .unwrap_or(0)
            .max(0);
        let known_max = known_max.and_then(|n| i64::try_from(n).ok());
        let upper = known_max.into_iter().chain(max).min();
        upper.is_none_or(|upper| lower <= upper)
    };
    let known = value.refinements().cloned().unwrap_or_default();
    let fits = match value.kind() {
        // Unknown elements of a set may turn out to be equal, so its length is not certain.
        Kind::Seq(_) if matches!(value.ty(), Type::Set(_)) && !value.is_wholly_known() => true,
        Kind::Seq(items) => upheld(Some(items.len()), Some(items.len())),
        Kind::Map(items) => upheld(Some(items.len()), Some(items.len())),
        Kind::Unknown(_) => upheld(known.length_min, known.length_max),
        // A null has no length.
        _ => false,
    };
    if !fits {
        return Err(not_upheld());
    }
    let more = Refinements {
        length_min: min.and_then(|n| usize::try_from(n).ok()),
        length_max: max.and_then(|n| usize::try_from(n).ok()),
        ..Refinements::default()
    };
    Ok(value.clone().refine(&more))
}
