//! Entry points of the parser, in the forms that this crate needs.

use std::sync::Arc;

use syntax::ast::{Body, Expr, Traversal};
use syntax::{Diagnostics, Pos, Range};

/// Parses a file.
pub(crate) fn file(name: &str, bytes: &[u8]) -> (Arc<Body>, Diagnostics) {
    syntax::parse_file(name, bytes)
}

/// Parses an expression from a separate text; `what` is used as the file name.
pub(crate) fn expression(text: &str, what: &str) -> (Expr, Diagnostics) {
    syntax::parse_expression(what, text, Pos::default())
}

/// Parses a traversal whose text begins at the start of a range.
pub(crate) fn traversal(text: &str, at: &Range) -> Result<Traversal, Diagnostics> {
    syntax::parse_traversal(&at.file, text, at.start)
}
