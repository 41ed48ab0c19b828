//! Test files: what `*.tftest.hcl` and `*.tftest.json` declare.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::{AbsResourceInstance, LocalProviderConfig, Target};
use syntax::Range;
use syntax::ast::{Attribute, Expr};

use crate::model::{CallAddress, CheckRule, PassedProvider, ProviderConfig, Reference, Variable};

#[derive(Clone, Debug, Default)]
pub struct TestFile {
    /// Its path, relative to the working directory: what `-filter` names.
    pub name: Arc<str>,
    /// Whether it stands in the directory for tests, not beside the configuration.
    pub in_test_dir: bool,
    /// The runs, in source order.
    pub runs: Vec<TestRun>,
    /// The values of the `variables` block.
    pub variables: BTreeMap<Arc<str>, Expr>,
    /// The `variable` blocks: types and defaults of values from outside.
    pub definitions: BTreeMap<Arc<str>, Variable>,
    /// The `provider` and `mock_provider` blocks.
    pub providers: BTreeMap<LocalProviderConfig, TestProvider>,
    /// The overrides for all runs of the file.
    pub overrides: Vec<Override>,
}

/// A provider configuration of a test file.
#[derive(Clone, Debug)]
pub enum TestProvider {
    /// A `provider` block.
    Real(ProviderConfig),
    /// A `mock_provider` block.
    Mock(MockProvider),
}

/// A `mock_provider` block, with what its `source` directory has.
#[derive(Clone, Debug)]
pub struct MockProvider {
    /// Name and alias.
    pub address: LocalProviderConfig,
    /// What objects of managed types get.
    pub resources: BTreeMap<Arc<str>, Mock>,
    /// What data sources give.
    pub data: BTreeMap<Arc<str>, Mock>,
    /// The overrides that hold for objects of this provider configuration.
    pub overrides: Vec<Override>,
    /// Whether computed values are known when planned.
    pub during_plan: bool,
    /// The header of the block.
    pub range: Range,
}

/// A `mock_resource` or `mock_data` block.
#[derive(Clone, Debug)]
pub struct Mock {
    /// The values of computed attributes.
    pub defaults: Option<Attribute>,
    /// Whether they are known when planned.
    pub during_plan: bool,
    /// The header of the block.
    pub range: Range,
}

/// What an override stands in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OverrideKind {
    /// A managed resource.
    Resource,
    /// A data source.
    Data,
    Module,
}

impl OverrideKind {
    /// The type of the block.
    #[must_use]
    pub fn block(self) -> &'static str {
        match self {
            OverrideKind::Resource => "override_resource",
            OverrideKind::Data => "override_data",
            OverrideKind::Module => "override_module",
        }
    }
}

/// An `override_resource`, `override_data` or `override_module` block.
#[derive(Clone, Debug)]
pub struct Override {
    /// Which of them.
    pub kind: OverrideKind,
    /// The address.
    pub target: Target,
    /// The values of computed attributes, or the outputs of the module.
    pub values: Option<Attribute>,
    /// Whether the values are known when planned.
    pub during_plan: bool,
    /// The header of the block.
    pub range: Range,
    /// Where the target is written.
    pub target_range: Range,
}

/// A `run` block.
#[derive(Clone, Debug)]
pub struct TestRun {
    pub name: Arc<str>,
    /// Whether the plan is applied.
    pub apply: bool,
    /// How it plans.
    pub options: RunOptions,
    /// The values of its `variables` block.
    pub variables: BTreeMap<Arc<str>, Expr>,
    /// The other module that is tested.
    pub module: Option<RunModule>,
    /// The `providers` argument: what the module calls `child` is the file's `parent`.
    pub providers: Vec<PassedProvider>,
    /// The assertions.
    pub asserts: Vec<CheckRule>,
    /// The objects whose conditions are to fail.
    pub expect_failures: Vec<Reference>,
    /// The overrides for this run.
    pub overrides: Vec<Override>,
    /// The key of the state, where it is given.
    pub state_key: Option<Arc<str>>,
    /// Whether it may run beside others.
    pub parallel: bool,
    /// The header of the block.
    pub range: Range,
}

/// A `plan_options` block.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Whether objects are only refreshed.
    pub refresh_only: bool,
    /// Whether objects are refreshed first.
    pub refresh: bool,
    /// The objects to replace.
    pub replace: Vec<AbsResourceInstance>,
    /// Where something is to be replaced that cannot be, which is told when the run is carried out.
    pub not_replaceable: Vec<Range>,
    /// What the plan is limited to.
    pub target: Vec<Target>,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            refresh_only: false,
            refresh: true,
            replace: Vec::new(),
            not_replaceable: Vec::new(),
            target: Vec::new(),
        }
    }
}

/// The `module` block of a run.
#[derive(Clone, Debug)]
pub struct RunModule {
    /// Where the module comes from.
    pub address: CallAddress,
    /// The header of the block.
    pub range: Range,
}

impl TestFile {
    /// The path of a run's module in the module manifest.
    #[must_use]
    pub fn module_path(&self, run: &TestRun) -> addrs::Module {
        let file = self.name.strip_suffix(".tftest.hcl").unwrap_or(&self.name);
        let steps = std::iter::once("test")
            .chain(file.split('/'))
            .chain(std::iter::once(&*run.name));
        steps.fold(addrs::Module::root(), |path, step| path.child(step))
    }
}

impl TestRun {
    /// The key of the state that the run works on; empty for the main state.
    #[must_use]
    pub fn key(&self) -> Arc<str> {
        match (&self.state_key, &self.module) {
            (Some(key), _) => key.clone(),
            (None, Some(module)) => module.address.source.to_string().into(),
            (None, None) => "".into(),
        }
    }
}
