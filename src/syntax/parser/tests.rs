//! Tests of the parser: trees, errors, arbitrary text, and real files.

mod bulk;
mod dump;
mod errors;
mod soup;
mod trees;
