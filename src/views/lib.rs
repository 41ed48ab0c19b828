//! Presentation of plans, states, events and diagnostics.
//!
//! A view is a function from the engine's data to text or to a JSON document ([`json`]), or a subscriber of the engine's events
//! that shows progress while a command runs ([`progress`] and [`live`] as text, [`stream`] as machine-readable output). [`ui`]
//! has the two streams of the process with their colours and widths, questions, and the live area of a terminal. All text for
//! people is written there, and control characters in it lose their effect ([`terminal`]). Begin reading with `reporter.rs` and
//! `ui.rs`.
//!
//! Golden files hold the output of the views: `goldens`, `diff/tests` and `json/documents`.

pub mod area;
mod brief;
pub mod command_line;
pub mod completion;
pub mod console;
pub mod diagnostics;
pub mod diff;
#[cfg(test)]
mod goldens;
pub mod graph;
pub mod graph_page;
pub mod json;
pub mod junit;
mod lanes;
pub mod live;
pub mod markdown;
pub mod plan;
pub mod process;
pub mod progress;
pub mod prompt;
pub mod query;
mod record;
pub mod reporter;
pub mod snippet;
pub mod status;
pub mod stream;
mod style;
pub mod suite;
mod summary;
pub mod terminal;
pub mod tree;
pub mod ui;
pub mod unified_diff;
pub mod unread;
pub mod verb;
mod words;
pub mod wrap;
