//! What a schema says about sensitivity and about what may be stored, applied to objects.

use cty::{Path, Value};

use crate::schema::BlockSchema;

/// The paths of the sensitive attributes of an object that are not null, sets as a whole.
#[must_use]
pub fn sensitive_paths(schema: &BlockSchema, object: &Value) -> Vec<Path> {
    let _ = (schema, object);
    todo!()
}

/// The object with its sensitive attributes marked.
#[must_use]
pub fn mark_sensitive(schema: &BlockSchema, object: Value) -> Value {
    let _ = schema;
    object
}

/// The paths of ephemeral values outside write-only attributes: each is an error where objects are stored.
#[must_use]
pub fn misplaced_ephemeral(schema: &BlockSchema, object: &Value) -> Vec<Path> {
    let _ = (schema, object);
    todo!()
}

/// The object with its write-only attributes null.
#[must_use]
pub fn without_write_only(schema: &BlockSchema, object: &Value) -> Value {
    let _ = schema;
    object.clone()
}
