//! The invocations of actions in a saved plan.

use std::sync::Arc;

use config::{ActionEvent, ActionFailure};
use engine::invocation::{ActionInvocation, InvocationTrigger, LifecycleTrigger};
use serde::{Deserialize, Serialize};

use super::stored::{StoredValue, load_address, load_value, store_value};

/// An invocation.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredInvocation {
    address: String,
    provider: String,
    config: StoredValue,
    trigger: StoredTrigger,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredTrigger {
    Lifecycle {
        resource: String,
        event: String,
        block: usize,
        action: usize,
        on_failure: String,
    },
    Invoke {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller: Option<String>,
    },
}

const ON_FAILURE: [(&str, ActionFailure); 3] = [
    ("halt", ActionFailure::Halt),
    ("taint", ActionFailure::Taint),
    ("continue", ActionFailure::Continue),
];

pub(super) fn store(invocation: &ActionInvocation) -> Result<StoredInvocation, String> {
    let trigger = match &*invocation.trigger {
        InvocationTrigger::Lifecycle(t) => StoredTrigger::Lifecycle {
            resource: t.resource.to_string(),
            event: t.event.keyword().to_owned(),
            block: t.block,
            action: t.action,
            on_failure: ON_FAILURE
                .iter()
                .find(|(_, f)| *f == t.on_failure)
                .map_or("halt", |(word, _)| word)
                .to_owned(),
        },
        InvocationTrigger::Invoke { caller } => StoredTrigger::Invoke {
            caller: caller.as_ref().map(ToString::to_string),
        },
    };
    Ok(StoredInvocation {
        address: invocation.address.to_string(),
        provider: invocation.provider.to_string(),
        config: store_value(&invocation.config)?,
        trigger,
    })
}

pub(super) fn load(stored: &StoredInvocation) -> Result<ActionInvocation, String> {
    let trigger = match &stored.trigger {
        StoredTrigger::Lifecycle {
            resource,
            event,
            block,
            action,
            on_failure,
        } => InvocationTrigger::Lifecycle(LifecycleTrigger {
            resource: load_address(resource)?,
            event: word(&ActionEvent::ALL, event)?,
            block: *block,
            action: *action,
            on_failure: word(&ON_FAILURE, on_failure)?,
        }),
        StoredTrigger::Invoke { caller } => InvocationTrigger::Invoke {
            caller: caller.as_deref().map(load_address).transpose()?,
        },
    };
    Ok(ActionInvocation {
        address: addrs::parse::action(&stored.address).map_err(|e| e.to_string())?,
        provider: addrs::parse::provider_config(&stored.provider).map_err(|e| e.to_string())?,
        config: load_value(&stored.config)?,
        trigger: Arc::new(trigger),
    })
}

fn word<T: Copy>(words: &[(&str, T)], text: &str) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == text);
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| format!("{text:?} is no event or reaction of an action"))
}
