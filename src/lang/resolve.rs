//! Resolution of bodies in the JSON syntax, in which only the schema distinguishes blocks from attributes.

use std::borrow::Cow;

use schema::{BlockSchema, Nesting};
use syntax::Diagnostics;
use syntax::ast::{Body, Expr};
use syntax::content::{self, BodySpec};

/// Label of a block in a map.
const KEY: &[&str] = &["key"];
/// Label of a `dynamic` block: the type of the blocks that it generates.
const TYPE: &[&str] = &["type"];

/// Content of a `dynamic` block.
pub(crate) const DYNAMIC: BodySpec<'static> = BodySpec {
    attributes: &[("for_each", true), ("iterator", false), ("labels", false)],
    blocks: &[("content", &[])],
};

/// Turns properties that the schema knows as blocks into blocks. A body in the native syntax is returned unchanged.
pub fn resolve<'b>(body: &'b Body, schema: &BlockSchema, diagnostics: &mut Diagnostics) -> Cow<'b, Body> {
    // Only a JSON body needs a copy.
    if !body.attributes.iter().any(|a| matches!(a.expr, Expr::Json(_))) {
        return Cow::Borrowed(body);
    }
    let labels_of = |name: &str| match schema.blocks.get(name) {
        Some(nested) if nested.nesting == Nesting::Map => Some(KEY),
        Some(_) => Some(&[][..]),
        None if name == "dynamic" && !schema.attributes.contains_key(name) => Some(TYPE),
        None => None,
    };
    let mut body = syntax::json::resolve(body.clone(), labels_of, diagnostics);
    for block in &mut body.blocks {
        if &*block.ty == "dynamic" && !schema.blocks.contains_key("dynamic") {
            let inner = std::mem::replace(&mut block.body, Body::empty(&block.range));
            block.body = content::resolve(inner, DYNAMIC, diagnostics);
        }
    }
    Cow::Owned(body)
}
