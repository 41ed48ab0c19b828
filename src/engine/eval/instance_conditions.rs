//! Preconditions and postconditions of resource instances.

use addrs::AbsResourceInstance;
use config::{CheckRule, Resource};
use cty::Value;

use super::checks::{Checked, ConditionKind, Conditions, FailureSeverity};
use super::{Evaluator, ModuleScope, Repetition, Reported};

/// An instance of a configured resource.
#[derive(Clone, Copy)]
pub struct ConfiguredInstance<'c> {
    pub address: &'c AbsResourceInstance,
    /// Block of the instance's resource.
    pub block: &'c Resource,
    /// Values of `count.index` and `each`.
    pub repetition: &'c Repetition,
}

impl Evaluator<'_> {
    /// Returns the scope of the expressions of an instance, without `self`.
    pub fn instance_scope(&self, instance: ConfiguredInstance<'_>) -> Result<ModuleScope<'_>, Reported> {
        self.scope_with(&instance.address.module, instance.repetition.clone(), None)
            .ok_or(Reported)
    }

    pub fn check_preconditions(
        &self,
        instance: ConfiguredInstance<'_>,
        severity: FailureSeverity,
    ) -> Result<(), Reported> {
        let rules = &instance.block.lifecycle.preconditions;
        self.check_instance(instance, rules, ConditionKind::Precondition, None, severity)
    }

    /// Evaluates the postconditions of an instance. `self` in their expressions is this object.
    pub fn check_postconditions(
        &self,
        instance: ConfiguredInstance<'_>,
        object: Option<Value>,
        severity: FailureSeverity,
    ) -> Result<(), Reported> {
        let rules = &instance.block.lifecycle.postconditions;
        self.check_instance(instance, rules, ConditionKind::Postcondition, object, severity)
    }

    fn check_instance(
        &self,
        instance: ConfiguredInstance<'_>,
        rules: &[CheckRule],
        kind: ConditionKind,
        object: Option<Value>,
        severity: FailureSeverity,
    ) -> Result<(), Reported> {
        // Most blocks have no conditions, and need neither a marked object nor a scope.
        if rules.is_empty() {
            return Ok(());
        }
        let object = object.map(|object| self.marked_self(instance.address, instance.block, object));
        let scope = self
            .scope_with(&instance.address.module, instance.repetition.clone(), object)
            .ok_or(Reported)?;
        self.check_all(&Conditions {
            rules,
            kind,
            scope: &scope,
            of: &Checked::Resource(instance.address.clone()),
            severity,
        })
    }
}
