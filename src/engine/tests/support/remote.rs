//! The remote system of the tests' provider: a shared map of objects, a log of the calls, and settings that make calls fail,
//! take time, or return invalid responses.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use cty::{Path, Value};

/// Function that changes a response of the provider.
pub type Mutation = Arc<dyn Fn(Value) -> Value + Send + Sync>;
/// Callback at the start of a call.
pub type Hook = Arc<dyn Fn() + Send + Sync>;

/// State of the remote: objects, log and settings. Calls are named by their verb and an argument (`name`, `query`, `token`, `text`):
/// `create a`, `update a`, `delete a`, `read a`, `plan a`, `data q`, `configure token`, `provision text`, `open n`, `renew n`, `close n`,
/// `call f x`. The key of a mutation of an identity is the name of the call, prefixed with `identity`: `identity plan a`.
#[derive(Default)]
pub struct RemoteData {
    /// Remote objects, by their identifiers.
    pub objects: BTreeMap<String, Value>,
    /// The starts (`> create a`) and ends (`< create a`) of calls.
    pub log: Vec<String>,
    /// Calls that return an error and have no effect.
    pub failing: HashSet<String>,
    /// Creation and update calls that take effect, and return an error together with the new object.
    pub half: HashSet<String>,
    /// Calls that do not reach the provider.
    pub unreachable: HashSet<String>,
    /// Calls that take effect but whose response is lost.
    pub lost: HashSet<String>,
    /// Effects of calls whose response was lost: the verb, and the ID of the object.
    pub lost_effects: Vec<(String, String)>,
    /// Number of yields of single calls, by the name of the call. For other calls, the seed determines the number.
    pub turns: HashMap<String, u64>,
    /// A seed for the order in which calls end.
    pub seed: u64,
    /// Hooks for the start of calls.
    pub hooks: HashMap<String, Hook>,
    /// Mutations of responses that contain an object, by the name of the call. Mutations of `upgrade` and `import` responses are named by
    /// the object's ID.
    pub mutations: HashMap<String, Mutation>,
    /// Set the flag of the legacy type system in responses.
    pub legacy: bool,
    /// Record the operations on an object in its private data.
    pub notes: bool,
    /// For each object name, the path that a plan returns as requiring replacement.
    pub replaced_for: HashMap<String, Path>,
    /// The number of objects that an import returns, by identifier.
    pub imported: HashMap<String, usize>,
    /// Counter for IDs, notes and secrets. It grows with each creation, update and opening.
    pub count: u64,
    /// Providers that cannot be started.
    pub missing: HashSet<String>,
    /// Provisioners that return no schema.
    pub schemaless: HashSet<String>,
    pub closed_provisioners: Vec<String>,
    /// The token of each closed provider, and the number of entries that the log had then.
    pub closed_providers: Vec<(String, usize)>,
    /// Request that ephemeral resources are renewed at once.
    pub renew: bool,
    /// Write no log (for large tests).
    pub quiet: bool,
    /// Declare the objects as state-only.
    pub state_only: bool,
    /// The version of the schema of identities, if objects have them.
    pub identities: Option<u64>,
    /// Recorded requests to list objects: the `config` block, the flag that requests objects, and the limit.
    pub listed: Vec<(Value, bool, u64)>,
    /// Generate configuration for objects.
    pub generates: bool,
    /// Source of each object whose move was requested from the provider: provider and resource type.
    pub moved: Vec<String>,
    /// Planned private data in each plan request.
    pub planned_private: Vec<Vec<u8>>,
    /// Number of calls in flight.
    pub in_flight: usize,
    /// Maximum of `in_flight` so far.
    pub most_in_flight: usize,
    /// Duration of a read.
    pub latency: std::time::Duration,
    /// Number of reads per second above which reads are throttled; `None` for no limit.
    pub per_second: Option<usize>,
    /// Times of the reads in the last second that were not throttled because of `per_second`.
    pub latest_reads: std::collections::VecDeque<std::time::Instant>,
    /// Number of all reads of objects.
    pub reads: usize,
    /// Number of upcoming reads that will be throttled.
    pub throttled: usize,
    /// Number of validation calls, except those for provider configurations and provisioners.
    pub validated: usize,
}

impl RemoteData {
    /// Returns the private data of an object with one more entry.
    pub fn noted(&self, mut private: Vec<u8>, note: &str) -> Vec<u8> {
        if self.notes {
            private.extend_from_slice(note.as_bytes());
        }
        private
    }
}

/// Handle of the remote, shared by all processes of the provider.
#[derive(Clone, Default)]
pub struct FakeRemote(Arc<Mutex<RemoteData>>);

impl FakeRemote {
    pub fn lock(&self) -> MutexGuard<'_, RemoteData> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub fn fail(&self, call: &str) {
        self.lock().failing.insert(call.into());
    }

    pub fn heal(&self) {
        let mut w = self.lock();
        w.failing.clear();
        w.half.clear();
        w.unreachable.clear();
        w.lost.clear();
        w.mutations.clear();
        w.hooks.clear();
        w.missing.clear();
        w.replaced_for.clear();
        w.turns.clear();
    }

    pub fn mutate(&self, call: &str, mutate: impl Fn(Value) -> Value + Send + Sync + 'static) {
        self.lock().mutations.insert(call.into(), Arc::new(mutate));
    }

    pub fn hook(&self, call: &str, hook: impl Fn() + Send + Sync + 'static) {
        self.lock().hooks.insert(call.into(), Arc::new(hook));
    }

    /// Empties the log. Returns the calls in it, without reads, plans and configuration of providers, in the order of their starts.
    pub fn changes(&self) -> Vec<String> {
        let log = std::mem::take(&mut self.lock().log);
        log.iter()
            .filter_map(|l| l.strip_prefix("> "))
            .filter(|l| !l.starts_with("read ") && !l.starts_with("plan ") && !l.starts_with("configure"))
            .map(str::to_owned)
            .collect()
    }

    /// Empties the log, and returns its entries: the starts and ends of calls.
    pub fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().log)
    }

    /// Returns the attributes of the object with this name.
    pub fn named(&self, name: &str) -> Option<Value> {
        self.lock()
            .objects
            .values()
            .find(|o| o.get("name").and_then(Value::as_str) == Some(name))
            .cloned()
    }

    /// Returns the names of all objects, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .lock()
            .objects
            .values()
            .filter_map(|o| Some(o.get("name")?.as_str()?.to_owned()))
            .collect();
        names.sort();
        names
    }

    /// Changes a remote object outside of Monoform.
    pub fn drift(&self, name: &str, attribute: &str, value: Value) {
        for object in self.lock().objects.values_mut() {
            if object.get("name").and_then(Value::as_str) == Some(name) {
                *object = with(object, attribute, value.clone());
            }
        }
    }

    /// Destroys a remote object outside of Monoform.
    pub fn vanish(&self, name: &str) {
        self.lock()
            .objects
            .retain(|_, o| o.get("name").and_then(Value::as_str) != Some(name));
    }
}

/// Returns an object with one attribute changed.
pub fn with(object: &Value, attribute: &str, value: Value) -> Value {
    object.map_parts(|part, old| match part {
        cty::value::Part::Attribute(name) if &**name == attribute => value.clone(),
        _ => old.clone(),
    })
}

/// Asserts that one call ended before another started.
pub fn assert_before(log: &[String], first: &str, second: &str) {
    let end = log.iter().position(|l| *l == format!("< {first}"));
    let start = log.iter().position(|l| *l == format!("> {second}"));
    match (end, start) {
        (Some(end), Some(start)) if end < start => {}
        _ => panic!("{first} should end before {second} begins:\n{}", log.join("\n")),
    }
}
