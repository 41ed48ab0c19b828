//! Thread that sends the records of a run to a store that stores each object separately.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use addrs::{AbsResourceInstance, InstanceKey};
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json, json};

use super::format::InFlight;
use super::queue::{Item, JournalError, Shared};
use super::{Answers, IntentKey, Outcome};
use crate::{State, StateError, document};

/// Maximum number of records in a request.
const BATCH: usize = 500;

/// Store that receives the records of a run, and changes its objects accordingly.
pub trait RecordSink: Send {
    /// Applies records, either all or none. `records` is a JSON array; `proto::STATE_REQUEST` describes its elements.
    ///
    /// # Errors
    /// The records were not applied.
    fn record(&mut self, records: &str) -> Result<(), StateError>;
}

pub(super) struct Recorder {
    shared: Arc<Shared>,
    sink: Box<dyn RecordSink>,
    /// Records that could not be sent yet.
    backlog: Vec<String>,
    /// Intents of the operations that have not ended.
    open: BTreeSet<IntentKey>,
}

/// Returns the parts of an address as JSON, in the same form as in the text of a state.
#[must_use]
pub fn parts(address: &AbsResourceInstance) -> Json {
    let resource = &address.resource;
    json!({
        "module": address.module.to_string(),
        "mode": resource.resource.mode.as_str(),
        "type": &*resource.resource.ty,
        "name": &*resource.resource.name,
        "instance_key": match &resource.key {
            InstanceKey::None => String::new(),
            InstanceKey::Int(number) => number.to_string(),
            // Escaped as in the text of a state.
            InstanceKey::String(text) => cty::json::to_text(&Json::from(&**text), None),
        },
    })
}

/// Returns the text of a record.
fn text(kind: &str, record: impl serde::Serialize) -> Result<String, StateError> {
    let failed = |e: serde_json::Error| StateError::Value {
        what: "A record of the journal".into(),
        message: e.to_string(),
    };
    let record = serde_json::value::to_raw_value(&record).map_err(failed)?;
    Ok(format!("{{\"{kind}\":{}}}", record.get()))
}

fn begin(intent: &InFlight) -> Result<String, StateError> {
    let object = addrs::parse::resource_instance(&intent.address).ok();
    let record = json!({"intent": intent, "object": object.as_ref().map(parts)});
    text("begin", record)
}

fn outcome(outcome: &Outcome) -> Result<String, StateError> {
    #[derive(serde::Serialize)]
    struct Record {
        address: String,
        object: Json,
        #[serde(skip_serializing_if = "Option::is_none")]
        answers: Option<String>,
        document: Box<RawValue>,
    }
    // The text of the objects is taken from a state that contains only this instance, so that it is the same as in the text of a state.
    let mut state = State::new();
    state.set_instance(&outcome.address, &outcome.provider, outcome.objects.clone());
    let document = String::from_utf8_lossy(&document::encode(&state)?).into_owned();
    text(
        "outcome",
        Record {
            address: outcome.address.to_string(),
            object: parts(&outcome.address),
            answers: match &outcome.answers {
                Answers::Nothing => None,
                Answers::Current => Some("current".to_owned()),
                Answers::Deposed(key) => Some(key.0.to_string()),
            },
            document: RawValue::from_string(document).map_err(|e| StateError::Value {
                what: format!("The object {}", outcome.address),
                message: e.to_string(),
            })?,
        },
    )
}

fn end(key: &IntentKey) -> Result<String, StateError> {
    let mut record = Map::new();
    record.insert("address".into(), key.address.clone().into());
    record.insert("deposed".into(), key.deposed.clone().into());
    record.insert("provision".into(), key.provision.into());
    text("end", record)
}

impl Recorder {
    pub(super) fn new(shared: Arc<Shared>, sink: Box<dyn RecordSink>) -> Recorder {
        Recorder {
            shared,
            sink,
            backlog: Vec::new(),
            open: BTreeSet::new(),
        }
    }

    pub(super) fn run(&mut self) {
        let shared = self.shared.clone();
        loop {
            let mut queue = shared.wait();
            let (items, ended) = (std::mem::take(&mut queue.items), queue.ended);
            (queue.urgent, queue.awaited, queue.intents, queue.patient) = (0, 0, 0, 0);
            queue.unwritten = true;
            drop(queue);
            self.write(items);
            shared.queue().unwritten = !self.backlog.is_empty();
            if ended {
                return;
            }
        }
    }

    /// Sends a group of records, and answers their tickets.
    fn write(&mut self, items: Vec<Item>) {
        let mut slots = Vec::new();
        let mut begun = Vec::new();
        // Records that failed before are sent first, because the order of records matters.
        let mut texts = std::mem::take(&mut self.backlog);
        let mut refused = None;
        for item in items {
            let text = match item {
                Item::Sync(slot) | Item::Fold(_, slot) => {
                    slots.push(slot);
                    continue;
                }
                // There is no file to compact: the store always has all outcomes.
                Item::Compact(..) | Item::Leave(_) => continue,
                Item::Begin(intent, slot) => {
                    slots.push(slot);
                    let key = intent.key();
                    begin(&intent).inspect(|_| {
                        begun.push((key.clone(), texts.len()));
                        self.open.insert(key);
                    })
                }
                Item::Outcome(_, result) => {
                    if let Some(key) = super::replay::answered(&result) {
                        self.open.remove(&key);
                    }
                    outcome(&result)
                }
                // The outcome of this operation has already ended it.
                Item::End(key) if !self.open.remove(&key) => continue,
                Item::End(key) => end(&key),
            };
            match text {
                Ok(text) => texts.push(text),
                Err(e) => refused = Some(JournalError::from(e)),
            }
        }
        let mut sent = 0;
        let result = texts.chunks(BATCH).try_for_each(|batch| {
            self.sink.record(&format!("[{}]", batch.join(",")))?;
            sent += batch.len();
            Ok::<_, StateError>(())
        });
        let result = match (refused, result) {
            (Some(refused), _) => Err(refused),
            (None, result) => result.map_err(JournalError::from),
        };
        self.shared.failing.store(result.is_err(), Ordering::Relaxed);
        // Operations whose intents failed do not begin, so these intents must not be sent later. Outcomes have happened, so they are sent
        // again.
        if result.is_err() {
            let dropped: BTreeSet<usize> = begun.iter().map(|(_, at)| *at).collect();
            for (key, _) in begun {
                self.open.remove(&key);
                // The store may have received the intent although the answer was lost, so its end is recorded.
                self.backlog.extend(end(&key));
            }
            let kept = texts.into_iter().enumerate().skip(sent);
            self.backlog
                .extend(kept.filter(|(at, _)| !dropped.contains(at)).map(|(_, text)| text));
        }
        for slot in slots {
            slot.answer(result.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    use super::super::{Intent, IntentAction, Writer};
    use super::*;
    use crate::{Attributes, InstanceState, Object, RawJson};

    #[derive(Clone, Default)]
    struct Sink {
        requests: Arc<Mutex<Vec<Vec<Json>>>>,
        fails: Arc<AtomicBool>,
    }

    impl RecordSink for Sink {
        fn record(&mut self, records: &str) -> Result<(), StateError> {
            if self.fails.load(Ordering::SeqCst) {
                return Err(StateError::Store {
                    summary: "No".to_owned(),
                    detail: "no".to_owned(),
                });
            }
            self.requests
                .lock()
                .unwrap()
                .push(serde_json::from_str(records).unwrap());
            Ok(())
        }
    }

    impl Sink {
        /// Returns the kinds of the records with their addresses.
        fn kinds(&self) -> Vec<String> {
            let requests = self.requests.lock().unwrap();
            let records = requests.iter().flatten();
            let kind = |record: &Json| {
                let (kind, record) = record.as_object().unwrap().iter().next().unwrap();
                let address = record.get("address").unwrap_or(&record["intent"]["address"]);
                format!("{kind} {}", address.as_str().unwrap())
            };
            records.map(kind).collect()
        }
    }

    fn intent(address: &str) -> Intent {
        Intent {
            address: address.to_owned(),
            deposed: None,
            action: IntentAction::Create,
            by: "p".to_owned(),
            planned: String::new(),
        }
    }

    fn created(address: &str) -> Outcome {
        let object = Object::new(0, Attributes::Json(RawJson::parse("{\"id\":\"1\"}").unwrap()));
        Outcome {
            address: addrs::parse::resource_instance(address).unwrap(),
            provider: addrs::AbsProviderConfig::root(addrs::Provider::default_for("null")),
            objects: Some(InstanceState {
                current: Some(Arc::new(object)),
                ..InstanceState::default()
            }),
            answers: Answers::Current,
        }
    }

    #[test]
    fn records_have_the_parts_of_addresses_and_the_text_of_the_state() {
        let sink = Sink::default();
        let writer = Writer::in_store(Box::new(sink.clone())).unwrap();
        let address = "module.m[\"k\"].null_resource.a[0]";
        writer.begin(&intent(address)).wait().unwrap();
        writer.outcome(created(address));
        writer.end(intent(address).key());
        writer.sync().wait().unwrap();
        assert_eq!(sink.kinds(), [format!("begin {address}"), format!("outcome {address}")]);
        let requests = sink.requests.lock().unwrap();
        let parts = json!({"module": "module.m[\"k\"]", "mode": "managed", "type": "null_resource", "name": "a", "instance_key": "0"});
        assert_eq!(requests[0][0]["begin"]["object"], parts);
        let outcome = &requests[1][0]["outcome"];
        assert_eq!(
            (&outcome["object"], &outcome["answers"]),
            (&parts, &Json::from("current"))
        );
        let instance = &outcome["document"]["resources"][0]["instances"][0];
        assert_eq!(instance["attributes"], json!({"id": "1"}));
        assert!(writer.path().is_none());
    }

    #[test]
    fn outcomes_are_sent_again_after_a_failure_and_intents_are_taken_back() {
        let sink = Sink::default();
        let writer = Writer::in_store(Box::new(sink.clone())).unwrap();
        writer.begin(&intent("a.a")).wait().unwrap();
        sink.fails.store(true, Ordering::SeqCst);
        writer.outcome(created("a.a"));
        assert!(writer.begin(&intent("a.b")).wait().is_err());
        assert!(writer.sync().wait().is_err());
        sink.fails.store(false, Ordering::SeqCst);
        writer.sync().wait().unwrap();
        assert_eq!(sink.kinds(), ["begin a.a", "end a.b", "outcome a.a"]);
        writer.end_run(|| Ok(super::super::Base::default())).unwrap();
    }
}
