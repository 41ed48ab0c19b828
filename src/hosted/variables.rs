//! Values of a workspace's variables, for commands that always run locally: `console` and `import`.

use std::collections::BTreeMap;

use config::Config;
use config::values::StoredValue;
use syntax::{Diagnostic, Diagnostics};

use crate::Context;
use crate::workspace;

/// Reads the variables of the selected workspace. The result is empty if its operations run locally, or its state is in another backend.
///
/// # Errors
/// The variables cannot be read.
pub fn stored(context: &Context<'_>, config: &Config) -> Result<BTreeMap<String, StoredValue>, Diagnostics> {
    if !workspace::may_be(context.stores.data_dir) {
        return Ok(BTreeMap::new());
    }
    let Some(hosted) = workspace::selected(context, config)?.filter(|hosted| !hosted.workspace.is_local()) else {
        return Ok(BTreeMap::new());
    };
    let runtime = context.stores.plugins.runtime()?;
    let variables = runtime.block_on(hosted.connection.variables(&hosted.workspace));
    let variables = variables.map_err(|e| {
        Diagnostics::from(Diagnostic::error(
            "Error loading variables",
            format!(
                "The variables of the workspace \"{}\" cannot be read: {e}.",
                hosted.workspace.name
            ),
        ))
    })?;
    let stored = variables.into_iter().map(|variable| {
        let value = match (variable.value, variable.is_expression) {
            (Some(text), false) => StoredValue::Text(text),
            (Some(text), true) => StoredValue::Expression(text),
            (None, is_expression) => StoredValue::Secret {
                is_text: !is_expression,
            },
        };
        (variable.name, value)
    });
    Ok(stored.collect())
}
