//! Results of commands: exit status, and the output that the dispatcher shows.
//!
//! Nothing below the dispatcher renders diagnostics. A function that fails returns a [`Failure`], which `?` passes on with the
//! sources of its diagnostics; a command returns an [`Outcome`]. Output that must be visible while a command runs goes through
//! `Surroundings::show_now`: events of an operation, and warnings before a question or before a long wait.

use syntax::{Diagnostic, Diagnostics, SourceMap};

use crate::args::UsageError;

/// Exit status of a command.
pub type Status = u8;

/// Part of a command's output.
#[derive(Debug)]
pub enum Part {
    /// Diagnostics that are shown together, with their sources.
    Problems(Diagnostics, SourceMap),
    /// Text for people, with its line breaks.
    Text(String),
    /// Output for programs, written unchanged.
    Exact(String),
    /// Text for people on standard error.
    Error(String),
    /// Document for the file of `-json-into`.
    Document(String),
}

impl Part {
    fn problems(problems: impl Into<Diagnostics>, sources: &SourceMap) -> Part {
        Part::Problems(problems.into(), sources.clone())
    }
}

/// Result of a command that ran to its end, successfully or not.
#[derive(Debug, Default)]
#[must_use = "the dispatcher shows it"]
pub struct Outcome {
    pub status: Status,
    /// Output, in this order.
    pub parts: Vec<Part>,
}

impl Outcome {
    pub fn success() -> Outcome {
        Outcome::default()
    }

    /// Returns success with text for people.
    pub fn text(text: impl Into<String>) -> Outcome {
        Outcome::success().and_text(text)
    }

    /// Returns success with a line for people.
    pub fn line(line: impl Into<String>) -> Outcome {
        Outcome::success().and_line(line)
    }

    pub fn document(document: &serde_json::Value) -> Outcome {
        Outcome::exact(cty::json::to_text(document, Some(2)) + "\n")
    }

    /// Returns success with output for programs.
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

    /// Adds diagnostics. An error among them sets the status to 1.
    pub fn and_problems(mut self, problems: impl Into<Diagnostics>, sources: &SourceMap) -> Outcome {
        let problems = problems.into();
        if problems.has_errors() {
            self.status = 1;
        }
        self.and(Part::problems(problems, sources))
    }

    /// Adds the output of another outcome. The higher one of both statuses becomes the status.
    pub fn and_outcome(mut self, other: Outcome) -> Outcome {
        self.status = self.status.max(other.status);
        self.parts.extend(other.parts);
        self
    }

    /// Adds a failure, which sets the status to 1.
    pub fn and_failure(mut self, failure: impl Into<Failure>) -> Outcome {
        self.parts.extend(failure.into().parts);
        self.with_status(1)
    }

    /// Returns the diagnostics of all parts.
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

    /// Adds diagnostics without sources.
    pub fn and_unplaced(self, problems: impl Into<Diagnostics>) -> Outcome {
        self.and_problems(problems, &SourceMap::default())
    }

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

/// Failure of a command or of a part of one.
#[derive(Debug)]
#[must_use = "the dispatcher shows it"]
pub struct Failure {
    parts: Vec<Part>,
    /// True if the arguments are wrong, so that the command's help is mentioned.
    pub is_usage: bool,
}

impl Failure {
    /// Returns a failure with one error that has no source range.
    pub fn new(summary: impl Into<String>, detail: impl Into<String>) -> Failure {
        Diagnostic::error(summary, detail).into()
    }

    /// Returns a failure about wrong arguments.
    pub fn usage(summary: impl Into<String>, detail: impl Into<String>) -> Failure {
        UsageError::new(summary, detail).into()
    }

    /// Returns an error about a flag that cannot be parsed.
    pub fn flag(detail: impl Into<String>) -> Failure {
        UsageError::flag(detail).into()
    }

    /// Returns a failure with diagnostics whose source ranges are in these sources.
    pub fn within(problems: impl Into<Diagnostics>, sources: &SourceMap) -> Failure {
        Failure::from_part(Part::problems(problems, sources))
    }

    /// Returns a failure that is printed on standard error without the form of a diagnostic.
    pub fn text(text: impl Into<String>) -> Failure {
        Failure::from_part(Part::Error(text.into()))
    }

    fn from_part(part: Part) -> Failure {
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

/// Adds the sources of diagnostics to the error of a result.
pub trait Within<T> {
    fn within(self, sources: &SourceMap) -> Result<T, Failure>;
}

impl<T, P: Into<Diagnostics>> Within<T> for Result<T, P> {
    fn within(self, sources: &SourceMap) -> Result<T, Failure> {
        self.map_err(|problems| Failure::within(problems, sources))
    }
}
