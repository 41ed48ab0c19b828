//! Resources: `resource`, `data` and `ephemeral` blocks, their lifecycle and provisioners.

use std::sync::Arc;

use addrs::{LocalProviderConfig, Mode, Provider};
use syntax::Range;
use syntax::ast::{Body, Expr};

use crate::model::Reference;
use crate::model::action::ActionTrigger;
use crate::model::check::CheckRule;
use crate::model::provider_ref::ProviderRef;

/// A `resource`, `data` or `ephemeral` block, or a `list` block of a query.
#[derive(Clone, Debug)]
pub struct Resource {
    pub address: addrs::Resource,
    /// Arguments and blocks that the provider's schema describes: everything but the meta-arguments.
    pub body: Arc<Body>,
    /// Number of instances; excludes `for_each`.
    pub count: Option<Expr>,
    /// One instance for each element; excludes `count`.
    pub for_each: Option<Expr>,
    /// Provider configuration that the block names; `None` if it names none.
    pub provider_ref: Option<ProviderRef>,
    pub provider: Provider,
    /// Explicit dependencies, besides the references in arguments.
    pub depends_on: Vec<Reference>,
    pub lifecycle: Lifecycle,
    /// Provisioners, in source order.
    pub provisioners: Vec<Provisioner>,
    /// Default connection of the provisioners.
    pub connection: Option<Connection>,
    /// Name of the `check` block that contains this data source.
    pub check: Option<Arc<str>>,
    /// Arguments of a `list` block besides its `config` block.
    pub list: Option<Box<ListArguments>>,
    /// Range of the block's header.
    pub range: Range,
    pub type_range: Range,
}

/// Arguments of a `list` block that control the listing.
#[derive(Clone, Debug, Default)]
pub struct ListArguments {
    /// True if whole objects are requested, not only their identities.
    pub include_resource: Option<Expr>,
    /// Maximum number of results.
    pub limit: Option<Expr>,
}

impl Resource {
    /// Returns the expressions of the repetition arguments that are set.
    pub fn repetition(&self) -> impl Iterator<Item = &Expr> {
        self.count.iter().chain(&self.for_each).chain(&self.lifecycle.enabled)
    }

    #[must_use]
    pub fn mode(&self) -> Mode {
        self.address.mode
    }

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
}

impl Resource {
    /// Returns the types of the destroy-time provisioners, in source order.
    #[must_use]
    pub fn destroy_provisioners(&self) -> Arc<[Arc<str>]> {
        if self.provisioners.is_empty() {
            return Arc::default();
        }
        let at_destruction = |p: &&Provisioner| p.when == ProvisionerWhen::Destroy;
        self.provisioners
            .iter()
            .filter(at_destruction)
            .map(|p| p.ty.clone())
            .collect()
    }
}

/// The `lifecycle` block of a resource.
#[derive(Clone, Debug, Default)]
pub struct Lifecycle {
    /// Creates a replacement before the old object is destroyed.
    pub create_before_destroy: Option<bool>,
    /// If false, there is no instance, and the resource is null; excludes `count` and `for_each`.
    pub enabled: Option<Expr>,
    /// Makes destroying the object an error.
    pub prevent_destroy: Option<bool>,
    /// The `prevent_destroy` argument, if its value is not constant.
    pub prevent_destroy_if: Option<Expr>,
    /// If false, an object that is no longer needed is removed from the state and not destroyed.
    pub destroy: Option<bool>,
    pub ignore_changes: IgnoreChanges,
    /// References whose changes cause a replacement; their indexes may use `count.index` and `each.key`.
    pub replace_triggered_by: Vec<Expr>,
    /// Conditions checked before an operation.
    pub preconditions: Vec<CheckRule>,
    /// Conditions checked after an operation.
    pub postconditions: Vec<CheckRule>,
    /// Action triggers of the resource's changes.
    pub action_triggers: Vec<ActionTrigger>,
    /// Range of the argument `prevent_destroy`.
    pub prevent_destroy_range: Option<Range>,
}

impl Lifecycle {
    /// Returns true if destroying the object can be an error.
    #[must_use]
    pub fn may_prevent_destroy(&self) -> bool {
        self.prevent_destroy.is_some() || self.prevent_destroy_if.is_some()
    }

    /// Returns true if an object that is no longer needed is removed from the state and not destroyed.
    #[must_use]
    pub fn keeps_object(&self) -> bool {
        self.destroy == Some(false)
    }
}

/// Changes of the configuration that are ignored.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum IgnoreChanges {
    /// No change is ignored.
    #[default]
    None,
    /// Every change is ignored.
    All,
    /// Changes at these paths are ignored. The ranges are those of the path's steps.
    Paths(Vec<(cty::Path, Vec<Range>)>),
}

/// A `provisioner` block.
#[derive(Clone, Debug)]
pub struct Provisioner {
    pub ty: Arc<str>,
    pub when: ProvisionerWhen,
    pub on_failure: OnFailure,
    /// Arguments that the provisioner's schema describes.
    pub body: Arc<Body>,
    /// Connection of this provisioner alone; it replaces that of the resource.
    pub connection: Option<Connection>,
    /// Range of the block's header.
    pub range: Range,
    pub type_range: Range,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProvisionerWhen {
    /// After the object is created.
    Create,
    /// Before the object is destroyed.
    Destroy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// The operation fails, and a new object is tainted.
    Fail,
    /// The failure is ignored.
    Continue,
}

/// A `connection` block.
#[derive(Clone, Debug)]
pub struct Connection {
    pub body: Arc<Body>,
    /// Range of the block's header.
    pub range: Range,
}
