//! `action` blocks, and the `action_trigger` blocks by which resources invoke them.

use std::sync::Arc;

use addrs::{InstanceKey, LocalProviderConfig, Provider};
use syntax::Range;
use syntax::ast::{Body, Expr};

use super::provider_ref::ProviderRef;

/// An `action` block.
#[derive(Clone, Debug)]
pub struct Action {
    pub address: addrs::Action,
    /// The `config` block: the arguments that the provider's schema describes.
    pub config: Option<Arc<Body>>,
    /// Number of instances; excludes `for_each`.
    pub count: Option<Expr>,
    /// One instance for each element; excludes `count`.
    pub for_each: Option<Expr>,
    /// Provider configuration that the block names; `None` if it names none.
    pub provider_ref: Option<ProviderRef>,
    pub provider: Provider,
    /// Range of the block's header.
    pub range: Range,
    pub type_range: Range,
}

impl Action {
    /// Returns the local name and alias of the provider configuration, named or implied.
    #[must_use]
    pub fn local_provider(&self) -> LocalProviderConfig {
        match &self.provider_ref {
            Some(r) => r.config.clone(),
            None => LocalProviderConfig {
                name: self.address.implied_provider().into(),
                alias: None,
            },
        }
    }

    /// Returns the `config` block, or an empty body at the header of the action if there is none.
    #[must_use]
    pub fn config_body(&self) -> Arc<Body> {
        let empty = || Arc::new(Body::empty(&self.range));
        self.config.clone().unwrap_or_else(empty)
    }
}

#[derive(Clone, Debug)]
pub struct ActionTrigger {
    /// Changes of the resource that trigger the actions, in source order.
    pub events: Vec<ActionEvent>,
    pub actions: Vec<ActionRef>,
    /// The actions are invoked if this is true or missing.
    pub condition: Option<Expr>,
    pub on_failure: ActionFailure,
    /// Range of the block's header.
    pub range: Range,
}

/// A reference to an action in a trigger.
#[derive(Clone, Debug)]
pub struct ActionRef {
    /// The action, of the same module.
    pub action: addrs::Action,
    pub key: ActionKey,
    pub range: Range,
    /// Range of a computed key, otherwise of the whole reference.
    pub key_range: Range,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionKey {
    /// A constant key, or no key.
    Static(InstanceKey),
    CountIndex,
    EachKey,
}

/// An event of a resource's change that triggers actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionEvent {
    /// Before an object is created, the new one of a replacement included.
    BeforeCreate,
    /// After an object is created.
    AfterCreate,
    /// Before an object is updated in place.
    BeforeUpdate,
    /// After an object is updated in place.
    AfterUpdate,
    /// Before an object is destroyed, the old one of a replacement included.
    BeforeDestroy,
    /// After an object is destroyed.
    AfterDestroy,
}

impl ActionEvent {
    /// All events with their keywords, in the order of declaration, which [`ActionEvent::keyword`] relies on.
    pub const ALL: [(&'static str, ActionEvent); 6] = [
        ("before_create", ActionEvent::BeforeCreate),
        ("after_create", ActionEvent::AfterCreate),
        ("before_update", ActionEvent::BeforeUpdate),
        ("after_update", ActionEvent::AfterUpdate),
        ("before_destroy", ActionEvent::BeforeDestroy),
        ("after_destroy", ActionEvent::AfterDestroy),
    ];

    /// Returns the keyword in the configuration.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        ActionEvent::ALL[self as usize].0
    }

    /// Returns true if the event comes before the change.
    #[must_use]
    pub fn is_before(self) -> bool {
        matches!(
            self,
            ActionEvent::BeforeCreate | ActionEvent::BeforeUpdate | ActionEvent::BeforeDestroy
        )
    }

    /// Returns true if the change destroys an object.
    #[must_use]
    pub fn is_destroy(self) -> bool {
        matches!(self, ActionEvent::BeforeDestroy | ActionEvent::AfterDestroy)
    }
}

/// Consequence of the failure of a triggered action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActionFailure {
    /// The operation on the resource fails, and no further action is invoked.
    #[default]
    Halt,
    /// As `Halt`, and an object that was just created is tainted.
    Taint,
    /// Errors of the action become warnings.
    Continue,
}
