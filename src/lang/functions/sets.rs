//! Functions for sets.

use cty::set::has_element;
use cty::{Marks, Type, Value};

use super::{CallError, CallResult, Function, FunctionEnvironment, Returns, Takes, any, param, sequence, unknown};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new(
        "setintersection",
        &[param("first_set", Takes::SetOfAny).dynamic()],
        Returns::By(set_type),
        |a, t, _| {
            operate(a, t, false, |sets| {
                let (first, rest) = sets.split_first()?;
                Some(
                    first
                        .iter()
                        .filter(|v| rest.iter().all(|s| has_element(s, v)))
                        .cloned()
                        .collect(),
                )
            })
        },
    )
    .variadic(param("other_sets", Takes::SetOfAny).dynamic()),
    Function::new("setproduct", &[], Returns::By(product_type), product).variadic(any("sets").marked()),
    Function::new(
        "setsubtract",
        &[
            param("a", Takes::SetOfAny).dynamic(),
            param("b", Takes::SetOfAny).dynamic(),
        ],
        Returns::By(set_type),
        |a, t, _| {
            operate(a, t, false, |sets| {
                let (first, rest) = sets.split_first()?;
                Some(
                    first
                        .iter()
                        .filter(|v| !rest.iter().any(|s| has_element(s, v)))
                        .cloned()
                        .collect(),
                )
            })
        },
    ),
    Function::new(
        "setunion",
        &[param("first_set", Takes::SetOfAny).dynamic()],
        Returns::By(set_type),
        |a, t, _| operate(a, t, true, |sets| Some(sets.concat())),
    )
    .variadic(param("other_sets", Takes::SetOfAny).dynamic()),
];

fn set_type(args: &[Value]) -> CallResult<Type> {
    let types: Vec<Type> = args
        .iter()
        // An empty set is compatible with sets of all types.
        .filter(|a| !(a.len() == Some(0) && a.ty().element() == Some(&Type::Dynamic)))
        .filter_map(|a| a.ty().element().cloned())
        .collect();
    if types.is_empty() {
        return Ok(Type::set(Type::Dynamic));
    }
    if args.iter().any(|a| *a.ty() == Type::Dynamic) {
        return Ok(Type::set(Type::Dynamic));
    }
    match cty::unify(&types) {
        Some(ty) => Ok(Type::set(ty)),
        None => Err(CallError::failed("the element types of the sets have no common type")),
    }
}

fn operate(
    args: &[Value],
    ty: &Type,
    partly: bool,
    f: impl FnOnce(Vec<Vec<Value>>) -> Option<Vec<Value>>,
) -> CallResult {
    let Some(element) = ty.element() else {
        return unknown(ty);
    };
    if !partly && !args.iter().all(Value::is_wholly_known) {
        return unknown(ty);
    }
    let mut sets = Vec::new();
    for arg in args {
        // The value is not converted, because an empty set may have any element type.
        if arg.len() == Some(0) {
            sets.push(Vec::new());
            continue;
        }
        let set = cty::convert(arg, ty).map_err(|e| CallError::failed(e.message))?;
        sets.push(sequence(&set).to_vec());
    }
    Ok(Value::set(element.clone(), f(sets).unwrap_or_default()))
}

fn product_type(args: &[Value]) -> CallResult<Type> {
    if args.len() < 2 {
        return Err(CallError::failed("at least two arguments are required"));
    }
    let mut ordered = true;
    let mut elements = Vec::new();
    for (i, arg) in args.iter().enumerate() {
        match arg.ty() {
            Type::Set(e) => {
                ordered = false;
                elements.push((**e).clone());
            }
            Type::List(e) => elements.push((**e).clone()),
            Type::Tuple(types) => {
                let ty = if types.is_empty() {
                    Some(Type::Dynamic)
                } else {
                    cty::unify(types)
                };
                elements.push(ty.ok_or_else(|| CallError::argument(i, "all elements must be of the same type"))?);
            }
            _ => return Err(CallError::argument(i, "a set or a list is required")),
        }
    }
    // Combinations of lists are ordered, but with a set among the arguments they are not.
    let tuple = Type::tuple(elements);
    Ok(if ordered { Type::list(tuple) } else { Type::set(tuple) })
}

fn product(args: &[Value], ty: &Type, environment: &FunctionEnvironment<'_>) -> CallResult {
    let Some(Type::Tuple(columns)) = ty.element() else {
        return Ok(Value::dynamic());
    };
    let mut marks = Marks::NONE;
    let mut lists: Vec<Vec<Value>> = Vec::new();
    let mut total: usize = 1;
    let mut uncertain = false;
    for (arg, element) in args.iter().zip(columns.iter()) {
        let (arg, own) = arg.clone().unmark();
        marks |= own;
        // Unknown elements of a set may be equal, so there may be fewer combinations.
        uncertain |= matches!(arg.ty(), Type::Set(_)) && !arg.is_wholly_known() && sequence(&arg).len() > 1;
        let items: Vec<Value> = sequence(&arg)
            .iter()
            .map(|v| cty::convert(v, element).map_err(|e| CallError::failed(e.message)))
            .collect::<CallResult<_>>()?;
        total = total.saturating_mul(items.len());
        lists.push(items);
    }
    if uncertain {
        return Ok(Value::unknown_not_null(ty.clone()).with_marks(marks));
    }
    // A larger product is probably a mistake, and would use up all memory.
    let most = environment.settings.max_elements();
    if total as u64 > most {
        return Err(CallError::failed(format!(
            "the product has {total} elements, more than {most}"
        )));
    }
    let mut rows: Vec<Value> = Vec::with_capacity(total);
    // `n` is written in a mixed radix, with the lengths of the lists as bases. Its digits are the indexes of the
    // elements.
    for n in 0..total {
        let mut rest = n;
        let mut row: Vec<Value> = Vec::with_capacity(lists.len());
        for list in lists.iter().rev() {
            row.push(list[rest % list.len()].clone());
            rest /= list.len();
        }
        row.reverse();
        rows.push(Value::tuple(row));
    }
    let element = Type::Tuple(columns.clone());
    Ok(match ty {
        Type::Set(_) => Value::set(element, rows),
        _ => Value::list(element, rows),
    }
    .with_marks(marks))
}
