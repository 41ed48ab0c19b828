//! Reports of suites that are written to files, or after the totals.

use std::path::Path;

use testing::coverage::Item;
use views::suite::{Machine, coverage_text, document, lcov};

use super::Arguments;
use crate::session::{Session, Status};

/// Writes a report to a file. Returns the exit status.
pub(super) fn write(session: &Session, path: &str, what: &str, text: impl AsRef<[u8]>) -> Status {
    match std::fs::write(Path::new(path), text) {
        Ok(()) => 0,
        Err(error) => session.fail(
            format!("Failed to write the {what}"),
            format!("The file {path} cannot be written: {}.", files::io_reason(&error)),
        ),
    }
}

/// Writes what of a module the runs have come upon, in the forms that are asked for. Returns the exit status.
pub(super) fn coverage(session: &Session, arguments: &Arguments, items: &[Item]) -> Status {
    let mut status = 0;
    if let Some(path) = &arguments.coverage_json {
        let text = cty::json::to_text(&document(items), Some(2));
        status = status.max(write(session, path, "coverage", format!("{text}\n")));
    }
    if let Some(path) = &arguments.coverage_lcov {
        status = status.max(write(session, path, "coverage", lcov(items)));
    }
    if arguments.coverage {
        match &session.stream {
            Some(stream) => Machine::coverage(stream, document(items)),
            None => session.ui.out(coverage_text(items, session.ui.style())),
        }
        session.ui.flush();
    }
    status
}
