//! Outputs of a workspace, for users who may read outputs but not the state.

use std::collections::BTreeMap;
use std::sync::Arc;

use config::Config;
use state::OutputValue;
use syntax::{Diagnostic, Diagnostics};

use crate::Context;
use crate::workspace::{self, Hosted};

/// Reads the outputs of the selected workspace of a `cloud` block. `None` if they must be read from the state.
///
/// # Errors
/// The outputs cannot be read.
pub fn current(context: &Context<'_>, config: &Config) -> Result<Option<BTreeMap<Arc<str>, OutputValue>>, Diagnostics> {
    if !workspace::may_be(context.stores.data_dir) {
        return Ok(None);
    }
    let Some(hosted) = workspace::selected(context, config)?.filter(Hosted::is_cloud) else {
        return Ok(None);
    };
    let failed = |why: String| {
        Diagnostics::from(Diagnostic::error(
            "Failed to read outputs",
            format!(
                "The outputs of the workspace \"{}\" cannot be read: {why}.",
                hosted.workspace.name
            ),
        ))
    };
    let runtime = context.stores.plugins.runtime()?;
    let outputs = runtime.block_on(hosted.connection.outputs(&hosted.workspace));
    let Some(outputs) = outputs.map_err(|e| failed(e.to_string()))? else {
        return Ok(None);
    };
    let mut out = BTreeMap::new();
    for output in outputs {
        let wrong = |e: String| {
            failed(format!(
                "the server gives \"{}\" no value of its type: {e}",
                output.name
            ))
        };
        let ty = cty::json::type_from_json(&output.ty).map_err(|e| wrong(e.to_string()))?;
        let value = cty::json::from_json(&output.value, &ty).map_err(|e| wrong(e.to_string()))?;
        let sensitive = output.sensitive;
        out.insert(Arc::from(&*output.name), OutputValue { value, sensitive });
    }
    Ok(Some(out))
}
