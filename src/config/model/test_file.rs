//! Declarations of test files (`*.tftest.hcl` and `*.tftest.json`).

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::{AbsResourceInstance, LocalProviderConfig, Target};
use syntax::Range;
use syntax::ast::{Attribute, Expr};

use crate::file_names::test_stem;
use crate::model::{CallAddress, CheckRule, PassedProvider, ProviderConfig, Reference, Variable};

#[derive(Clone, Debug, Default)]
pub struct TestFile {
    /// Path, relative to the working directory, in the form of `-filter`.
    pub name: Arc<str>,
    /// True if the file is in the test directory, not beside the configuration.
    pub in_test_dir: bool,
    pub runs: Vec<TestRun>,
    /// Values in the `variables` block.
    pub variables: BTreeMap<Arc<str>, Expr>,
    /// `variable` blocks: types and defaults of values from outside.
    pub definitions: BTreeMap<Arc<str>, Variable>,
    pub providers: BTreeMap<LocalProviderConfig, TestProvider>,
    /// Overrides that apply to all runs of the file.
    pub overrides: Vec<Override>,
}

#[derive(Clone, Debug)]
pub enum TestProvider {
    Real(ProviderConfig),
    Mock(MockProvider),
}

/// A `mock_provider` block, with the mocks of its `source` directory.
#[derive(Clone, Debug)]
pub struct MockProvider {
    pub address: LocalProviderConfig,
    /// Collection whose elements have an instance of the configuration each (OpenTofu). Without it, the mock stands in for all
    /// instances that the configuration of the module has.
    pub for_each: Option<Expr>,
    /// Mocks of managed resources, by type.
    pub resources: BTreeMap<Arc<str>, Mock>,
    /// Mocks of data sources, by type.
    pub data: BTreeMap<Arc<str>, Mock>,
    /// Overrides that apply to objects of this provider configuration.
    pub overrides: Vec<Override>,
    /// True if computed values are known when planned.
    pub during_plan: bool,
    /// Range of the block's header.
    pub range: Range,
}

/// A `mock_resource` or `mock_data` block.
#[derive(Clone, Debug)]
pub struct Mock {
    /// Values of computed attributes.
    pub defaults: Option<Attribute>,
    /// True if these values are known when planned.
    pub during_plan: bool,
    /// Range of the block's header.
    pub range: Range,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OverrideKind {
    Resource,
    Data,
    Module,
}

impl OverrideKind {
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
    pub kind: OverrideKind,
    pub target: Target,
    /// Values of computed attributes, or outputs of the module.
    pub values: Option<Attribute>,
    /// True if the values are known when planned.
    pub during_plan: bool,
    /// Range of the block's header.
    pub range: Range,
    /// Range of the target argument.
    pub target_range: Range,
}

/// A `run` block.
#[derive(Clone, Debug)]
pub struct TestRun {
    pub name: Arc<str>,
    /// True if the plan is applied.
    pub apply: bool,
    pub options: RunOptions,
    /// Values in the run's `variables` block.
    pub variables: BTreeMap<Arc<str>, Expr>,
    /// Alternate module that the run tests.
    pub module: Option<RunModule>,
    /// Entries of `providers`: the name `child` in the module for the file's configuration
    /// `parent`.
    pub providers: Vec<PassedProvider>,
    pub asserts: Vec<CheckRule>,
    /// Objects whose conditions are expected to fail.
    pub expect_failures: Vec<Reference>,
    pub overrides: Vec<Override>,
    /// Explicitly set key of the state.
    pub state_key: Option<Arc<str>>,
    /// True if the run may run concurrently with others.
    pub parallel: bool,
    /// Range of the block's header.
    pub range: Range,
}

/// A `plan_options` block.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Only refreshes objects, and plans no other change.
    pub refresh_only: bool,
    /// Refreshes objects before planning.
    pub refresh: bool,
    pub replace: Vec<AbsResourceInstance>,
    /// Ranges of addresses that cannot be replaced, which is reported when the run is carried out.
    pub not_replaceable: Vec<Range>,
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
    pub address: CallAddress,
    /// Range of the block's header.
    pub range: Range,
}

impl TestFile {
    /// Returns the path of a run's module in the module manifest.
    #[must_use]
    pub fn module_path(&self, run: &TestRun) -> addrs::Module {
        let file = test_stem(&self.name);
        let steps = std::iter::once("test")
            .chain(file.split('/'))
            .chain(std::iter::once(&*run.name));
        steps.fold(addrs::Module::root(), |path, step| path.child(step))
    }
}

impl TestRun {
    /// Returns the key of the state that the run works on; empty for the main state.
    #[must_use]
    pub fn key(&self) -> Arc<str> {
        match (&self.state_key, &self.module) {
            (Some(key), _) => key.clone(),
            (None, Some(module)) => module.address.source.to_string().into(),
            (None, None) => "".into(),
        }
    }
}
