//! What a provider's function takes and gives, as far as evaluation must know it.

use std::sync::Arc;

use cty::Type;
use syntax::diag::CalledFunction;

/// A parameter of a provider's function.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name, as in messages.
    pub name: Arc<str>,
    /// What it takes.
    pub ty: Type,
    /// Whether null may be passed.
    pub allow_null: bool,
    /// Whether unknown values may be passed.
    pub allow_unknown: bool,
}

/// A provider's function.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// The positional parameters.
    pub parameters: Vec<Parameter>,
    /// What takes all further arguments.
    pub variadic: Option<Parameter>,
    /// The type of the result.
    pub result: Type,
}

impl Signature {
    /// The parameter that takes the argument at this position.
    #[must_use]
    pub fn parameter(&self, position: usize) -> Option<&Parameter> {
        self.parameters.get(position).or(self.variadic.as_ref())
    }

    /// The signature, as in messages about a call.
    #[must_use]
    pub fn called(&self, name: &str, called_as: &str) -> CalledFunction {
        let named = |p: &Parameter| (p.name.to_string(), p.ty.clone());
        CalledFunction {
            called_as: called_as.to_owned(),
            name: name.to_owned(),
            parameters: self.parameters.iter().map(named).collect(),
            variadic: self.variadic.as_ref().map(named),
            returns: self.result.clone(),
        }
    }
}
