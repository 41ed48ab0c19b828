//! Signatures of provider functions, in the form that evaluation needs.

use std::sync::Arc;

use cty::Type;
use syntax::diag::CalledFunction;

#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Name for messages.
    pub name: Arc<str>,
    pub ty: Type,
    /// True if null may be passed.
    pub allow_null: bool,
    /// True if unknown values may be passed.
    pub allow_unknown: bool,
}

/// Signature of a provider's function.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    pub parameters: Vec<Parameter>,
    /// Parameter of all further arguments.
    pub variadic: Option<Parameter>,
    pub result: Type,
}

impl Signature {
    #[must_use]
    pub fn parameter(&self, position: usize) -> Option<&Parameter> {
        self.parameters.get(position).or(self.variadic.as_ref())
    }

    /// Returns the signature for messages about a call.
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
