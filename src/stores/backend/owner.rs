//! The third-party provider of a state store, and its configuration.

use std::sync::Arc;

use cty::Value;
use schema::Schema;
use serde_json::Value as Json;
use syntax::ast::Body;
use syntax::{Diagnostic, Diagnostics};

use super::process::Process;
use super::record::SavedProvider;
use super::settings;

pub struct Owner {
    /// The part of the backend record that is about the provider.
    pub saved: SavedProvider,
    pub(super) name: Arc<str>,
    pub(super) config: Value,
    pub(super) schema: Arc<Schema>,
    pub(super) body: Option<Arc<Body>>,
}

impl Owner {
    /// Computes the hash of a `state_store` block with this provider.
    #[must_use]
    pub fn hash(&self, ty: &str, config: &Value) -> u32 {
        let version = self.saved.version.as_deref().unwrap_or_default();
        settings::store_hash(ty, config, [&self.saved.source, version, &self.name], &self.config)
    }

    /// Describes how the provider differs from the recorded one; `None` if it does not.
    #[must_use]
    pub fn change(&self, before: &SavedProvider) -> Option<String> {
        let now = &self.saved;
        if before.source != now.source {
            return Some(format!(
                "State store provider changed from {} to {}",
                before.source, now.source
            ));
        }
        if before.supply_mode != now.supply_mode {
            return Some(format!(
                "The provider {} comes from another source than before",
                now.source
            ));
        }
        if before.version != now.version {
            let text = |version: &Option<String>| version.clone().unwrap_or_else(|| "none".to_owned());
            return Some(format!(
                "State store provider {} version changed from {} to {}",
                now.source,
                text(&before.version),
                text(&now.version)
            ));
        }
        // A new version of the provider may have more arguments. An argument that is not set is not a change.
        let same = |(name, value): (&String, &Json)| before.config.get(name).unwrap_or(&Json::Null) == value;
        let all_same = now.config.iter().all(same);
        (!all_same).then(|| format!("State store provider {} configuration changed", now.source))
    }

    /// Configures the provider, and adds its warnings.
    ///
    /// # Errors
    /// A required argument is missing, or the provider refuses the configuration.
    pub(super) fn configure(&self, process: &Process, warnings: &mut Diagnostics) -> Result<(), Diagnostics> {
        let mut missing = Diagnostics::new();
        for (name, attribute) in &self.schema.block.attributes {
            if attribute.required && self.config.get(name).is_none_or(Value::is_null) {
                let detail = format!(
                    "The provider \"{}\" of the state store needs the argument \"{name}\": write it in the \"provider\" block of \
                     the \"state_store\" block.",
                    self.name
                );
                missing.push(Diagnostic::error("Missing required argument", detail));
            }
        }
        let body = self.body.as_deref();
        let parts = missing.into_iter().map(|problem| (problem, cty::Path::default()));
        settings::located(parts, body, &self.schema).into_result(())?;
        let answer = process.wait(process.plugin().configure_provider(self.config.clone()))?;
        let parts = answer.diagnostics.into_iter().map(|p| (p.diagnostic, p.attribute));
        let problems = settings::located(parts, body, &self.schema);
        if problems.has_errors() {
            return Err(problems);
        }
        warnings.extend(problems);
        warnings.extend(self.saved.supply_mode.warning());
        Ok(())
    }
}
