//! The output of a command: text for people, or events for a program.

use std::sync::Arc;

use syntax::{Diagnostic, Diagnostics, SourceMap};

use crate::diagnostics;
use crate::stream::Stream;
use crate::ui::Ui;

/// The output of a command.
#[derive(Clone)]
pub struct Console {
    pub ui: Arc<Ui>,
    /// The stream of machine-readable events, which takes the place of text with `-json`.
    pub stream: Option<Arc<Stream>>,
    /// The form of problems in text.
    pub form: diagnostics::Form,
}

impl Console {
    /// A console for a command that writes text.
    #[must_use]
    pub fn new(ui: Arc<Ui>) -> Console {
        Console {
            ui,
            stream: None,
            form: diagnostics::Form::default(),
        }
    }

    /// Shows problems while the command runs; returns true if one of them is an error. What is known at its end belongs to its
    /// outcome.
    pub fn show_now(&self, problems: &Diagnostics, sources: &SourceMap) -> bool {
        if let Some(stream) = &self.stream {
            for problem in problems {
                stream.diagnostic(problem, sources);
            }
            return problems.has_errors();
        }
        diagnostics::show(&self.ui, problems, sources, self.form);
        problems.has_errors()
    }

    /// Shows a warning that refers to no file while the command runs.
    pub fn warn_now(&self, warning: Diagnostic) {
        self.show_now(&warning.into(), &SourceMap::default());
    }
}
