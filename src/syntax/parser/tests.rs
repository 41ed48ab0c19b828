//! Trees, errors, robustness, and real files.

mod bulk;
mod dump;
mod errors;
mod soup;
mod trees;
