//! Visits of the blocks that are not resources: evaluation in every instance of their module.

use std::sync::Arc;

use addrs::{ConfigAction, Module, ModuleInstance};
use config::ModuleNode;

use crate::eval::checks::{Checked, ConditionKind, Conditions, FailureSeverity};
use crate::eval::{Evaluator, Reported};

/// Calls a function for each instance of a module. All instances are visited, also after a failure in one of them.
pub fn for_each_instance(
    evaluator: &Evaluator<'_>,
    module: &Module,
    mut f: impl FnMut(&ModuleInstance, &ModuleNode) -> Result<(), Reported>,
) -> Result<(), Reported> {
    let Some(node) = evaluator.config().node(module) else {
        return Ok(());
    };
    let mut failed = false;
    for instance in evaluator.module_instances(module)? {
        failed |= f(&instance, node).is_err();
    }
    if failed { Err(Reported) } else { Ok(()) }
}

/// Evaluates a variable in each instance of its module, and its validations.
pub fn visit_variable(evaluator: &Evaluator<'_>, module: &Module, name: &Arc<str>) -> Result<(), Reported> {
    for_each_instance(evaluator, module, |instance, node| {
        evaluator.variable(instance, node, name)?;
        let Some(variable) = node.module.variables.get(name) else {
            return Ok(());
        };
        let scope = evaluator.scope(instance).ok_or(Reported)?;
        evaluator.check_all(&Conditions {
            rules: &variable.validations,
            kind: ConditionKind::Variable,
            scope: &scope,
            of: &Checked::Variable(instance.clone(), name.clone()),
            severity: FailureSeverity::Error,
        })
    })
}

/// Evaluates a local value in each instance of its module.
pub fn visit_local(evaluator: &Evaluator<'_>, module: &Module, name: &Arc<str>) -> Result<(), Reported> {
    for_each_instance(evaluator, module, |instance, node| {
        evaluator.local(instance, node, name).map(|_| ())
    })
}

/// Evaluates the repetition arguments of a module call in each instance of the calling module.
pub fn visit_call(evaluator: &Evaluator<'_>, module: &Module, name: &Arc<str>) -> Result<(), Reported> {
    for_each_instance(evaluator, module, |instance, _| {
        evaluator.call_expansion(instance, name).map(|_| ())
    })
}

/// Evaluates the repetition arguments of an action in each instance of its module.
pub fn visit_action(evaluator: &Evaluator<'_>, action: &ConfigAction) -> Result<(), Reported> {
    for_each_instance(evaluator, &action.module, |instance, _| {
        evaluator.action_expansion(instance, &action.action).map(|_| ())
    })
}

/// Evaluates an output in each instance of its module, its preconditions first.
pub fn visit_output(
    evaluator: &Evaluator<'_>,
    module: &Module,
    name: &Arc<str>,
    severity: FailureSeverity,
) -> Result<(), Reported> {
    for_each_instance(evaluator, module, |instance, node| {
        check_output(evaluator, instance, node, name, severity)?;
        evaluator.output(instance, node, name).map(|_| ())
    })
}

/// Checks the preconditions of an output in one instance of its module.
pub fn check_output(
    evaluator: &Evaluator<'_>,
    instance: &ModuleInstance,
    node: &ModuleNode,
    name: &Arc<str>,
    severity: FailureSeverity,
) -> Result<(), Reported> {
    let scope = evaluator.scope(instance).ok_or(Reported)?;
    let rules = node
        .module
        .outputs
        .get(name)
        .map(|o| o.preconditions.as_slice())
        .unwrap_or_default();
    evaluator.check_all(&Conditions {
        rules,
        kind: ConditionKind::Output,
        scope: &scope,
        of: &Checked::Output(instance.clone(), name.clone()),
        severity,
    })
}

/// Evaluates a check block in the instances of its module for which `include` returns true.
pub fn visit_check(
    evaluator: &Evaluator<'_>,
    module: &Module,
    name: &Arc<str>,
    include: impl Fn(&ModuleInstance) -> bool,
) -> Result<(), Reported> {
    for_each_instance(evaluator, module, |instance, node| {
        let Some(check) = node.module.checks.get(name).filter(|_| include(instance)) else {
            return Ok(());
        };
        let scope = evaluator.scope(instance).ok_or(Reported)?;
        evaluator.check_all(&Conditions {
            rules: &check.asserts,
            kind: ConditionKind::Assertion,
            scope: &scope,
            of: &Checked::Check(instance.clone(), name.clone()),
            severity: FailureSeverity::Warning,
        })
    })
}
