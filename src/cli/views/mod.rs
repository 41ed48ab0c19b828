//! What people see: problems, plans, states, progress.

pub mod completion;
pub mod diagnostics;
pub mod diff;
pub mod downloads;
#[cfg(test)]
mod goldens;
pub mod graph;
pub mod graph_page;
pub mod live;
pub mod plan;
pub mod progress;
pub mod query;
pub mod reporter;
pub mod snippet;
pub mod stream;
mod summary;
pub mod tests;
pub mod tree;
pub mod unified_diff;
pub mod wrap;
