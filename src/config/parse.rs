//! The parser's entry points in the shapes this room needs.

use std::sync::Arc;

use syntax::ast::{Body, Expr, Traversal};
use syntax::{Diagnostics, Range};

/// Parses a file.
pub(crate) fn file(_name: &str, _bytes: &[u8]) -> (Arc<Body>, Diagnostics) {
    todo!()
}

/// Parses an expression that stands at a place.
pub(crate) fn expression(_text: &str, _at: &Range) -> (Expr, Diagnostics) {
    todo!()
}

/// Parses a traversal that stands at a place.
pub(crate) fn traversal(_text: &str, _at: &Range) -> (Option<Traversal>, Diagnostics) {
    todo!()
}
