//! Answers of plugins to requests: a value with diagnostics, or the output of a provisioner.

use cty::Path;
use syntax::Diagnostic;

/// An answer with its diagnostics. If there is an error among them, the answer is partial.
#[derive(Clone, Debug, Default)]
pub struct Answer<T> {
    pub value: T,
    /// Problems; attribute paths are not resolved to source ranges yet.
    pub diagnostics: Vec<PluginDiagnostic>,
}

/// A problem that a plugin reports.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginDiagnostic {
    pub diagnostic: Diagnostic,
    /// The path of the attribute in the configuration of the block.
    pub attribute: Path,
}

/// The receiver of a provisioner's output, piece by piece.
// A type alias, because in a method `async_trait` would give the `&str` of a closure type one fixed lifetime.
pub type Output<'a> = dyn Fn(&str) + Send + Sync + 'a;
