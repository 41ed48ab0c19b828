//! Texts of diagnostics: the summaries of operations on states, and the request that a detail is about.

use monoform_sdk::{Diagnostic, Diagnostics};

pub const READ: &str = "Error reading the state";
pub const WRITE: &str = "Error writing the state";
pub const DELETE: &str = "Error deleting the state";
pub const LIST: &str = "Failed to list workspaces";
pub const LOCK: &str = "Error acquiring the state lock";
pub const UNLOCK: &str = "Cannot release the state lock";

/// The request that a diagnostic is about: the summary of the diagnostic, and the operation ("Reading the object …").
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    pub summary: &'a str,
    pub what: &'a str,
}

#[must_use]
pub fn problem(summary: &str, detail: impl Into<String>) -> Diagnostics {
    Diagnostic::error(summary, detail.into()).into()
}

/// Joins the details of diagnostics into one text, for another error that they have caused.
#[must_use]
pub fn details(problems: &Diagnostics) -> String {
    let details: Vec<&str> = problems.0.iter().map(|problem| problem.detail.as_str()).collect();
    details.join(" ")
}
