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
    /// Its address in the module: mode, type and name.
    pub address: addrs::Resource,
    /// The arguments and blocks that the provider's schema describes: everything but the meta-arguments.
    pub body: Arc<Body>,
    /// How many instances; excludes `for_each`.
    pub count: Option<Expr>,
    /// An instance for each element; excludes `count`.
    pub for_each: Option<Expr>,
    /// The provider configuration as the block names it; `None` if it does not.
    pub provider_ref: Option<ProviderRef>,
    pub provider: Provider,
    /// What must be done before, beside what the arguments refer to.
    pub depends_on: Vec<Reference>,
    /// The `lifecycle` block.
    pub lifecycle: Lifecycle,
    /// The provisioners, in order.
    pub provisioners: Vec<Provisioner>,
    /// The connection for all provisioners.
    pub connection: Option<Connection>,
    /// The `check` block that a data source stands in.
    pub check: Option<Arc<str>>,
    /// What a `list` block says beside its `config` block.
    pub list: Option<Box<ListArguments>>,
    /// The header of the block.
    pub range: Range,
    /// Where the type label stands.
    pub type_range: Range,
}

/// The arguments of a `list` block that say how objects are listed.
#[derive(Clone, Debug, Default)]
pub struct ListArguments {
    /// Whether the objects themselves are requested, beside their identities.
    pub include_resource: Option<Expr>,
    /// At most so many.
    pub limit: Option<Expr>,
}

impl Resource {
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.address.mode
    }

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
}

impl Resource {
    /// The types of the destroy-time provisioners, in their order.
    #[must_use]
    pub fn destroy_provisioners(&self) -> Arc<[Arc<str>]> {
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
    /// Whether a replacement is created before the old object is destroyed.
    pub create_before_destroy: Option<bool>,
    /// Whether destroying is an error.
    pub prevent_destroy: Option<bool>,
    /// Whether an object is destroyed that is no longer needed; if not, it only leaves the state.
    pub destroy: Option<bool>,
    /// Which changes of the configuration are not followed.
    pub ignore_changes: IgnoreChanges,
    /// Whose changes cause a replacement: references, in whose indexes `count.index` and `each.key` may stand.
    pub replace_triggered_by: Vec<Expr>,
    /// What must hold before.
    pub preconditions: Vec<CheckRule>,
    /// What must hold after.
    pub postconditions: Vec<CheckRule>,
    /// The actions that changes invoke.
    pub action_triggers: Vec<ActionTrigger>,
    /// Where the argument `prevent_destroy` stands.
    pub prevent_destroy_range: Option<Range>,
}

impl Lifecycle {
    /// Whether an object that is no longer needed only leaves the state.
    #[must_use]
    pub fn keeps_object(&self) -> bool {
        self.destroy == Some(false)
    }
}

/// Which changes of the configuration are not followed.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum IgnoreChanges {
    /// All are followed.
    #[default]
    None,
    /// No change is followed.
    All,
    /// Changes at these paths are not followed. The ranges are those of the steps.
    Paths(Vec<(cty::Path, Vec<Range>)>),
}

/// A `provisioner` block.
#[derive(Clone, Debug)]
pub struct Provisioner {
    /// The type.
    pub ty: Arc<str>,
    /// At creation or at destruction.
    pub when: ProvisionerWhen,
    /// What happens if it fails.
    pub on_failure: OnFailure,
    /// The arguments that the provisioner's schema describes.
    pub body: Arc<Body>,
    /// A connection of its own.
    pub connection: Option<Connection>,
    /// The header of the block.
    pub range: Range,
    /// Where the type label stands.
    pub type_range: Range,
}

/// When a provisioner runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProvisionerWhen {
    /// After the object is created.
    Create,
    /// Before the object is destroyed.
    Destroy,
}

/// What happens if a provisioner fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// The operation fails, and a new object is tainted.
    Fail,
    /// Nothing.
    Continue,
}

/// A `connection` block.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The arguments.
    pub body: Arc<Body>,
    /// The header of the block.
    pub range: Range,
}
