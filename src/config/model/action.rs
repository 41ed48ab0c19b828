//! Actions: `action` blocks, and the `action_trigger` blocks by which resources invoke them.

use std::sync::Arc;

use addrs::{InstanceKey, LocalProviderConfig, Provider};
use syntax::Range;
use syntax::ast::{Body, Expr};

use super::provider_ref::ProviderRef;

/// An `action` block.
#[derive(Clone, Debug)]
pub struct Action {
    /// Its address in the module.
    pub address: addrs::Action,
    /// The `config` block: the arguments that the provider's schema describes.
    pub config: Option<Arc<Body>>,
    /// How many instances; excludes `for_each`.
    pub count: Option<Expr>,
    /// An instance for each element; excludes `count`.
    pub for_each: Option<Expr>,
    /// The provider configuration as the block names it; `None` if it does not.
    pub provider_ref: Option<ProviderRef>,
    pub provider: Provider,
    /// The header of the block.
    pub range: Range,
    /// Where the type label stands.
    pub type_range: Range,
}

impl Action {
    /// The local name and alias of the provider configuration, named or implied.
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

    /// The `config` block; an empty body if there is none, at the header of the action.
    #[must_use]
    pub fn config_body(&self) -> Arc<Body> {
        let empty = || Arc::new(Body::empty(&self.range));
        self.config.clone().unwrap_or_else(empty)
    }
}

/// An `action_trigger` block.
#[derive(Clone, Debug)]
pub struct ActionTrigger {
    /// The changes of the resource that trigger the actions, in the order they are written.
    pub events: Vec<ActionEvent>,
    /// The actions, in order.
    pub actions: Vec<ActionRef>,
    /// Whether they are invoked.
    pub condition: Option<Expr>,
    /// What the failure of one means.
    pub on_failure: ActionFailure,
    /// The header of the block.
    pub range: Range,
}

/// A reference to an action in a trigger.
#[derive(Clone, Debug)]
pub struct ActionRef {
    /// The action, of the same module.
    pub action: addrs::Action,
    /// Which instance.
    pub key: ActionKey,
    /// Where it stands.
    pub range: Range,
    /// Where its key stands; that of the whole without a key that is calculated.
    pub key_range: Range,
}

/// The key in a reference to an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionKey {
    /// A constant, or none.
    Static(InstanceKey),
    /// `count.index` of the resource.
    CountIndex,
    /// `each.key` of the resource.
    EachKey,
}

/// What a change does to an object, as a trigger names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionEvent {
    /// Before an object is created, the new one of a replacement included.
    BeforeCreate,
    /// After that.
    AfterCreate,
    /// Before an object is updated in place.
    BeforeUpdate,
    /// After that.
    AfterUpdate,
    /// Before an object is destroyed, the old one of a replacement included.
    BeforeDestroy,
    /// After that.
    AfterDestroy,
}

impl ActionEvent {
    /// All of them with their keywords.
    pub const ALL: [(&'static str, ActionEvent); 6] = [
        ("before_create", ActionEvent::BeforeCreate),
        ("after_create", ActionEvent::AfterCreate),
        ("before_update", ActionEvent::BeforeUpdate),
        ("after_update", ActionEvent::AfterUpdate),
        ("before_destroy", ActionEvent::BeforeDestroy),
        ("after_destroy", ActionEvent::AfterDestroy),
    ];

    /// The keyword in the configuration.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        ActionEvent::ALL[self as usize].0
    }

    /// Whether it comes before the change.
    #[must_use]
    pub fn is_before(self) -> bool {
        matches!(
            self,
            ActionEvent::BeforeCreate | ActionEvent::BeforeUpdate | ActionEvent::BeforeDestroy
        )
    }

    /// Whether the change destroys an object.
    #[must_use]
    pub fn is_destroy(self) -> bool {
        matches!(self, ActionEvent::BeforeDestroy | ActionEvent::AfterDestroy)
    }
}

/// What the failure of a triggered action means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActionFailure {
    /// The operation on the resource fails, and no further action is invoked.
    #[default]
    Halt,
    /// The same, and an object that was just created is tainted.
    Taint,
    /// Its errors become warnings.
    Continue,
}
