//! The import ID of an import block.

use std::sync::Arc;

use cty::{Type, Value};
use syntax::diag::Extra;
use syntax::{Diagnostic, Diagnostics, Range};

pub(crate) const INVALID_ID: &str = "Invalid import id argument";

/// The import ID for the value of an `id` argument; none if that is unknown.
pub(crate) fn identifier(value: Value, range: &Range) -> Result<Option<Arc<str>>, Diagnostics> {
    let wrong = |extra: Extra, detail: &str| -> Diagnostics {
        let mut diagnostic = Diagnostic::error(INVALID_ID, detail).at(range);
        diagnostic.extra = extra;
        diagnostic.into()
    };
    let (value, marks) = value.unmark_deep();
    if marks.is_sensitive() || marks.is_ephemeral() {
        return Err(wrong(
            Extra::CausedBySensitive,
            "The import ID cannot be sensitive or ephemeral.",
        ));
    }
    let value = cty::convert(&value, &Type::String).map_err(|e| {
        wrong(
            Extra::None,
            &format!("The import ID value is unsuitable: {}.", e.message),
        )
    })?;
    match value.as_arc_str() {
        _ if !value.is_known() => Ok(None),
        Some(id) if !id.is_empty() => Ok(Some(id.clone())),
        Some(_) => Err(wrong(Extra::None, "The import ID is an empty string.")),
        None => Err(wrong(Extra::None, "The import ID cannot be null.")),
    }
}
