//! The result of a command: an exit status, and what the dispatcher shows of it.
//!
//! Nothing below the dispatcher renders problems and returns a status. A helper that fails returns a [`Failure`], which `?` carries up
//! with the sources that its problems refer to; a command returns an [`Outcome`]. What must be seen while a command still runs goes
//! through `Surroundings::show_now`: events of an operation, and warnings before a question or before something that takes long.

use syntax::{Diagnostic, Diagnostics, SourceMap};

use crate::args::UsageError;

/// The exit status of a command.
pub type Status = u8;

/// One thing to show.
#[derive(Debug)]
pub enum Part {
    /// Problems that are shown together, with the sources that they refer to.
    Problems(Diagnostics, SourceMap),
    /// Text for people, with its line breaks.
    Text(String),
    /// What programs read, written as it is.
    Exact(String),
    /// Text for people on standard error.
    Error(String),
}

impl Part {
    fn problems(problems: impl Into<Diagnostics>, sources: &SourceMap) -> Part {
        Part::Problems(problems.into(), sources.clone())
    }
}

/// The result of a command that did its work, well or not.
#[derive(Debug, Default)]
#[must_use = "the dispatcher shows it"]
pub struct Outcome {
    pub status: Status,
    /// Shown in this order.
    pub parts: Vec<Part>,
}

impl Outcome {
    pub fn success() -> Outcome {
        Outcome::default()
    }

    /// Success, with text for people.
    pub fn text(text: impl Into<String>) -> Outcome {
        Outcome::success().and_text(text)
    }

    /// Success, with a line for people.
    pub fn line(line: impl Into<String>) -> Outcome {
        Outcome::success().and_line(line)
    }

    /// Success, with a document for programs.
    pub fn document(document: &serde_json::Value) -> Outcome {
        Outcome::exact(cty::json::to_text(document, Some(2)) + "\n")
    }

    /// Success, with output that programs read as it is.
    pub fn exact(text: impl Into<String>) -> Outcome {
        Outcome::success().and(Part::Exact(text.into()))
    }

    pub fn and(mut self, part: Part) -> Outcome {
        self.parts.push(part);
        self
    }

    pub fn and_text(self, text: impl Into<String>) -> Outcome {
        self.and(Part::Text(text.into()))
    }

    pub fn and_line(self, line: impl Into<String>) -> Outcome {
        self.and_text(line.into() + "\n")
    }

    /// Adds problems. An error among them makes the status 1.
    pub fn and_problems(mut self, problems: impl Into<Diagnostics>, sources: &SourceMap) -> Outcome {
        let problems = problems.into();
        if problems.has_errors() {
            self.status = 1;
        }
        self.and(Part::problems(problems, sources))
    }

    /// Adds what another outcome shows.
    pub fn and_outcome(mut self, other: Outcome) -> Outcome {
        self.status = self.status.max(other.status);
        self.parts.extend(other.parts);
        self
    }

    /// Adds a failure, which makes the status 1.
    pub fn and_failure(mut self, failure: impl Into<Failure>) -> Outcome {
        self.parts.extend(failure.into().parts);
        self.with_status(1)
    }

    /// All problems.
    #[must_use]
    pub fn problems(&self) -> Diagnostics {
        let mut all = Diagnostics::new();
        for part in &self.parts {
            if let Part::Problems(problems, _) = part {
                all.extend(problems.clone());
            }
        }
        all
    }

    /// Adds problems that refer to no file.
    pub fn and_unplaced(self, problems: impl Into<Diagnostics>) -> Outcome {
        self.and_problems(problems, &SourceMap::default())
    }

    /// The same with another status.
    pub fn with_status(mut self, status: Status) -> Outcome {
        self.status = status;
        self
    }
}

impl From<Status> for Outcome {
    fn from(status: Status) -> Outcome {
        Outcome::success().with_status(status)
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Outcome {
        Outcome {
            status: 1,
            parts: failure.parts,
        }
    }
}

/// The reason why a command, or a part of one, did not do its work.
#[derive(Debug)]
#[must_use = "the dispatcher shows it"]
pub struct Failure {
    parts: Vec<Part>,
    /// The arguments of the command are wrong, so that its help is pointed to.
    pub is_usage: bool,
}

impl Failure {
    /// An error that has no place in a file.
    pub fn new(summary: impl Into<String>, detail: impl Into<String>) -> Failure {
        Diagnostic::error(summary, detail).into()
    }

    /// Wrong arguments.
    pub fn usage(summary: impl Into<String>, detail: impl Into<String>) -> Failure {
        UsageError::new(summary, detail).into()
    }

    /// A flag that cannot be understood.
    pub fn flag(detail: impl Into<String>) -> Failure {
        UsageError::flag(detail).into()
    }

    /// Problems with places in these sources.
    pub fn within(problems: impl Into<Diagnostics>, sources: &SourceMap) -> Failure {
        Failure::of(Part::problems(problems, sources))
    }

    /// Text on standard error that does not look like a diagnostic.
    pub fn text(text: impl Into<String>) -> Failure {
        Failure::of(Part::Error(text.into()))
    }

    fn of(part: Part) -> Failure {
        Failure {
            parts: vec![part],
            is_usage: false,
        }
    }

    /// Adds another failure, which is shown after this one.
    pub fn and(mut self, other: Failure) -> Failure {
        self.parts.extend(other.parts);
        self
    }
}

impl From<Diagnostics> for Failure {
    fn from(problems: Diagnostics) -> Failure {
        Failure::within(problems, &SourceMap::default())
    }
}

impl From<Diagnostic> for Failure {
    fn from(problem: Diagnostic) -> Failure {
        Diagnostics::from(problem).into()
    }
}

impl From<UsageError> for Failure {
    fn from(error: UsageError) -> Failure {
        Failure {
            is_usage: true,
            ..Failure::new(error.summary, error.detail)
        }
    }
}

/// Results whose problems get the sources that they refer to.
pub trait Within<T> {
    fn within(self, sources: &SourceMap) -> Result<T, Failure>;
}

impl<T, P: Into<Diagnostics>> Within<T> for Result<T, P> {
    fn within(self, sources: &SourceMap) -> Result<T, Failure> {
        self.map_err(|problems| Failure::within(problems, sources))
    }
}
