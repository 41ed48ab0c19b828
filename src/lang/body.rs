//! From block body to object, under a schema.

use cty::{Path, Value};
use syntax::ast::Body;
use syntax::{Diagnostics, Range};

use crate::eval::Context;
use crate::schema::BlockSchema;

/// The object a body forms under a schema: attributes evaluated and converted, nested blocks gathered, `dynamic` blocks
/// expanded. The body holds only what belongs to the schema: meta-arguments have been taken out of it. Where there are
/// errors, the part concerned is unknown; the value always has the schema's implied type.
#[must_use]
pub fn decode_body(body: &Body, schema: &BlockSchema, context: Context<'_>) -> (Value, Diagnostics) {
    let _ = (body, schema, context);
    todo!()
}

/// Where in a body the part of its object at `path` is written: the nearest there is.
#[must_use]
pub fn path_range(body: &Body, schema: &BlockSchema, path: &Path) -> Range {
    let _ = (schema, path);
    body.end.clone()
}
