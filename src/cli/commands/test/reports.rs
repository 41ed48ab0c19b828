//! Reports of test suites and coverage, written to files or after the totals.

use std::path::Path;

use testing::coverage::Item;
use views::suite::{Machine, coverage_text, document, lcov};

use super::Arguments;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

pub(super) fn write(path: &str, what: &str, text: impl AsRef<[u8]>) -> Outcome {
    match std::fs::write(Path::new(path), text) {
        Ok(()) => Outcome::success(),
        Err(error) => Failure::new(
            format!("Failed to write the {what}"),
            format!("The file {path} cannot be written: {}.", files::io_reason(&error)),
        )
        .into(),
    }
}

/// Writes the coverage of a module, in the requested forms.
pub(super) fn coverage(session: &Session, arguments: &Arguments, items: &[Item]) -> Outcome {
    let mut outcome = Outcome::success();
    if let Some(path) = &arguments.coverage_json {
        let text = cty::json::to_text(&document(items), Some(2));
        outcome = outcome.and_outcome(write(path, "coverage", format!("{text}\n")));
    }
    if let Some(path) = &arguments.coverage_lcov {
        outcome = outcome.and_outcome(write(path, "coverage", lcov(items)));
    }
    if arguments.coverage {
        session
            .streams()
            .for_each(|stream| Machine::coverage(stream, document(items)));
        if session.stream.is_none() {
            outcome = outcome.and_text(coverage_text(items, session.ui.style()));
        }
    }
    outcome
}
