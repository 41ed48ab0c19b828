//! The configuration language's syntax: the lexer, the parser, source positions and diagnostics.
//!
//! Parsing cannot fail: [`parse_file`] returns a tree and every problem of the file, each with its range. Where an
//! expression could not be parsed, the tree has [`ast::Expr::Invalid`], so that later steps can continue and report
//! more.
//!
//! Where to begin: [`source`] (positions), [`diag`] (the diagnostics of all crates), [`ast`] (the
//! tree), then [`token`], [`lexer`] and [`parser`]. [`mod@format`] writes the tokens back in their canonical form;
//! [`mod@write`] writes values. [`json`] reads the JSON syntax into the same tree. [`content`] reads a body against a
//! list of expected attributes and blocks. [`edit`] holds the corrections that diagnostics suggest.

pub mod ast;
pub mod content;
pub mod diag;
pub mod edit;
pub mod format;
pub mod json;
pub mod lexer;
pub mod parser;
pub mod source;
pub mod suggest;
pub mod token;
pub mod write;

pub use diag::{Diagnostic, DiagnosticParts, Diagnostics, Severity};
pub use edit::Edit;
pub use parser::{parse_expression, parse_file, parse_template, parse_traversal};
pub use source::{Pos, Range, SourceMap};
