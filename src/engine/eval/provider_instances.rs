//! Instances of provider configurations with `for_each`, and the selection of the instance that an object uses.

use std::fmt::Display;
use std::sync::Arc;

use addrs::{AbsProviderConfig, InstanceKey, LocalProviderConfig, ModuleInstance};
use config::ProviderRef;
use cty::{Marks, Type};
use lang::eval::{Context, with_expression};
use syntax::Diagnostic;
use syntax::ast::Expr;
use syntax::diag::Extra;

use super::expand::Repeated;
use super::memo::slot;
use super::{Evaluator, Expansion, ModuleScope, Repetition, Reported};

/// Summary of errors about provider instances that do not exist.
pub(crate) const NOT_PRESENT: &str = "Provider instance not present";

/// A use of a provider configuration in an instance of a module.
pub struct ProviderUse<'u> {
    pub module: &'u ModuleInstance,
    pub local: &'u LocalProviderConfig,
    /// The `provider` argument, if there is one.
    pub reference: Option<&'u ProviderRef>,
    /// `count.index` and `each` of the block's instance.
    pub repetition: &'u Repetition,
    /// Object or function that uses the provider configuration, as diagnostics name it.
    pub about: &'u dyn Display,
}

impl Evaluator<'_> {
    /// Returns the expansion of the block of a provider configuration; `None` if it has no `for_each`.
    pub fn provider_expansion(&self, address: &AbsProviderConfig) -> Result<Option<Arc<Expansion>>, Reported> {
        let block = address.block();
        let Some((node, expr)) = self.config.expanded_provider(&block) else {
            return Ok(None);
        };
        // A module that contains provider blocks cannot have `count` or `for_each`, so it has one instance.
        let module = node.path.0.iter().fold(ModuleInstance::root(), |m, name| {
            m.child(name.clone(), InstanceKey::None)
        });
        let expand = || {
            let scope = self.scope(&module).ok_or(Reported)?;
            Ok(Arc::new(self.for_each(expr, &scope)?))
        };
        let expansion = slot(&self.expansions, &Repeated::Provider(block))
            .get_or_init(expand)
            .clone();
        expansion.map(Some)
    }

    /// Returns the instances of a provider configuration; only the configuration itself if it has no `for_each`.
    pub fn provider_instances(&self, block: &AbsProviderConfig) -> Result<Vec<AbsProviderConfig>, Reported> {
        Ok(match self.provider_expansion(block)?.as_deref() {
            Some(Expansion::ForEach(items)) => items.keys().map(|key| block.instance(Some(key.clone()))).collect(),
            _ => vec![block.clone()],
        })
    }

    /// Returns true if the configuration has this provider instance. The address must have a key if and only if the block has `for_each`.
    pub fn has_provider_instance(&self, address: &AbsProviderConfig) -> Result<bool, Reported> {
        Ok(match (self.provider_expansion(address)?, &address.key) {
            (None, key) => key.is_none(),
            (Some(expansion), Some(key)) => expansion.has(&InstanceKey::String(key.clone())),
            (Some(_), None) => false,
        })
    }

    /// Returns the provider configuration that an object uses, with the instance key if it has `for_each`. If the key is unknown (in static
    /// evaluation), the result has no key.
    pub fn provider_used(&self, of: &ProviderUse<'_>) -> Result<AbsProviderConfig, Reported> {
        let node = self.config.node(&of.module.module()).ok_or(Reported)?;
        let address = node.provider(of.local);
        let own = of.reference.and_then(|reference| reference.key.as_deref());
        let key = match (own, node.passed_key(of.local)) {
            (Some(expr), _) => {
                let scope = self
                    .scope_with(of.module, of.repetition.clone(), None)
                    .ok_or(Reported)?;
                self.provider_key(expr, &scope, of.about)?
            }
            (None, Some(passed)) => {
                let (caller, step) = caller(of.module, &passed.caller).ok_or(Reported)?;
                let repetition = self.call_expansion(&caller, &passed.call)?.repetition(&step);
                let scope = self.scope_with(&caller, repetition, None).ok_or(Reported)?;
                self.provider_key(&passed.expr, &scope, of.about)?
            }
            // Loading the configuration has refused references without a key to a provider configuration with `for_each`.
            (None, None) => return Ok(address),
        };
        let Some((key, expr)) = key else { return Ok(address) };
        let instance = address.instance(Some(key));
        if self.has_provider_instance(&instance)? {
            return Ok(instance);
        }
        // In static evaluation, the keys of the provider configuration may be unknown.
        if self.is_static() {
            return Ok(address);
        }
        self.report([Diagnostic::error(
            NOT_PRESENT,
            format!(
                "{} uses the provider instance {instance}, which does not exist: the for_each of the configuration has no \
                 such key.",
                of.about
            ),
        )
        .at(expr.range())
        .about(of.about)]);
        Err(Reported)
    }

    /// Evaluates the key of a provider instance; `None` if it is not known in static evaluation.
    pub(crate) fn provider_key<'e>(
        &self,
        expr: &'e Expr,
        scope: &ModuleScope<'_>,
        about: &dyn Display,
    ) -> Result<Option<(Arc<str>, &'e Expr)>, Reported> {
        let (value, marks) = self.evaluate(expr, scope)?.unmark_deep();
        let invalid = |extra: Extra, detail: &str| {
            let mut problem = Diagnostic::error("Invalid provider instance key", detail)
                .at(expr.range())
                .about(about);
            problem.extra = extra;
            self.report([with_expression(problem, expr, Context::new(scope))]);
            Reported
        };
        if marks.contains(Marks::SENSITIVE) {
            return Err(invalid(
                Extra::CausedBySensitive,
                "The key is sensitive. It becomes part of the state, where it is shown.",
            ));
        }
        if marks.contains(Marks::EPHEMERAL) {
            return Err(invalid(
                Extra::None,
                "The key depends on an ephemeral value, which is not stored. Choose a key that does not.",
            ));
        }
        if value.is_null() {
            return Err(invalid(
                Extra::None,
                "The key is null, where the key of an instance is required.",
            ));
        }
        let text = cty::convert(&value, &Type::String)
            .map_err(|e| invalid(Extra::None, &format!("The key must be a string: {}.", e.message)))?;
        match text.as_arc_str() {
            Some(key) => Ok(Some((key.clone(), expr))),
            None if self.is_static() => Ok(None),
            None => Err(invalid(
                Extra::CausedByUnknown,
                "The key is known only after apply, and the provider is needed to plan. Choose a key that is known, or apply \
                 what it depends on first, with the -target option.",
            )),
        }
    }
}

/// Returns the instance of the module `path` that contains a module instance, directly or indirectly, and the key of the module call in
/// it that leads to the module instance.
fn caller(module: &ModuleInstance, path: &addrs::Module) -> Option<(ModuleInstance, InstanceKey)> {
    let mut at = module.clone();
    loop {
        let (parent, step) = at.parent()?;
        let key = step.key.clone();
        if parent.module() == *path {
            return Some((parent, key));
        }
        at = parent;
    }
}
