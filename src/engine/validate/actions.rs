//! Validation of actions and of the triggers of resources.

use std::collections::{BTreeMap, HashSet};

use addrs::{ConfigAction, ConfigResource, InstanceKey, Referenceable};
use config::{ActionEvent, ActionTrigger, Config, Resource};
use cty::Value;
use lang::refs::{references_in_body, references_in_expr};
use schema::Schema;
use syntax::{Diagnostic, Diagnostics, Range};

use super::Validator;
use crate::actions::{ActionCall, ConfiguredAction, key_of};
use crate::eval::{Expansion, Repetition, Reported};
use crate::instance::located;

/// Returns the actions that resources trigger. Such an action is validated once for each of these resources.
pub(super) fn called(config: &Config) -> HashSet<ConfigAction> {
    let mut out = HashSet::new();
    for node in config.nodes().into_iter().filter(|n| !n.module.actions.is_empty()) {
        for resource in node.module.managed_resources() {
            for trigger in &resource.lifecycle.action_triggers {
                out.extend(trigger.actions.iter().map(|a| a.action.in_module(&node.path)));
            }
        }
    }
    out
}

impl Validator<'_> {
    /// Validates an action: its repetition argument and, unless a resource triggers it, its configuration. (`triggers` validates the
    /// configuration of triggered actions.)
    pub(super) async fn action(&self, address: &ConfigAction) -> Result<(), Reported> {
        let (instance, _) = self.place(&address.module)?;
        // The expansion reports its failures itself, and they do not affect the configuration.
        let _: Result<_, Reported> = self.evaluator.action_expansion(&instance, &address.action);
        if self.called.contains(address) {
            return Ok(());
        }
        let action = self.configured_action(address)?;
        self.action_config(&action, None, &address.to_string()).await
    }

    fn configured_action(&self, address: &ConfigAction) -> Result<ConfiguredAction<'_>, Reported> {
        let provider = self
            .config
            .provider_for_action(address)
            .ok_or(Reported)?
            .provider
            .clone();
        if !self.providers.schemas().providers.contains_key(&provider) {
            // The provider could not be started, which has been reported.
            return Err(Reported);
        }
        ConfiguredAction::find(self.config, self.providers.schemas(), address).map_err(|d| self.fail(d))
    }

    /// Requests the validation of an action's configuration. `caller` is the value of the resource that triggers the action.
    async fn action_config(
        &self,
        action: &ConfiguredAction<'_>,
        caller: Option<Value>,
        about: &str,
    ) -> Result<(), Reported> {
        let (instance, _) = self.place(&action.address.module)?;
        let expansion = Expansion::of_any(action.block.count.is_some(), action.block.for_each.is_some());
        let call = ActionCall {
            module: &instance,
            repetition: expansion.repetition(&InstanceKey::None),
            caller,
            about,
        };
        let (value, warnings) = action
            .evaluate(self.evaluator, call, true)
            .map_err(|e| self.fail(e.unreported()))?;
        self.evaluator.report(warnings);
        let (value, _) = value.unmark_deep();
        let running = self
            .providers
            .unconfigured(&action.provider.provider)
            .await
            .map_err(|d| self.fail(d))?;
        let Some(actions) = running.actions() else {
            return Ok(());
        };
        let answer = actions.validate_action(&action.address.action.ty, value).await;
        let answer = answer.map_err(|d| self.fail(d))?;
        let body = action.block.config_body();
        self.evaluator
            .report(located(answer.diagnostics, action.written(&body), &about));
        Ok(())
    }

    /// Validates the triggers of a resource, and the actions they invoke.
    pub(super) async fn triggers(
        &self,
        address: &ConfigResource,
        block: &Resource,
        schema: &Schema,
        repetition: &Repetition,
    ) {
        let mut actions: BTreeMap<ConfigAction, ConfiguredAction<'_>> = BTreeMap::new();
        for trigger in &block.lifecycle.action_triggers {
            self.evaluator.report(misplaced_condition(trigger));
            for reference in &trigger.actions {
                let of = reference.action.in_module(&address.module);
                // `Blocks` has reported an undeclared action.
                if self.config.action(&of).is_none() {
                    continue;
                }
                if !actions.contains_key(&of) {
                    let Ok(action) = self.configured_action(&of) else {
                        continue;
                    };
                    self.evaluator.report(references_to_caller(&action, address));
                    actions.insert(of.clone(), action);
                }
                let Some(action) = actions.get(&of) else { continue };
                let key = key_of(reference, repetition).map(|key| key.unwrap_or_else(|| any_key(repetition)));
                let checked = key.and_then(|key| action.check_key(&key, &reference.range));
                self.evaluator.report(checked.err());
            }
        }
        for (of, action) in &actions {
            let caller = Some(Value::unknown(schema.implied_type()));
            let about = format!("{of}, called from {address}");
            // `action_config` reports its failures itself.
            let _: Result<(), Reported> = self.action_config(action, caller, &about).await;
        }
    }
}

/// Returns an example of the instance keys with this kind of repetition: a string for `for_each`, otherwise a number.
fn any_key(repetition: &Repetition) -> InstanceKey {
    match repetition.each {
        Some(_) => InstanceKey::String("".into()),
        None => InstanceKey::Int(0),
    }
}

/// Returns an error if a condition belongs to a destroy event, or if it refers to `self` and belongs to a `before_create` event.
fn misplaced_condition(trigger: &ActionTrigger) -> Diagnostics {
    let mut out = Diagnostics::new();
    let Some(condition) = &trigger.condition else {
        return out;
    };
    let at: &Range = condition.range();
    let refers_to_self = || {
        let (references, _) = references_in_expr(condition);
        references.iter().any(|r| r.subject == Referenceable::SelfRef)
    };
    for event in &trigger.events {
        if *event == ActionEvent::BeforeCreate && refers_to_self() {
            out.push(
                Diagnostic::error(
                    "Reference to self in before_create condition",
                    "Before an object is created, attributes that its provider computes are not known.",
                )
                .at(at),
            );
        }
        if event.is_destroy() {
            out.push(
                Diagnostic::error(
                    "Condition on destroy action",
                    "An action that a destruction triggers cannot have a condition, since it is invoked as planned. Remove the condition.",
                )
                .at(at),
            );
        }
    }
    out
}

/// Returns warnings for direct references of an action to the resource that triggers it.
fn references_to_caller(action: &ConfiguredAction<'_>, caller: &ConfigResource) -> Diagnostics {
    let Some(body) = &action.block.config else {
        return Diagnostics::new();
    };
    let (references, _) = references_in_body(body, &action.schema.block);
    let repetition = action.block.count.iter().chain(&action.block.for_each);
    let of_repetition = repetition.flat_map(|e| references_in_expr(e).0);
    let all = references.into_iter().chain(of_repetition);
    let named = all.filter(|r| lang::checks::resource_of(&r.subject) == Some(&caller.resource));
    let warning = |range: &Range| {
        Diagnostic::warning(
            "Reference to triggering resource",
            "The resource that triggers the action is available as \"caller\", which avoids that they depend on each other.",
        )
        .at(range)
    };
    named.map(|r| warning(&r.range)).collect()
}
