//! Validation of `list` blocks.

use addrs::ConfigResource;
use config::Resource;
use cty::{Type, Value};
use schema::Schema;

use super::Validator;
use crate::eval::{ModuleScope, Reported};
use crate::instance::located;
use crate::query::{limit_of, list_argument};

impl Validator<'_> {
    /// Checks a `list` block with this value of its body: Terraform's own arguments here, and the `config` block by the provider.
    pub(super) async fn list(
        &self,
        address: &ConfigResource,
        block: &Resource,
        schema: &Schema,
        scope: &ModuleScope<'_>,
        value: Value,
    ) -> Result<(), Reported> {
        if let Some(arguments) = &block.list {
            for (expr, name, ty) in [
                (&arguments.limit, "limit", Type::Number),
                (&arguments.include_resource, "include_resource", Type::Bool),
            ] {
                let Some(expr) = expr else { continue };
                let value = self.evaluator.evaluate(expr, scope)?;
                let value = list_argument(value, name, &ty, expr.range()).map_err(|p| self.fail(p.into()))?;
                if let Some(value) = value.filter(|_| name == "limit") {
                    limit_of(&value, expr.range()).map_err(|p| self.fail(p.into()))?;
                }
            }
        }
        let ty = &address.resource.ty;
        let provider = self.config.provider_for(address).provider.clone();
        let running = self.providers.unconfigured(&provider).await.map_err(|d| self.fail(d))?;
        let (value, _) = value.unmark_deep();
        let mut config = value.get("config").cloned().unwrap_or_else(Value::dynamic);
        // As in a query, a missing `config` block is sent as an empty one.
        if config.is_null()
            && let Some(list) = self
                .providers
                .schemas()
                .providers
                .get(&provider)
                .and_then(|p| p.lists.get(ty))
        {
            config = list.config.block.empty_object();
        }
        let answer = running.validate_list(ty, config).await.map_err(|d| self.fail(d))?;
        self.evaluator
            .report(located(answer.diagnostics, Some((&block.body, schema)), address));
        Ok(())
    }
}
