//! States of other configurations, which the data source `terraform_remote_state` reads.

use std::sync::Arc;

use cty::Value;
use schema::Schema;
use state::{Codec, State};
use syntax::{Diagnostic, Diagnostics};

use super::kind::Kind;
use super::location::StateBackend;
use crate::Context;
use crate::problem::problem;

const BAD_CONFIG: &str = "Invalid backend configuration";

/// Reads the state of a workspace in a backend; `None` if there is none. Nothing is created, recorded or locked.
///
/// # Errors
/// The backend does not exist or refuses the arguments, or the state cannot be read.
pub fn read(
    context: &Context<'_>,
    backend: &str,
    arguments: &Value,
    workspace: &str,
    codec: &Codec,
) -> Result<Option<State>, Diagnostics> {
    let kind = Kind::find(context, backend, None)?;
    let config = of_arguments(arguments, &kind.schema())?;
    match kind.configure(config, None)? {
        StateBackend::Local(local) => state::store::read_copy(&local.state(workspace), codec).map_err(|e| problem(&e)),
        StateBackend::Store(store) => store.read(workspace, codec),
    }
}

/// Converts arguments to an object of the schema's type. Missing arguments become null.
fn of_arguments(arguments: &Value, schema: &Arc<Schema>) -> Result<Value, Diagnostics> {
    let invalid = |detail: String| Diagnostics::from(Diagnostic::error(BAD_CONFIG, detail));
    let ty = schema.block.implied_object();
    for (name, _) in arguments.entries().into_iter().flatten() {
        if ty.attributes().iter().all(|attribute| attribute.name != *name) {
            return Err(invalid(format!("The backend has no argument named \"{name}\".")));
        }
    }
    let values = ty
        .attributes()
        .iter()
        .map(|attribute| match arguments.get(&attribute.name) {
            None => Ok(Value::null(attribute.ty.clone())),
            Some(value) => cty::convert(value, &attribute.ty).map_err(|e| {
                invalid(format!(
                    "The argument \"{}\" is not valid: {}.",
                    attribute.name, e.message
                ))
            }),
        });
    Ok(Value::object_of(&ty, values.collect::<Result<_, _>>()?))
}
