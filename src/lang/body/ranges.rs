//! Source ranges of parts of an object.

use cty::{Path, Step};
use syntax::ast::{Block, Body, Expr, ObjectKey};
use syntax::{Diagnostics, Range};

use schema::{BlockSchema, Nesting};

/// Returns the nearest range in a body for the part of its object at `path`. For a part that is not written, it is the
/// end of the body.
#[must_use]
pub fn path_range(body: &Body, schema: &BlockSchema, path: &Path) -> Range {
    in_body(body, schema, &path.0)
}

/// Returns the nearest range in an expression for the part of its value at `path`.
#[must_use]
pub fn expression_range<'e>(expr: &'e Expr, path: &Path) -> &'e Range {
    in_expr(expr, &path.0)
}

fn in_body(body: &Body, schema: &BlockSchema, steps: &[Step]) -> Range {
    let Some((Step::Attribute(name), rest)) = steps.split_first() else {
        return body.end.clone();
    };
    if let Some(attribute) = body.attribute(name) {
        return in_expr(&attribute.expr, rest).clone();
    }
    // The problems are dropped, because decoding reports them.
    let body = &*super::resolve(body, schema, &mut Diagnostics::new());
    let nothing = BlockSchema::default();
    let (inner, nesting) = schema
        .blocks
        .get(name)
        .map_or((&nothing, Nesting::List), |nested| (&nested.block, nested.nesting));
    let blocks: Vec<&Block> = body.blocks.iter().filter(|b| block_type(b) == &**name).collect();
    let (block, rest) = match (nesting, rest) {
        (Nesting::Single | Nesting::Group, rest) => (blocks.first(), rest),
        (_, [Step::Index(key), rest @ ..]) => {
            let found = match (key.as_str(), key.as_number().and_then(cty::Number::to_usize)) {
                (Some(key), _) => blocks
                    .iter()
                    .find(|b| b.labels.first().is_some_and(|l| &*l.text == key)),
                // A dynamic block makes an unknown number of blocks, so positions are unknown.
                (_, Some(i)) if blocks.iter().all(|b| &*b.ty != "dynamic") => blocks.get(i),
                _ => None,
            };
            // An element of a set has no position, but if there is only one block, it must be that one.
            (
                found.or(if let [only] = blocks.as_slice() {
                    Some(only)
                } else {
                    None
                }),
                rest,
            )
        }
        (_, rest) => (blocks.first(), rest),
    };
    match block {
        None => body.end.clone(),
        Some(block) if rest.is_empty() => block.header.clone(),
        Some(block) => match content(block) {
            Some(content) => in_body(content, inner, rest),
            None => block.header.clone(),
        },
    }
}

/// Returns the type of a block, or of the blocks that a dynamic block makes.
fn block_type(block: &Block) -> &str {
    match (&*block.ty, block.labels.first()) {
        ("dynamic", Some(label)) => &label.text,
        (ty, _) => ty,
    }
}

fn content(block: &Block) -> Option<&Body> {
    if &*block.ty == "dynamic" {
        block.body.blocks.iter().find(|b| &*b.ty == "content").map(|b| &b.body)
    } else {
        Some(&block.body)
    }
}

/// Descends into an expression as far as its constructors are literal.
fn in_expr<'e>(expr: &'e Expr, steps: &[Step]) -> &'e Range {
    let Some((step, rest)) = steps.split_first() else {
        return expr.range();
    };
    let inner = match (expr, step) {
        (Expr::Parens { inner, .. }, _) => return in_expr(inner, steps),
        (Expr::Json(json), _) => return in_expr(json.expr(), steps),
        (Expr::Object { items, .. }, Step::Attribute(name)) => item(items, name),
        (Expr::Object { items, .. }, Step::Index(key)) => key.as_str().and_then(|k| item(items, k)),
        (Expr::Tuple { items, .. }, Step::Index(key)) => key
            .as_number()
            .and_then(cty::Number::to_usize)
            .and_then(|i| items.get(i)),
        _ => None,
    };
    inner.map_or(expr.range(), |e| in_expr(e, rest))
}

fn item<'e>(items: &'e [syntax::ast::ObjectItem], name: &str) -> Option<&'e Expr> {
    items
        .iter()
        // The last of duplicate keys is the effective one.
        .rev()
        .find(|item| match &item.key {
            ObjectKey::Bare { name: key, .. } => &**key == name,
            ObjectKey::Expr(key) => key.as_literal_text().is_some_and(|k| &*k == name),
        })
        .map(|item| &item.value)
}
