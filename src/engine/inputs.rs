//! What the engine is given.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::{AbsResourceInstance, Target};
use config::Config;
use cty::Value;
use state::State;

use crate::eval::Surroundings;
use crate::events::EventSink;
use crate::plan::Mode;
use crate::stop::Stop;
use provider::ProviderSource;

/// What every operation is given.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The state before.
    pub state: &'a State,
    /// The values of the root variables, converted, without marks.
    pub variables: &'a BTreeMap<Arc<str>, Value>,
    /// What expressions can see beside that.
    pub surroundings: &'a Surroundings,
    /// Where plugins come from.
    pub providers: &'a dyn ProviderSource,
    /// Where events go.
    pub events: &'a dyn EventSink,
    /// The wish to end early.
    pub stop: &'a Stop,
    /// How many operations on objects may run at a time.
    pub parallelism: usize,
}

/// What kind of plan is wanted.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// What kind.
    pub mode: Mode,
    /// Whether to look at the objects first.
    pub refresh: bool,
    /// What to plan for; empty for everything.
    pub targets: Vec<Target>,
    /// What to leave out, with everything that depends on it; never together with targets.
    pub excludes: Vec<Target>,
    /// What to replace in any case.
    pub force_replace: Vec<AbsResourceInstance>,
    /// Whether to write configuration for imports that have none.
    pub generate_config: bool,
    /// An object to import, and its identifier. Then this is all that is done: the object is found and looked at, and
    /// comes into the prior state of the plan; it is not compared with its configuration.
    pub import: Option<(AbsResourceInstance, Arc<str>)>,
}

impl Default for PlanOptions {
    fn default() -> PlanOptions {
        PlanOptions {
            mode: Mode::Normal,
            refresh: true,
            targets: Vec::new(),
            excludes: Vec::new(),
            force_replace: Vec::new(),
            generate_config: false,
            import: None,
        }
    }
}
