//! Functions for strings.

use cty::{Kind, Number, Type, Value};

use super::letters::{self, clusters};
use super::{
    CallError, CallResult, Function, FunctionEnvironment, Returns, Takes, integer, number, param, regular, sequence,
    string, text, unknown,
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("chomp", &[string("str")], Returns::String, |a, _, _| {
        Ok(Value::string(text(a, 0).trim_end_matches(['\r', '\n'])))
    }),
    Function::new(
        "endswith",
        &[string("str"), string("suffix")],
        Returns::Bool,
        |a, _, _| Ok(Value::bool(text(a, 0).ends_with(text(a, 1)))),
    ),
    Function::new(
        "indent",
        &[number("spaces"), string("str")],
        Returns::String,
        |a, _, _| {
            let spaces = integer(a, 0)?;
            let spaces = usize::try_from(spaces).map_err(|_| CallError::argument(0, "must not be negative"))?;
            // Each line gets this number of spaces, so an unlimited number could use up all memory.
            if spaces > 1 << 20 {
                return Err(CallError::argument(0, "must not be more than 1048576"));
            }
            Ok(Value::string(
                text(a, 1).replace('\n', &format!("\n{}", " ".repeat(spaces))),
            ))
        },
    ),
    Function::new("join", &[string("separator")], Returns::String, join)
        .variadic(param("lists", Takes::ListOfString).unknown()),
    Function::new("lower", &[string("str").dynamic()], Returns::String, |a, _, _| {
        // As in Go, each character is mapped by its simple case mapping.
        Ok(Value::string(
            text(a, 0).chars().map(letters::lower).collect::<String>(),
        ))
    }),
    Function::new(
        "replace",
        &[string("str"), string("substr"), string("replace")],
        Returns::String,
        |a, _, _| {
            let (input, what, with) = (text(a, 0), text(a, 1), text(a, 2));
            match what.strip_prefix('/').and_then(|w| w.strip_suffix('/')) {
                Some(pattern) => {
                    let pattern = regular::compile(pattern)
                        .map_err(|e| CallError::failed(format!("error parsing regexp: {}: `{}`", e.why, e.part)))?;
                    Ok(Value::string(pattern.replace_all(input, with)))
                }
                None => Ok(Value::string(input.replace(what, with))),
            }
        },
    ),
    Function::new(
        "split",
        &[string("separator"), string("str")],
        Returns::ListOfString,
        |a, _, _| {
            let (separator, input) = (text(a, 0), text(a, 1));
            let parts: Vec<Value> = if separator.is_empty() {
                input.chars().map(|c| Value::string(c.to_string())).collect()
            } else {
                input.split(separator).map(Value::from).collect()
            };
            Ok(Value::list(Type::String, parts))
        },
    ),
    Function::new(
        "startswith",
        &[string("str").unknown(), string("prefix")],
        Returns::Bool,
        startswith,
    ),
    Function::new(
        "strcontains",
        &[string("str"), string("substr")],
        Returns::Bool,
        |a, _, _| Ok(Value::bool(text(a, 0).contains(text(a, 1)))),
    )
    .nullable(),
    Function::new("strrev", &[string("str").dynamic()], Returns::String, |a, _, _| {
        Ok(Value::string(
            clusters(text(a, 0)).into_iter().rev().collect::<String>(),
        ))
    }),
    Function::new(
        "substr",
        &[
            string("str").dynamic(),
            number("offset").dynamic(),
            number("length").dynamic(),
        ],
        Returns::String,
        substr,
    ),
    Function::new("title", &[string("str").dynamic()], Returns::String, title),
    Function::new(
        "trim",
        &[string("str"), string("cutset")],
        Returns::String,
        |a, _, _| {
            let cutset = text(a, 1);
            Ok(Value::string(text(a, 0).trim_matches(|c| cutset.contains(c))))
        },
    ),
    Function::new(
        "trimprefix",
        &[string("str"), string("prefix")],
        Returns::String,
        |a, _, _| Ok(Value::string(text(a, 0).strip_prefix(text(a, 1)).unwrap_or(text(a, 0)))),
    ),
    Function::new("trimspace", &[string("str")], Returns::String, |a, _, _| {
        Ok(Value::string(text(a, 0).trim()))
    }),
    Function::new(
        "trimsuffix",
        &[string("str"), string("suffix")],
        Returns::String,
        |a, _, _| Ok(Value::string(text(a, 0).strip_suffix(text(a, 1)).unwrap_or(text(a, 0)))),
    ),
    Function::new("upper", &[string("str").dynamic()], Returns::String, |a, _, _| {
        Ok(Value::string(
            text(a, 0).chars().map(letters::upper).collect::<String>(),
        ))
    }),
];

fn join(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let lists = &args[1..];
    if lists.is_empty() {
        return Err(CallError::failed("at least one list is required"));
    }
    if lists.iter().any(|l| !l.is_wholly_known()) {
        return unknown(ty);
    }
    let mut parts: Vec<&str> = Vec::new();
    for (l, list) in lists.iter().enumerate() {
        for (i, item) in sequence(list).iter().enumerate() {
            match item.as_str() {
                Some(part) => parts.push(part),
                None if lists.len() == 1 => {
                    return Err(CallError::argument(1, format!("element {i} of the list is null")));
                }
                None => {
                    return Err(CallError::argument(l + 1, format!("element {i} of list {l} is null")));
                }
            }
        }
    }
    Ok(Value::string(parts.join(text(args, 0))))
}

fn startswith(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let prefix = text(args, 1);
    match args[0].kind() {
        Kind::String(input) => Ok(Value::bool(input.starts_with(prefix))),
        _ if prefix.is_empty() => Ok(Value::bool(true)),
        _ => match args[0].refinements().and_then(|r| r.prefix.as_deref()) {
            // The known prefix of an unknown text may decide the result.
            Some(known) if known.starts_with(prefix) => Ok(Value::bool(true)),
            Some(known) if !prefix.starts_with(known) => Ok(Value::bool(false)),
            _ => unknown(ty),
        },
    }
}

fn substr(args: &[Value], _: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let input = text(args, 0);
    let (mut offset, length) = (integer(args, 1)?, integer(args, 2)?);
    // As in Terraform, a character is a grapheme cluster, such as a letter with its accents.
    let clusters = clusters(input);
    if offset < 0 {
        offset = offset.saturating_add(i64::try_from(clusters.len()).unwrap_or(i64::MAX));
    }
    let rest = clusters.get(usize::try_from(offset).unwrap_or(0)..).unwrap_or_default();
    let taken = match usize::try_from(length) {
        Ok(n) => &rest[..n.min(rest.len())],
        // A negative length means the rest of the text.
        Err(_) => rest,
    };
    Ok(Value::string(taken.concat()))
}

fn title(args: &[Value], _: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let mut out = String::new();
    let mut at_start = true;
    for c in text(args, 0).chars() {
        out.push(if at_start { letters::title(c) } else { c });
        at_start = if c.is_ascii() {
            !(c.is_ascii_alphanumeric() || c == '_')
        } else {
            !c.is_alphanumeric() && c.is_whitespace()
        };
    }
    Ok(Value::string(out))
}

/// Returns the number of grapheme clusters.
pub(super) fn length(text: &str) -> Number {
    Number::from(letters::count(text))
}
