//! Output of a command: text, or the machine-readable stream.

use std::sync::Arc;

use syntax::{Diagnostic, Diagnostics, SourceMap};

use crate::diagnostics;
use crate::stream::Stream;
use crate::ui::Ui;

#[derive(Clone)]
pub struct Console {
    pub ui: Arc<Ui>,
    /// Stream of machine-readable events, which replaces text output with `-json`.
    pub stream: Option<Arc<Stream>>,
    /// Stream beside the text, with `-json-into`.
    pub beside: Option<Arc<Stream>>,
    pub form: diagnostics::Form,
}

impl Console {
    /// Returns a console for a command that writes text.
    #[must_use]
    pub fn new(ui: Arc<Ui>) -> Console {
        Console {
            ui,
            stream: None,
            beside: None,
            form: diagnostics::Form::default(),
        }
    }

    /// Returns the streams of machine-readable events: the one in place of text (`-json`), or the one beside it (`-json-into`).
    pub fn streams(&self) -> impl Iterator<Item = &Arc<Stream>> {
        self.stream.iter().chain(&self.beside)
    }

    /// Shows diagnostics while the command runs; returns true if one of them is an error. Diagnostics that are only known at
    /// the end of a command are returned with its result instead.
    pub fn show_now(&self, problems: &Diagnostics, sources: &SourceMap) -> bool {
        for stream in self.streams() {
            for problem in problems {
                stream.diagnostic(problem, sources);
            }
        }
        if self.stream.is_some() {
            return problems.has_errors();
        }
        diagnostics::show(&self.ui, problems, sources, self.form);
        problems.has_errors()
    }

    /// Prints a line of text for people, which is a message in a stream.
    pub fn message(&self, text: impl AsRef<str>) {
        let text = text.as_ref();
        self.message_beside(text);
        match &self.stream {
            Some(stream) => stream.message(text),
            None => self.ui.line(text),
        }
    }

    /// Writes a message to the stream beside the text only.
    pub fn message_beside(&self, text: &str) {
        if let Some(stream) = &self.beside {
            stream.message(text);
        }
    }

    /// Shows a warning without a source range while the command runs.
    pub fn warn_now(&self, warning: Diagnostic) {
        self.show_now(&warning.into(), &SourceMap::default());
    }
}
