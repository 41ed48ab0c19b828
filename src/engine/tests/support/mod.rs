//! Support for the scenarios: an in-memory remote system with its provider, and [`Case`], which plans and applies a configuration with a
//! state and options.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod identity;
pub mod provider;
pub mod remote;

use std::sync::{Arc, Mutex};

use config::Config;
use config::files::MemoryFiles;
use config::manifest::Manifest;
use cty::Value;
use engine::apply::Completion;
use engine::events::{Event, EventSink};
use engine::inputs::{EvaluationEnvironment, Inputs, PlanOptions, Variables};
use engine::plan::{Action, Mode, Plan, ResourceChange};
use engine::results::ResultSink;
use engine::stop::Stop;
use state::{Object, ObjectStatus, State};
use syntax::{Diagnostic, Diagnostics};

use provider::FakeSource;
use remote::FakeRemote;

/// Event sink that records the events.
#[derive(Default)]
pub struct Recorder(pub Mutex<Vec<Event>>);

impl EventSink for Recorder {
    fn event(&self, event: Event) {
        // Progress events are not recorded, because they depend on timing.
        if !matches!(event, Event::Progress { .. }) {
            self.0.lock().unwrap().push(event);
        }
    }
}

/// A configuration, a remote, and the state that applies have produced so far.
pub struct Case {
    pub remote: FakeRemote,
    pub config: Config,
    pub state: State,
    pub variables: Variables,
    pub options: PlanOptions,
    pub parallelism: usize,
    pub lanes: Option<Arc<engine::lanes::Lanes>>,
    pub stop: Stop,
    /// The results that applies sent to the sink.
    pub results: Results,
    /// The completion of the last apply.
    pub completion: Completion,
    pub events: Recorder,
}

/// Terraform version that the tests report as the version of the program.
const ANSWERED_AS: &str = "1.16.0";

pub fn load(files: &[(&str, &str)]) -> (Config, Diagnostics) {
    let files: MemoryFiles = files.iter().copied().collect();
    let manifest = Manifest::default();
    let options = config::LoadOptions::new(ANSWERED_AS, &manifest);
    let loaded = config::load(&files, ".", &options);
    (loaded.config, loaded.diagnostics)
}

/// Loads a configuration, including the query files of its directory.
pub fn load_with_queries(files: &[(&str, &str)]) -> (Config, Diagnostics) {
    let files: MemoryFiles = files.iter().copied().collect();
    let manifest = Manifest::default();
    let options = config::LoadOptions::new(ANSWERED_AS, &manifest);
    let loaded = config::load_with_queries(&files, ".", &options);
    (loaded.config, loaded.diagnostics)
}

/// Formats diagnostics as text. Each begins on a new line.
pub fn texts<'d>(problems: impl IntoIterator<Item = &'d Diagnostic>) -> String {
    let each = problems.into_iter().map(|d| {
        let about = d.address.as_ref().map(|a| format!(" [{a}]")).unwrap_or_default();
        format!("{:?}: {}{about}: {}", d.severity, d.summary, d.detail)
    });
    each.collect::<Vec<_>>().join("\n")
}

pub fn errors(problems: &Diagnostics) -> String {
    texts(problems.iter().filter(|d| d.is_error()))
}

impl Case {
    /// Creates a case with one configuration file.
    pub fn new(main: &str) -> Case {
        Case::with_files(&[("main.tf", main)])
    }

    pub fn with_files(files: &[(&str, &str)]) -> Case {
        let mut case = Case {
            remote: FakeRemote::default(),
            config: load(&[]).0,
            state: State::new(),
            variables: Variables::default(),
            options: PlanOptions::default(),
            parallelism: 10,
            lanes: None,
            stop: Stop::new(),
            results: Results::default(),
            completion: Completion::default(),
            events: Recorder::default(),
        };
        case.files(files);
        case
    }

    /// Makes the provider return identities for its objects. `version` is the version of the identity schema.
    pub fn identities(&mut self, version: u64) -> &mut Case {
        self.remote.lock().identities = Some(version);
        self
    }

    /// Replaces the only file of the configuration.
    pub fn main(&mut self, main: &str) -> &mut Case {
        self.files(&[("main.tf", main)])
    }

    /// Replaces the files of the configuration.
    pub fn files(&mut self, files: &[(&str, &str)]) -> &mut Case {
        let (config, problems) = load(files);
        assert!(!problems.has_errors(), "{}", texts(problems.iter()));
        self.config = config;
        self
    }

    pub fn variable(&mut self, name: &str, value: Value) -> &mut Case {
        self.variables.values.insert(name.into(), value);
        self
    }

    pub fn environment() -> EvaluationEnvironment {
        let mut environment = EvaluationEnvironment {
            workspace: "default".into(),
            cwd: "/work".into(),
            ..EvaluationEnvironment::default()
        };
        // The time is fixed, so that tests can compare the result of plantimestamp().
        environment.functions.plan_timestamp = Some("2024-01-02T03:04:05Z".into());
        environment
    }

    fn inputs<'a>(&'a self, source: &'a FakeSource, environment: &'a EvaluationEnvironment) -> Inputs<'a> {
        Inputs {
            config: &self.config,
            state: &self.state,
            variables: &self.variables,
            environment,
            providers: source,
            events: &self.events,
            stop: &self.stop,
            parallelism: self.parallelism,
            lanes: self.lanes.as_ref(),
        }
    }

    /// Makes a plan, which may fail.
    pub fn try_plan(&self) -> (Option<Plan>, Diagnostics) {
        let (source, environment) = (FakeSource(self.remote.clone()), Case::environment());
        let planning = block_on(engine::planner::plan(self.inputs(&source, &environment), &self.options));
        let (plan, diagnostics) = (planning.plan, planning.diagnostics);
        assert!(
            diagnostics.has_errors() == plan.as_ref().is_none_or(|p| p.errored),
            "errors and the plan disagree:\n{}",
            texts(diagnostics.iter())
        );
        (plan, diagnostics)
    }

    /// Makes a plan, and returns its claims on the state.
    pub fn claims(&self) -> state::Claims {
        let (source, environment) = (FakeSource(self.remote.clone()), Case::environment());
        let planning = block_on(engine::planner::plan(self.inputs(&source, &environment), &self.options));
        assert!(
            !planning.diagnostics.has_errors(),
            "{}",
            texts(planning.diagnostics.iter())
        );
        engine::claims::of_plan(&self.config, &planning.schemas, &planning.plan.unwrap()).unwrap()
    }

    /// Validates the configuration, and returns all diagnostics.
    pub fn validate(&self) -> Diagnostics {
        let (source, environment) = (FakeSource(self.remote.clone()), Case::environment());
        block_on(engine::validate::validate(self.inputs(&source, &environment)))
    }

    /// Makes a plan, and panics if that fails.
    pub fn plan(&self) -> Plan {
        let (plan, diagnostics) = self.try_plan();
        assert!(!diagnostics.has_errors(), "{}", texts(diagnostics.iter()));
        plan.unwrap()
    }

    /// Makes a plan that must fail, and returns its errors.
    pub fn plan_errors(&self) -> String {
        let (_, diagnostics) = self.try_plan();
        assert!(diagnostics.has_errors(), "planning should fail");
        errors(&diagnostics)
    }

    /// Applies a plan, which may fail, and returns the diagnostics.
    pub fn try_apply(&mut self, plan: &Plan) -> Diagnostics {
        let (source, environment) = (FakeSource(self.remote.clone()), Case::environment());
        let apply = engine::apply::apply(self.inputs(&source, &environment), plan, &self.results);
        let result = block_on(apply);
        self.state = result.state;
        self.completion = result.completion;
        result.diagnostics
    }

    /// Plans and applies; both must succeed.
    pub fn apply(&mut self) -> &mut Case {
        let plan = self.plan();
        let diagnostics = self.try_apply(&plan);
        assert!(!diagnostics.has_errors(), "{}", texts(diagnostics.iter()));
        self
    }

    /// Makes a plan, which must succeed, and applies it, which must fail. Returns the errors.
    pub fn apply_errors(&mut self) -> String {
        let plan = self.plan();
        let diagnostics = self.try_apply(&plan);
        assert!(diagnostics.has_errors(), "applying should fail");
        errors(&diagnostics)
    }

    /// Plans and applies in destroy mode.
    pub fn destroy(&mut self) -> &mut Case {
        self.options.mode = Mode::Destroy;
        self.apply();
        self.options.mode = Mode::Normal;
        self
    }

    /// Asserts that the next plan is empty.
    pub fn assert_settled(&self) {
        let plan = self.plan();
        assert!(
            !plan.has_changes(),
            "there should be nothing to do: {:?} {:?}",
            actions(&plan),
            plan.outputs
        );
    }

    /// Returns the current object at an address.
    pub fn object(&self, address: &str) -> Option<Arc<Object>> {
        self.state
            .instances()
            .find(|(r, _, key, _)| r.instance((*key).clone()).to_string() == address)
            .and_then(|(_, _, _, i)| i.current.clone())
    }

    /// Returns an attribute of the current object at an address, as JSON.
    pub fn attribute(&self, address: &str, name: &str) -> serde_json::Value {
        let object = self
            .object(address)
            .unwrap_or_else(|| panic!("no {address} in {:?}", self.addresses()));
        attributes(&object)[name].clone()
    }

    pub fn is_tainted(&self, address: &str) -> bool {
        self.object(address).is_some_and(|o| o.status == ObjectStatus::Tainted)
    }

    /// Returns the addresses of the objects in the state. Deposed objects are marked.
    pub fn addresses(&self) -> Vec<String> {
        let mut out = Vec::new();
        for (resource, _, key, instance) in self.state.instances() {
            let address = resource.instance(key.clone()).to_string();
            out.extend(instance.current.iter().map(|_| address.clone()));
            out.extend(instance.deposed.keys().map(|_| format!("{address} (deposed)")));
        }
        out
    }

    pub fn output(&self, name: &str) -> Option<Value> {
        self.state.outputs.get(name).map(|o| o.value.clone())
    }

    pub fn target(&mut self, targets: &[&str]) -> &mut Case {
        self.options.targets = targets.iter().map(|t| addrs::parse::target(t).unwrap()).collect();
        self
    }

    pub fn exclude(&mut self, excludes: &[&str]) -> &mut Case {
        self.options.excludes = excludes.iter().map(|t| addrs::parse::target(t).unwrap()).collect();
        self
    }

    pub fn replace(&mut self, addresses: &[&str]) -> &mut Case {
        self.options.force_replace = addresses.iter().map(|t| instance(t)).collect();
        self
    }
}

pub fn instance(address: &str) -> addrs::AbsResourceInstance {
    addrs::parse::resource_instance(address).unwrap()
}

pub fn attributes(object: &Object) -> serde_json::Value {
    match &object.attributes {
        state::Attributes::Json(json) => json.to_value().unwrap(),
        state::Attributes::Flat(_) => panic!("flat attributes"),
    }
}

/// Returns the actions of a plan in the form `+ a`, `~ a`, `- a`, `. a` (forget), `-/+ a`, `+/- a`, `+/. a`, `<= a`, without no-ops.
pub fn actions(plan: &Plan) -> Vec<String> {
    let sign = |c: &ResourceChange| {
        Some(match c.action {
            Action::NoOp => return None,
            Action::Create => "+",
            Action::Read => "<=",
            Action::Update => "~",
            Action::Delete => "-",
            Action::DeleteThenCreate => "-/+",
            Action::CreateThenDelete => "+/-",
            Action::Forget => ".",
            Action::CreateThenForget => "+/.",
        })
    };
    let deposed = |c: &ResourceChange| if c.deposed.is_some() { " (deposed)" } else { "" };
    plan.changes
        .iter()
        .filter_map(|c| Some(format!("{} {}{}", sign(c)?, c.address, deposed(c))))
        .collect()
}

/// Returns the change of the object at an address.
pub fn change<'p>(plan: &'p Plan, address: &str) -> &'p ResourceChange {
    plan.changes
        .iter()
        .find(|c| c.address.to_string() == address)
        .unwrap_or_else(|| panic!("no change of {address}"))
}

/// Time limit of one operation. It is long, since CI machines may be busy.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(300);

pub fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async { tokio::time::timeout(PATIENCE, future).await })
        .expect("things that wait for one another for ever")
}

/// Sink that builds a state from the results of a running apply.
#[derive(Default)]
pub struct Results(pub Mutex<State>);

impl ResultSink for Results {
    fn instance(
        &self,
        address: &addrs::AbsResourceInstance,
        provider: &addrs::AbsProviderConfig,
        objects: Option<state::InstanceState>,
        _: state::journal::Answers,
    ) {
        let mut state = self.0.lock().unwrap();
        state.set_instance(address, provider, objects);
    }
}
