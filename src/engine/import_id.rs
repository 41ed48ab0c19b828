//! Import IDs and identities in import blocks.

use std::sync::Arc;

use addrs::program::Mode;
use cty::{Type, Value};
use schema::Schema;
use syntax::{Diagnostic, Diagnostics, Range};

pub(crate) const INVALID_ID: &str = "Invalid import id argument";

/// Returns the import ID for the value of an `id` argument; `None` if the value is unknown. Marks are dropped, because the ID is only sent
/// to the provider. The caller must not display a sensitive ID.
pub(crate) fn identifier(value: Value, range: &Range) -> Result<Option<Arc<str>>, Diagnostics> {
    let wrong = |detail: &str| -> Diagnostics { Diagnostic::error(INVALID_ID, detail).at(range).into() };
    let (value, marks) = value.unmark_deep();
    if marks.is_ephemeral() {
        return Err(wrong(
            "The import ID is ephemeral, so its value at apply could differ from the planned one. Use another value.",
        ));
    }
    // Terraform accepts a sensitive ID.
    if marks.is_sensitive() && Mode::current().is_opentofu() {
        return Err(wrong("The import ID cannot be sensitive, because the plan shows it."));
    }
    let value = cty::convert(&value, &Type::String)
        .map_err(|e| wrong(&format!("The import ID value is unsuitable: {}.", e.message)))?;
    match value.as_arc_str() {
        _ if !value.is_known() => Ok(None),
        Some(id) if !id.is_empty() => Ok(Some(id.clone())),
        Some(_) => Err(wrong("The import ID is an empty string.")),
        None => Err(wrong("The import ID cannot be null.")),
    }
}

pub(crate) const INVALID_IDENTITY: &str = "Invalid import identity argument";

/// Returns the identity for the value of an `identity` argument; `None` if it is not wholly known. Marks are dropped,
/// because the identity is sent to the provider only.
pub(crate) fn import_identity(
    value: Value,
    schema: &Schema,
    ty: &str,
    range: &Range,
) -> Result<Option<Value>, Diagnostics> {
    let wrong = |summary: &str, detail: String| -> Diagnostics { Diagnostic::error(summary, detail).at(range).into() };
    let Some(identity) = &schema.identity else {
        let detail = format!(
            "Objects of the type \"{ty}\" have no identity. Name the object to import with the argument \"id\", or select a \
             version of the provider in which they have one."
        );
        return Err(wrong(INVALID_IDENTITY, detail));
    };
    let (value, _) = value.unmark_deep();
    let value = cty::convert(&value, &identity.import_type()).map_err(|e| {
        wrong(
            "Incorrect value type",
            format!("The identity does not fit the type \"{ty}\": {}.", e.message),
        )
    })?;
    if value.is_null() {
        return Err(wrong(INVALID_IDENTITY, "The import identity cannot be null.".into()));
    }
    Ok(value.is_wholly_known().then_some(value))
}
