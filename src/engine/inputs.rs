//! The inputs of an operation: configuration, state, variables, providers, options.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::{AbsActionInstance, AbsResourceInstance, Target};
use config::Config;
use cty::Value;
use lang::scope::{FunctionSettings, Witness};
use state::State;
use tokio::sync::Semaphore;

use crate::events::EventSink;
use crate::plan::Mode;
use crate::stop::Stop;
use provider::ProviderSource;

/// The evaluation environment: the values of `path` and `terraform`, and the behaviour of functions.
#[derive(Clone, Debug, Default)]
pub struct EvaluationEnvironment {
    /// Name of the selected workspace.
    pub workspace: String,
    /// The working directory as it was before `-chdir`, absolute.
    pub cwd: String,
    /// The value of `terraform.applying`. Apply sets it.
    pub applying: bool,
    /// Settings of the function environment.
    pub functions: FunctionSettings,
    /// Observer of the evaluation of expressions, for coverage.
    pub witness: Option<Arc<dyn Witness>>,
    /// The name of this program in messages.
    pub program: addrs::Program,
    /// Modules whose deprecations are warned about.
    pub deprecations: ModuleDeprecations,
}

/// Modules whose deprecated variables and outputs are warned about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModuleDeprecations {
    #[default]
    All,
    /// Modules that are called by a local path.
    Local,
    None,
}

/// The values of the root variables.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// Converted, without marks. Ephemeral variables are included only if they are set.
    pub values: BTreeMap<Arc<str>, Value>,
    /// Values as they were set, before conversion; without ephemeral variables. Plans show these.
    pub given: BTreeMap<Arc<str>, Value>,
}

/// Default of `-parallelism`.
const USUAL_PARALLELISM: usize = 10;

/// Limit of concurrent operations on objects that are in the state alone. Twice as many bring no more speed.
const LOCAL_PARALLELISM: usize = 64;

/// The inputs of every operation.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// Configuration with all called modules.
    pub config: &'a Config,
    /// The state before the operation.
    pub state: &'a State,
    /// The values of the root variables.
    pub variables: &'a Variables,
    /// Evaluation environment of all modules.
    pub environment: &'a EvaluationEnvironment,
    /// The source of providers and provisioners.
    pub providers: &'a dyn ProviderSource,
    /// Receiver of progress events.
    pub events: &'a dyn EventSink,
    /// Token for graceful stop and cancellation.
    pub stop: &'a Stop,
    /// The limit of concurrent operations on objects.
    pub parallelism: usize,
}

impl Inputs<'_> {
    /// Returns the limit as a number of permits: at least one, and at most as many as a semaphore can have.
    pub(crate) fn permits(&self) -> usize {
        self.parallelism.clamp(1, Semaphore::MAX_PERMITS)
    }

    /// Returns the limit of concurrent operations on objects that are in the state alone. The usual limit protects the
    /// services behind providers, and these providers have none; a larger one lets many calls share a round trip.
    /// `None` if the user has set a lower limit than usual, which then holds for all objects.
    pub(crate) fn local_parallelism(&self) -> Option<usize> {
        (self.parallelism >= USUAL_PARALLELISM).then(|| self.permits().max(LOCAL_PARALLELISM))
    }
}

/// The options of a plan.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Mode of the plan.
    pub mode: Mode,
    /// Refresh the objects first.
    pub refresh: bool,
    /// The addresses the plan is limited to; empty for the whole configuration.
    pub targets: Vec<Target>,
    /// The addresses the plan leaves out, with everything that depends on them; never together with targets.
    pub excludes: Vec<Target>,
    /// The objects to replace even if their configuration is unchanged.
    pub force_replace: Vec<AbsResourceInstance>,
    /// Make a target or an object to replace that matches nothing an error, not a warning.
    pub strict_addresses: bool,
    /// Generate configuration for imports that have none.
    pub generate_config: bool,
    /// The address and the identifier of an object to import. Then the plan does nothing else: the object is imported and
    /// refreshed, and is in the prior state of the plan; it is not compared with its configuration.
    pub import: Option<(AbsResourceInstance, Arc<str>)>,
    /// The action to invoke, in a refresh-only plan. Without an instance key it means all instances. Targets select the resource
    /// instances that call it.
    pub invoke: Option<AbsActionInstance>,
    /// Run a query: evaluate the `list` blocks, with their dependencies, and nothing else.
    pub query: Option<QueryOptions>,
}

/// The options of a query.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryOptions {
    /// Generate configuration for the objects that are found.
    pub generate_config: bool,
}

impl Default for PlanOptions {
    fn default() -> PlanOptions {
        PlanOptions {
            mode: Mode::Normal,
            refresh: true,
            targets: Vec::new(),
            excludes: Vec::new(),
            force_replace: Vec::new(),
            strict_addresses: false,
            generate_config: false,
            import: None,
            query: None,
            invoke: None,
        }
    }
}
