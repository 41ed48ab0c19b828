//! Action invocations in the machine-readable stream.

use addrs::AbsActionInstance;
use config::ActionFailure;
use engine::events::Event;
use engine::invocation::{ActionInvocation, InvocationTrigger, LifecycleTrigger};
use serde_json::{Value as Json, json};

use super::{Stream, resource};
use crate::json::actions::{event_name, on_failure_name};
use crate::json::{Object, instance_key};

impl Stream {
    /// Reports a planned invocation.
    pub(super) fn planned_invocation(&self, invocation: &ActionInvocation) {
        let address = &invocation.address;
        let document = Object::default().with("action_addr", action(address));
        let document = match &*invocation.trigger {
            InvocationTrigger::Lifecycle(trigger) => document.with(
                "lifecycle_trigger",
                Object::default()
                    .with("triggering_resource", resource(&trigger.resource))
                    .with("triggering_event", event_name(&invocation.trigger))
                    .with("action_trigger_block_index", trigger.block)
                    .with("actions_list_index", trigger.action)
                    .with("on_failure", on_failure_name(trigger.on_failure)),
            ),
            InvocationTrigger::Invoke { .. } => document.with("action_trigger", json!({})),
        };
        let message = format!("planned action invocation: {address}");
        self.info(&message, "planned_action_invocation", [("invocation", document.into())]);
    }

    /// Reports an event of an invocation; ignores other events.
    pub(super) fn action_event(&self, event: &Event) {
        match event {
            Event::ActionStart { address, trigger } => {
                // Terraform's format of the trigger differs here from that of the events below.
                let message = match trigger.lifecycle() {
                    Some(t) => format!("{}.trigger[{}]: Action started: {address}", t.resource, t.block),
                    None => format!("Action started: {address}"),
                };
                self.hook(&message, "action_start", invocation(address, trigger, None));
            }
            Event::ActionProgress {
                address,
                trigger,
                message: text,
            } => {
                let message = match trigger.lifecycle() {
                    Some(t) => format!("{} ({}): {address} - {text}", t.resource, t.block),
                    None => format!("{address} - {text}"),
                };
                let hook = invocation(address, trigger, Some(("message", text)));
                self.hook(&message, "action_progress", hook);
            }
            Event::ActionComplete { address, trigger } => {
                let message = match trigger.lifecycle() {
                    Some(t) => format!("{} ({}): Action complete: {address}", t.resource, t.block),
                    None => format!("Action complete: {address}"),
                };
                self.hook(&message, "action_complete", invocation(address, trigger, None));
            }
            Event::ActionFailed {
                address,
                trigger,
                error,
            } => {
                let message = match trigger.lifecycle() {
                    Some(t) => format!("{} ({}): Action errored: {address} - {error}", t.resource, t.block),
                    None => format!("Action errored: {address} - {error}"),
                };
                let hook = invocation(address, trigger, Some(("error", error)));
                self.hook(&message, "action_errored", hook);
            }
            _ => {}
        }
    }
}

/// Returns the fields that all messages about an invocation have, with the key of one of its hooks.
fn invocation(address: &AbsActionInstance, trigger: &InvocationTrigger, own: Option<(&str, &str)>) -> Object {
    let mut document = Object::default().with("action", action(address));
    if let Some((key, text)) = own {
        document = document.with(key, text);
    }
    match trigger {
        InvocationTrigger::Lifecycle(t) => document.with("lifecycle", lifecycle(t, event_name(trigger))),
        InvocationTrigger::Invoke { .. } => document.with("invoke", json!({})),
    }
}

fn lifecycle(trigger: &LifecycleTrigger, event: &str) -> Json {
    let on_failure: ActionFailure = trigger.on_failure;
    Object::default()
        .with("resource", resource(&trigger.resource))
        .with("trigger_index", trigger.block)
        .with("actions_index", trigger.action)
        .with("trigger_event", event)
        .with("on_failure", on_failure_name(on_failure))
        .into()
}

fn action(address: &AbsActionInstance) -> Json {
    let inside = &address.action;
    Object::default()
        .with("addr", address.to_string())
        .with("module", address.module.to_string())
        .with("action", inside.to_string())
        .with("implied_provider", inside.action.implied_provider())
        .with("action_type", &*inside.action.ty)
        .with("action_name", &*inside.action.name)
        .with("action_key", instance_key(&inside.key).unwrap_or(Json::Null))
        .into()
}
