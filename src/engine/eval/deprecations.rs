//! Deprecated values carry a mark. The use of such a value causes a warning, and removes the mark.
//!
//! The mark comes from the `deprecated` argument of an output, when the calling module refers to the output, or from the schema of a
//! provider, when an expression refers to the resource. It follows the value through expressions. In the configuration of an object and in
//! a root output, marks on any part of the value cause warnings. Where other expressions can still refer to the value, only a mark on the
//! value as a whole causes one, since its parts may never be used.

use addrs::{InstanceKey, Module};
use config::Resource;
use cty::value::Part;
use cty::{Deprecation, Value};
use lang::body::{expression_range, path_range};
use schema::BlockSchema;
use schema::deprecation::mark_deprecated;
use syntax::ast::{Body, Expr};
use syntax::{Diagnostic, Diagnostics, Range};

use super::objects::ReferencedResource;
use super::{Evaluator, ModuleScope, Reported};
use crate::inputs::ModuleDeprecations;

fn warning(deprecation: &Deprecation, range: &Range) -> Diagnostic {
    let mut warning = Diagnostic::warning("Deprecated value used", &*deprecation.message).at(range);
    if !deprecation.origin.is_empty() {
        warning.deprecation_origin = Some(deprecation.origin.to_string());
    }
    warning
}

impl Evaluator<'_> {
    /// Returns true if a call on the path to a module has `ignore_nested_deprecations`.
    pub(crate) fn ignores_deprecations(&self, module: &Module) -> bool {
        let mut at = module.clone();
        while let Some((parent, name)) = at.parent() {
            let call = self.config.node(&parent).and_then(|n| n.module.module_calls.get(name));
            if call.is_some_and(|call| call.ignore_nested_deprecations) {
                return true;
            }
            at = parent;
        }
        false
    }

    /// Returns true if the deprecated variables and outputs of a module cause warnings.
    pub(super) fn warns_about(&self, module: &Module) -> bool {
        let is_local = |source: &str| source.starts_with("./") || source.starts_with("../");
        match self.environment.deprecations {
            ModuleDeprecations::All => true,
            ModuleDeprecations::Local => self.config.node(module).is_some_and(|node| is_local(&node.source)),
            ModuleDeprecations::None => false,
        }
    }

    /// Warns if a value that is used in a module is deprecated as a whole.
    pub(super) fn warn_of_deprecations(&self, value: &Value, module: &Module, range: &Range) {
        if !value.marks().is_deprecated() || self.ignores_deprecations(module) {
            return;
        }
        self.report(value.marks().deprecations().iter().map(|d| warning(d, range)));
    }

    /// Warns if a value is deprecated as a whole, and removes that mark.
    pub(super) fn without_deprecation(&self, value: Value, module: &Module, range: &Range) -> Value {
        self.warn_of_deprecations(&value, module, range);
        let (value, marks) = value.unmark();
        value.with_marks(marks.without_deprecations())
    }

    /// Removes all deprecation marks from the value of an expression. Each causes a warning at the part of the expression with the value.
    pub(super) fn without_deprecations(&self, value: Value, module: &Module, expr: &Expr) -> Value {
        let (value, found) = value.without_deprecations();
        if !found.is_empty() && !self.ignores_deprecations(module) {
            self.report(
                found
                    .iter()
                    .map(|(path, deprecation)| warning(deprecation, expression_range(expr, path))),
            );
        }
        value
    }

    /// Marks the parts of a resource's value that its provider has deprecated.
    pub(super) fn with_deprecations(&self, resource: &ReferencedResource<'_>, value: Value) -> Value {
        let (address, block) = (resource.address, resource.block);
        let schema = self
            .schemas
            .and_then(|s| s.resource(&block.provider, address.resource.mode, &address.resource.ty));
        // Few schemas have deprecated attributes: for the others the value is not rebuilt.
        let Some(schema) = schema.map(|s| &*s.block).filter(|b| b.contains_deprecated()) else {
            return value;
        };
        if block.count.is_none() && block.for_each.is_none() || !value.is_known() {
            return mark_deprecated(schema, value, &address.to_string());
        }
        value.map_parts(|part, instance| {
            let key = match part {
                Part::Index(i) => InstanceKey::Int(i as u64),
                Part::Attribute(name) | Part::Key(name) => InstanceKey::String(name.clone()),
                Part::SetElement => InstanceKey::None,
            };
            mark_deprecated(schema, instance.clone(), &address.instance(key).to_string())
        })
    }

    /// Marks the parts of an object that its provider has deprecated, for its use as `self`.
    pub(crate) fn marked_self(&self, address: &dyn std::fmt::Display, resource: &Resource, object: Value) -> Value {
        let schema = self
            .schemas
            .and_then(|s| s.resource(&resource.provider, resource.address.mode, &resource.address.ty));
        match schema.filter(|schema| schema.block.contains_deprecated()) {
            Some(schema) => mark_deprecated(&schema.block, object, &address.to_string()),
            None => object,
        }
    }

    /// Evaluates an expression whose value is used, and warns if it is deprecated as a whole.
    pub fn evaluate_used(&self, expr: &Expr, scope: &ModuleScope<'_>) -> Result<Value, Reported> {
        let value = self.evaluate(expr, scope)?;
        Ok(self.without_deprecation(value, &scope.module.module(), expr.range()))
    }
}

impl ModuleScope<'_> {
    /// Removes all deprecation marks from the configuration of an object, and returns a warning for each at the argument with the value.
    pub fn without_deprecations(&self, config: Value, body: &Body, schema: &BlockSchema) -> (Value, Diagnostics) {
        let (config, found) = config.without_deprecations();
        if found.is_empty() || self.evaluator.ignores_deprecations(&self.module.module()) {
            return (config, Diagnostics::new());
        }
        let warnings = found
            .iter()
            .map(|(path, deprecation)| warning(deprecation, &path_range(body, schema, path)));
        (config, warnings.collect())
    }
}

/// Returns the deprecation mark of an output; no mark if the output is not deprecated.
pub(super) fn mark(module: &Module, output: &config::Output) -> cty::Marks {
    output.deprecated.as_ref().map_or(cty::Marks::NONE, |deprecated| {
        cty::Marks::deprecated(deprecated.message.clone(), format!("{module}.{}", output.name))
    })
}
