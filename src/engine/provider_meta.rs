//! `provider_meta`: values that a module passes to a provider with every request for its objects.

use addrs::{AbsResourceInstance, Provider};
use cty::Value;
use syntax::Diagnostic;

use crate::context::OperationContext;
use crate::eval::Reported;
use crate::object_config;

impl OperationContext<'_> {
    /// Returns the value of the `provider_meta` block for this provider in the module of an object, without marks.
    /// `None` if the provider has no schema for such a block; null if the module has no block.
    pub fn provider_meta(&self, address: &AbsResourceInstance, provider: &Provider) -> Result<Option<Value>, Reported> {
        let schemas = &self.providers.schemas().providers;
        let schema = schemas.get(provider).and_then(|schema| schema.provider_meta.as_ref());
        let node = self.inputs.config.node(&address.module.module());
        let written = node.and_then(|node| node.module.provider_meta.get(provider));
        match (written, schema) {
            (None, None) => Ok(None),
            (None, Some(schema)) => Ok(Some(Value::null(schema.implied_type()))),
            (Some(meta), None) => {
                let summary = format!("Provider {provider} doesn't support provider_meta");
                let detail = format!(
                    "The provider of {address} takes no provider_meta block. Remove the block, or select a version of the \
                     provider that takes one."
                );
                Err(self.fail(Diagnostic::error(summary, detail).at(&meta.range)))
            }
            (Some(meta), Some(schema)) => {
                let scope = self.evaluator.scope(&address.module).ok_or(Reported)?;
                let value = object_config::object_config(self.evaluator, address, &meta.body, schema, &scope)?;
                Ok(Some(value.unmark_deep().0))
            }
        }
    }
}
