//! Queries: the existing objects that `list` blocks find, and the arguments of these blocks.

use addrs::AbsResourceInstance;
use cty::{Type, Value};
use syntax::{Diagnostic, Range};

/// Objects that one instance of a `list` block has found.
#[derive(Clone, Debug)]
pub struct QueryInstance {
    /// Address of the instance: `list.TYPE.NAME`, with a key if the block has `count` or `for_each`.
    pub address: AbsResourceInstance,
    /// Version of the identity schema of the listed objects.
    pub identity_version: u64,
    /// Objects, in the order in which the provider returned them.
    pub results: Vec<QueryResult>,
}

/// An object that a query has found.
#[derive(Clone, Debug)]
pub struct QueryResult {
    /// Name that the provider has chosen for display.
    pub display_name: String,
    /// Identity of the object.
    pub identity: Value,
    /// The object itself. Null if it was not requested, or the provider did not return it.
    pub object: Value,
    /// Generated configuration of the object, if it was requested.
    pub generated: Option<GeneratedImport>,
}

/// The generated configuration of one object, as text without a line break at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedImport {
    /// Text of the `resource` block.
    pub resource: String,
    /// Text of the `import` block.
    pub import: String,
}

/// Converts the value of an argument of a list block to this type; `None` if it is unknown. Null is an error.
pub(crate) fn list_argument(value: Value, name: &str, ty: &Type, range: &Range) -> Result<Option<Value>, Diagnostic> {
    let invalid = |what: &str| {
        let detail = format!("The argument \"{name}\" {what}.");
        Diagnostic::error(format!("Invalid \"{name}\" argument"), detail).at(range)
    };
    let (value, marks) = value.unmark_deep();
    if marks.is_sensitive() {
        return Err(invalid("cannot be sensitive, since its effect is visible"));
    }
    let value = cty::convert(&value, ty).map_err(|e| invalid(&format!("is not of the right type: {}", e.message)))?;
    if value.is_null() {
        return Err(invalid("cannot be null: leave it out for its default"));
    }
    Ok(value.is_known().then_some(value))
}

/// Converts the value of a `limit` argument, which must be a whole number that is not negative.
pub(crate) fn limit_of(value: &Value, range: &Range) -> Result<u64, Diagnostic> {
    let limit = value.as_number().and_then(cty::Number::to_i64);
    limit.and_then(|limit| u64::try_from(limit).ok()).ok_or_else(|| {
        let detail = "The argument \"limit\" must be a whole number that is not negative.";
        Diagnostic::error("Invalid limit argument", detail).at(range)
    })
}
