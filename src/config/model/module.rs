//! Declarations of a module: of all files in one directory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addrs::{LocalProviderConfig, Provider};
use syntax::Range;

use crate::model::action::Action;
use crate::model::check::Check;
use crate::model::module_call::ModuleCall;
use crate::model::moved::{Import, Moved, Removed};
use crate::model::provider::{ProviderConfig, ProviderMeta, RequiredProvider};
use crate::model::resource::Resource;
use crate::model::settings::{Backend, Cloud, Encryption};
use crate::model::variable::{Local, Output, Variable};
use crate::version::Constraint;

/// Declarations of a module: of all files in one directory. Several calls of one directory share it.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Directory, relative to the working directory, as `path.module` returns it: `.`, `modules/a`, `../x`.
    pub source_dir: Arc<str>,
    pub files: Vec<ModuleFile>,
    /// True if the module requires another version of the tool. Such a module is not decoded.
    pub(crate) refused: bool,
    /// Names and parts that are missing in the module because of errors.
    pub losses: Losses,
    /// Constraints on the version of the tool, one for each `terraform` block that has one.
    pub required_versions: Vec<Constraint>,
    /// The `backend` or `state_store` block; used in the root module only.
    pub backend: Option<Backend>,
    /// The `cloud` block (HCP Terraform); excludes `backend`.
    pub cloud: Option<Cloud>,
    /// Encryption of states and saved plans; used in the root module only.
    pub encryption: Option<Encryption>,
    pub required_providers: BTreeMap<Arc<str>, RequiredProvider>,
    /// `provider_meta` blocks, by provider address.
    pub provider_meta: BTreeMap<Provider, ProviderMeta>,
    pub provider_configs: BTreeMap<LocalProviderConfig, ProviderConfig>,
    pub variables: BTreeMap<Arc<str>, Variable>,
    pub locals: BTreeMap<Arc<str>, Local>,
    pub outputs: BTreeMap<Arc<str>, Output>,
    pub module_calls: BTreeMap<Arc<str>, ModuleCall>,
    /// The resources of all modes, data sources inside `check` blocks included.
    pub resources: BTreeMap<addrs::Resource, Resource>,
    pub checks: BTreeMap<Arc<str>, Check>,
    pub moved: Vec<Moved>,
    pub removed: Vec<Removed>,
    pub imports: Vec<Import>,
    pub actions: BTreeMap<addrs::Action, Action>,
}

/// Names and parts that are missing in a module because of errors. Other problems may be consequences of
/// that.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Parts of blocks that syntax errors may have garbled.
    pub broken: Vec<Range>,
    /// Names that the files may declare, although the module does not have them.
    pub(crate) names: BTreeSet<Arc<str>>,
}

impl Losses {
    /// Returns true if a declaration of this name may be missing because of errors.
    #[must_use]
    pub fn may_declare(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleFile {
    /// Name inside the directory.
    pub name: Arc<str>,
    pub content: Arc<[u8]>,
}

impl Module {
    /// Returns the provider of a local name: as in `required_providers`, or implied by the name.
    #[must_use]
    pub fn provider_for_local_name(&self, name: &str) -> Provider {
        self.required_providers
            .get(name)
            .map_or_else(|| Provider::implied(name), |r| r.provider.clone())
    }

    /// Returns the local name of a provider, as `required_providers` has it, or its type.
    #[must_use]
    pub fn local_name_for(&self, provider: &Provider) -> Arc<str> {
        self.required_providers
            .values()
            .find(|r| r.provider == *provider)
            .map_or_else(|| provider.ty.clone(), |r| r.name.clone())
    }

    /// Returns the resources of `resource` blocks.
    pub fn managed_resources(&self) -> impl Iterator<Item = &Resource> {
        self.resources
            .values()
            .filter(|r| r.address.mode == addrs::Mode::Managed)
    }
}
