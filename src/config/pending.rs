//! Stands in until the type expressions and the evaluation of `lang` are there.

use std::sync::Arc;

use cty::{Type, Value};
use lang::eval::Context;
use syntax::ast::{Expr, ObjectKey};
use syntax::{Diagnostic, Diagnostics};

/// Default values of optional attributes.
#[derive(Clone, Debug)]
pub struct Defaults;

impl Defaults {
    pub fn apply(&self, value: &cty::Value) -> cty::Value {
        value.clone()
    }
}

pub fn type_constraint(expr: &Expr, d: &mut Diagnostics) -> Option<(Type, Option<Arc<Defaults>>)> {
    if let Some(word) = expr.as_keyword() {
        return Some((
            match word {
                "string" => Type::String,
                "number" => Type::Number,
                "bool" => Type::Bool,
                "any" => Type::Dynamic,
                _ => {
                    d.push(Diagnostic::error("Invalid type specification", "bad keyword").at(expr.range()));
                    return None;
                }
            },
            None,
        ));
    }
    if let Expr::Call(c) = expr {
        let e = type_constraint(c.args.first()?, d)?.0;
        return Some((
            match &*c.name {
                "list" => Type::list(e),
                "set" => Type::set(e),
                _ => Type::map(e),
            },
            None,
        ));
    }
    None
}

pub fn evaluate(expr: &Expr, _c: Context<'_>) -> (Value, Diagnostics) {
    let mut d = Diagnostics::new();
    let v = match expr {
        Expr::Literal { value, .. } => value.clone(),
        Expr::Tuple { items, .. } => Value::tuple(
            items
                .iter()
                .map(|i| {
                    let (v, e) = evaluate(i, _c);
                    d.extend(e);
                    v
                })
                .collect(),
        ),
        Expr::Object { items, .. } => Value::object(items.iter().map(|i| {
            let (v, e) = evaluate(&i.value, _c);
            d.extend(e);
            let k = match &i.key {
                ObjectKey::Bare { name, .. } => name.clone(),
                ObjectKey::Expr(e) => e.as_literal_text().unwrap_or_default(),
            };
            (k, v)
        })),
        Expr::Parens { inner, .. } => return evaluate(inner, _c),
        Expr::Traversal(t) => {
            d.push(Diagnostic::error("Variables not allowed", "Variables may not be used here.").at(&t.range));
            Value::dynamic()
        }
        Expr::Call(c) => {
            d.push(Diagnostic::error("Function calls not allowed", "no functions").at(&c.range));
            Value::dynamic()
        }
        e => e.as_literal_text().map_or_else(Value::dynamic, Value::string),
    };
    (v, d)
}
