//! Diagnostics: how every crate reports problems to users.

use std::fmt;
use std::ops::{Deref, DerefMut};

use cty::Type;

use crate::Range;
use crate::content::Near;
use crate::edit::Edit;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The operation cannot continue, or did not do what was requested.
    Error,
    /// The operation continues; the user is informed.
    Warning,
}

/// One problem, as it is reported to a user. It is the error type of most functions, so it is one pointer large: results stay small.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic(Box<DiagnosticParts>);

/// The parts of a [`Diagnostic`].
#[derive(Clone, Debug, PartialEq)]
pub struct DiagnosticParts {
    /// How bad it is.
    pub severity: Severity,
    /// One line that names the kind of problem; fixed wording, no final stop.
    pub summary: String,
    /// What is wrong, why, and what to do about it; whole sentences.
    pub detail: String,
    /// The place that is wrong.
    pub subject: Option<Range>,
    /// A larger stretch that helps to understand it.
    pub context: Option<Range>,
    /// The address of the object the problem belongs to, as shown.
    pub address: Option<String>,
    /// The expressions involved, when the problem arose while evaluating.
    pub expression: Option<Box<ExpressionContext>>,
    /// Of a warning about a deprecated value: what has declared the deprecation, as shown.
    pub deprecation_origin: Option<String>,
    /// Of a condition that failed, or that is not known yet: the object that it is a condition of, as an address.
    pub condition_of: Option<String>,
    /// What the diagnostic is about beyond its text, for those that must treat it in a special way.
    pub extra: Extra,
    /// The change of the source text that mends it, where only one correction is likely.
    pub edit: Option<Edit>,
}

/// What an expression's evaluation saw, for display beside the source line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpressionContext {
    /// The references of the expression and what is known of their values: (`var.a`, `is a list of string`).
    pub values: Vec<(String, String)>,
    /// The function in whose call the problem arose.
    pub function: Option<CalledFunction>,
    /// The sides of a comparison in a test that did not hold.
    pub comparison: Option<Comparison>,
}

/// The two sides of a binary operation, as JSON text with line breaks. Parts that must not or cannot be shown are described.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The left side.
    pub left: String,
    /// The right side.
    pub right: String,
    /// Whether the sides have different types.
    pub types_differ: bool,
    /// Whether both sides are shown in full, beside their difference.
    pub in_full: bool,
}

/// A function, as far as it helps to understand why a call of it went wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct CalledFunction {
    /// Its name as it is written in the call, with namespaces.
    pub called_as: String,
    pub name: String,
    /// Its parameters: what they are called, and what they take.
    pub parameters: Vec<(String, Type)>,
    /// What takes all further arguments.
    pub variadic: Option<(String, Type)>,
    /// The type of its result.
    pub returns: Type,
}

/// `name(a, more...)`.
impl fmt::Display for CalledFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<String> = self.parameters.iter().map(|(name, _)| name.clone()).collect();
        names.extend(self.variadic.iter().map(|(name, _)| format!("{name}...")));
        write!(f, "{}({})", self.called_as, names.join(", "))
    }
}

/// Facts that other code checks in a diagnostic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Extra {
    /// Nothing special.
    #[default]
    None,
    /// The problem is that a value is not known yet.
    CausedByUnknown,
    /// The problem is that a value is sensitive.
    CausedBySensitive,
    /// The problem is one of a check block: each is reported, however many there are of a kind.
    OfCheck,
    /// A plugin does not start: one problem, however many objects need the plugin.
    NotStarted,
    /// Several warnings of one kind were folded into this one; how many more there were.
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

    /// With the place that is wrong.
    #[must_use]
    pub fn at(mut self, subject: &Range) -> Diagnostic {
        self.subject = Some(subject.clone());
        self
    }

    /// With a larger stretch around the place.
    #[must_use]
    pub fn within(mut self, context: &Range) -> Diagnostic {
        self.context = Some(context.clone());
        self
    }

    /// With the address of the object it belongs to, unless it has one.
    #[must_use]
    pub fn about(mut self, address: impl fmt::Display) -> Diagnostic {
        self.address.get_or_insert_with(|| address.to_string());
        self
    }

    /// With the change of the source text that mends it.
    #[must_use]
    pub fn mended_by(mut self, edit: Edit) -> Diagnostic {
        self.edit = Some(edit);
        self
    }

    /// With the change that replaces a misspelt name in this stretch, if it is certain which name was meant.
    #[must_use]
    pub fn misspelt(mut self, name: &str, range: &Range, near: Option<&Near>) -> Diagnostic {
        self.edit = near.and_then(|near| near.edit(name, range));
        self
    }

    /// Its parts, to take them out.
    #[must_use]
    pub fn into_parts(self) -> DiagnosticParts {
        *self.0
    }

    /// Whether this is an error.
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

/// Several problems, in the order they were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// No problems.
    #[must_use]
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Adds others.
    pub fn extend(&mut self, others: impl IntoIterator<Item = Diagnostic>) {
        self.0.extend(others);
    }

    /// Whether there is an error among them.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(Diagnostic::is_error)
    }

    /// Whether there are none at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// In the order in which they are shown: warnings before errors; what has no place before what has one; then by file
    /// (those of directories further down later) and by place.
    pub fn sort(&mut self) {
        self.0.sort_by_cached_key(|d| {
            let place = d.subject.as_ref().map(|r| {
                let depth = r.file.matches('/').count();
                (depth, r.file.clone(), r.start.byte, r.end.byte)
            });
            (d.is_error(), place)
        });
    }

    /// One after the other.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// Takes the value of a result whose error is diagnostics, keeping the latter.
    pub fn take<T>(&mut self, result: Result<T, Diagnostics>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(diagnostics) => {
                self.extend(diagnostics);
                None
            }
        }
    }

    /// Ok if there is no error; the diagnostics otherwise. Warnings are lost on success: use where there are none.
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
