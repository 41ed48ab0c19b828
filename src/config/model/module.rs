//! A module: everything that the files of one directory declare.

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
use crate::model::settings::{Backend, Cloud};
use crate::model::variable::{Local, Output, Variable};
use crate::version::Constraint;

/// A module: everything that the files of one directory declare. Several calls of one directory share it.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The directory, relative to the working directory: `.`, `modules/a`, `../x`. What `path.module` gives.
    pub source_dir: Arc<str>,
    /// The files as they were read.
    pub files: Vec<ModuleFile>,
    /// Whether the module requires another version of the tool: then nothing else of it was decoded.
    pub(crate) refused: bool,
    /// What errors took away from the module.
    pub losses: Losses,
    /// The constraints on the version of the tool, one for each `terraform` block that has one.
    pub required_versions: Vec<Constraint>,
    /// Where the state of the root module is stored.
    pub backend: Option<Backend>,
    /// The same, for HCP Terraform; excludes `backend`.
    pub cloud: Option<Cloud>,
    /// The `required_providers` block, by local name.
    pub required_providers: BTreeMap<Arc<str>, RequiredProvider>,
    /// The `provider_meta` blocks, by provider.
    pub provider_meta: BTreeMap<Provider, ProviderMeta>,
    /// The `provider` blocks.
    pub provider_configs: BTreeMap<LocalProviderConfig, ProviderConfig>,
    /// The input variables, by name.
    pub variables: BTreeMap<Arc<str>, Variable>,
    /// The local values, by name.
    pub locals: BTreeMap<Arc<str>, Local>,
    /// The output values, by name.
    pub outputs: BTreeMap<Arc<str>, Output>,
    /// The module calls, by name.
    pub module_calls: BTreeMap<Arc<str>, ModuleCall>,
    /// The resources of all modes, data sources inside `check` blocks included.
    pub resources: BTreeMap<addrs::Resource, Resource>,
    /// The `check` blocks, by name.
    pub checks: BTreeMap<Arc<str>, Check>,
    /// The `moved` blocks.
    pub moved: Vec<Moved>,
    /// The `removed` blocks.
    pub removed: Vec<Removed>,
    /// The `import` blocks.
    pub imports: Vec<Import>,
    /// The `action` blocks.
    pub actions: BTreeMap<addrs::Action, Action>,
}

/// What errors took away from a module: whatever else is found to be missing there may be their consequence.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// The parts of blocks that syntax errors may have garbled.
    pub broken: Vec<Range>,
    /// Names that the files may declare, although the module does not have them.
    pub(crate) names: BTreeSet<Arc<str>>,
}

impl Losses {
    /// Whether something of this name may be declared, so that its absence is no error.
    #[must_use]
    pub fn may_declare(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

/// A file of a module, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleFile {
    /// Its name inside the directory.
    pub name: Arc<str>,
    pub content: Arc<[u8]>,
}

impl Module {
    /// The provider that a local name means here: as in `required_providers`, or implied by the name.
    #[must_use]
    pub fn provider_for_local_name(&self, name: &str) -> Provider {
        self.required_providers
            .get(name)
            .map_or_else(|| Provider::implied(name), |r| r.provider.clone())
    }

    /// The local name of a provider here, as `required_providers` has it, or its type.
    #[must_use]
    pub fn local_name_for(&self, provider: &Provider) -> Arc<str> {
        self.required_providers
            .values()
            .find(|r| r.provider == *provider)
            .map_or_else(|| provider.ty.clone(), |r| r.name.clone())
    }

    /// The resources of the mode of `resource` blocks.
    pub fn managed_resources(&self) -> impl Iterator<Item = &Resource> {
        self.resources
            .values()
            .filter(|r| r.address.mode == addrs::Mode::Managed)
    }
}
