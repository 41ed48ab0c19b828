//! States that cannot be read or written: the error, and the file that a state goes to instead.

use syntax::{Diagnostic, Diagnostics};

/// The file in the working directory for a state that cannot be written to its store.
pub const ERRORED_STATE: &str = "errored.tfstate";

/// A problem with a state as a diagnostic.
#[must_use]
pub fn problem(error: &state::StateError) -> Diagnostics {
    Diagnostic::error(error.summary(), error.to_string()).into()
}
