//! Diagnostics of plugins: their position in the configuration, their address, and the text about bugs in providers.

use std::fmt::Display;

use lang::body::path_range;
use provider::PluginDiagnostic;
use schema::Schema;
use syntax::Diagnostics;
use syntax::ast::Body;

/// End of error messages about bugs in providers.
pub const PROVIDER_BUG: &str = "This is a bug in the provider; please report it to its maintainers.";

/// Adds the position in the configuration and the address of the object to the diagnostics of a plugin.
pub fn located(
    problems: Vec<PluginDiagnostic>,
    written: Option<(&Body, &Schema)>,
    address: &dyn Display,
) -> Diagnostics {
    problems
        .into_iter()
        .map(|p| {
            let mut diagnostic = p.diagnostic;
            match written {
                Some((body, schema)) => {
                    diagnostic = diagnostic.at(&path_range(body, &schema.block, &p.attribute));
                }
                // Without the configuration, a range cannot be shown, so the path is added to the text.
                None if !p.attribute.0.is_empty() => {
                    let at = p.attribute.to_string();
                    diagnostic.detail = format!("{}\n\nAttribute: {}", diagnostic.detail, at.trim_start_matches('.'))
                        .trim()
                        .to_owned();
                }
                None => {}
            }
            diagnostic.about(address)
        })
        .collect()
}
