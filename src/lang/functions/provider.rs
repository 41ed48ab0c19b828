//! What a provider's function takes and gives, as far as evaluation must know it.

use std::sync::Arc;

use cty::Type;

/// A parameter of a provider's function.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name, as messages tell it.
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

    /// The function under this name as it is told in messages: `provider::p::f(a, more...)`.
    #[must_use]
    pub fn shown(&self, name: &str) -> String {
        let mut names: Vec<String> = self.parameters.iter().map(|p| p.name.to_string()).collect();
        names.extend(self.variadic.iter().map(|p| format!("{}...", p.name)));
        format!("{name}({})", names.join(", "))
    }
}
