//! Scope of the expressions of a test file outside assertions: variables of the file, values from outside, and the
//! outputs of completed runs.

use std::sync::{Mutex, PoisonError};

use cty::Value;
use lang::scope::{EvaluationError, FunctionSettings, Reference, Scope};
use syntax::ast::TraversalStep;
use syntax::{Diagnostic, Diagnostics, Range};

use addrs::{Mode, Referenceable};

use crate::file::FileRun;

/// Scope of a file's expressions.
pub struct FileScope<'f, 's> {
    file: &'f FileRun<'s>,
    warnings: Mutex<Diagnostics>,
}

impl<'f, 's> FileScope<'f, 's> {
    #[must_use]
    pub fn new(file: &'f FileRun<'s>) -> FileScope<'f, 's> {
        FileScope {
            file,
            warnings: Mutex::default(),
        }
    }

    /// Returns the warnings of the evaluation.
    #[must_use]
    pub fn into_warnings(self) -> Diagnostics {
        self.warnings.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Warns of a variable that has a value from outside, but neither type nor value in the file.
#[must_use]
pub fn without_definition(name: &str, at: &Range) -> Diagnostic {
    Diagnostic::warning(
        "Variable referenced without definition",
        format!(
            "The variable \"{name}\" has its value from outside, and the test file does not say what it is. A later release may \
             refuse this: add a block variable \"{name}\" to the file."
        ),
    )
    .at(at)
}

fn error(reference: &Reference, summary: &str, detail: impl Into<String>) -> EvaluationError {
    Diagnostic::error(summary, detail).at(&reference.range).into()
}

/// Returns the part of a value that the attribute steps at the beginning of a reference select.
fn referenced<'v>(value: &'v Value, steps: &[TraversalStep]) -> &'v Value {
    let mut value = value;
    for step in steps {
        let TraversalStep::Attribute { name, .. } = step else {
            break;
        };
        let Some(inner) = value.get(name) else { break };
        value = inner;
    }
    value
}

impl Scope for FileScope<'_, '_> {
    fn lookup(&self, reference: &Reference) -> Result<Value, EvaluationError> {
        match &reference.subject {
            Referenceable::Variable(name) => match self.file.value_of(name, &reference.range) {
                Ok(Some((value, defined))) => {
                    if !defined {
                        let warning = without_definition(name, &reference.range);
                        // Several expressions may refer to the same variable at the same position.
                        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
                        if !warnings.iter().any(|w| *w == warning) {
                            warnings.push(warning);
                        }
                    }
                    Ok(value)
                }
                Ok(None) => Err(error(
                    reference,
                    "Reference to unavailable variable",
                    format!(
                        "There is no value for a variable \"{name}\": neither in this file nor from outside. The variables of a run \
                         are not visible to its other arguments."
                    ),
                )),
                Err(problems) => Err(problems.into()),
            },
            Referenceable::Resource(r) if r.mode == Mode::Managed && &*r.ty == "run" => {
                let Some(outputs) = self.file.outputs_of(&r.name) else {
                    let detail = if self.file.has_run(&r.name) {
                        format!("The run \"{}\" has no outputs: it has not been carried out.", r.name)
                    } else {
                        format!("There is no run \"{}\" in this file.", r.name)
                    };
                    return Err(error(reference, "Reference to unknown run block", detail));
                };
                // Other outputs of that run may be unknown, but the part that is referred to must be known.
                if !referenced(&outputs, &reference.remaining).is_wholly_known() {
                    return Err(error(
                        reference,
                        "Reference to unknown value",
                        format!(
                            "The value is known only after apply, and the run \"{}\" only plans. Pass on what is known when planned, \
                             or let that run apply.",
                            r.name
                        ),
                    ));
                }
                Ok(outputs)
            }
            _ => Err(error(
                reference,
                "Invalid reference",
                "Here, only variables and the outputs of runs can be referred to.",
            )),
        }
    }

    fn functions(&self) -> Option<&FunctionSettings> {
        Some(&self.file.suite.environment.functions)
    }
}

/// Scope of the values of mocks and overrides: functions only.
pub struct FunctionsOnly<'f>(pub &'f FunctionSettings);

impl Scope for FunctionsOnly<'_> {
    fn lookup(&self, reference: &Reference) -> Result<Value, EvaluationError> {
        let mut at = reference.range.clone();
        if matches!(reference.subject, Referenceable::Variable(_)) {
            // The position is that of the attribute after `var`, because Terraform reports that its object of
            // variables lacks the attribute.
            at.start.byte += 3;
            at.start.column += 3;
        }
        let detail = "The values of mocks and overrides cannot refer to anything. Functions can be called.";
        Err(Diagnostic::error("Unsupported attribute", detail).at(&at).into())
    }

    fn functions(&self) -> Option<&FunctionSettings> {
        Some(self.0)
    }
}
