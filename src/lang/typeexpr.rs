//! Type constraint expressions: `list(string)`, `object({ a = optional(number, 1) })`.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::types::{ObjectAttribute, ObjectType};
use cty::{Defaults, Type};
use syntax::ast::{Call, Expr, ObjectKey};
use syntax::content::{Near, hint, near};
use syntax::{Diagnostic, Diagnostics, Edit, Range};

use crate::eval::{Context, describe_convert_error, evaluate};
use crate::scope::Constant;

/// Types that are a single word.
const TYPES: &[&str] = &["bool", "string", "number", "any"];

/// Constructors of types.
const CONSTRUCTORS: &[&str] = &["list", "set", "map", "object", "tuple"];

/// Depth limit of types.
const MAX_DEPTH: usize = 100;

/// Reads a type constraint, with the default values of its optional attributes. Invalid parts are `any`.
#[must_use]
pub fn type_constraint(expr: &Expr) -> (Type, Defaults, Diagnostics) {
    let mut reader = Reader {
        diagnostics: Diagnostics::new(),
        depth: 0,
    };
    let (ty, defaults) = reader.read(expr);
    (ty, defaults, reader.diagnostics)
}

/// Reads a type constraint as [`type_constraint`] does, for the `type` of a variable: `list` and `map` alone mean
/// `list(any)` and `map(any)`, and the error about a type in quotes (the form of Terraform 0.11) explains the present
/// form.
#[must_use]
pub fn variable_type(expr: &Expr) -> (Type, Defaults, Diagnostics) {
    if let Expr::Json(json) = expr {
        // In JSON, the quotes belong to the syntax.
        return match syntax::json::unquoted(json.node()) {
            Some((inner, problems)) if problems.is_empty() => match inner.as_keyword() {
                Some("list" | "map") => variable_type(&inner),
                Some(_) => {
                    let (ty, defaults, mut problems) = type_constraint(&inner);
                    // As in Terraform, an error about a word has the range of the whole string.
                    for problem in &mut problems.0 {
                        problem.subject = Some(expr.range().clone());
                    }
                    (ty, defaults, problems)
                }
                None => type_constraint(&inner),
            },
            _ => type_constraint(&Expr::SplatElement {
                range: expr.range().clone(),
            }),
        };
    }
    match expr.as_keyword() {
        Some("list") => return (Type::list(Type::Dynamic), Defaults::default(), Diagnostics::new()),
        Some("map") => return (Type::map(Type::Dynamic), Defaults::default(), Diagnostics::new()),
        _ => {}
    }
    let Some(text) = expr.as_literal_text() else {
        return type_constraint(expr);
    };
    let quoted = |ty: &str| {
        Diagnostic::error(
            "Invalid quoted type constraints",
            format!("A type is written without quotes. Replace \"{text}\" by {ty}."),
        )
    };
    let problem = match &*text {
        "string" => quoted("string").mended_by(Edit::stretch(expr.range(), "string")),
        "list" => quoted("list(string)"),
        "map" => quoted("map(string)"),
        _ => Diagnostic::error(
            "Invalid legacy variable type hint",
            "A type is written without quotes: remove them.",
        ),
    };
    (Type::Dynamic, Defaults::default(), problem.at(expr.range()).into())
}

struct Reader {
    diagnostics: Diagnostics,
    depth: usize,
}

impl Reader {
    fn invalid(&mut self, detail: impl Into<String>, at: &Range, within: &Range) -> (Type, Defaults) {
        self.diagnostics.push(
            Diagnostic::error("Invalid type specification", detail)
                .at(at)
                .within(within),
        );
        (Type::Dynamic, Defaults::default())
    }

    fn misspelt(
        &mut self,
        detail: String,
        word: &str,
        at: &Range,
        within: &Range,
        near: Option<&Near>,
    ) -> (Type, Defaults) {
        let problem = Diagnostic::error("Invalid type specification", detail);
        self.diagnostics
            .push(problem.at(at).within(within).misspelt(word, at, near));
        (Type::Dynamic, Defaults::default())
    }

    fn read(&mut self, expr: &Expr) -> (Type, Defaults) {
        if self.depth >= MAX_DEPTH {
            return self.invalid("Types are nested too deeply.", expr.range(), expr.range());
        }
        self.depth += 1;
        let read = self.form(expr);
        self.depth -= 1;
        read
    }

    fn form(&mut self, expr: &Expr) -> (Type, Defaults) {
        let range = expr.range();
        if let Some(word) = expr.as_keyword() {
            let ty = match word {
                "bool" => Type::Bool,
                "string" => Type::String,
                "number" => Type::Number,
                "any" => Type::Dynamic,
                "list" | "set" | "map" => {
                    return self.invalid(
                        format!("A {word} type names the type of its elements, such as {word}(string)."),
                        range,
                        range,
                    );
                }
                "object" => {
                    return self.invalid(
                        "An object type lists its attributes, such as object({ name = string }).",
                        range,
                        range,
                    );
                }
                "tuple" => {
                    return self.invalid(
                        "A tuple type lists the types of its elements, such as tuple([string, bool]).",
                        range,
                        range,
                    );
                }
                _ => {
                    let near = near(word, TYPES.iter().chain(CONSTRUCTORS).copied());
                    let detail = format!(
                        "The keyword \"{word}\" is not a valid type specification.{}",
                        hint(near.as_ref())
                    );
                    return self.misspelt(detail, word, range, range, near.as_ref());
                }
            };
            return (ty, Defaults::default());
        }
        match expr {
            Expr::Parens { inner, .. } => self.read(inner),
            Expr::Call(call) => self.constructor(call),
            Expr::Invalid { .. } => (Type::Dynamic, Defaults::default()),
            _ => self.invalid(
                "A type is bool, number, string or any, or one made with list, set, map, object or tuple, such as \
                 list(string).",
                range,
                range,
            ),
        }
    }

    fn constructor(&mut self, call: &Call) -> (Type, Defaults) {
        let name = &*call.name;
        match name {
            "bool" | "string" | "number" | "any" => {
                return self.invalid(
                    format!("The type {name} has no arguments."),
                    &call.open.to(&call.close),
                    &call.range,
                );
            }
            "optional" => {
                return self.invalid(
                    "Only the type of an attribute in object({ … }) can be optional.",
                    &call.name_range,
                    &call.range,
                );
            }
            "list" | "set" | "map" | "object" | "tuple" => {}
            _ => {
                let near = near(name, CONSTRUCTORS.iter().copied());
                let detail = format!(
                    "The keyword \"{name}\" is not a valid type constructor.{}",
                    hint(near.as_ref())
                );
                return self.misspelt(detail, name, &call.name_range, &call.range, near.as_ref());
            }
        }
        let [arg] = call.args.as_slice() else {
            let detail = match name {
                "object" => {
                    "An object type has one argument: its attributes, such as object({ name = string }).".to_owned()
                }
                "tuple" => "A tuple type has one argument: the types of its elements, such as tuple([string, bool])."
                    .to_owned(),
                _ => format!("A {name} type has one argument: the type of its elements, such as {name}(string)."),
            };
            let at = match call.args.get(1) {
                Some(extra) => extra.range().clone(),
                None => call.open.to(&call.close),
            };
            return self.invalid(detail, &at, &call.range);
        };
        match name {
            "object" => self.object(arg, call),
            "tuple" => self.tuple(arg, call),
            _ => {
                let (element, defaults) = self.read(arg);
                let ty = match name {
                    "list" => Type::list(element),
                    "set" => Type::set(element),
                    _ => Type::map(element),
                };
                let element = (!defaults.is_empty()).then(|| Box::new(defaults));
                (
                    ty,
                    Defaults {
                        element,
                        ..Defaults::default()
                    },
                )
            }
        }
    }

    fn tuple(&mut self, arg: &Expr, call: &Call) -> (Type, Defaults) {
        let Expr::Tuple { items, .. } = arg else {
            return self.invalid(
                "A tuple type lists the types of its elements between brackets.",
                arg.range(),
                &call.range,
            );
        };
        let mut types = Vec::new();
        let mut elements = BTreeMap::new();
        for (i, item) in items.iter().enumerate() {
            let (ty, defaults) = self.read(item);
            types.push(ty);
            if !defaults.is_empty() {
                elements.insert(i, defaults);
            }
        }
        (
            Type::tuple(types),
            Defaults {
                elements,
                ..Defaults::default()
            },
        )
    }

    fn object(&mut self, arg: &Expr, call: &Call) -> (Type, Defaults) {
        let Expr::Object { items, .. } = arg else {
            return self.invalid(
                "An object type lists its attributes between braces, each with a name, an equals sign and a type.",
                arg.range(),
                &call.range,
            );
        };
        let mut attributes: Vec<ObjectAttribute> = Vec::new();
        let mut out = Defaults::default();
        for item in items {
            let name: Option<Arc<str>> = match &item.key {
                ObjectKey::Bare { name, .. } => Some(name.clone()),
                ObjectKey::Expr(key) => key.as_literal_text().filter(|n| addrs::parse::is_identifier(n)),
            };
            let Some(name) = name else {
                self.invalid(
                    "The name of an attribute begins with a letter, and has letters, digits, underscores and dashes.",
                    item.key.range(),
                    arg.range(),
                );
                continue;
            };
            if attributes.iter().any(|a| a.name == name) {
                self.invalid(
                    format!("The attribute \"{name}\" is given more than once."),
                    item.key.range(),
                    arg.range(),
                );
                continue;
            }
            let (inner, optional, default) = match &item.value {
                Expr::Call(modifier) if &*modifier.name == "optional" => match self.optional(modifier) {
                    Some((inner, default)) => (inner, true, default),
                    None => continue,
                },
                other => (other, false, None),
            };
            let (ty, defaults) = self.read(inner);
            if let Some(default) = default {
                self.default_value(&name, default, &ty, &defaults, &mut out);
            }
            if !defaults.is_empty() {
                out.attributes.insert(name.clone(), defaults);
            }
            attributes.push(ObjectAttribute { name, ty, optional });
        }
        (Type::Object(Arc::new(ObjectType::new(attributes))), out)
    }

    /// Returns the type and the default in `optional(…)`. A wrong number of arguments is reported.
    fn optional<'e>(&mut self, modifier: &'e Call) -> Option<(&'e Expr, Option<&'e Expr>)> {
        match modifier.args.as_slice() {
            [] => {
                self.invalid(
                    "The type of the attribute is missing: optional(TYPE) or optional(TYPE, DEFAULT).",
                    &modifier.close,
                    &modifier.range,
                );
                None
            }
            [ty] => Some((ty, None)),
            [ty, default] => Some((ty, Some(default))),
            [_, _, extra, ..] => {
                self.invalid(
                    "There is nothing after the default: optional(TYPE) or optional(TYPE, DEFAULT).",
                    extra.range(),
                    &modifier.range,
                );
                None
            }
        }
    }

    fn default_value(&mut self, name: &Arc<str>, expr: &Expr, ty: &Type, inner: &Defaults, out: &mut Defaults) {
        let (value, problems) = evaluate(expr, Context::new(&Constant));
        let failed = problems.has_errors();
        self.diagnostics.extend(problems);
        if failed {
            return;
        }
        // The default of an object may omit attributes that have a default.
        match cty::convert(&inner.apply(value), ty) {
            Ok(value) => {
                out.values.insert(name.clone(), value);
            }
            Err(error) => self.diagnostics.push(
                Diagnostic::error(
                    "Invalid default value for optional attribute",
                    format!(
                        "The default does not convert to the type of the attribute: {}.",
                        describe_convert_error(&error)
                    ),
                )
                .at(expr.range()),
            ),
        }
    }
}
