//! Times at which objects and data sources were last known to be as the state has them: after a read, or after an apply.
//!
//! They are stored beside the state, never in it. Each time is recorded with a digest of the object. If the state now contains a different
//! object (because another user has applied, or an older state was restored), the time does not count. So if a plan finds drift and is not
//! applied, nothing is recorded for the stored object.

use std::collections::BTreeMap;

use addrs::AbsResourceInstance;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use state::{Attributes, Object, State};

/// Length of a digest in bytes. It only has to distinguish the versions of one object.
const DIGEST: usize = 8;

/// The last reads of the objects of one state, by address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LastReads(BTreeMap<String, LastRead>);

/// The last read of an object or a data source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastRead {
    /// Time of the read or of the apply: RFC 3339, UTC.
    pub at: String,
    /// Digest of the object.
    object: String,
    /// Digest of the arguments of a data source; `None` for a managed object, and after an apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arguments: Option<String>,
}

/// An object or a data source that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadInstance {
    pub address: AbsResourceInstance,
    /// Digest of the arguments of a data source; `None` for a managed object.
    pub arguments: Option<String>,
}

impl LastReads {
    /// Returns the name of the file for the state with this lineage. It is a digest, because a lineage may contain any characters.
    #[must_use]
    pub fn file_name(lineage: &str) -> String {
        format!("{}.json", digest(lineage))
    }

    /// Returns the last read of an object, if the object was then as it is now in the state.
    #[must_use]
    pub fn of(&self, address: &AbsResourceInstance, object: &Object) -> Option<&LastRead> {
        let found = self.0.get(&address.to_string())?;
        (found.object == digest_of(object)).then_some(found)
    }

    /// Records the time of these reads. `state` is the prior state of the plan, which has the objects as they were read.
    pub fn record_reads(&mut self, reads: &[ReadInstance], state: &State, at: &str) {
        for read in reads {
            if let Some(object) = state.current(&read.address) {
                self.record(&read.address, object, read.arguments.clone(), at);
            }
        }
    }

    /// Records the time of an apply for the objects at these addresses.
    pub fn record_applied<'a>(
        &mut self,
        addresses: impl IntoIterator<Item = &'a AbsResourceInstance>,
        state: &State,
        at: &str,
    ) {
        for address in addresses {
            if let Some(object) = state.current(address) {
                self.record(address, object, None, at);
            }
        }
    }

    fn record(&mut self, address: &AbsResourceInstance, object: &Object, arguments: Option<String>, at: &str) {
        let read = LastRead {
            at: at.to_owned(),
            object: digest_of(object),
            arguments,
        };
        self.0.insert(address.to_string(), read);
    }

    /// Removes the entries of objects that are in none of these states.
    pub fn retain_in(&mut self, states: &[&State]) {
        let known: std::collections::HashSet<String> = states
            .iter()
            .flat_map(|state| state.instances())
            .map(|(resource, _, key, _)| resource.instance(key.clone()).to_string())
            .collect();
        self.0.retain(|address, _| known.contains(address));
    }
}

impl LastRead {
    /// Returns true if a data source was read with these arguments; `None` if no arguments were recorded.
    pub(crate) fn had_arguments(&self, digest: &str) -> Option<bool> {
        self.arguments.as_deref().map(|arguments| arguments == digest)
    }
}

fn digest_of(object: &Object) -> String {
    match &object.attributes {
        Attributes::Json(json) => digest(json.as_str()),
        // Attributes in the flat form get no digest, because the next write of the state converts them to JSON.
        Attributes::Flat(_) => String::new(),
    }
}

/// Returns a digest of a text. The file contains digests only, so that it discloses no values.
pub(crate) fn digest(text: &str) -> String {
    let whole = Sha256::digest(text.as_bytes());
    HEXLOWER.encode(&whole[..DIGEST])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use state::RawJson;

    use super::*;

    fn state_with(value: &str) -> (State, AbsResourceInstance) {
        let address = addrs::parse::resource_instance("terraform_data.a").unwrap();
        let provider = addrs::AbsProviderConfig::root(addrs::Provider::builtin("terraform"));
        let json = RawJson::parse(&format!("{{\"input\": \"{value}\"}}")).unwrap();
        let mut state = State::new();
        state.set_current(
            &address,
            &provider,
            Some(Arc::new(Object::new(0, Attributes::Json(json)))),
        );
        (state, address)
    }

    #[test]
    fn time_counts_only_for_the_object_that_was_read() {
        let ((now, address), (other, _)) = (state_with("now"), state_with("other"));
        let read = ReadInstance {
            address: address.clone(),
            arguments: None,
        };
        let mut reads = LastReads::default();
        reads.record_reads(&[read], &now, "2026-01-02T03:04:05Z");
        let of = |reads: &LastReads, state: &State| reads.of(&address, state.current(&address).unwrap()).cloned();
        assert_eq!(of(&reads, &now).unwrap().at, "2026-01-02T03:04:05Z");
        assert_eq!(of(&reads, &other), None);
        let text = serde_json::to_string(&reads).unwrap();
        assert!(!text.contains("now"), "{text}");
        assert_eq!(serde_json::from_str::<LastReads>(&text).unwrap(), reads);
        reads.retain_in(&[&State::new()]);
        assert_eq!(reads, LastReads::default());
    }
}
