//! Type constraints as variables have them: `list(string)`, `object({ a = optional(number, 1) })`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cty::types::{ObjectAttribute, ObjectType};
use cty::{Type, Value};
use syntax::ast::{Call, Expr, ObjectKey};
use syntax::{Diagnostic, Diagnostics, Range};

use crate::decode::parts;

/// The default values of optional attributes inside a type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Defaults {
    /// For an object: the defaults of its own attributes.
    values: BTreeMap<Arc<str>, Value>,
    /// What there is inside its parts.
    parts: Parts,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum Parts {
    /// No part has defaults inside.
    #[default]
    None,
    /// Attributes of an object.
    Attributes(BTreeMap<Arc<str>, Defaults>),
    /// Elements of a tuple.
    Positions(BTreeMap<usize, Defaults>),
    /// Every element of a list, set or map.
    Elements(Box<Defaults>),
}

impl Defaults {
    /// The value with the defaults put where an attribute is missing or null. What is not of the type's shape stays as it is:
    /// conversion will say so. Lists, sets and maps may come out as tuples and objects, for conversion to make whole.
    #[must_use]
    pub fn apply(&self, value: &Value) -> Value {
        if !value.is_present() {
            return value.clone();
        }
        let out = match &self.parts {
            Parts::Elements(inner) => {
                if let Some(items) = value.as_seq() {
                    Value::tuple(items.iter().map(|v| inner.apply(v)).collect())
                } else if let Some(entries) = value.entries() {
                    Value::object(entries.map(|(k, v)| (k.clone(), inner.apply(v))))
                } else {
                    return value.clone();
                }
            }
            Parts::Positions(inner) => {
                let Some(items) = value.as_seq() else {
                    return value.clone();
                };
                let apply = |(i, v): (usize, &Value)| inner.get(&i).map_or_else(|| v.clone(), |d| d.apply(v));
                Value::tuple(items.iter().enumerate().map(apply).collect())
            }
            Parts::None | Parts::Attributes(_) => {
                let Some(entries) = value.entries() else {
                    return value.clone();
                };
                let mut attributes: BTreeMap<Arc<str>, Value> =
                    entries.map(|(name, v)| (name.clone(), self.inside(name, v))).collect();
                for (name, default) in &self.values {
                    if attributes.get(name).is_none_or(Value::is_null) {
                        attributes.insert(name.clone(), self.inside(name, default));
                    }
                }
                Value::object(attributes)
            }
        };
        out.with_marks(value.marks())
    }

    fn inside(&self, name: &str, value: &Value) -> Value {
        match &self.parts {
            Parts::Attributes(inner) => inner.get(name).map_or_else(|| value.clone(), |d| d.apply(value)),
            _ => value.clone(),
        }
    }
}

/// A type, and the defaults inside it if there are any.
pub(crate) struct Constraint {
    pub ty: Type,
    pub defaults: Option<Defaults>,
}

impl Constraint {
    fn plain(ty: Type) -> Constraint {
        Constraint { ty, defaults: None }
    }

    fn of_elements(self, collection: fn(Type) -> Type) -> Constraint {
        let defaults = self.defaults.map(|d| Defaults {
            values: BTreeMap::new(),
            parts: Parts::Elements(Box::new(d)),
        });
        Constraint {
            ty: collection(self.ty),
            defaults,
        }
    }
}

/// Reads the `type` argument of a variable, where `list` and `map` alone mean those of any type.
pub(crate) fn of_variable(expr: &Expr, diagnostics: &mut Diagnostics) -> Option<Constraint> {
    match expr.as_keyword() {
        Some("list") => Some(Constraint::plain(Type::list(Type::Dynamic))),
        Some("map") => Some(Constraint::plain(Type::map(Type::Dynamic))),
        _ => constraint(expr, diagnostics),
    }
}

/// Reads a type constraint.
pub(crate) fn constraint(expr: &Expr, diagnostics: &mut Diagnostics) -> Option<Constraint> {
    match expr {
        Expr::Call(call) => return constructed(call, diagnostics),
        Expr::Invalid { .. } => return None,
        _ => {}
    }
    let problem = match expr.as_keyword() {
        Some("string") => return Some(Constraint::plain(Type::String)),
        Some("number") => return Some(Constraint::plain(Type::Number)),
        Some("bool") => return Some(Constraint::plain(Type::Bool)),
        Some("any") => return Some(Constraint::plain(Type::Dynamic)),
        Some(word @ ("list" | "set" | "map")) => {
            format!("\"{word}\" needs the type of its elements: {word}(string), for instance.")
        }
        Some("object") => "\"object\" needs its attributes and their types: object({ name = string }).".to_owned(),
        Some("tuple") => "\"tuple\" needs the types of its elements: tuple([string, number]).".to_owned(),
        Some(word) => format!("There is no type named \"{word}\"."),
        None => "A type is a word (string, number, bool, any) or made of others, as in list(string).".to_owned(),
    };
    diagnostics.push(invalid(problem, expr.range()));
    None
}

fn invalid(detail: impl Into<String>, range: &Range) -> Diagnostic {
    Diagnostic::error("Invalid type specification", detail).at(range)
}

fn constructed(call: &Call, diagnostics: &mut Diagnostics) -> Option<Constraint> {
    let name = &*call.name;
    let collection = match name {
        "list" => Some(Type::list as fn(Type) -> Type),
        "set" => Some(Type::set as fn(Type) -> Type),
        "map" => Some(Type::map as fn(Type) -> Type),
        "object" | "tuple" => None,
        "string" | "number" | "bool" | "any" => {
            diagnostics.push(invalid(
                format!("The type \"{name}\" is a word alone, without parentheses."),
                &call.range,
            ));
            return None;
        }
        "optional" => {
            diagnostics.push(invalid(
                "Only attributes of an object type can be optional.",
                &call.range,
            ));
            return None;
        }
        _ => {
            diagnostics.push(invalid(
                format!("There is no type constructor named \"{name}\"."),
                &call.name_range,
            ));
            return None;
        }
    };
    let [argument] = call.args.as_slice() else {
        diagnostics.push(invalid(
            format!(
                "The type constructor \"{name}\" takes one argument, and has {}.",
                call.args.len()
            ),
            &call.range,
        ));
        return None;
    };
    match (collection, argument) {
        (Some(collection), _) => Some(constraint(argument, diagnostics)?.of_elements(collection)),
        (None, Expr::Object { items, .. }) if name == "object" => object(items, diagnostics),
        (None, Expr::Tuple { items, .. }) if name == "tuple" => tuple(items, diagnostics),
        (None, _) => {
            let wants = if name == "object" {
                "The argument of object is written between braces: names of attributes, and the type of each."
            } else {
                "The argument of tuple is a list of types, between brackets."
            };
            diagnostics.push(invalid(wants, argument.range()));
            None
        }
    }
}

fn object(items: &[syntax::ast::ObjectItem], diagnostics: &mut Diagnostics) -> Option<Constraint> {
    let mut attributes = Vec::new();
    let mut values = BTreeMap::new();
    let mut inner = BTreeMap::new();
    let mut whole = true;
    let mut names = BTreeSet::new();
    for item in items {
        let name = match &item.key {
            ObjectKey::Bare { name, .. } => name.clone(),
            ObjectKey::Expr(e) => {
                diagnostics.push(invalid(
                    "The name of an attribute is written as a plain name.",
                    e.range(),
                ));
                whole = false;
                continue;
            }
        };
        if !names.insert(name.clone()) {
            diagnostics.push(invalid(
                format!("There is an attribute \"{name}\" already."),
                item.key.range(),
            ));
            whole = false;
            continue;
        }
        let (ty_expr, optional, default) = match &item.value {
            Expr::Call(call) if &*call.name == "optional" => match call.args.as_slice() {
                [ty] => (ty, true, None),
                [ty, default] => (ty, true, Some(default)),
                _ => {
                    diagnostics.push(invalid(
                        "The modifier \"optional\" takes a type, and perhaps a default value.",
                        &call.range,
                    ));
                    whole = false;
                    continue;
                }
            },
            other => (other, false, None),
        };
        let Some(part) = constraint(ty_expr, diagnostics) else {
            whole = false;
            continue;
        };
        if let Some(default) = default {
            whole &= attribute_default(&name, default, &part, &mut values, diagnostics);
        }
        if let Some(defaults) = part.defaults {
            inner.insert(name.clone(), defaults);
        }
        attributes.push(ObjectAttribute {
            name,
            ty: part.ty,
            optional,
        });
    }
    if !whole {
        return None;
    }
    let defaults = (!values.is_empty() || !inner.is_empty()).then(|| Defaults {
        values,
        parts: if inner.is_empty() {
            Parts::None
        } else {
            Parts::Attributes(inner)
        },
    });
    Some(Constraint {
        ty: Type::Object(Arc::new(ObjectType::new(attributes))),
        defaults,
    })
}

/// Keeps the default of an attribute, if it fits the attribute's type.
fn attribute_default(
    name: &Arc<str>,
    expr: &Expr,
    part: &Constraint,
    values: &mut BTreeMap<Arc<str>, Value>,
    diagnostics: &mut Diagnostics,
) -> bool {
    let Some(value) = parts::constant(expr, diagnostics) else {
        return false;
    };
    let filled = match &part.defaults {
        Some(defaults) => defaults.apply(&value),
        None => value,
    };
    match cty::convert(&filled, &part.ty) {
        Ok(value) => {
            values.insert(name.clone(), value);
            true
        }
        Err(error) => {
            diagnostics.push(
                Diagnostic::error(
                    "Invalid default value for optional attribute",
                    format!(
                        "The default does not fit the type of the attribute: {}.",
                        crate::model::variable::conversion_error(&error)
                    ),
                )
                .at(expr.range()),
            );
            false
        }
    }
}

fn tuple(items: &[Expr], diagnostics: &mut Diagnostics) -> Option<Constraint> {
    let parts: Vec<Option<Constraint>> = items.iter().map(|item| constraint(item, diagnostics)).collect();
    let parts: Vec<Constraint> = parts.into_iter().collect::<Option<_>>()?;
    let mut inner = BTreeMap::new();
    let mut types = Vec::new();
    for (i, part) in parts.into_iter().enumerate() {
        types.push(part.ty);
        if let Some(defaults) = part.defaults {
            inner.insert(i, defaults);
        }
    }
    let defaults = (!inner.is_empty()).then(|| Defaults {
        values: BTreeMap::new(),
        parts: Parts::Positions(inner),
    });
    Some(Constraint {
        ty: Type::tuple(types),
        defaults,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Constraint, String> {
        let (expr, problems) = crate::parse::expression(text, "t");
        assert!(problems.is_empty(), "{text}: {problems:?}");
        let mut diagnostics = Diagnostics::new();
        let found = of_variable(&expr, &mut diagnostics);
        found.ok_or_else(|| {
            diagnostics
                .iter()
                .map(|d| d.summary.clone())
                .collect::<Vec<_>>()
                .join(",")
        })
    }

    #[test]
    fn types_read_and_print() {
        for text in [
            "string",
            "any",
            "list(set(map(number)))",
            "object({a=string,b=optional(bool)})",
            "tuple([string,list(any)])",
        ] {
            assert_eq!(read(text).map(|c| c.ty.to_string()), Ok(text.to_owned()));
        }
        assert_eq!(read("map").map(|c| c.ty.to_string()), Ok("map(any)".to_owned()));
    }

    #[test]
    fn what_is_no_type_is_told() {
        for text in [
            "foo",
            "set",
            "object",
            "string(1)",
            "list()",
            "list(string, string)",
            "foo(string)",
            "optional(string)",
            "object(string)",
            "object({a = optional()})",
            "tuple(string)",
            "a.b",
            "1",
            "(string)",
            "object({a = string, a = string})",
            "object({\"a\" = string})",
        ] {
            assert_eq!(
                read(text).map(|c| c.ty).err().as_deref(),
                Some("Invalid type specification"),
                "{text}"
            );
        }
        let wrong = read("object({a = optional(list(string), \"x\")})").map(|c| c.ty);
        assert_eq!(
            wrong.err().as_deref(),
            Some("Invalid default value for optional attribute")
        );
    }

    #[test]
    fn defaults_fill_what_is_missing_or_null() {
        let constraint = read(
            "map(object({a = string, b = optional(number, 7), c = optional(object({d = optional(bool, true)}), {})}))",
        );
        let constraint = constraint.unwrap();
        let given = Value::object([
            ("x", Value::object([("a", Value::string("1"))])),
            (
                "y",
                Value::object([
                    ("a", Value::string("2")),
                    ("b", Value::null(Type::Dynamic)),
                    ("c", Value::null(Type::Dynamic)),
                ]),
            ),
        ]);
        let value = cty::convert(&constraint.defaults.unwrap().apply(&given), &constraint.ty).unwrap();
        for key in ["x", "y"] {
            let element = value.get(key).unwrap();
            assert_eq!(element.get("b"), Some(&Value::number(7_i64)), "{key}");
            assert_eq!(
                element.get("c").and_then(|c| c.get("d")),
                Some(&Value::bool(true)),
                "{key}"
            );
        }
    }
}
