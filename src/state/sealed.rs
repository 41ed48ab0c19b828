//! Encryption of a state's parts, for stores that keep each object apart.
//!
//! Such a store needs the addresses of objects, their dependencies and the like in clear text. Everything else of an object, and the
//! value of an output, is one encrypted text. It contains the address, too, so that nobody who can write the tables can give one object
//! the values of another one. Texts of unchanged parts are reused: encrypted again they would differ, and be written again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest as _, Sha256};

use crate::codec::{Codec, Decoded, is_sealed};
use crate::{Cipher, CipherError, FormatError, StateError};

/// Members of an object's instance that the store needs.
const CLEAR: &[&str] = &[
    "index_key",
    "status",
    "deposed",
    "schema_version",
    "dependencies",
    "create_before_destroy",
];

/// Text in every state with an encrypted part.
const STUB: &[u8] = b"\"sealed\"";

type Members = BTreeMap<String, Box<RawValue>>;

/// Value that stands for the encrypted members.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stub {
    sealed: String,
}

/// Content of an encrypted text.
#[derive(Serialize, Deserialize)]
struct Part {
    /// Parts of the address.
    of: Json,
    members: Members,
}

/// Encryption of the parts of one state.
#[derive(Debug)]
pub struct Sealer {
    codec: Codec,
    /// Encrypted texts by the checksum of their content.
    kept: Mutex<HashMap<[u8; 32], Arc<str>>>,
}

/// Text of a state without encryption.
#[derive(Debug)]
pub struct Unsealed {
    pub text: Vec<u8>,
    /// True if a part is not stored in the current form.
    pub outdated: bool,
}

fn damaged(what: impl std::fmt::Display) -> CipherError {
    CipherError(format!("the encrypted state is damaged: {what}"))
}

fn parsed<'t, T: Deserialize<'t>>(text: &'t RawValue) -> Result<T, CipherError> {
    serde_json::from_str(text.get()).map_err(damaged)
}

/// Returns a member for the address of a part.
fn named(members: &Members, name: &str) -> Result<Json, CipherError> {
    members.get(name).map_or(Ok(Json::Null), |value| parsed(value))
}

impl Sealer {
    #[must_use]
    pub fn new(codec: Codec) -> Sealer {
        Sealer {
            codec,
            kept: Mutex::default(),
        }
    }

    /// Encrypts the parts of a state.
    ///
    /// # Errors
    /// A part cannot be encrypted.
    pub fn seal(&self, text: Vec<u8>) -> Result<Vec<u8>, StateError> {
        let Some(cipher) = self.codec.cipher() else {
            return Ok(text);
        };
        let document = serde_json::from_slice(&text).map_err(damaged);
        let sealed = document.and_then(|document| each_part(document, &mut |part| self.seal_part(&**cipher, part)));
        sealed.map_err(StateError::Cipher)
    }

    /// Encrypts the states in the records of a journal, which are a JSON array.
    ///
    /// # Errors
    /// A part cannot be encrypted.
    pub fn seal_records(&self, records: &str) -> Result<String, StateError> {
        if self.codec.cipher().is_none() {
            return Ok(records.to_owned());
        }
        let unreadable = |e: serde_json::Error| StateError::Cipher(damaged(e));
        let mut list: Vec<BTreeMap<String, Members>> = serde_json::from_str(records).map_err(unreadable)?;
        for document in list
            .iter_mut()
            .filter_map(|record| record.get_mut("outcome")?.get_mut("document"))
        {
            let text = self.seal(document.get().as_bytes().to_vec())?;
            *document = serde_json::from_slice(&text).map_err(unreadable)?;
        }
        serde_json::to_string(&list).map_err(unreadable)
    }

    /// Decrypts the parts of a state.
    ///
    /// # Errors
    /// No key fits, a part is that of another object, or parts must be encrypted and are not.
    pub fn open(&self, text: Vec<u8>) -> Result<Unsealed, FormatError> {
        let cipher = self.codec.cipher();
        let has_stub = || text.windows(STUB.len()).any(|part| part == STUB);
        let plain = |text| Unsealed { text, outdated: false };
        if cipher.is_none() && !has_stub() {
            return Ok(plain(text));
        }
        // A text that is no state is reported by its reader.
        let Ok(document) = serde_json::from_slice(&text) else {
            return Ok(plain(text));
        };
        let (mut outdated, mut has_sealed, mut has_plain) = (false, false, false);
        let opened = each_part(document, &mut |part| {
            let stub = part
                .members
                .get(part.stands)
                .and_then(|value| parsed::<Stub>(value).ok());
            match stub.filter(|stub| is_sealed(stub.sealed.as_bytes())) {
                None => has_plain = true,
                Some(stub) => {
                    has_sealed = true;
                    if let Some(cipher) = cipher {
                        outdated |= self.open_part(&**cipher, part, stub.sealed)?;
                    }
                }
            }
            Ok(())
        });
        let text = opened.map_err(FormatError::Cipher)?;
        match cipher {
            None if has_sealed => return Err(FormatError::Encrypted),
            Some(cipher) if has_plain => outdated |= cipher.accept_plain().map_err(FormatError::Cipher)?,
            _ => {}
        }
        Ok(Unsealed { text, outdated })
    }

    /// Reads a stored state; `None` if there are no bytes.
    ///
    /// # Errors
    /// The bytes are no state, or cannot be decrypted.
    pub fn decode(&self, text: Vec<u8>) -> Result<Option<Decoded>, FormatError> {
        let Unsealed { text, outdated } = self.open(text)?;
        let state = crate::document::decode(&text)?;
        Ok(state.map(|state| Decoded { state, outdated }))
    }

    fn seal_part(&self, cipher: &dyn Cipher, part: PartOf<'_>) -> Result<(), CipherError> {
        let PartOf {
            of,
            members,
            clear,
            stands,
        } = part;
        let hidden = members.iter().filter(|(name, _)| !clear.contains(&name.as_str()));
        let hidden: Members = hidden.map(|(name, value)| (name.clone(), value.clone())).collect();
        let text = serde_json::to_string(&Part { of, members: hidden }).map_err(damaged)?;
        let sum: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let known = self.kept().get(&sum).cloned();
        let sealed = match known {
            Some(sealed) => sealed,
            None => {
                let sealed = cipher.seal(text.into_bytes(), None)?;
                // The current form can be clear text.
                if !is_sealed(&sealed) {
                    return Ok(());
                }
                let sealed: Arc<str> = String::from_utf8(sealed).map_err(damaged)?.into();
                self.kept().insert(sum, sealed.clone());
                sealed
            }
        };
        members.retain(|name, _| clear.contains(&name.as_str()));
        let stub = Stub {
            sealed: sealed.to_string(),
        };
        members.insert(stands.to_owned(), to_raw_value(&stub).map_err(damaged)?);
        Ok(())
    }

    /// Decrypts a part. Returns true if it is not stored in the current form.
    fn open_part(&self, cipher: &dyn Cipher, part: PartOf<'_>, sealed: String) -> Result<bool, CipherError> {
        let opened = cipher.open(sealed.as_bytes())?;
        let sum: [u8; 32] = Sha256::digest(&opened.text).into();
        let content: Part = serde_json::from_slice(&opened.text).map_err(damaged)?;
        if content.of != part.of {
            return Err(damaged(format!("{} has the values of {}", part.of, content.of)));
        }
        part.members.retain(|name, _| part.clear.contains(&name.as_str()));
        part.members.extend(content.members);
        if !opened.outdated {
            self.kept().insert(sum, sealed.into());
        }
        Ok(opened.outdated)
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<[u8; 32], Arc<str>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An instance of a resource, or an output.
struct PartOf<'p> {
    /// Parts of the address.
    of: Json,
    members: &'p mut Members,
    /// Names of the members that are not encrypted.
    clear: &'static [&'static str],
    /// Name of the member that the encrypted text stands for.
    stands: &'static str,
}

/// Changes the parts of a state, and returns its text.
fn each_part(
    mut document: Members,
    change: &mut dyn FnMut(PartOf<'_>) -> Result<(), CipherError>,
) -> Result<Vec<u8>, CipherError> {
    if let Some(resources) = document.get_mut("resources") {
        let mut list: Vec<Members> = parsed(resources)?;
        for resource in &mut list {
            let of = ["module", "mode", "type", "name"].map(|name| named(resource, name));
            let of: Vec<Json> = of.into_iter().collect::<Result<_, _>>()?;
            let Some(instances) = resource.get_mut("instances") else {
                continue;
            };
            let mut parts: Vec<Members> = parsed(instances)?;
            for members in &mut parts {
                let more = ["index_key", "deposed"].map(|name| named(members, name));
                let more: Vec<Json> = more.into_iter().collect::<Result<_, _>>()?;
                change(PartOf {
                    of: of.iter().chain(&more).cloned().collect(),
                    members,
                    clear: CLEAR,
                    stands: "attributes",
                })?;
            }
            *instances = to_raw_value(&parts).map_err(damaged)?;
        }
        *resources = to_raw_value(&list).map_err(damaged)?;
    }
    if let Some(outputs) = document.get_mut("outputs") {
        let mut list: BTreeMap<String, Members> = parsed(outputs)?;
        for (name, members) in &mut list {
            change(PartOf {
                of: Json::from(vec!["output", name]),
                members,
                clear: &["sensitive", "type"],
                stands: "value",
            })?;
        }
        *outputs = to_raw_value(&list).map_err(damaged)?;
    }
    serde_json::to_vec(&document).map_err(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Head, Opened};

    /// Counts the texts that it has encrypted, so that no two are equal.
    #[derive(Debug, Default)]
    struct Counted(std::sync::atomic::AtomicU32);

    impl Cipher for Counted {
        fn seal(&self, text: Vec<u8>, _head: Option<Head<'_>>) -> Result<Vec<u8>, CipherError> {
            let number = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let sealed = serde_json::json!({"meta": number, "encrypted_data": text, "encryption_version": "v0"});
            Ok(sealed.to_string().into_bytes())
        }

        fn open(&self, sealed: &[u8]) -> Result<Opened, CipherError> {
            let sealed: Json = serde_json::from_slice(sealed).map_err(damaged)?;
            let text: Vec<u8> = serde_json::from_value(sealed["encrypted_data"].clone()).map_err(damaged)?;
            Ok(Opened { text, outdated: false })
        }

        fn accept_plain(&self) -> Result<bool, CipherError> {
            Ok(true)
        }
    }

    const STATE: &str = r#"{"version":4,"serial":1,"lineage":"l","outputs":{"a":{"value":1e3,"type":"number","sensitive":true}},"resources":[
{"mode":"managed","type":"t","name":"n","provider":"provider[\"registry.terraform.io/a/b\"]","instances":[
{"index_key":0,"schema_version":0,"attributes":{"b":"secret","a":1.50},
"private":"AAE=","sensitive_attributes":[],"dependencies":["t.m"]},{"index_key":1,"schema_version":0,"attributes":{"b":"hidden"}}]}]}"#;

    fn sealer() -> Sealer {
        Sealer::new(Codec::new(Arc::new(Counted::default())))
    }

    fn same(text: &[u8]) -> bool {
        let read = |text: &[u8]| crate::document::decode(text).unwrap().unwrap();
        read(text).same_content(&read(STATE.as_bytes()))
    }

    #[test]
    fn values_are_hidden_and_come_back() {
        let sealer = sealer();
        let sealed = sealer.seal(STATE.into()).unwrap();
        let text = String::from_utf8(sealed.clone()).unwrap();
        for hidden in ["secret", "hidden", "AAE=", "1e3"] {
            assert!(!text.contains(hidden), "{hidden}: {text}");
        }
        assert!(text.contains("t.m") && text.contains("\"index_key\":1"), "{text}");
        let opened = sealer.open(sealed.clone()).unwrap();
        assert!(same(&opened.text) && !opened.outdated);
        let plain = Sealer::new(Codec::PLAIN);
        assert_eq!(plain.open(sealed).unwrap_err(), FormatError::Encrypted);
        assert!(same(&plain.open(STATE.into()).unwrap().text));
        let opened = sealer.open(STATE.into()).unwrap();
        assert!(same(&opened.text) && opened.outdated);
    }

    #[test]
    fn unchanged_parts_have_the_same_text_after_a_read() {
        let sealed = sealer().seal(STATE.into()).unwrap();
        let reader = sealer();
        let opened = reader.open(sealed.clone()).unwrap();
        assert_eq!(reader.seal(opened.text.clone()).unwrap(), sealed);
        let changed = String::from_utf8(opened.text).unwrap().replace("secret", "other");
        let changed = String::from_utf8(reader.seal(changed.into()).unwrap()).unwrap();
        let sealed = String::from_utf8(sealed).unwrap();
        let differing = changed
            .split("sealed")
            .zip(sealed.split("sealed"))
            .filter(|(a, b)| a != b);
        assert_eq!(differing.count(), 1);
    }

    #[test]
    fn values_of_another_object_are_refused() {
        let sealed = String::from_utf8(sealer().seal(STATE.into()).unwrap()).unwrap();
        let swapped = sealed.replace("\"index_key\":0", "\"index_key\":2");
        let error = sealer().open(swapped.into()).unwrap_err();
        assert!(error.to_string().contains("has the values of"), "{error}");
    }

    #[test]
    fn states_in_records_are_encrypted() {
        let state = serde_json::to_string(&serde_json::from_str::<Json>(STATE).unwrap()).unwrap();
        let records = format!(
            "[{{\"begin\":{{\"intent\":{{\"address\":\"t.n\"}}}}}},{{\"outcome\":{{\"address\":\"t.n\",\"document\":{state}}}}}]"
        );
        let sealed = sealer().seal_records(&records).unwrap();
        assert!(!sealed.contains("secret") && sealed.contains("t.n"), "{sealed}");
        assert_eq!(Sealer::new(Codec::PLAIN).seal_records(&records).unwrap(), records);
    }
}
