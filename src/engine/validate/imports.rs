//! Validation of import blocks.

use addrs::{InstanceKey, ModuleInstance};
use config::{Import, ImportBy, Module};
use cty::Value;
use syntax::ast::Expr;
use syntax::{Diagnostic, Diagnostics};

use super::{Validator, representative};
use crate::eval::{Repetition, Reported};
use crate::import_id::{identifier, import_identity};

/// Returns an error if an import block's target has an instance key of a kind that the resource does not have.
fn wrong_key(module: &Module, import: &Import) -> Option<Diagnostic> {
    let instance = import
        .to_instance
        .as_ref()
        .filter(|_| import.to_resource.module.is_root())?;
    let block = module.resources.get(&import.to_resource.resource)?;
    let argument = match &instance.resource.key {
        InstanceKey::String(_) if block.for_each.is_none() => "for_each",
        InstanceKey::Int(_) if block.count.is_none() => "count",
        _ => return None,
    };
    Some(
        Diagnostic::error(
            "Invalid import 'to' expression",
            format!(
                "The target {instance} has a key as instances of \"{argument}\" have it, and {} does not use \"{argument}\".",
                block.address
            ),
        )
        .at(import.to.range()),
    )
}

impl Validator<'_> {
    /// Checks the instance keys in the targets of `import` blocks, and evaluates their expressions.
    pub(super) fn imports(&self) {
        for node in self.config.nodes() {
            let module = representative(&node.path);
            for import in &node.module.imports {
                match wrong_key(&node.module, import) {
                    Some(problem) => self.evaluator.report([problem]),
                    None => self.import(&module, import),
                }
            }
        }
    }

    fn import(&self, module: &ModuleInstance, import: &Import) {
        let Some(scope) = self.evaluator.scope(module) else {
            return;
        };
        let mut repetition = Repetition::default();
        if let Some(expr) = &import.for_each {
            let Ok(mut any) = self.evaluator.import_for_each(expr, &scope) else {
                return;
            };
            repetition = any.pop().unwrap_or_default();
        }
        let Some(scope) = self.evaluator.scope_with(module, repetition, None) else {
            return;
        };
        let mut to = &import.to;
        while let Expr::Index { collection: next, .. } | Expr::Relative { source: next, .. } = to {
            if let Expr::Index { key, .. } = to {
                // Only the diagnostics of the evaluation matter, not its result.
                let _: Result<_, Reported> = self.evaluator.evaluate(key, &scope);
            }
            to = next;
        }
        if let Ok(value) = self.evaluator.evaluate(import.by.expr(), &scope)
            && let Err(problems) = self.import_by(import, value)
        {
            self.evaluator.report(problems);
        }
    }

    /// Checks the import ID or identity of an import block, as far as it is known.
    fn import_by(&self, import: &Import, value: Value) -> Result<(), Diagnostics> {
        let range = import.by.expr().range();
        match &import.by {
            ImportBy::Id(_) => identifier(value, range).map(|_| ()),
            ImportBy::Identity(_) => {
                let resource = &import.to_resource;
                let provider = self.config.provider_for(resource).provider.clone();
                let schema =
                    self.providers
                        .schemas()
                        .resource(&provider, resource.resource.mode, &resource.resource.ty);
                // A missing resource block or an unknown type is reported elsewhere.
                let Some(schema) = schema else { return Ok(()) };
                import_identity(value, schema, &resource.resource.ty, range).map(|_| ())
            }
        }
    }
}
