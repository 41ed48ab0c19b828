//! Calling functions of providers: what is common to all who do.

use std::sync::Arc;

use cty::{Marks, Type, Value};

use super::CallError;

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

/// What is to be done about a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Prepared {
    /// The provider is to be called with these arguments, free of marks; its result gets these marks.
    Call(Vec<Value>, Marks),
    /// The result is this, without asking the provider: an argument is not known yet.
    Result(Value),
}

/// Checks and converts the arguments of a call as the function's signature says.
pub fn prepare(
    parameters: &[Parameter],
    variadic: Option<&Parameter>,
    result: &Type,
    arguments: &[Value],
) -> Result<Prepared, CallError> {
    if arguments.len() < parameters.len() {
        let missing = &parameters[arguments.len()].name;
        return Err(CallError::failed(format!(
            "expects {} argument(s); missing value for \"{missing}\"",
            parameters.len()
        )));
    }
    let mut marks = Marks::NONE;
    let mut unknown = false;
    let mut out = Vec::with_capacity(arguments.len());
    for (i, argument) in arguments.iter().enumerate() {
        let Some(parameter) = parameters.get(i).or(variadic) else {
            return Err(CallError::failed(format!(
                "expects only {} argument(s)",
                parameters.len()
            )));
        };
        let (argument, own) = argument.clone().unmark_deep();
        marks |= own;
        let invalid =
            |message: &str| CallError::failed(format!("invalid value for \"{}\" parameter: {message}", parameter.name));
        let value = cty::convert(&argument, &parameter.ty).map_err(|e| invalid(&e.message))?;
        if value.is_null() && !parameter.allow_null {
            return Err(invalid("argument must not be null"));
        }
        unknown |= !value.is_wholly_known() && !parameter.allow_unknown;
        out.push(value);
    }
    if unknown {
        return Ok(Prepared::Result(Value::unknown(result.clone()).with_marks(marks)));
    }
    Ok(Prepared::Call(out, marks))
}
