//! The tree of modules, and everything that only the whole tree determines.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::{AbsProviderConfig, ConfigAction, ConfigResource, LocalProviderConfig, Provider};
use syntax::Range;

use crate::model::action::Action;
use crate::model::module::Module;
use crate::model::module_call::ModuleCall;
use crate::model::provider::ProviderConfig;
use crate::model::resource::Resource;
use crate::model::visible::Visible;
use crate::version::Constraint;

/// A whole configuration.
#[derive(Clone, Debug)]
pub struct Config {
    pub root: ModuleNode,
}

/// Module at a path of the module tree.
#[derive(Clone, Debug)]
pub struct ModuleNode {
    /// Names of the calls from the root to this module.
    pub path: addrs::Module,
    pub module: Arc<Module>,
    /// The source address of the call, as the module manifest has it; empty for the root.
    pub source: String,
    /// The version of an installed registry module.
    pub version: Option<String>,
    pub constraint: Option<Constraint>,
    /// The called modules, by call name. A call whose module could not be loaded has no entry, and has been reported.
    pub children: BTreeMap<Arc<str>, ModuleNode>,
    /// Provider configurations that this module can name, by provider and alias.
    pub(crate) providers: VisibleProviders,
}

/// Provider configurations visible to a module, by provider and alias.
pub(crate) type VisibleProviders = BTreeMap<(Provider, Option<Arc<str>>), Visible>;

/// A provider configuration of the tree.
#[derive(Clone, Debug)]
pub struct ProviderSource<'c> {
    pub address: AbsProviderConfig,
    pub node: &'c ModuleNode,
    /// Block of the configuration; `None` for an implied default configuration, which is empty.
    pub block: Option<&'c ProviderConfig>,
}

/// The need of a module for a provider, with the version constraint if there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// The constraint; `None` if the module needs the provider in any version.
    pub constraint: Option<Constraint>,
    /// Kind of block that needs the provider.
    pub origin: RequirementOrigin,
    /// Place of the block or entry that needs the provider.
    pub range: Range,
    pub module: addrs::Module,
}

/// The kind of block by which a module needs a provider.
#[derive(Clone, Debug, PartialEq)]
pub enum RequirementOrigin {
    /// An entry of `required_providers`.
    RequiredProviders,
    /// A `provider` block.
    ProviderBlock,
    /// The first resource or data source of the provider.
    Resource(addrs::Resource),
    Import,
    /// The first action of the provider.
    Action(addrs::Action),
}

impl Config {
    /// Returns the module at a path.
    #[must_use]
    pub fn node(&self, path: &addrs::Module) -> Option<&ModuleNode> {
        path.0.iter().try_fold(&self.root, |node, name| node.children.get(name))
    }

    /// Returns every module, callers before the modules they call.
    #[must_use]
    pub fn nodes(&self) -> Vec<&ModuleNode> {
        let mut out = Vec::new();
        let mut stack = vec![&self.root];
        while let Some(node) = stack.pop() {
            out.push(node);
            stack.extend(node.children.values().rev());
        }
        out
    }

    /// Returns the parts of all modules that syntax errors may have garbled.
    #[must_use]
    pub fn broken_parts(&self) -> Vec<&Range> {
        self.nodes().into_iter().flat_map(|n| &n.module.losses.broken).collect()
    }

    /// Returns true if the address of a provider may be wrong: it is implied by a name whose requirement has errors.
    #[must_use]
    pub fn is_in_doubt(&self, provider: &Provider) -> bool {
        let nodes = self.nodes();
        let mut losses = nodes.iter().map(|n| &n.module.losses);
        *provider == Provider::implied(&provider.ty) && losses.any(|l| l.may_declare(&provider.ty))
    }

    /// Returns true if a module requires another version of the tool, and therefore was not decoded.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.nodes().into_iter().any(|n| n.module.refused)
    }

    #[must_use]
    pub fn resource(&self, address: &ConfigResource) -> Option<&Resource> {
        self.node(&address.module)?.module.resources.get(&address.resource)
    }

    #[must_use]
    pub fn action(&self, address: &ConfigAction) -> Option<&Action> {
        self.node(&address.module)?.module.actions.get(&address.action)
    }

    /// Returns the provider configuration that an action is invoked through; `None` if the configuration does not have
    /// the action.
    #[must_use]
    pub fn provider_for_action(&self, address: &ConfigAction) -> Option<AbsProviderConfig> {
        let node = self.node(&address.module)?;
        Some(node.provider(&node.module.actions.get(&address.action)?.local_provider()))
    }

    /// Returns the call of a module; `None` for the root and for modules that are not called.
    #[must_use]
    pub fn call(&self, path: &addrs::Module) -> Option<&ModuleCall> {
        let (parent, name) = path.parent()?;
        self.node(&parent)?.module.module_calls.get(name)
    }

    /// Returns the provider configuration that manages a resource. For a resource without a block, it is the default
    /// configuration of the provider that the resource's type implies in its module.
    #[must_use]
    pub fn provider_for(&self, address: &ConfigResource) -> AbsProviderConfig {
        let Some(node) = self.node(&address.module) else {
            return AbsProviderConfig::root(Provider::implied(address.resource.implied_provider()));
        };
        let local = match node.module.resources.get(&address.resource) {
            Some(resource) => resource.local_provider(),
            None => LocalProviderConfig {
                name: address.resource.implied_provider().into(),
                alias: None,
            },
        };
        node.provider(&local)
    }
}

impl ModuleNode {
    #[must_use]
    pub fn source_dir(&self) -> &str {
        &self.module.source_dir
    }
}
