//! Error of the conversion of a value to a Rust type.

use cty::{Path, Step};

use crate::diag::{Diagnostic, Diagnostics};

/// Summary of the error for a configured value that does not fit its Rust type.
pub(crate) const UNREADABLE: &str = "Configuration Read Error";

/// Reason why a value does not fit a Rust type.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelError {
    /// Path of the part that is wrong, inside the value.
    pub path: Path,
    /// The problem, as a part of a sentence.
    pub message: String,
    /// Set if the only problem is that the value is not known yet.
    pub unknown: bool,
    /// Summary of the error for a configured value; by default, "Invalid Attribute Value".
    pub summary: Option<&'static str>,
}

impl ModelError {
    /// Creates an error at the value itself.
    pub fn new(message: impl Into<String>) -> ModelError {
        ModelError {
            path: Path::root(),
            message: message.into(),
            unknown: false,
            summary: None,
        }
    }

    /// An error at the value itself, with a summary of its own.
    pub fn titled(summary: &'static str, message: impl Into<String>) -> ModelError {
        ModelError {
            summary: Some(summary),
            ..ModelError::new(message)
        }
    }

    /// Converts the error to diagnostics for the user whose configuration has the value.
    pub(crate) fn of_configuration(self) -> Diagnostics {
        let detail = format!("This value cannot be used: {}.", self.message);
        Diagnostic::error(UNREADABLE, detail).at(self.path).into()
    }

    /// Builds the error for a value that is unknown until other objects are applied, although the Rust type can only hold known
    /// values.
    fn not_known_yet(self) -> Diagnostics {
        let detail = format!(
            "This cannot be planned before the value is known: {}. Apply the objects that it comes from first, with -target. (To the \
             author of the plugin: a field that is an Attr, such as Attr<Vec<Rule>> for blocks, can be unknown.)",
            self.message
        );
        Diagnostic::error("Value not known yet", detail).at(self.path).into()
    }

    /// Prepends a step to the path, for the error of the enclosing value.
    #[must_use]
    pub fn under(mut self, step: Step) -> ModelError {
        // The error travels from the innermost value to the outermost, so each step is inserted at the front.
        self.path.0.insert(0, step);
        self
    }
}

impl From<ModelError> for Diagnostics {
    fn from(error: ModelError) -> Diagnostics {
        if error.unknown {
            return error.not_known_yet();
        }
        Diagnostic::error(
            "Value Conversion Error",
            format!(
                "A value does not have the form that this plugin expects: {}. This is a bug in the plugin, or in the \
                 program that called it.",
                error.message
            ),
        )
        .at(error.path)
        .into()
    }
}
