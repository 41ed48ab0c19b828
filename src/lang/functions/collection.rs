//! Functions for lists and tuples, and for all collections.

use cty::{Kind, Refinements, Type, Value, ops};

use super::{
    CallError, CallResult, Function, FunctionEnvironment, NOT_WHOLE, Returns, Takes, any, integer, number, param,
    sequence, unknown,
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new(
        "alltrue",
        &[param("list", Takes::ListOfBool).unknown()],
        Returns::Bool,
        |a, t, _| quantify(&a[0], t, false),
    ),
    Function::new(
        "anytrue",
        &[param("list", Takes::ListOfBool).unknown()],
        Returns::Bool,
        |a, t, _| quantify(&a[0], t, true),
    ),
    Function::new(
        "chunklist",
        &[
            param("list", Takes::ListOfAny).dynamic().marked(),
            number("size").marked(),
        ],
        Returns::By(|a| Ok(Type::list(a[0].ty().clone()))),
        chunklist,
    ),
    Function::new("coalesce", &[], Returns::By(coalesce_type), coalesce)
        .variadic(any("vals").unknown().dynamic().null()),
    Function::new("coalescelist", &[], Returns::By(coalescelist_type), coalescelist)
        .variadic(any("vals").unknown().dynamic().null()),
    Function::new(
        "compact",
        &[param("list", Takes::ListOfString)],
        Returns::ListOfString,
        |a, t, _| {
            if !a[0].is_wholly_known() {
                return unknown(t);
            }
            let remaining = sequence(&a[0])
                .iter()
                .filter(|v| v.as_str().is_some_and(|s| !s.is_empty()))
                .cloned();
            Ok(Value::list(Type::String, remaining.collect()))
        },
    ),
    Function::new("contains", &[any("list"), any("value").null()], Returns::Bool, contains),
    Function::new(
        "distinct",
        &[param("list", Takes::ListOfAny)],
        Returns::By(|a| Ok(a[0].ty().clone())),
        |a, t, _| {
            if !a[0].is_wholly_known() {
                return unknown(t);
            }
            let items = sequence(&a[0]);
            let Some(element) = t.element() else {
                return Ok(a[0].clone());
            };
            // The values are compared as texts in a set, because values have no hash, and comparing all pairs
            // would take quadratic time.
            let mut seen = std::collections::HashSet::new();
            let remaining = items.iter().filter(|v| seen.insert(identity(v))).cloned().collect();
            Ok(Value::list(element.clone(), remaining))
        },
    ),
    Function::new(
        "element",
        &[any("list").marked(), number("index")],
        Returns::By(element_type),
        element,
    )
    .nullable(),
    Function::new(
        "flatten",
        &[any("list").marked()],
        Returns::By(|_| Ok(Type::Dynamic)),
        flatten,
    ),
    Function::new("index", &[any("list"), any("value")], Returns::Number, index),
    Function::new(
        "length",
        &[any("value").unknown().dynamic().marked()],
        Returns::Number,
        |a, _, _| {
            let value = &a[0];
            match (value.kind(), value.ty()) {
                (Kind::String(s), _) => Ok(Value::number(super::strings::length(s)).with_marks(value.marks())),
                (_, Type::String | Type::Dynamic) => {
                    Ok(Value::unknown_not_null(Type::Number).with_marks(value.marks()))
                }
                (_, Type::Number | Type::Bool) => Err(CallError::failed(
                    "the argument must be a string, a collection, a tuple or an object",
                )),
                _ => Ok(ops::length(value)?),
            }
        },
    ),
    Function::new(
        "matchkeys",
        &[
            param("values", Takes::ListOfAny),
            param("keys", Takes::ListOfAny),
            param("searchset", Takes::ListOfAny),
        ],
        Returns::By(matchkeys_type),
        matchkeys,
    ),
    Function::new("one", &[any("list")], Returns::By(one_type), one).nullable(),
    Function::new(
        "reverse",
        &[any("list").marked()],
        Returns::By(reverse_type),
        |a, t, _| {
            let (list, marks) = a[0].clone().unmark();
            let items: Vec<Value> = sequence(&list).iter().rev().cloned().collect();
            Ok(rebuild(t, items).with_marks(marks))
        },
    ),
    Function::new(
        "slice",
        &[any("list").marked(), number("start_index"), number("end_index")],
        Returns::By(slice_type),
        |a, t, _| {
            let (list, marks) = a[0].clone().unmark();
            let (start, end) = slice_bounds(a, list.len().unwrap_or_default())?;
            Ok(rebuild(t, sequence(&list)[start..end].to_vec()).with_marks(marks))
        },
    ),
    Function::new(
        "sort",
        &[param("list", Takes::ListOfString).unknown()],
        Returns::ListOfString,
        |a, t, _| {
            let Some(items) = a[0].as_seq() else {
                // The known bounds of the length are preserved.
                let known = a[0].refinements();
                let refinements = Refinements {
                    length_min: known.and_then(|r| r.length_min),
                    length_max: known.and_then(|r| r.length_max),
                    ..Refinements::not_null()
                };
                return Ok(Value::unknown_refined(t.clone(), refinements));
            };
            // The length is known, but the position of unknown elements is not.
            if !a[0].is_wholly_known() {
                return Ok(Value::list(
                    Type::String,
                    vec![Value::unknown(Type::String); items.len()],
                ));
            }
            if let Some(i) = items.iter().position(Value::is_null) {
                return Err(CallError::failed(format!(
                    "element {i} of the list is null, and null has no order"
                )));
            }
            let mut sorted = items.to_vec();
            sorted.sort_by(|x, y| x.as_str().cmp(&y.as_str()));
            Ok(Value::list(Type::String, sorted))
        },
    ),
];

/// Builds a list or tuple of this type from elements.
fn rebuild(ty: &Type, items: Vec<Value>) -> Value {
    match ty {
        Type::List(element) => Value::list((**element).clone(), items),
        _ => Value::tuple(items),
    }
}

/// Returns `decisive` if an element has that value, otherwise its opposite: `decisive` is false for `alltrue` and
/// true for `anytrue`.
fn quantify(list: &Value, ty: &Type, decisive: bool) -> CallResult {
    let Some(items) = list.as_seq() else { return unknown(ty) };
    let mut open = false;
    for item in items {
        match (item.is_known(), item.as_bool() == Some(true)) {
            (false, _) => open = true,
            (true, b) if b == decisive => return Ok(Value::bool(decisive)),
            _ => {}
        }
    }
    if open { unknown(ty) } else { Ok(Value::bool(!decisive)) }
}

fn chunklist(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let (list, marks) = args[0].clone().unmark();
    let (size, size_marks) = args[1].clone().unmark();
    let marks = marks | size_marks;
    let Some(inner) = ty.element().cloned() else {
        return Ok(Value::dynamic().with_marks(marks));
    };
    let element = inner.element().cloned().unwrap_or(Type::Dynamic);
    let size = size
        .as_number()
        .and_then(cty::Number::to_i64)
        .ok_or_else(|| CallError::failed(format!("invalid size: {NOT_WHOLE}")))?;
    let size = usize::try_from(size).map_err(|_| CallError::failed("the size argument must be positive"))?;
    let items = sequence(&list);
    let chunk = |part: &[Value]| Value::list(element.clone(), part.to_vec());
    let chunks = match size {
        // Terraform makes a single chunk for size 0.
        0 => vec![chunk(items)],
        _ => items.chunks(size).map(chunk).collect(),
    };
    Ok(Value::list(inner.clone(), chunks).with_marks(marks))
}

fn coalesce_type(args: &[Value]) -> CallResult<Type> {
    let types: Vec<Type> = args.iter().map(|v| v.ty().clone()).collect();
    if types.is_empty() {
        return Err(CallError::failed("all arguments must have the same type"));
    }
    unify_arguments(&types)
}

/// Returns the common type of arguments, ignoring null and unknown ones without a type.
pub(super) fn unify_arguments(types: &[Type]) -> CallResult<Type> {
    cty::unify(types).ok_or_else(|| CallError::failed("all arguments must have the same type"))
}

fn coalesce(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    for arg in args {
        let value = cty::convert(arg, ty).map_err(|e| CallError::failed(e.message))?;
        // The argument may turn out to be null or not. So the result is unknown, even if the later arguments are known.
        if !value.is_known() {
            return Ok(Value::unknown(ty.clone()));
        }
        if !value.is_null() && value.as_str() != Some("") {
            return Ok(value);
        }
    }
    Err(CallError::failed("no non-null, non-empty-string arguments"))
}

fn coalescelist_type(args: &[Value]) -> CallResult<Type> {
    if args.is_empty() {
        return Err(CallError::failed("at least one argument is required"));
    }
    let mut types = Vec::new();
    for arg in args {
        // Types of unknown elements are not checked.
        if !arg.is_known() {
            return Ok(Type::Dynamic);
        }
        if !matches!(arg.ty(), Type::List(_) | Type::Tuple(_)) {
            return Err(CallError::failed("coalescelist arguments must be lists or tuples"));
        }
        types.push(arg.ty().clone());
    }
    match types.split_first() {
        Some((first, rest)) if rest.iter().all(|t| t == first) => Ok(first.clone()),
        // The type depends on which argument is chosen.
        _ => Ok(Type::Dynamic),
    }
}

fn coalescelist(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    for arg in args {
        if !arg.is_known() {
            return Ok(Value::unknown(ty.clone()));
        }
        if arg.len().is_some_and(|n| n > 0) {
            return Ok(arg.clone());
        }
    }
    Err(CallError::failed("no non-null arguments"))
}

fn contains(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let Some(items) = args[0].as_seq() else {
        return Err(CallError::failed("argument must be list, tuple, or set"));
    };
    let mut open = false;
    for item in items {
        match ops::equals(item, &args[1]).as_bool() {
            Some(true) => return Ok(Value::bool(true)),
            Some(false) => {}
            // An unknown element may be equal to the value. The search continues, because a later element may certainly
            // be equal.
            None => open = true,
        }
    }
    if open { unknown(ty) } else { Ok(Value::bool(false)) }
}

/// Maps an index into a list of this length: indexes beyond one end continue at the other end.
fn wrap(index: i64, length: usize) -> usize {
    let length = i64::try_from(length).unwrap_or(i64::MAX).max(1);
    usize::try_from(index.rem_euclid(length)).unwrap_or_default()
}

fn element_type(args: &[Value]) -> CallResult<Type> {
    match args[0].ty() {
        Type::List(element) => Ok((**element).clone()),
        Type::Tuple(types) => {
            // In a tuple, each element has its own type, so the type of the result depends on the index.
            if !args[1].is_known() {
                return Ok(Type::Dynamic);
            }
            if types.is_empty() {
                return Err(CallError::failed("cannot use element function with an empty list"));
            }
            let index = integer(args, 1).map_err(|_| CallError::failed(format!("invalid index: {NOT_WHOLE}")))?;
            Ok(types[wrap(index, types.len())].clone())
        }
        other => Err(CallError::failed(format!(
            "cannot read elements from {}",
            other.friendly_name()
        ))),
    }
}

fn element(args: &[Value], _: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let (list, marks) = args[0].clone().unmark();
    let index = integer(args, 1).map_err(|_| CallError::failed(format!("invalid index: {NOT_WHOLE}")))?;
    let items = sequence(&list);
    if items.is_empty() {
        return Err(CallError::failed("cannot use element function with an empty list"));
    }
    Ok(items[wrap(index, items.len())].clone().with_marks(marks))
}

fn flatten(args: &[Value], _: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let (list, mut marks) = args[0].clone().unmark();
    if list.as_seq().is_none() && !list.is_wholly_known() {
        return Ok(Value::dynamic().with_marks(list.deep_marks() | marks));
    }
    if list.as_seq().is_none() {
        return Err(CallError::failed("can only flatten lists, sets and tuples"));
    }
    let mut out = Vec::new();
    let known = flatten_into(&list, &mut out, &mut marks);
    Ok(if known { Value::tuple(out) } else { Value::dynamic() }.with_marks(marks))
}

/// Flattens a list into `out`. Returns false if a part that affects the result is unknown.
fn flatten_into(list: &Value, out: &mut Vec<Value>, marks: &mut cty::Marks) -> bool {
    // The number of elements of a set is unknown until all of them are known.
    let mut known = !matches!(list.ty(), Type::Set(_)) || list.is_wholly_known();
    for item in sequence(list) {
        let nested = matches!(item.ty(), Type::List(_) | Type::Set(_) | Type::Tuple(_)) && !item.is_null();
        if nested {
            *marks |= item.marks();
            known &= item.is_known() && flatten_into(item, out, marks);
        } else if *item.ty() == Type::Dynamic && !item.is_known() {
            // The unknown element may turn out to be a list.
            known = false;
        } else {
            out.push(item.clone());
        }
    }
    known
}

fn index(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    if !matches!(args[0].ty(), Type::List(_) | Type::Tuple(_)) {
        return Err(CallError::failed("argument must be a list or tuple"));
    }
    let items = sequence(&args[0]);
    if items.is_empty() {
        return Err(CallError::failed("cannot search an empty list"));
    }
    for (i, item) in items.iter().enumerate() {
        match ops::equals(item, &args[1]).as_bool() {
            Some(true) => return Ok(Value::number(i)),
            Some(false) => {}
            // This element may turn out to be equal, and would then be found before any later one.
            None => return unknown(ty),
        }
    }
    Err(CallError::failed("item not found"))
}

fn matchkeys_type(args: &[Value]) -> CallResult<Type> {
    if args[1].ty() != args[2].ty() && cty::unify(&[args[1].ty().clone(), args[2].ty().clone()]).is_none() {
        return Err(CallError::failed("the types of keys and searchset have no common type"));
    }
    Ok(args[0].ty().clone())
}

fn matchkeys(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let (values, keys) = (sequence(&args[0]), sequence(&args[1]));
    if values.len() != keys.len() {
        return Err(CallError::failed("length of keys and values should be equal"));
    }
    // An unknown key may turn out to be one of the searched keys.
    if !args.iter().all(Value::is_wholly_known) {
        return unknown(ty);
    }
    let common = cty::unify(&[args[1].ty().clone(), args[2].ty().clone()]).unwrap_or(Type::Dynamic);
    let convert = |v: &Value| cty::convert(v, &common).map_err(|e| CallError::failed(e.message));
    let (keys, search) = (convert(&args[1])?, convert(&args[2])?);
    let found = values
        .iter()
        .zip(sequence(&keys))
        .filter(|(_, key)| sequence(&search).contains(key))
        .map(|(v, _)| v.clone())
        .collect();
    Ok(Value::list(ty.element().cloned().unwrap_or(Type::Dynamic), found))
}

fn one_type(args: &[Value]) -> CallResult<Type> {
    match args[0].ty() {
        Type::List(element) | Type::Set(element) => Ok((**element).clone()),
        Type::Tuple(types) => match types.as_slice() {
            [] => Ok(Type::Dynamic),
            [only] => Ok(only.clone()),
            _ => Err(one_error()),
        },
        _ => Err(one_error()),
    }
}

fn one_error() -> CallError {
    CallError::argument(0, "must be a list, a set or a tuple of at most one element")
}

fn one(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    match sequence(&args[0]) {
        [] => Ok(Value::null(ty.clone())),
        [only] => Ok(only.clone()),
        // Unknown elements of a set may turn out to be equal.
        _ if matches!(args[0].ty(), Type::Set(_)) && !args[0].is_wholly_known() => Ok(Value::unknown(ty.clone())),
        _ => Err(one_error()),
    }
}

fn reverse_type(args: &[Value]) -> CallResult<Type> {
    match args[0].ty() {
        Type::Tuple(types) => Ok(Type::tuple(types.iter().rev().cloned())),
        Type::List(element) | Type::Set(element) => Ok(Type::list((**element).clone())),
        other => Err(CallError::argument(
            0,
            format!("can only reverse list or tuple values, not {}", other.friendly_name()),
        )),
    }
}

fn slice_type(args: &[Value]) -> CallResult<Type> {
    match args[0].ty() {
        Type::List(_) => {
            // Some bounds are wrong whatever the length of the list is, so they are checked even if the length is
            // unknown.
            if args[0].len().is_none() && args[1].is_known() && args[2].is_known() {
                slice_bounds(args, usize::MAX)?;
            }
            Ok(args[0].ty().clone())
        }
        Type::Tuple(types) => {
            if !args[1].is_known() || !args[2].is_known() {
                return Ok(Type::Dynamic);
            }
            let (start, end) = slice_bounds(args, types.len())?;
            Ok(Type::tuple(types[start..end].iter().cloned()))
        }
        Type::Set(_) => Err(CallError::argument(
            0,
            "the elements of a set have no order; convert it with tolist, if any order will do",
        )),
        _ => Err(CallError::argument(0, "must be a list or tuple value")),
    }
}

fn slice_bounds(args: &[Value], length: usize) -> CallResult<(usize, usize)> {
    let bound = |i: usize, name: &str| {
        integer(args, i).map_err(|_| CallError::argument(i, format!("invalid {name} index: {NOT_WHOLE}")))
    };
    let (start, end) = (bound(1, "start")?, bound(2, "end")?);
    let count = i64::try_from(length).unwrap_or(i64::MAX);
    if start < 0 || start > count {
        return Err(CallError::argument(
            1,
            if start < 0 {
                "the start must not be negative"
            } else {
                "the start must not lie behind the end of the list"
            },
        ));
    }
    if end < 0 || end > count {
        return Err(CallError::argument(
            2,
            if end < 0 {
                "the end must not be negative"
            } else {
                "the end must not lie behind the end of the list"
            },
        ));
    }
    if start > end {
        return Err(CallError::argument(1, "the start must not lie behind the end"));
    }
    Ok((
        usize::try_from(start).unwrap_or_default(),
        usize::try_from(end).unwrap_or_default(),
    ))
}

/// Returns a text that identifies a known value among the values of its type: two values have the same text if they are
/// equal.
fn identity(value: &Value) -> String {
    match (value.as_str(), value.as_number().filter(|n| n.is_integer())) {
        (Some(text), _) => format!("s{text}"),
        // Whole numbers are equal by value, whatever their precision; zero equals minus zero.
        (_, Some(number)) => match number.exact_digits() {
            Some((negative, digits, point)) => format!("i{} {digits:?} {point}", negative && !digits.is_empty()),
            None => format!("v{value:?}"),
        },
        (None, None) => format!("v{value:?}"),
    }
}
