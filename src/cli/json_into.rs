//! `-json-into`: the stream of a command in a file, in addition to the text output.

use std::fs::OpenOptions;
use std::sync::Arc;

use files::io_reason;
use syntax::Diagnostic;
use system::files::OpenOptionsExt as _;
use views::stream::Stream;
use views::ui::Ui;

use crate::outcome::{Failure, Outcome, Status};
use crate::session::Surroundings;

/// Begins the stream.
///
/// # Errors
/// The file cannot be written, or standard output has the stream already.
pub fn begin(path: &str, as_json: bool) -> Result<Arc<Stream>, Failure> {
    if as_json {
        return Err(Failure::usage(
            "Invalid output format",
            "The options -json and -json-into exclude each other: -json replaces the text, and -json-into writes a file \
             beside the text.",
        ));
    }
    let mut options = OpenOptions::new();
    // Diagnostics in the stream can contain sensitive addresses and values, so only the owner can read the file.
    options.write(true).create(true).truncate(true).mode(0o600);
    match options.open(path) {
        Ok(file) => Ok(Arc::new(Stream::begin(Arc::new(Ui::to_file(file))))),
        Err(error) => Err(Failure::new(
            "Failed to open the file for JSON output",
            format!(
                "The file {path} of -json-into cannot be written: {}.",
                io_reason(&error)
            ),
        )),
    }
}

/// Ends the stream of a command with this exit status. If the stream could not be written completely, reports
/// that; the command then fails.
pub fn end(surroundings: &Surroundings, status: Status) -> Status {
    let Some(error) = surroundings.beside.as_ref().and_then(|stream| stream.write_error()) else {
        return status;
    };
    let problem = Diagnostic::error(
        "Failed to write JSON output",
        format!("The file of -json-into is not complete: {}.", io_reason(&error)),
    );
    let failed = surroundings.render(Outcome::from(Failure::from(syntax::Diagnostics::from(problem))));
    if status == 0 { failed } else { status }
}
