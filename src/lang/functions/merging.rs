//! Functions for maps and objects, such as `lookup`, `merge`, `keys` and `values`.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Marks, Type, Value};

use super::{
    CallError, CallResult, Function, FunctionEnvironment, Returns, Takes, any, param, sequence, string, unknown,
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("concat", &[], Returns::By(concat_type), concat).variadic(any("seqs").marked()),
    Function::new(
        "keys",
        &[any("inputMap").unknown().marked()],
        Returns::By(keys_type),
        keys,
    ),
    Function::new(
        "lookup",
        &[any("inputMap").marked().unknown(), string("key").marked().unknown()],
        Returns::By(lookup_type),
        lookup,
    )
    .variadic(any("default").null().unknown().dynamic().marked())
    .nullable(),
    Function::new("merge", &[], Returns::By(merge_type), merge).variadic(any("maps").dynamic().null().marked()),
    Function::new(
        "transpose",
        &[param("values", Takes::MapOfListOfString).unknown()],
        Returns::MapOfListOfString,
        transpose,
    ),
    Function::new("values", &[any("mapping").marked()], Returns::By(values_type), values),
    Function::new(
        "zipmap",
        &[param("keys", Takes::ListOfString).marked(), any("values").marked()],
        Returns::By(zipmap_type),
        zipmap,
    ),
    Function::new("list", &[], Returns::Any, |_, _, _| {
        Err(CallError::failed(
            "the function list is no longer part of the language; write [ ... ], or tolist([ ... ]) where the type \
             must be a list",
        ))
    })
    .variadic(any("vals").everything()),
    Function::new("map", &[], Returns::Any, |_, _, _| {
        Err(CallError::failed(
            "the function map is no longer part of the language; write { ... }, or tomap({ ... }) where the type must \
             be a map",
        ))
    })
    .variadic(any("vals").everything()),
];

fn concat_type(args: &[Value]) -> CallResult<Type> {
    let Some(first) = args.first() else {
        return Err(CallError::failed("at least one argument is required"));
    };
    if let Type::List(_) = first.ty()
        && args.iter().all(|a| matches!(a.ty(), Type::List(_)))
    {
        let types: Vec<Type> = args.iter().map(|a| a.ty().clone()).collect();
        // The types are unified only if nothing is lost; otherwise the result is a tuple with the original
        // elements.
        if let Some(ty) = cty::convert::unify_safe(&types) {
            return Ok(ty);
        }
    }
    let mut types = Vec::new();
    for (i, arg) in args.iter().enumerate() {
        match (arg.ty(), arg.len()) {
            (Type::Tuple(ts), _) => types.extend(ts.iter().cloned()),
            (Type::List(e), Some(n)) => types.extend(std::iter::repeat_n((**e).clone(), n)),
            (Type::List(_), None) => return Ok(Type::Dynamic),
            _ => {
                return Err(CallError::argument(
                    i,
                    "all arguments must be lists or tuples; got ".to_owned() + &arg.ty().friendly_name(),
                ));
            }
        }
    }
    Ok(Type::tuple(types))
}

fn concat(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let mut marks = Marks::NONE;
    let mut items = Vec::new();
    for arg in args {
        marks |= arg.marks();
        let arg = match ty {
            Type::List(_) => cty::convert(arg, ty).map_err(|e| CallError::failed(e.message))?,
            _ => arg.clone(),
        };
        items.extend(sequence(&arg).iter().cloned());
    }
    Ok(match ty {
        // A list of untyped nulls converts to a list of every element type, so the other elements determine the type.
        Type::List(e) if e.has_dynamic() => match cty::convert::unify_values(&items) {
            Ok(Some((element, items))) => Value::list(element, items),
            _ => Value::tuple(items),
        },
        Type::List(e) => Value::list((**e).clone(), items),
        Type::Tuple(_) => Value::tuple(items),
        _ => Value::dynamic(),
    }
    .with_marks(marks))
}

fn not_a_map() -> CallError {
    CallError::argument(0, "must have map or object type")
}

fn keys_type(args: &[Value]) -> CallResult<Type> {
    match args[0].ty() {
        Type::Map(_) => Ok(Type::list(Type::String)),
        Type::Object(o) => Ok(Type::tuple(vec![Type::String; o.len()])),
        _ => Err(not_a_map()),
    }
}

fn keys(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let (map, marks) = args[0].clone().unmark();
    let names: Vec<Value> = match map.ty() {
        // An object's type contains its keys, so they are known even if the value is not.
        Type::Object(o) => o
            .attributes()
            .iter()
            .map(|a| Value::shared_string(a.name.clone()))
            .collect(),
        _ => match map.entries() {
            Some(entries) => entries.map(|(k, _)| Value::shared_string(k.clone())).collect(),
            None => return Ok(Value::unknown_not_null(ty.clone()).with_marks(marks)),
        },
    };
    Ok(match ty {
        Type::Tuple(_) => Value::tuple(names),
        _ => Value::list(Type::String, names),
    }
    .with_marks(marks))
}

fn values_type(args: &[Value]) -> CallResult<Type> {
    match args[0].ty() {
        Type::Map(e) => Ok(Type::list((**e).clone())),
        Type::Object(o) => Ok(Type::tuple(o.attributes().iter().map(|a| a.ty.clone()))),
        _ => Err(CallError::failed("values() requires a map as the first argument")),
    }
}

fn values(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let (map, marks) = args[0].clone().unmark();
    let items: Vec<Value> = map
        .entries()
        .map(|e| e.map(|(_, v)| v.clone()).collect())
        .unwrap_or_default();
    Ok(match ty {
        Type::List(e) => Value::list((**e).clone(), items),
        _ => Value::tuple(items),
    }
    .with_marks(marks))
}

const DEFAULT_TYPE: &str = "the default does not convert to the type of the map's elements";

fn lookup_type(args: &[Value]) -> CallResult<Type> {
    if args.len() > 3 {
        return Err(CallError::failed(format!(
            "lookup() takes two or three arguments, got {}",
            args.len()
        )));
    }
    match args[0].ty() {
        Type::Object(o) => {
            let Some(key) = args[1].as_str() else {
                return Ok(Type::Dynamic);
            };
            match o.get(key) {
                Some(ty) => Ok(ty.clone()),
                None => match args.get(2) {
                    Some(default) => Ok(default.ty().clone()),
                    None => Err(CallError::argument(
                        0,
                        format!("the given object has no attribute {key:?}"),
                    )),
                },
            }
        }
        Type::Map(element) => {
            if let Some(default) = args.get(2)
                && !cty::convert::can_convert(default.ty(), element, false)
            {
                return Err(CallError::argument(2, DEFAULT_TYPE));
            }
            Ok((**element).clone())
        }
        _ => Err(CallError::argument(0, "lookup() requires a map as the first argument")),
    }
}

fn lookup(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let (map, map_marks) = args[0].clone().unmark();
    let (key, key_marks) = args[1].clone().unmark();
    let marks = map_marks | key_marks;
    let Some(name) = key.as_str() else {
        return Ok(Value::unknown(ty.clone()).with_marks(marks));
    };
    if !map.is_known() {
        return Ok(Value::unknown(ty.clone()).with_marks(marks));
    }
    // Even if the key exists, an unsuitable default is an error.
    if let (Some(default), Type::Map(_)) = (args.get(2), map.ty()) {
        cty::convert(default, ty).map_err(|_| CallError::argument(2, DEFAULT_TYPE))?;
    }
    if let Some(found) = map.get(name) {
        return Ok(found.clone().with_marks(marks));
    }
    match args.get(2) {
        Some(default) => {
            let default = if matches!(map.ty(), Type::Map(_)) {
                cty::convert(default, ty).map_err(|_| CallError::argument(2, DEFAULT_TYPE))?
            } else {
                default.clone()
            };
            Ok(default.with_marks(marks))
        }
        // The key is secret, so the message must not contain it.
        None if !key_marks.is_empty() => Err(CallError::failed("lookup failed to find key with sensitive value")),
        None => Err(CallError::failed(format!("lookup failed to find key {name:?}"))),
    }
}

fn merge_type(args: &[Value]) -> CallResult<Type> {
    if args.is_empty() {
        return Ok(Type::empty_object());
    }
    let mut attributes: BTreeMap<Arc<str>, Type> = BTreeMap::new();
    // A null object adds no attributes, so it counts as an empty one.
    let nothing = Type::empty_object();
    let mut first: Option<&Type> = None;
    let mut all_same = true;
    let mut spelled_out = true;
    let mut open = false;
    for arg in args {
        if *arg.ty() == Type::Dynamic {
            // An untyped null makes the result's type unknown, but errors in later arguments are still reported.
            if !arg.is_null() {
                return Ok(Type::Dynamic);
            }
            open = true;
            all_same = false;
            continue;
        }
        if open && !arg.is_known() {
            return Ok(Type::Dynamic);
        }
        if !matches!(arg.ty(), Type::Map(_) | Type::Object(_)) {
            return Err(CallError::failed(format!(
                "arguments must be maps or objects, got {:?}",
                arg.ty().friendly_name()
            )));
        }
        let ty = match arg.ty() {
            Type::Object(_) if arg.is_null() => &nothing,
            ty => ty,
        };
        let whole = *first.get_or_insert(ty);
        all_same &= whole == ty;
        match (arg.ty(), arg.entries()) {
            _ if arg.is_null() => {}
            (Type::Object(o), _) => attributes.extend(o.attributes().iter().map(|a| (a.name.clone(), a.ty.clone()))),
            (Type::Map(e), Some(entries)) => attributes.extend(entries.map(|(k, _)| (k.clone(), (**e).clone()))),
            // An unknown map has unknown keys.
            _ => spelled_out = false,
        }
    }
    match first {
        None => Ok(Type::empty_object()),
        Some(ty @ Type::Map(_)) if all_same => Ok(ty.clone()),
        Some(ty @ Type::Object(_)) if all_same => Ok(ty.clone()),
        _ if !spelled_out => Ok(Type::Dynamic),
        _ => Ok(Type::object(attributes)),
    }
}

fn merge(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let mut marks = Marks::NONE;
    let mut out: BTreeMap<Arc<str>, Value> = BTreeMap::new();
    for arg in args.iter().filter(|a| !a.is_null()) {
        marks |= arg.marks();
        if let Some(entries) = arg.entries() {
            out.extend(entries.map(|(k, v)| (k.clone(), v.clone())));
        } else {
            // The unknown argument may have any key, so the result is unknown.
            return Ok(Value::unknown_not_null(ty.clone()).with_marks(marks));
        }
    }
    Ok(match ty {
        Type::Map(e) => Value::map((**e).clone(), out),
        _ => Value::object(out),
    }
    .with_marks(marks))
}

fn transpose(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    if !args[0].is_wholly_known() {
        return unknown(ty);
    }
    let mut out: BTreeMap<Arc<str>, Vec<Value>> = BTreeMap::new();
    for (key, list) in args[0].entries().into_iter().flatten() {
        if sequence(list).iter().any(Value::is_null) {
            return Err(CallError::failed("input list must not contain null string"));
        }
        if list.is_null() {
            return Err(CallError::failed("input must not contain null list"));
        }
        for item in sequence(list) {
            let Some(name) = item.as_arc_str() else {
                return Err(CallError::argument(0, "input must not contain null list elements"));
            };
            out.entry(name.clone())
                .or_default()
                .push(Value::shared_string(key.clone()));
        }
    }
    let lists = out
        .into_iter()
        .map(|(k, v)| (k, Value::list(Type::String, v)))
        .collect();
    Ok(Value::map(Type::list(Type::String), lists))
}

fn zipmap_type(args: &[Value]) -> CallResult<Type> {
    let (keys, values) = (&args[0], &args[1]);
    match values.ty() {
        Type::List(e) => Ok(Type::map((**e).clone())),
        Type::Tuple(types) => {
            if !keys.is_wholly_known() {
                return Ok(Type::Dynamic);
            }
            let names = sequence(keys);
            if names.len() != types.len() {
                return Err(length_error(names.len(), types.len()));
            }
            let mut attributes = Vec::new();
            for (i, (name, ty)) in names.iter().zip(types.iter()).enumerate() {
                let Some(name) = name.as_arc_str() else {
                    return Err(CallError::failed(format!("keys list has null value at index {i}")));
                };
                attributes.push((name.clone(), ty.clone()));
            }
            Ok(Type::object(attributes))
        }
        _ => Err(CallError::failed("the values must be a list or a tuple")),
    }
}

fn length_error(keys: usize, values: usize) -> CallError {
    CallError::failed(format!("there are {keys} keys and {values} values"))
}

fn zipmap(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    // Keys of a map carry no marks, so the marks of the names move to the whole map. Values keep their own marks.
    let (keys, key_marks) = args[0].clone().unmark_deep();
    let (values, value_marks) = args[1].clone().unmark();
    let marks = key_marks | value_marks;
    if !keys.is_wholly_known() {
        return Ok(Value::unknown_not_null(ty.clone()).with_marks(marks));
    }
    let (names, items) = (sequence(&keys), sequence(&values));
    if names.len() != items.len() {
        return Err(length_error(names.len(), items.len()));
    }
    let mut out: BTreeMap<Arc<str>, Value> = BTreeMap::new();
    for (i, (name, value)) in names.iter().zip(items).enumerate() {
        let Some(name) = name.as_arc_str() else {
            return Err(CallError::failed(format!("keys list has null value at index {i}")));
        };
        out.insert(name.clone(), value.clone());
    }
    Ok(match ty {
        Type::Map(e) => Value::map((**e).clone(), out),
        Type::Object(_) => Value::object(out),
        _ => Value::dynamic(),
    }
    .with_marks(marks))
}
