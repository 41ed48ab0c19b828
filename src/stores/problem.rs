//! Conversion of state errors to diagnostics, and the name of the file for a state that cannot be written.

use syntax::{Diagnostic, Diagnostics};

/// File in the working directory for a state that cannot be written to its store.
pub const ERRORED_STATE: &str = "errored.tfstate";

/// Converts a state error to diagnostics.
#[must_use]
pub fn problem(error: &state::StateError) -> Diagnostics {
    Diagnostic::error(error.summary(), error.to_string()).into()
}
