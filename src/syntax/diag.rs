//! Diagnostics: the problems that all crates report to users.

use std::fmt;
use std::ops::{Deref, DerefMut};

use cty::Type;

use crate::Range;
use crate::content::Near;
use crate::edit::Edit;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The operation cannot continue, or did not do what was requested.
    Error,
    /// The operation continues, and the user is informed.
    Warning,
}

/// A problem as it is reported to a user.
// The content is boxed, because most functions return it as their error, and the results should be small.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic(Box<DiagnosticParts>);

/// Content of a [`Diagnostic`].
#[derive(Clone, Debug, PartialEq)]
pub struct DiagnosticParts {
    pub severity: Severity,
    /// One line that names the kind of problem; fixed wording, no final stop.
    pub summary: String,
    /// Explanation in whole sentences: the problem, its cause, and a solution.
    pub detail: String,
    /// Range of the text that is wrong.
    pub subject: Option<Range>,
    /// Larger range that helps to understand the subject.
    pub context: Option<Range>,
    /// Address of the object that the problem belongs to, as displayed.
    pub address: Option<String>,
    /// Expressions involved, if the problem arose in an evaluation.
    pub expression: Option<Box<ExpressionContext>>,
    /// For a warning about a deprecated value: the object that declared the deprecation, as displayed.
    pub deprecation_origin: Option<String>,
    /// For a condition that failed or is unknown: address of the object that has the condition.
    pub condition_of: Option<String>,
    /// Machine-readable fact about the diagnostic, for code that handles it differently.
    pub extra: Extra,
    /// Edit of the source text that corrects the problem, if only one correction is likely.
    pub edit: Option<Edit>,
}

/// Details of the evaluation that failed, for display beside the source line: values, the called function, and the
/// sides of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpressionContext {
    /// References of the expression, with descriptions of their values: (`var.a`, `is a list of string`).
    pub values: Vec<(String, String)>,
    /// Function whose call failed.
    pub function: Option<CalledFunction>,
    /// Sides of a comparison that did not hold in a test.
    pub comparison: Option<Comparison>,
}

/// The two sides of a binary operation, as JSON text with line breaks. Secret or unprintable parts are described.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    pub left: String,
    pub right: String,
    /// True if the sides have different types.
    pub types_differ: bool,
    /// True if both sides are displayed in full, besides their difference.
    pub in_full: bool,
}

/// Signature of a function whose call failed.
#[derive(Clone, Debug, PartialEq)]
pub struct CalledFunction {
    /// Name as written in the call, with namespaces.
    pub called_as: String,
    pub name: String,
    /// Names and types of the parameters.
    pub parameters: Vec<(String, Type)>,
    /// Name and type of the variadic parameter.
    pub variadic: Option<(String, Type)>,
    pub returns: Type,
}

/// Formats as `name(a, more...)`.
impl fmt::Display for CalledFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<String> = self.parameters.iter().map(|(name, _)| name.clone()).collect();
        names.extend(self.variadic.iter().map(|(name, _)| format!("{name}...")));
        write!(f, "{}({})", self.called_as, names.join(", "))
    }
}

/// Facts in a diagnostic that other code tests for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Extra {
    #[default]
    None,
    /// The cause is a value that is not known yet.
    CausedByUnknown,
    /// The cause is a sensitive value.
    CausedBySensitive,
    /// The problem belongs to a check block. Such problems are never folded into one, even if there are many.
    OfCheck,
    /// A plugin does not start. That is reported once, even if many objects need the plugin.
    NotStarted,
    /// Several warnings of one kind were folded into this one; the number is that of the others.
    Folded(usize),
}

impl Diagnostic {
    pub fn error(summary: impl Into<String>, detail: impl Into<String>) -> Diagnostic {
        Diagnostic(Box::new(DiagnosticParts {
            severity: Severity::Error,
            summary: summary.into(),
            detail: detail.into(),
            subject: None,
            context: None,
            address: None,
            expression: None,
            deprecation_origin: None,
            condition_of: None,
            extra: Extra::None,
            edit: None,
        }))
    }

    pub fn warning(summary: impl Into<String>, detail: impl Into<String>) -> Diagnostic {
        let mut warning = Diagnostic::error(summary, detail);
        warning.severity = Severity::Warning;
        warning
    }

    /// Sets the range of the text that is wrong.
    #[must_use]
    pub fn at(mut self, subject: &Range) -> Diagnostic {
        self.subject = Some(subject.clone());
        self
    }

    /// Sets a larger range around the subject.
    #[must_use]
    pub fn within(mut self, context: &Range) -> Diagnostic {
        self.context = Some(context.clone());
        self
    }

    /// Sets the address of the object that the problem belongs to, unless there is one.
    #[must_use]
    pub fn about(mut self, address: impl fmt::Display) -> Diagnostic {
        self.address.get_or_insert_with(|| address.to_string());
        self
    }

    /// Sets the edit that corrects the problem.
    #[must_use]
    pub fn mended_by(mut self, edit: Edit) -> Diagnostic {
        self.edit = Some(edit);
        self
    }

    /// Sets the edit that replaces a misspelt name in a range, if the intended name is certain.
    #[must_use]
    pub fn misspelt(mut self, name: &str, range: &Range, near: Option<&Near>) -> Diagnostic {
        self.edit = near.and_then(|near| near.edit(name, range));
        self
    }

    /// Unpacks the diagnostic, so that its parts can be moved.
    #[must_use]
    pub fn into_parts(self) -> DiagnosticParts {
        *self.0
    }

    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl Deref for Diagnostic {
    type Target = DiagnosticParts;

    fn deref(&self) -> &DiagnosticParts {
        &self.0
    }
}

impl DerefMut for Diagnostic {
    fn deref_mut(&mut self) -> &mut DiagnosticParts {
        &mut self.0
    }
}

/// Problems in the order in which they were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    #[must_use]
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    pub fn extend(&mut self, others: impl IntoIterator<Item = Diagnostic>) {
        self.0.extend(others);
    }

    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(Diagnostic::is_error)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Sorts for display: warnings before errors, problems without range first, then by file (deeper directories later)
    /// and position.
    pub fn sort(&mut self) {
        self.0.sort_by_cached_key(|d| {
            let place = d.subject.as_ref().map(|r| {
                let depth = r.file.matches('/').count();
                (depth, r.file.clone(), r.start.byte, r.end.byte)
            });
            (d.is_error(), place)
        });
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// Returns the value of a result, or adds its diagnostics to these.
    pub fn take<T>(&mut self, result: Result<T, Diagnostics>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(diagnostics) => {
                self.extend(diagnostics);
                None
            }
        }
    }

    /// Returns the value, or these diagnostics if they contain an error. On success, warnings are dropped, so callers
    /// must be sure that there are none.
    pub fn into_result<T>(self, value: T) -> Result<T, Diagnostics> {
        if self.has_errors() { Err(self) } else { Ok(value) }
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Diagnostics {
        Diagnostics(vec![diagnostic])
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(iter: I) -> Diagnostics {
        Diagnostics(iter.into_iter().collect())
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
