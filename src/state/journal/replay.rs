//! Replay: the meaning of a journal for a state.

use std::collections::BTreeMap;

use addrs::AbsResourceInstance;

use super::format::{self, Damage, InFlight, Opened, Part, Record};
use super::{Answers, Base, IntentKey, Outcome};
use crate::{Codec, FormatError, InstanceState, State, StateError};

/// Content of a journal, by kind of record.
#[derive(Debug, Default)]
pub struct Contents {
    /// First record. `None` if it was not written completely; then no operation had begun.
    pub opened: Option<Opened>,
    /// States that the journal knows: the one that it continues, and the announced ones.
    bases: Vec<Base>,
    /// Last outcome of each instance.
    outcomes: BTreeMap<AbsResourceInstance, Outcome>,
    /// Operations that have not ended.
    in_flight: BTreeMap<IntentKey, InFlight>,
    /// Bytes that are not valid records.
    pub damage: Vec<Damage>,
}

#[derive(Debug)]
pub enum Verdict {
    /// The journal knows the state.
    Continues {
        /// State with all outcomes.
        state: State,
        /// Instances that the outcomes have changed; empty if the state had all outcomes.
        replayed: Vec<AbsResourceInstance>,
    },
    /// The journal does not know the state, but the state already has all outcomes.
    Contained,
    /// The journal does not know the state.
    Foreign {
        why: Foreign,
        /// Instances whose outcomes the state does not have.
        outcomes: Vec<AbsResourceInstance>,
    },
}

/// Reason why a journal does not know a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// There is no state.
    NoState,
    /// The state has another lineage.
    OtherLineage,
    /// The serial of the state shows that another program has written it.
    OtherSerial {
        /// Last serial that the journal knows.
        journal: u64,
        /// Serial of the state.
        state: u64,
    },
    /// The state has a serial that the journal knows, but other contents.
    OtherContents(u64),
    /// The first record is damaged, so it is unknown which state the journal continues.
    Unknown,
}

impl Contents {
    /// Reads the bytes of a journal that is not encrypted. Damaged parts are recorded and do not cause an error.
    #[must_use]
    pub fn read(file: &[u8]) -> Contents {
        Contents::read_as(file, &Codec::PLAIN).unwrap_or_default()
    }

    /// Reads the bytes of a journal. Damaged parts are recorded.
    ///
    /// # Errors
    /// A record cannot be decrypted.
    pub fn read_as(file: &[u8], codec: &Codec) -> Result<Contents, FormatError> {
        let mut contents = Contents::default();
        for (at, part) in format::parts(file) {
            match part {
                Part::Torn => {
                    tracing::info!("the end of the journal, from byte {at}, was cut short while it was written")
                }
                Part::Damaged(damage) => contents.damage.push(damage),
                Part::Text(text) => match format::decode(&codec.open_record(text)?) {
                    Ok(record) => contents.add(record),
                    Err(error) => contents.damage.push(Damage {
                        at,
                        what: error.to_string(),
                    }),
                },
            }
        }
        Ok(contents)
    }

    fn add(&mut self, record: Record) {
        match record {
            Record::Opened(opened) => {
                self.bases.push(opened.base.clone());
                self.opened.get_or_insert(opened);
            }
            Record::Fold(base) => self.bases.push(base),
            Record::Begin(intent) => {
                self.in_flight.insert(intent.key(), intent);
            }
            Record::End(key) => {
                self.in_flight.remove(&key);
            }
            Record::Outcome(outcome) => {
                if let Some(key) = answered(&outcome) {
                    self.in_flight.remove(&key);
                }
                // An outcome has all objects of its instance, so it replaces earlier outcomes.
                self.outcomes.insert(outcome.address.clone(), *outcome);
            }
        }
    }

    /// Returns true if the journal continues this state.
    #[must_use]
    pub fn knows(&self, base: &Base) -> bool {
        self.bases.contains(base)
    }

    /// Returns the operations that have not ended, in the order of their addresses.
    pub fn in_flight(&self) -> impl Iterator<Item = &InFlight> {
        self.in_flight.values()
    }

    /// Decides what the journal means for a state.
    ///
    /// # Errors
    /// The state has a value that cannot be stored.
    pub fn judge(&self, state: Option<&State>) -> Result<Verdict, StateError> {
        let found = Base::from_state(state)?;
        let empty = State::new();
        let before = state.unwrap_or(&empty);
        let replayed: Vec<AbsResourceInstance> = self
            .outcomes
            .values()
            .filter(|outcome| !same(before.instance(&outcome.address), outcome.objects.as_ref()))
            .map(|outcome| outcome.address.clone())
            .collect();
        if self.bases.contains(&found) {
            let mut after = before.clone();
            for outcome in self.outcomes.values() {
                after.set_instance(&outcome.address, &outcome.provider, outcome.objects.clone());
            }
            return Ok(Verdict::Continues { state: after, replayed });
        }
        // If a part is damaged, the state may lack an outcome that cannot be read, so it does not count as complete.
        if replayed.is_empty() && self.damage.is_empty() {
            return Ok(Verdict::Contained);
        }
        Ok(Verdict::Foreign {
            why: self.foreign(state, &found),
            outcomes: replayed,
        })
    }

    fn foreign(&self, state: Option<&State>, found: &Base) -> Foreign {
        let Some(last) = self.bases.last() else {
            return Foreign::Unknown;
        };
        if state.is_none() {
            return Foreign::NoState;
        }
        if self
            .bases
            .iter()
            .any(|base| base.serial == found.serial && base.lineage == found.lineage)
        {
            return Foreign::OtherContents(found.serial);
        }
        // A new state gets its lineage at the first write, so the journal of a first run has no lineage to compare with.
        if !last.lineage.is_empty() && last.lineage != found.lineage {
            return Foreign::OtherLineage;
        }
        Foreign::OtherSerial {
            journal: last.serial,
            state: found.serial,
        }
    }
}

/// Returns the key of the operation that an outcome ends; `None` if the operation continues.
pub(super) fn answered(outcome: &Outcome) -> Option<IntentKey> {
    let deposed = match &outcome.answers {
        Answers::Nothing => return None,
        Answers::Current => None,
        Answers::Deposed(key) => Some(key.0.to_string()),
    };
    Some(IntentKey {
        address: outcome.address.to_string(),
        deposed,
        provision: false,
    })
}

fn same(one: Option<&InstanceState>, other: Option<&InstanceState>) -> bool {
    let one = one.filter(|i| !i.is_empty());
    let other = other.filter(|i| !i.is_empty());
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => one.current == other.current && one.deposed == other.deposed,
        _ => false,
    }
}
