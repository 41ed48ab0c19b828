//! What a plugin tells the person: errors and warnings, with the attribute they are about.

use cty::Path;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The operation failed, or would.
    Error,
    /// The operation goes on, but the person should know.
    Warning,
}

/// One message: a short fixed summary, a detail that says what to do, and perhaps the attribute concerned.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// One line, the same for every case of this problem.
    pub summary: String,
    /// What exactly is wrong, and what to do.
    pub detail: String,
    /// The attribute concerned.
    pub attribute: Option<Path>,
}

impl Diagnostic {
    /// An error about the whole.
    pub fn error(summary: impl Into<String>, detail: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            summary: summary.into(),
            detail: detail.into(),
            attribute: None,
        }
    }

    /// A warning about the whole.
    pub fn warning(summary: impl Into<String>, detail: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(summary, detail)
        }
    }

    /// The same message, about the attribute at this path.
    #[must_use]
    pub fn at(mut self, path: Path) -> Diagnostic {
        self.attribute = Some(path);
        self
    }

    /// The same message, about this attribute of the outermost block.
    #[must_use]
    pub fn at_attribute(self, name: &str) -> Diagnostic {
        self.at(Path::root().attribute(name))
    }
}

/// Messages in the order they were found. As the error of a `Result` it holds at least one error.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// No messages.
    #[must_use]
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// Adds a message.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Adds several.
    pub fn append(&mut self, other: Diagnostics) {
        self.0.extend(other.0);
    }

    /// Whether one of them is an error.
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

/// What an operation of a plugin gives: its result, or why there is none.
pub type Result<T> = std::result::Result<T, Diagnostics>;
