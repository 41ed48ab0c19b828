//! Validation of the keys of provider instances, as far as static evaluation can find mistakes in them.

use std::fmt::Display;
use std::sync::Arc;

use addrs::{InstanceKey, ModuleInstance};
use config::ProviderRef;

use crate::eval::{Expansion, ModuleScope, Reported};

use super::Validator;

impl Validator<'_> {
    /// Evaluates the keys of the provider configurations that a module call passes.
    pub(super) fn passed_keys(
        &self,
        module: &ModuleInstance,
        call: &Arc<str>,
        expansion: &Expansion,
    ) -> Result<(), Reported> {
        let node = self.config.node(&module.module()).ok_or(Reported)?;
        let passed = node
            .module
            .module_calls
            .get(call)
            .and_then(|call| call.providers.as_ref());
        let repetition = expansion.keys().first().map(|key| expansion.repetition(key));
        let repetition = repetition.unwrap_or_else(|| expansion.repetition(&InstanceKey::None));
        let scope = self.evaluator.scope_with(module, repetition, None).ok_or(Reported)?;
        let about = format!("module.{call}");
        for passed in passed.into_iter().flatten() {
            self.provider_key(&passed.parent, &scope, &about)?;
        }
        Ok(())
    }

    /// Evaluates the key in a reference to a provider configuration.
    pub(super) fn provider_key(
        &self,
        reference: &ProviderRef,
        scope: &ModuleScope<'_>,
        about: &dyn Display,
    ) -> Result<(), Reported> {
        match &reference.key {
            Some(expr) => self.evaluator.provider_key(expr, scope, about).map(drop),
            None => Ok(()),
        }
    }
}
