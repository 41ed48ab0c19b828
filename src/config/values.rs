//! The values of the root module's input variables.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::Value;
use syntax::Range;

/// Where a variable's value comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueSource {
    /// An environment variable `TF_VAR_name`.
    Environment,
    /// A variable file that is read by itself, or named by `-var-file`.
    File(Range),
    /// The flag `-var`.
    Flag,
    /// A person answered.
    Prompt,
    /// The plan that is applied.
    Plan,
    /// The default of its block.
    Default,
}

/// A value, converted to its variable's type, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableValue {
    /// The value, without marks.
    pub value: Value,
    /// Where it comes from.
    pub source: ValueSource,
}

/// The values of the root module's variables, by name.
pub type VariableValues = BTreeMap<Arc<str>, VariableValue>;

/// A flag that gives values, in the order of the command line.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableFlag {
    /// `-var 'name=text'`: what follows `-var`.
    Var(String),
    /// `-var-file`: the path.
    File(String),
}

/// Where values may come from.
pub struct ValueInputs<'i> {
    /// The files: `terraform.tfvars` and its like are looked for in the working directory.
    pub files: &'i dyn crate::files::FileSource,
    /// The environment: variables whose name begins with `TF_VAR_`, that prefix taken off.
    pub environment: &'i BTreeMap<String, String>,
    /// The flags.
    pub flags: &'i [VariableFlag],
}

/// What was given.
#[derive(Clone, Debug, Default)]
pub struct CollectedValues {
    /// The values. A variable whose value was wrong (which has been reported) has none.
    pub values: VariableValues,
    /// Required variables without value, by name: ask for them, or report them.
    pub missing: Vec<Arc<str>>,
    /// The text of every variable file.
    pub sources: syntax::SourceMap,
    /// Every problem.
    pub diagnostics: syntax::Diagnostics,
}
