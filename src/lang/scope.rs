//! The evaluation environment: values of references, and settings of functions.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use addrs::Referenceable;
use cty::{Type, Value};
use files::mounts::Mounts;
use syntax::ast::TraversalStep;
use syntax::{Diagnostic, Diagnostics, Range};

use crate::call_error::CallError;
use crate::provider_function::Signature;

/// A reference: the object, its range, and the steps from the object to one of its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// Object that is referred to.
    pub subject: Referenceable,
    /// Range of the object's name, without the remaining steps.
    pub range: Range,
    /// Steps from the object's value.
    pub remaining: Vec<TraversalStep>,
}

/// Reason why an object has no value.
#[derive(Clone, Debug, PartialEq)]
pub enum EvaluationError {
    /// A dependency has failed, and its error has been reported.
    Reported,
    /// Problems that have not been reported yet.
    Problems(Diagnostics),
}

impl EvaluationError {
    /// Returns the problems that have not been reported yet.
    #[must_use]
    pub fn unreported(self) -> Diagnostics {
        match self {
            EvaluationError::Reported => Diagnostics::new(),
            EvaluationError::Problems(problems) => problems,
        }
    }
}

impl From<Diagnostics> for EvaluationError {
    fn from(problems: Diagnostics) -> EvaluationError {
        EvaluationError::Problems(problems)
    }
}

impl From<Diagnostic> for EvaluationError {
    fn from(problem: Diagnostic) -> EvaluationError {
        EvaluationError::Problems(problem.into())
    }
}

/// Observer of evaluation: which expressions are evaluated, and which results of conditionals are chosen.
// This trait is separate from values, so that evaluation without a witness costs nothing; tests use it to
// report coverage.
pub trait Witness: Send + Sync + std::fmt::Debug {
    /// Called when an expression is evaluated as a whole.
    fn evaluated(&self, at: &Range);

    /// Called when the condition of a conditional expression is known.
    fn chosen(&self, conditional: &Range, yes: bool);
}

/// The environment of an expression.
///
/// [`Scope::lookup`] is called once for each reference of an evaluation, so it must be cheap: return values that are
/// built already and shared.
pub trait Scope: Sync {
    /// Returns the value of a reference's subject.
    ///
    /// The subject is a variable, a local value, a whole resource or module call (all instances), one of `count`,
    /// `each`, `path`, `terraform`, or `self`: never an instance or an output. Instance keys and output names are the
    /// first of the remaining steps. An implementation may use them: for an error about a missing key, or to return a
    /// module object that holds only the referenced output.
    fn lookup(&self, reference: &Reference) -> Result<Value, EvaluationError>;

    /// Replaces an error about the steps after a reference's subject. An implementation that knows the subject can
    /// return a more helpful error.
    fn explain(&self, _reference: &Reference, problem: Diagnostic) -> Diagnostic {
        problem
    }

    /// Checks that a reference in the content of a dynamic block names a declared object, before the content is
    /// evaluated. References elsewhere are checked before any evaluation.
    fn check(&self, _reference: &Reference) -> Result<(), Diagnostic> {
        Ok(())
    }

    /// Returns true if only constants are allowed, so that every reference is an error.
    fn is_constant(&self) -> bool {
        false
    }

    /// Settings of functions; `None` if functions cannot be called.
    fn functions(&self) -> Option<&FunctionSettings>;

    /// Observer of evaluations in this scope.
    fn witness(&self) -> Option<&dyn Witness> {
        None
    }

    /// Compares the result of a function that reads files with that of an earlier call with the same arguments: in this
    /// run, or in the plan that is applied. The default implementation compares nothing.
    fn check_result(&self, _function: &str, _arguments: &[Value], _result: &Value) -> Result<(), CallError> {
        Ok(())
    }

    /// Returns the signature of a provider function; an error if it cannot be called here.
    fn provider_function(&self, provider: &str, function: &str) -> Result<Arc<Signature>, CallError> {
        Err(CallError::Unknown(Diagnostic::error(
            "Unknown provider function",
            format!(
                "There is no function named \"provider::{provider}::{function}\" here: provider functions are not available \
                 in this context."
            ),
        )))
    }

    /// Calls a provider function. The arguments have the parameters' types and no marks.
    fn call_provider_function(&self, call: &ProviderCall<'_>) -> Result<Value, CallError> {
        self.provider_function(call.provider, call.function)
            .map(|signature| Value::unknown(signature.result.clone()))
    }
}

/// A call of `provider::PROVIDER::FUNCTION(…)`.
#[derive(Clone, Copy, Debug)]
pub struct ProviderCall<'a> {
    /// Local name of the provider.
    pub provider: &'a str,
    pub function: &'a str,
    pub arguments: &'a [Value],
}

/// Flag that functions set when they read a missing file. In a destroy plan, which does not need the values of the
/// configuration, such a function returns an unknown value instead of an error.
#[derive(Clone, Debug, Default)]
pub struct MissingFiles(Arc<AtomicBool>);

impl MissingFiles {
    /// Returns true if a function tried to read a missing file.
    #[must_use]
    pub fn are_found(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn found(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl PartialEq for MissingFiles {
    fn eq(&self, other: &MissingFiles) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Settings of functions, which a scope provides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionSettings {
    /// Base directory of relative paths. Empty for the working directory.
    pub base_dir: PathBuf,
    /// Directories in memory that file functions see besides those of the disk.
    pub mounts: Option<Arc<Mounts>>,
    /// Result of `plantimestamp` in RFC 3339. `None` if there is no plan, as in a console without one; the result is unknown then.
    pub plan_timestamp: Option<String>,
    /// Makes results that differ in each call (`timestamp`, `uuid`, `bcrypt`) unknown values.
    pub pure: bool,
    /// Makes the console's `type` function available.
    pub console: bool,
    /// Set if a missing file makes an unknown value instead of an error.
    pub missing_files: Option<MissingFiles>,
    /// Limit on the elements of an expression and the instances of a block, if the user has set one.
    pub max_elements: Option<u64>,
}

impl FunctionSettings {
    /// Limit on the elements that all `for` expressions inside of one expression may produce.
    #[must_use]
    pub fn max_elements(&self) -> u64 {
        self.max_elements.unwrap_or(10_000_000)
    }

    /// Limit on the instances of a `count` argument.
    #[must_use]
    pub fn max_instances(&self) -> u64 {
        self.max_elements.unwrap_or(1_000_000)
    }

    /// Limit on the numbers of a range: Terraform's, unless the user has set one.
    #[must_use]
    pub fn max_range(&self) -> u64 {
        self.max_elements.unwrap_or(1024)
    }
}

/// A scope without references and functions, for static arguments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Constant;

impl Scope for Constant {
    fn is_constant(&self) -> bool {
        true
    }

    fn lookup(&self, reference: &Reference) -> Result<Value, EvaluationError> {
        Err(
            Diagnostic::error("Variables not allowed", "Variables may not be used here.")
                .at(&reference.range)
                .into(),
        )
    }

    fn functions(&self) -> Option<&FunctionSettings> {
        None
    }
}

/// A scope in which every reference is unknown, to check only the form of expressions.
#[derive(Clone, Debug, Default)]
pub struct Unknowns(pub FunctionSettings);

impl Scope for Unknowns {
    fn lookup(&self, _reference: &Reference) -> Result<Value, EvaluationError> {
        Ok(Value::unknown(Type::Dynamic))
    }

    fn functions(&self) -> Option<&FunctionSettings> {
        Some(&self.0)
    }
}
