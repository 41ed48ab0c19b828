//! The inputs of an operation: configuration, state, variables, providers, options.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::{AbsActionInstance, AbsResourceInstance, Target};
use config::Config;
use cty::Value;
use lang::scope::{FunctionSettings, Witness};
use state::State;
use tokio::sync::Semaphore;

use crate::events::{Event, EventSink};
use crate::lanes::{Lanes, WAITING};
use crate::last_reads::LastReads;
use crate::plan::Mode;
use crate::stop::Stop;
use provider::ProviderSource;

/// The evaluation environment: the values of `path` and `terraform`, and the behaviour of functions.
#[derive(Clone, Debug, Default)]
pub struct EvaluationEnvironment {
    pub workspace: String,
    /// The absolute path of the working directory before `-chdir`.
    pub cwd: String,
    /// The value of `terraform.applying`. Apply sets it.
    pub applying: bool,
    pub functions: FunctionSettings,
    /// Observer of the evaluation of expressions, for coverage.
    pub witness: Option<Arc<dyn Witness>>,
    /// The name of this program in messages.
    pub program: addrs::Program,
    /// Modules whose deprecated variables and outputs cause warnings.
    pub deprecations: ModuleDeprecations,
}

/// Modules whose deprecated variables and outputs cause warnings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModuleDeprecations {
    #[default]
    All,
    /// Modules that are called by a local path.
    Local,
    None,
}

#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// Values after conversion, without marks. An ephemeral variable is included only if it is set.
    pub values: BTreeMap<Arc<str>, Value>,
    /// Values as they were set, before conversion; without ephemeral variables. Plans show these.
    pub given: BTreeMap<Arc<str>, Value>,
}

/// Default of `-parallelism`.
const USUAL_PARALLELISM: usize = 10;

/// Limit of concurrent operations on objects that exist only in the state. A measured limit: twice as many are not faster.
const LOCAL_PARALLELISM: usize = 64;

#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// Configuration with all called modules.
    pub config: &'a Config,
    /// The state before the operation.
    pub state: &'a State,
    pub variables: &'a Variables,
    /// Evaluation environment of all modules.
    pub environment: &'a EvaluationEnvironment,
    pub providers: &'a dyn ProviderSource,
    /// Receiver of progress events.
    pub events: &'a dyn EventSink,
    /// Token for graceful stop and cancellation.
    pub stop: &'a Stop,
    pub parallelism: usize,
    /// Separate limits for providers (`-parallelism=auto` or `-parallelism=aws=40`). Providers without one share `parallelism`.
    pub lanes: Option<&'a Arc<Lanes>>,
}

impl Inputs<'_> {
    /// Returns `parallelism` as a number of permits: at least one, and at most as many as a semaphore can have.
    pub(crate) fn permits(&self) -> usize {
        self.parallelism.clamp(1, Semaphore::MAX_PERMITS)
    }

    /// Returns the number of operations that may be running or waiting for a permit: `usual`, or more if there are lanes, so that
    /// operations that wait for one lane do not keep others from starting.
    pub(crate) fn at_once(&self, usual: usize) -> usize {
        match self.lanes {
            Some(_) => usual.saturating_add(WAITING),
            None => usual,
        }
    }

    /// Sends an event with the limits of the lanes, if one of them has changed.
    pub(crate) fn report_lanes(&self) {
        if let Some(limits) = self.lanes.and_then(|lanes| lanes.take_changes()) {
            self.events.event(Event::Lanes { limits, settled: false });
        }
    }

    /// Sends an event with the final limits of the lanes.
    pub(crate) fn report_settled_lanes(&self) {
        let limits = self.lanes.map(|lanes| lanes.settled()).unwrap_or_default();
        if !limits.is_empty() {
            self.events.event(Event::Lanes { limits, settled: true });
        }
    }

    /// Returns the limit of concurrent operations on objects that exist only in the state. `-parallelism` protects the services behind
    /// providers, and there is no service behind such objects. With a larger limit, many calls share one round trip to the plugin. `None`
    /// if the user has set `-parallelism` below the default, which then applies to all objects.
    pub(crate) fn local_parallelism(&self) -> Option<usize> {
        (self.parallelism >= USUAL_PARALLELISM).then(|| self.permits().max(LOCAL_PARALLELISM))
    }
}

#[derive(Clone, Debug)]
pub struct PlanOptions {
    pub mode: Mode,
    /// Refresh the objects before their changes are planned.
    pub refresh: bool,
    /// Refresh only a part of the objects and data sources. `None` means all, or none if `refresh` is false. Never set in destroy mode,
    /// which changes every object.
    pub partial_refresh: Option<PartialRefresh>,
    /// Addresses of `-target`; empty for the whole configuration.
    pub targets: Vec<Target>,
    /// Addresses of `-exclude`: the plan leaves these out, with everything that depends on them. Never set together with targets.
    pub excludes: Vec<Target>,
    /// The objects to replace even if their configuration is unchanged.
    pub force_replace: Vec<AbsResourceInstance>,
    /// Report a target or a `-replace` address that matches nothing as an error, not as a warning.
    pub strict_addresses: bool,
    /// Generate configuration for imports that have no resource block.
    pub generate_config: bool,
    /// The address and the identifier of an object to import. The plan then does nothing else: it imports and refreshes the object, and
    /// puts it into the prior state. The object is not compared with its configuration.
    pub import: Option<(AbsResourceInstance, Arc<str>)>,
    /// The action to invoke, in a refresh-only plan. An address without an instance key means all instances. If the action refers to
    /// `caller`, the targets select the instances that it is invoked for.
    pub invoke: Option<AbsActionInstance>,
    /// Run a query: evaluate the `list` blocks, with their dependencies, and nothing else.
    pub query: Option<QueryOptions>,
}

/// Selection of the objects and data sources that a plan reads, with the times of their last reads.
#[derive(Clone, Debug)]
pub struct PartialRefresh {
    pub part: RefreshPart,
    /// Times of the last reads, from earlier runs.
    pub last_reads: Arc<LastReads>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefreshPart {
    /// Objects that the plan changes, the objects from which their changed values come, and the data sources that they use.
    Changed,
    /// Objects and data sources that have not been read since a time.
    OlderThan {
        /// That time: RFC 3339, UTC, in whole seconds.
        since: String,
        /// Age as the user wrote it, such as `24h`.
        age: String,
    },
}

impl std::fmt::Display for RefreshPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RefreshPart::Changed => f.write_str("changed"),
            RefreshPart::OlderThan { age, .. } => write!(f, "older-than={age}"),
        }
    }
}

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
            partial_refresh: None,
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
