//! The evaluation environment: the values that references have, and how functions behave here.

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

/// A reference: what is named, where, and the steps from there.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// What is named.
    pub subject: Referenceable,
    /// Where it is named; without the remaining steps.
    pub range: Range,
    /// The steps from the subject's value.
    pub remaining: Vec<TraversalStep>,
}

/// The reason why something has no value.
#[derive(Clone, Debug, PartialEq)]
pub enum EvaluationError {
    /// What it depends on has failed, and that has been reported where it failed.
    Reported,
    /// Problems that are still to be reported.
    Problems(Diagnostics),
}

impl EvaluationError {
    /// What is still to be reported; nothing if all is.
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

/// Watches evaluation: which expressions are evaluated, and which way conditionals go.
pub trait Witness: Send + Sync + std::fmt::Debug {
    /// An expression is evaluated as a whole.
    fn evaluated(&self, at: &Range);

    /// The condition of a conditional expression is known.
    fn chosen(&self, conditional: &Range, yes: bool);
}

/// The surroundings of an expression.
///
/// [`Scope::lookup`] is called once for each reference an evaluation meets, so it must be cheap: hand out values that
/// are built already and shared.
pub trait Scope: Sync {
    /// The value of a reference's subject.
    ///
    /// The subject is a variable, a local value, a whole resource or module call (all instances), one of `count`,
    /// `each`, `path`, `terraform`, or `self`: never an instance or an output. Instance keys and output names are the
    /// first of the remaining steps. An implementation may use them: for an error about a missing key, or to return
    /// a module object that holds only the referenced output.
    fn lookup(&self, reference: &Reference) -> Result<Value, EvaluationError>;

    /// Explains why the value of a reference's subject cannot be followed further, in the place of what the value tells.
    fn explain(&self, _reference: &Reference, problem: Diagnostic) -> Diagnostic {
        problem
    }

    /// Checks a reference in the content of a dynamic block, before the content is evaluated: that what it names is declared.
    /// References elsewhere are checked before anything is evaluated.
    fn check(&self, _reference: &Reference) -> Result<(), Diagnostic> {
        Ok(())
    }

    /// Whether only constants are allowed here, so that every reference is an error.
    fn is_constant(&self) -> bool {
        false
    }

    /// How functions behave here; `None` where functions may not be called at all.
    fn functions(&self) -> Option<&FunctionSettings>;

    /// Who watches the evaluation of expressions here.
    fn witness(&self) -> Option<&dyn Witness> {
        None
    }

    /// Compares the result of a function that reads files with that of an earlier call with the same arguments: in this run, or
    /// in the plan that is applied. Nothing is compared where no results are kept.
    fn check_result(&self, _function: &str, _arguments: &[Value], _result: &Value) -> Result<(), CallError> {
        Ok(())
    }

    /// What a function of a provider takes and gives; an error if it cannot be called here.
    fn provider_function(&self, provider: &str, function: &str) -> Result<Arc<Signature>, CallError> {
        Err(CallError::Unknown(Diagnostic::error(
            "Unknown provider function",
            format!(
                "There is no function named \"provider::{provider}::{function}\" here: provider functions are not available \
                 in this context."
            ),
        )))
    }

    /// Calls a function of a provider, the arguments converted to its parameters' types and free of marks.
    fn call_provider_function(&self, call: &ProviderCall<'_>) -> Result<Value, CallError> {
        self.provider_function(call.provider, call.function)
            .map(|signature| Value::unknown(signature.result.clone()))
    }
}

/// A call `provider::PROVIDER::FUNCTION(…)`.
#[derive(Clone, Copy, Debug)]
pub struct ProviderCall<'a> {
    /// The local name of the provider.
    pub provider: &'a str,
    /// The name of the function.
    pub function: &'a str,
    pub arguments: &'a [Value],
}

/// Makes files that do not exist unknown values instead of errors: for a plan to destroy, which needs none of the values that
/// resources are configured with.
#[derive(Clone, Debug, Default)]
pub struct MissingFiles(Arc<AtomicBool>);

impl MissingFiles {
    /// Returns true if a function was asked for a file that does not exist.
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

/// How functions behave in some surroundings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionSettings {
    /// What relative paths of file functions are relative to. Empty for the working directory.
    pub base_dir: PathBuf,
    /// The directories in memory that file functions see beside those of the disk.
    pub mounts: Option<Arc<Mounts>>,
    /// The time of planning, RFC 3339, once there is one.
    pub plan_timestamp: Option<String>,
    /// Whether functions whose result changes from call to call (`timestamp`, `uuid`, `bcrypt`) give unknown values.
    pub pure: bool,
    /// Whether the console's `type` function is there.
    pub console: bool,
    /// Set where a missing file is no error.
    pub missing_files: Option<MissingFiles>,
    /// The most elements of an expression and instances of a block, where the user has set a limit.
    pub max_elements: Option<u64>,
}

impl FunctionSettings {
    /// The most elements that the `for` expressions inside one expression may produce together.
    #[must_use]
    pub fn max_elements(&self) -> u64 {
        self.max_elements.unwrap_or(10_000_000)
    }

    /// The most instances that a `count` argument may ask for.
    #[must_use]
    pub fn max_instances(&self) -> u64 {
        self.max_elements.unwrap_or(1_000_000)
    }

    /// The most numbers of a range: Terraform's limit, unless the user has set one.
    #[must_use]
    pub fn max_range(&self) -> u64 {
        self.max_elements.unwrap_or(1024)
    }
}

/// A scope in which nothing may be referred to and no function called: what static arguments are evaluated in.
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

/// A scope in which every reference has an unknown value: for checks of form only.
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
