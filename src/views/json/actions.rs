//! Actions in plan documents: planned invocations, and the blocks of the configuration.

use config::{ActionEvent, ActionFailure, ModuleNode};
use cty::Value;
use engine::invocation::{ActionInvocation, InvocationTrigger};
use engine::plan::PlanView;
use serde_json::{Value as Json, json};

use super::Object;
use super::expressions::expression;
use super::values::{known_part, sensitive_parts, unknown_parts};

#[must_use]
pub fn event_name(trigger: &InvocationTrigger) -> &'static str {
    match trigger.lifecycle().map(|t| t.event) {
        Some(ActionEvent::BeforeCreate) => "BeforeCreate",
        Some(ActionEvent::AfterCreate) => "AfterCreate",
        Some(ActionEvent::BeforeUpdate) => "BeforeUpdate",
        Some(ActionEvent::AfterUpdate) => "AfterUpdate",
        Some(ActionEvent::BeforeDestroy) => "BeforeDestroy",
        Some(ActionEvent::AfterDestroy) => "AfterDestroy",
        None => "Invoke",
    }
}

#[must_use]
pub fn on_failure_name(on_failure: ActionFailure) -> &'static str {
    match on_failure {
        ActionFailure::Halt => "ActionOnFailureHalt",
        ActionFailure::Taint => "ActionOnFailureTaint",
        ActionFailure::Continue => "ActionOnFailureContinue",
    }
}

pub(super) fn invocations(plan: PlanView<'_>) -> Vec<Json> {
    plan.invocations.iter().map(invocation).collect()
}

fn invocation(invocation: &ActionInvocation) -> Json {
    let action = &invocation.address.action.action;
    let config = &invocation.config;
    let document = Object::default()
        .with("address", invocation.address.to_string())
        .with("type", &*action.ty)
        .with("name", &*action.name)
        .with("config_values", known_part(config).unwrap_or(Json::Null))
        .with("config_sensitive", sensitive_parts(config))
        .with("config_unknown", unknown_document(config))
        .with("provider_name", invocation.provider.provider.to_string());
    match &*invocation.trigger {
        InvocationTrigger::Lifecycle(trigger) => document.with(
            "lifecycle_action_trigger",
            Object::default()
                .with("triggering_resource_address", trigger.resource.to_string())
                .with("action_trigger_event", event_name(&invocation.trigger))
                .with("action_trigger_block_index", trigger.block)
                .with("actions_list_index", trigger.action)
                .with("on_failure", on_failure_name(trigger.on_failure)),
        ),
        InvocationTrigger::Invoke { caller } => {
            let caller = caller.as_ref().map(ToString::to_string);
            document.with(
                "invoke_action_trigger",
                Object::default().with_some("calling_resource_address", caller),
            )
        }
    }
    .into()
}

fn unknown_document(config: &Value) -> Json {
    // An action without a configuration has no unknown parts.
    if config.is_null() {
        return Json::Bool(false);
    }
    match unknown_parts(config) {
        Json::Null => json!({}),
        parts => parts,
    }
}

/// Returns the `action` blocks of a module, sorted by type and name.
pub(super) fn configured(node: &ModuleNode) -> Vec<Json> {
    let blocks = node.module.actions.values().map(|action| {
        // The key has the module's own name for the provider. For resources it has the name in the caller's
        // configuration, which Terraform does not use for actions.
        let local = action.local_provider();
        let key = if node.path.is_root() {
            local.to_string()
        } else {
            format!("{}:{local}", node.path)
        };
        Object::default()
            .with("address", action.address.to_string())
            .with("type", &*action.address.ty)
            .with("name", &*action.address.name)
            .with("provider_config_key", key)
            .with_content("count_expression", action.count.as_ref().map_or(Json::Null, expression))
            .with_content(
                "for_each_expression",
                action.for_each.as_ref().map_or(Json::Null, expression),
            )
            .into()
    });
    blocks.collect()
}
