//! The remote remote that the provider of the tests manages: a shared map of objects, a record of every call, and knobs
//! that make calls fail, take time, or answer nonsense.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use cty::{Path, Value};

/// Changes what the provider is about to answer.
pub type Mutation = Arc<dyn Fn(Value) -> Value + Send + Sync>;
/// Runs when a call begins.
pub type Hook = Arc<dyn Fn() + Send + Sync>;

/// What exists, what was called, what shall go wrong. Calls are named `create a`, `update a`, `delete a`, `read a`,
/// `plan a`, `data q`, `configure token`, `provision text`, `open n`, `renew n`, `close n`, `call f x` by the `name` (`query`, `token`, `text`) argument.
#[derive(Default)]
pub struct RemoteData {
    /// The objects by their identifier.
    pub objects: BTreeMap<String, Value>,
    /// Beginnings (`> create a`) and ends (`< create a`) of calls.
    pub log: Vec<String>,
    /// Calls that report an error and do nothing.
    pub failing: HashSet<String>,
    /// Calls whose create answer is an error together with the new object.
    pub half: HashSet<String>,
    /// Calls that do not reach the provider.
    pub unreachable: HashSet<String>,
    /// Calls that do their work, and whose answer is lost.
    pub lost: HashSet<String>,
    /// What they did: the verb, and the identity of the object.
    pub lost_effects: Vec<(String, String)>,
    /// Calls that take this many turns of the event loop, and the seed for all others.
    pub turns: HashMap<String, u64>,
    /// Mixes the order in which calls end.
    pub seed: u64,
    /// What happens when a call begins.
    pub hooks: HashMap<String, Hook>,
    /// Changes to the answers of all calls that answer an object; those of `upgrade` and `import` are named by its identifier.
    pub mutations: HashMap<String, Mutation>,
    /// Whether the provider asks for the leniency of the legacy type system.
    pub legacy: bool,
    /// Whether the provider notes in its own data of an object what was done to it.
    pub notes: bool,
    /// Attributes that a plan gives as the reason to replace, by the name of the object.
    pub replaced_for: HashMap<String, Path>,
    /// Objects, by their identifier, of which an import finds so many.
    pub imported: HashMap<String, usize>,
    /// The number of the last object created.
    pub count: u64,
    /// Providers that cannot be started.
    pub missing: HashSet<String>,
    /// Whether ephemeral resources want to be renewed at once.
    pub renew: bool,
    /// Whether to keep the log (not for large tests).
    pub quiet: bool,
    /// Whether the provider says that its objects are in the state alone.
    pub state_only: bool,
    /// How many calls are in flight, and the most that ever were.
    pub in_flight: usize,
    pub most_in_flight: usize,
    /// How many configurations were validated.
    pub validated: usize,
}

impl RemoteData {
    /// The provider's own data of an object, with one more note.
    pub fn noted(&self, mut private: Vec<u8>, note: &str) -> Vec<u8> {
        if self.notes {
            private.extend_from_slice(note.as_bytes());
        }
        private
    }
}

/// Shared by all processes of the provider.
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

    /// The calls since the last time, in the order in which they began; reading and planning left out.
    pub fn changes(&self) -> Vec<String> {
        let log = std::mem::take(&mut self.lock().log);
        log.iter()
            .filter_map(|l| l.strip_prefix("> "))
            .filter(|l| !l.starts_with("read ") && !l.starts_with("plan ") && !l.starts_with("configure"))
            .map(str::to_owned)
            .collect()
    }

    /// All calls since the last time.
    pub fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().log)
    }

    /// The object with this name: its attributes.
    pub fn named(&self, name: &str) -> Option<Value> {
        self.lock()
            .objects
            .values()
            .find(|o| o.get("name").and_then(Value::as_str) == Some(name))
            .cloned()
    }

    /// The names of all objects.
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

    /// Somebody changes an object behind our back.
    pub fn drift(&self, name: &str, attribute: &str, value: Value) {
        for object in self.lock().objects.values_mut() {
            if object.get("name").and_then(Value::as_str) == Some(name) {
                *object = with(object, attribute, value.clone());
            }
        }
    }

    /// Somebody destroys an object behind our back.
    pub fn vanish(&self, name: &str) {
        self.lock()
            .objects
            .retain(|_, o| o.get("name").and_then(Value::as_str) != Some(name));
    }
}

/// An object with one attribute changed.
pub fn with(object: &Value, attribute: &str, value: Value) -> Value {
    object.map_parts(|part, old| match part {
        cty::value::Part::Attribute(name) if &**name == attribute => value.clone(),
        _ => old.clone(),
    })
}

/// Asserts that one call ended before another began.
pub fn assert_before(log: &[String], first: &str, second: &str) {
    let end = log.iter().position(|l| *l == format!("< {first}"));
    let start = log.iter().position(|l| *l == format!("> {second}"));
    match (end, start) {
        (Some(end), Some(start)) if end < start => {}
        _ => panic!("{first} should end before {second} begins:\n{}", log.join("\n")),
    }
}
