//! Planned invocations of actions.

use std::sync::Arc;

use addrs::{AbsActionInstance, AbsProviderConfig, AbsResourceInstance};
use config::{ActionEvent, ActionFailure};
use cty::Value;
use serde::{Deserialize, Serialize};

use crate::stored;

/// A planned invocation of an action.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ActionInvocation {
    /// Address of the action's instance.
    #[serde(with = "stored")]
    pub address: AbsActionInstance,
    /// The provider configuration that invokes the action.
    #[serde(with = "stored")]
    pub provider: AbsProviderConfig,
    /// Configuration of the action, as far as it is known, without ephemeral values; null if the action has no `config` block. Sensitive
    /// values are marked.
    #[serde(with = "stored")]
    pub config: Value,
    /// The change of an object, or a request by the user.
    #[serde(with = "stored")]
    pub trigger: Arc<InvocationTrigger>,
}

/// Reason for an invocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InvocationTrigger {
    /// A change of a resource instance.
    Lifecycle(LifecycleTrigger),
    /// The user requests the action by `-invoke`.
    Invoke {
        /// The resource instance that `caller` refers to; `None` if the action does not refer to `caller`.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "stored")]
        caller: Option<AbsResourceInstance>,
    },
}

/// The trigger of an invocation by a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifecycleTrigger {
    /// Instance whose change triggers the action.
    #[serde(with = "stored")]
    pub resource: AbsResourceInstance,
    /// Event of the instance that triggers the action.
    #[serde(with = "stored")]
    pub event: ActionEvent,
    /// Index of the `action_trigger` block in the resource block.
    pub block: usize,
    /// Index of the action in the `actions` list of the block.
    pub action: usize,
    /// Effect of a failure of the action on the operation.
    #[serde(with = "stored")]
    pub on_failure: ActionFailure,
}

stored::derived!(InvocationTrigger);

impl InvocationTrigger {
    #[must_use]
    pub fn lifecycle(&self) -> Option<&LifecycleTrigger> {
        match self {
            InvocationTrigger::Lifecycle(trigger) => Some(trigger),
            InvocationTrigger::Invoke { .. } => None,
        }
    }

    /// Returns the resource instance that the configuration can refer to as `caller`.
    #[must_use]
    pub fn caller(&self) -> Option<&AbsResourceInstance> {
        match self {
            InvocationTrigger::Lifecycle(trigger) => Some(&trigger.resource),
            InvocationTrigger::Invoke { caller } => caller.as_ref(),
        }
    }
}

impl ActionInvocation {
    /// Compares invocations for the order in lists: requested ones come first, then those of each resource in the order of its triggers.
    /// Invocations of one trigger by several events compare as equal, so a stable sort keeps them in the order of planning.
    #[must_use]
    pub fn listed_before(&self, other: &ActionInvocation) -> std::cmp::Ordering {
        let key = |invocation: &ActionInvocation| match &*invocation.trigger {
            InvocationTrigger::Invoke { .. } => (false, None),
            InvocationTrigger::Lifecycle(t) => (true, Some((t.resource.clone(), t.block))),
        };
        let by_address = |invocation: &ActionInvocation| match &*invocation.trigger {
            InvocationTrigger::Invoke { caller } => Some((invocation.address.clone(), caller.clone())),
            InvocationTrigger::Lifecycle(_) => None,
        };
        key(self)
            .cmp(&key(other))
            .then_with(|| by_address(self).cmp(&by_address(other)))
    }
}
