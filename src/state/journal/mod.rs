//! The journal of a run: its intents and results, made durable before the run continues.
//!
//! The state file is written at intervals, always as a whole. Objects that are created between two writes would be lost if the run is
//! killed. So each *intent* (an operation that is about to begin) and each *outcome* (all objects of an instance, in the form of the state
//! file) is appended to a file beside the state, `.NAME.journal`, or in the data directory for a state that is in a store ([`location`]).
//! An intent is durable before the provider is called; an outcome is durable before the operation counts as done. Records that are written
//! at the same time share one `fdatasync`.
//!
//! A journal continues one state: it names that state's lineage and serial, and the checksum of its content. Each write of the state file
//! is announced in the journal first (a *fold*), so at every instant the journal knows the state file. An outcome contains all objects of
//! its instance, so replaying it twice, or on a state that already has it, changes nothing. So all outcomes are replayed, in order, on any
//! known state ([`replay`]). On a state that the journal does not know, nothing is replayed: another program has continued without the
//! journal, which is then renamed and kept.
//!
//! The journal contains secrets, like the state. It has mode 0600, and is removed when everything is in the state file.
//!
//! A store that stores each object separately receives the records itself, and changes its objects ([`RecordSink`]). Its state always has
//! all outcomes, so nothing is replayed.
//!
//! Where to begin: [`mod@format`] (records and their frames), [`writer`] (group commit, compaction), [`replay`] (the meaning of a journal
//! for a state), [`recovery`] (handling and reporting a journal that a run has left), [`keeper`] (the interface for stores).

pub mod format;
pub mod keeper;
pub mod left;
pub mod location;
mod queue;
mod recorder;
pub mod recovery;
pub mod replay;
pub mod writer;

use std::path::{Path, PathBuf};

use addrs::{AbsProviderConfig, AbsResourceInstance};
use sha2::{Digest as _, Sha256};

use crate::{DeposedKey, State, StateError, document};

pub use keeper::{JournaledStore, Keeper};
pub use location::JournalLocation;
pub use recorder::{RecordSink, parts};
pub use recovery::JournalReport;
pub use writer::{JournalError, Ticket, Writer};

/// Returns the path of the journal of a state file: `.NAME.journal`.
#[must_use]
pub fn path_of(state: &Path) -> PathBuf {
    crate::beside::beside(state, ".", ".journal")
}

/// Kind of an operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IntentAction {
    /// Creation of an object.
    Create,
    /// Update in place.
    Update,
    /// Destruction of an object.
    Delete,
    /// Import of an existing object into the state.
    Import,
    /// Provisioner of a new object, or of one that is to be destroyed.
    Provision,
    /// Action of a provider, invoked by a trigger or by the user.
    Invoke,
}

impl IntentAction {
    /// Returns true for provisioners and actions, which run during another operation on the object.
    #[must_use]
    pub fn is_inside(self) -> bool {
        matches!(self, IntentAction::Provision | IntentAction::Invoke)
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            IntentAction::Create => "create",
            IntentAction::Update => "update",
            IntentAction::Delete => "delete",
            IntentAction::Import => "import",
            IntentAction::Provision => "provision",
            IntentAction::Invoke => "invoke",
        }
    }
}

/// An operation that is about to begin.
#[derive(Clone, Debug)]
pub struct Intent {
    /// Address of the instance. For an action that the user requests, the address of the action.
    pub address: String,
    /// Key of the deposed object that the operation is about; `None` for the current one.
    pub deposed: Option<DeposedKey>,
    pub action: IntentAction,
    /// Provider configuration, provisioner type or action that carries out the operation.
    pub by: String,
    /// Checksum of the planned value; empty if there is none.
    pub planned: String,
}

impl Intent {
    /// Returns the key that distinguishes this operation from concurrent ones.
    #[must_use]
    pub fn key(&self) -> IntentKey {
        IntentKey {
            address: self.address.clone(),
            deposed: self.deposed.as_ref().map(|key| key.0.to_string()),
            provision: self.action.is_inside(),
        }
    }
}

/// Key that distinguishes concurrent operations.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IntentKey {
    pub address: String,
    /// Key of the deposed object; `None` for the current one.
    pub deposed: Option<String>,
    /// Set for provisioners and actions, which run during another operation on the object.
    pub provision: bool,
}

/// All objects of an instance after a change, and the operation that the change ends.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub address: AbsResourceInstance,
    /// Provider configuration of the resource.
    pub provider: AbsProviderConfig,
    /// Objects of the instance; `None` if it has none any more.
    pub objects: Option<crate::InstanceState>,
    /// Operation that this outcome ends.
    pub answers: Answers,
}

/// Operation that an [`Outcome`] completes; its intent is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answers {
    /// None: the operation on the object continues.
    Nothing,
    /// The operation on the current object.
    Current,
    /// The operation on a deposed object.
    Deposed(DeposedKey),
}

/// Returns the SHA-256 of some content, in hexadecimal digits.
#[must_use]
pub fn checksum(content: &[u8]) -> String {
    hexadecimal(&Sha256::digest(content))
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    let digits = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.collect()
}

/// Identification of a state that a journal continues. The default value stands for a missing state.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Base {
    pub lineage: String,
    pub serial: u64,
    /// Checksum of the state's text.
    pub checksum: String,
}

impl Base {
    /// Identifies a state.
    ///
    /// # Errors
    /// The state has a value that cannot be stored.
    pub fn from_state(state: Option<&State>) -> Result<Base, StateError> {
        match state {
            None => Ok(Base::default()),
            Some(state) => {
                // The text is hashed in parts: the whole text of a large state would be the largest allocation of a run.
                let mut hash = Sha256::new();
                document::encode_in_parts(state, &mut |part| hash.update(part))?;
                Ok(Base::with_checksum(state, hexadecimal(&hash.finalize())))
            }
        }
    }

    /// Identifies a state with the given text.
    #[must_use]
    pub fn from_state_text(state: &State, text: &[u8]) -> Base {
        Base::with_checksum(state, checksum(text))
    }

    fn with_checksum(state: &State, checksum: String) -> Base {
        Base {
            lineage: state.lineage.clone(),
            serial: state.serial,
            checksum,
        }
    }
}

/// Lists the outcomes that turn one state into another, instance by instance. Outputs are not included, because they are evaluated again.
#[must_use]
pub fn changes(before: &State, after: &State) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for (resource, now, key, instance) in after.instances() {
        let address = resource.instance(key.clone());
        let known = before.resources.get(resource);
        let same = known.is_some_and(|known| {
            known.provider_of(key) == now.provider_of(key)
                && known
                    .instances
                    .get(key)
                    .is_some_and(|old| old.current == instance.current && old.deposed == instance.deposed)
        });
        if !same {
            outcomes.push(Outcome {
                address,
                provider: now.provider_of(key),
                objects: Some(instance.clone()),
                answers: Answers::Nothing,
            });
        }
    }
    for (resource, old, key, _) in before.instances() {
        let address = resource.instance(key.clone());
        if after.instance(&address).is_none() {
            outcomes.push(Outcome {
                address,
                provider: old.provider_of(key),
                objects: None,
                answers: Answers::Nothing,
            });
        }
    }
    outcomes
}
