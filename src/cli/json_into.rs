//! `-json-into`: JSON of a command in a file, beside its text. It is what `-json` prints: the stream of an operation, or a document.
//! For commands without such output, it is a stream of their messages and diagnostics.

use std::fs::OpenOptions;
use std::sync::Arc;

use files::io_reason;
use syntax::Diagnostic;
use system::files::OpenOptionsExt as _;
use views::stream::Stream;
use views::ui::Ui;

use crate::outcome::{Failure, Outcome, Status};
use crate::session::Surroundings;

/// Commands whose `-json` is a document.
const DOCUMENTS: &[&str] = &[
    "output",
    "show",
    "state list",
    "state show",
    "validate",
    "workspace list",
];

/// Opens the file of a command, and begins its stream if there is one. `streams` is true if the command has a stream of its own.
///
/// # Errors
/// The file cannot be written, or standard output has the JSON already.
pub fn begin(
    surroundings: &mut Surroundings,
    (command, streams): (&str, bool),
    path: &str,
    as_json: bool,
) -> Result<(), Failure> {
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
        Ok(file) => {
            let file = Arc::new(Ui::to_file(file));
            match DOCUMENTS.contains(&command) {
                true => surroundings.document = Some(file),
                false => {
                    surroundings.console.beside = Some(Arc::new(Stream::begin(file)));
                    surroundings.texts_beside = !streams;
                }
            }
            Ok(())
        }
        Err(error) => Err(Failure::new(
            "Failed to open the file for JSON output",
            format!(
                "The file {path} of -json-into cannot be written: {}.",
                io_reason(&error)
            ),
        )),
    }
}

/// Ends the output of a command with this status. A file that is not whole is an error.
pub fn end(surroundings: &Surroundings, status: Status) -> Status {
    let of_stream = surroundings.beside.as_ref().and_then(|stream| stream.write_error());
    let of_document = || surroundings.document.as_ref().and_then(|file| file.write_error());
    let Some(error) = of_stream.or_else(of_document) else {
        return status;
    };
    let problem = Diagnostic::error(
        "Failed to write JSON output",
        format!("The file of -json-into is not complete: {}.", io_reason(&error)),
    );
    let failed = surroundings.render(Outcome::from(Failure::from(syntax::Diagnostics::from(problem))));
    if status == 0 { failed } else { status }
}
