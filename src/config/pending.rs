//! Stands in until the type expressions and the evaluation of `lang` are there.

use cty::Value;
use lang::eval::Context;
use syntax::ast::{Expr, ObjectKey};
use syntax::{Diagnostic, Diagnostics};

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
