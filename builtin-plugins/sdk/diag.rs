//! Diagnostics of a plugin: errors and warnings, with the attribute they are about.

use cty::Path;

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The operation has failed, or would fail during apply.
    Error,
    /// The operation goes on, but the user should know.
    Warning,
}

/// One message: a short fixed summary, a detail with advice, and optionally the attribute concerned.
///
/// ```
/// use monoform_sdk::{Diagnostic, Diagnostics, Result};
///
/// fn port(text: &str) -> Result<u16> {
///     let number = text.parse().map_err(|_| {
///         Diagnostic::error("Invalid Port", format!("{text:?} is no number from 0 to 65535.")).at_attribute("port")
///     })?;
///     Ok(number)
/// }
///
/// let mut found: Diagnostics = port("x").unwrap_err();
/// found.push(Diagnostic::warning("Deprecated", "Ports will have names."));
/// assert!(found.has_errors() && found.0.len() == 2);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// Severity of a diagnostic.
    pub severity: Severity,
    /// One line, the same for every case of this problem.
    pub summary: String,
    /// The problem in full sentences: the object concerned, and how to solve it.
    pub detail: String,
    /// Path of the attribute concerned, if the diagnostic is about one.
    pub attribute: Option<Path>,
}

impl Diagnostic {
    /// Creates an error that concerns no particular attribute.
    pub fn error(summary: impl Into<String>, detail: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            summary: summary.into(),
            detail: detail.into(),
            attribute: None,
        }
    }

    /// Creates a warning that concerns no particular attribute.
    pub fn warning(summary: impl Into<String>, detail: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(summary, detail)
        }
    }

    /// Sets the attribute concerned, by its path.
    #[must_use]
    pub fn at(mut self, path: Path) -> Diagnostic {
        self.attribute = Some(path);
        self
    }

    /// Sets the attribute concerned, by its name in the outermost block.
    #[must_use]
    pub fn at_attribute(self, name: &str) -> Diagnostic {
        self.at(Path::root().attribute(name))
    }
}

/// Diagnostics in the order they were found. As the error of a [`Result`] they hold at least one error, unless the error comes from
/// [`ConfigureContext::defer`](crate::ConfigureContext::defer).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Creates an empty list.
    #[must_use]
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// Adds a diagnostic at the end.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Adds all diagnostics of another list at the end.
    pub fn append(&mut self, other: Diagnostics) {
        self.0.extend(other.0);
    }

    /// Returns true if at least one diagnostic is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|d| d.severity == Severity::Error)
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Diagnostics {
        Diagnostics(vec![diagnostic])
    }
}

/// The result of a plugin's operation, or the diagnostics that explain its failure.
pub type Result<T> = std::result::Result<T, Diagnostics>;
