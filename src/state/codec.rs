//! Encryption of a state's texts on their way to a disk or a store.
//!
//! A [`Codec`] turns snapshots into the bytes that are stored, and back. Without a [`Cipher`] these are the text of the state itself. With
//! a cipher, every text that leaves the process is encrypted: snapshots, their copies and backups, and the records of journals.

use std::sync::Arc;

use serde::Deserialize;

pub use crate::cipher::{Cipher, CipherError, Head, Opened};
use crate::document;
use crate::{FormatError, State, StateError};

/// Clear-text fields of an encrypted text. Only an encrypted text has the field `encryption_version`.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    encryption_version: String,
    #[serde(default)]
    serial: Option<u64>,
    #[serde(default)]
    lineage: String,
}

impl Envelope {
    fn parse(text: &[u8]) -> Option<Envelope> {
        if text.trim_ascii_start().first() != Some(&b'{') {
            return None;
        }
        let envelope: Envelope = serde_json::from_slice(text).ok()?;
        (!envelope.encryption_version.is_empty()).then_some(envelope)
    }
}

/// Returns true if a text is encrypted, which is recognized by its JSON fields.
#[must_use]
pub fn is_sealed(text: &[u8]) -> bool {
    Envelope::parse(text).is_some()
}

/// Returns true if a text is an encrypted saved plan: it is encrypted and has no serial and lineage.
#[must_use]
pub fn is_sealed_plan(text: &[u8]) -> bool {
    Envelope::parse(text).is_some_and(|envelope| envelope.serial.is_none() && envelope.lineage.is_empty())
}

/// A state that was read from stored bytes, and whether it should be written again.
#[derive(Clone, Debug)]
pub struct Decoded {
    pub state: State,
    /// True if the state should be written again, because it is in plain text or only a fallback could decrypt it.
    pub outdated: bool,
}

/// Form in which the texts of a state are stored. The default is plain text.
#[derive(Clone, Debug, Default)]
pub struct Codec(Option<Arc<dyn Cipher>>);

impl Codec {
    /// Stores texts without encryption.
    pub const PLAIN: Codec = Codec(None);

    #[must_use]
    pub fn new(cipher: Arc<dyn Cipher>) -> Codec {
        Codec(Some(cipher))
    }

    /// Returns the cipher; `None` without encryption.
    #[must_use]
    pub fn cipher(&self) -> Option<&Arc<dyn Cipher>> {
        self.0.as_ref()
    }

    /// Encodes a state as it is stored.
    ///
    /// # Errors
    /// The state has a value that cannot be stored, or cannot be encrypted.
    pub fn encode(&self, state: &State) -> Result<Vec<u8>, StateError> {
        self.seal(state, document::encode(state)?)
    }

    /// Encrypts the text of a state.
    ///
    /// # Errors
    /// The text cannot be encrypted.
    pub fn seal(&self, state: &State, text: Vec<u8>) -> Result<Vec<u8>, StateError> {
        let Some(cipher) = &self.0 else {
            return Ok(text);
        };
        let head = Head {
            serial: state.serial,
            lineage: &state.lineage,
        };
        cipher.seal(text, Some(head)).map_err(StateError::Cipher)
    }

    /// Reads a stored state; `None` if there are no bytes, as for a state that was never written.
    ///
    /// # Errors
    /// The bytes are not a state, cannot be decrypted, or must be encrypted and are not.
    pub fn decode(&self, stored: &[u8]) -> Result<Option<Decoded>, FormatError> {
        let Some(cipher) = self.0.as_ref().filter(|_| !stored.is_empty()) else {
            return match document::decode(stored) {
                // Decryption is considered only after parsing has failed, so that a plain state is parsed once.
                Err(_) if is_sealed(stored) => Err(FormatError::Encrypted),
                decoded => Ok(decoded?.map(|state| Decoded { state, outdated: false })),
            };
        };
        let Some(envelope) = Envelope::parse(stored) else {
            let decoded = document::decode(stored)?;
            let outdated = cipher.accept_plain().map_err(FormatError::Cipher)?;
            return Ok(decoded.map(|state| Decoded { state, outdated }));
        };
        let opened = cipher.open(stored).map_err(FormatError::Cipher)?;
        let Some(state) = document::decode(&opened.text)? else {
            return Err(FormatError::Cipher(CipherError("there is no state in it".to_owned())));
        };
        // The clear-text fields are not authenticated. A difference shows that somebody has replaced the encrypted text by another
        // snapshot, such as an older one.
        if envelope.serial.is_some_and(|serial| serial != state.serial) {
            return Err(differs("serial"));
        }
        if !envelope.lineage.is_empty() && envelope.lineage != state.lineage {
            return Err(differs("lineage"));
        }
        Ok(Some(Decoded {
            state,
            outdated: opened.outdated,
        }))
    }

    /// Encrypts a record of a journal.
    pub(crate) fn seal_record<'t>(&self, text: &'t [u8]) -> Result<std::borrow::Cow<'t, [u8]>, StateError> {
        match &self.0 {
            None => Ok(text.into()),
            Some(cipher) => (cipher.seal(text.to_vec(), None).map(Into::into)).map_err(StateError::Cipher),
        }
    }

    /// Decrypts a record of a journal. A record in plain text is accepted: it was written before encryption was configured, and its results
    /// must not be lost.
    pub(crate) fn open_record<'t>(&self, text: &'t [u8]) -> Result<std::borrow::Cow<'t, [u8]>, FormatError> {
        // Only encrypted records begin with this field.
        if !text.starts_with(b"{\"meta\":") {
            return Ok(text.into());
        }
        match &self.0 {
            None => Err(FormatError::Encrypted),
            Some(cipher) => (cipher.open(text).map(|opened| opened.text.into())).map_err(FormatError::Cipher),
        }
    }
}

fn differs(what: &str) -> FormatError {
    FormatError::Cipher(CipherError(format!(
        "invalid state metadata, {what} field mismatch: the {what} beside the encrypted state is not the one inside it, so the \
         file was changed or damaged"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cipher that reverses the bytes. `plain` tells whether it accepts plain text.
    #[derive(Debug)]
    struct Reversed {
        plain: bool,
    }

    impl Cipher for Reversed {
        fn seal(&self, text: Vec<u8>, head: Option<Head<'_>>) -> Result<Vec<u8>, CipherError> {
            let head = head.map_or(String::new(), |h| {
                format!("\"serial\":{},\"lineage\":\"{}\",", h.serial, h.lineage)
            });
            let text: Vec<String> = text.iter().rev().map(u8::to_string).collect();
            let sealed = format!(
                "{{\"meta\":{{}},{head}\"encrypted_data\":[{}],\"encryption_version\":\"v0\"}}",
                text.join(",")
            );
            Ok(sealed.into_bytes())
        }

        fn open(&self, sealed: &[u8]) -> Result<Opened, CipherError> {
            #[derive(Deserialize)]
            struct Data {
                encrypted_data: Vec<u8>,
            }
            let data: Data = serde_json::from_slice(sealed).map_err(|e| CipherError(e.to_string()))?;
            Ok(Opened {
                text: data.encrypted_data.into_iter().rev().collect(),
                outdated: false,
            })
        }

        fn accept_plain(&self) -> Result<bool, CipherError> {
            self.plain.then_some(true).ok_or(CipherError("not encrypted".into()))
        }
    }

    fn codec(plain: bool) -> Codec {
        Codec::new(Arc::new(Reversed { plain }))
    }

    fn state() -> State {
        State {
            serial: 7,
            lineage: "one".into(),
            terraform_version: "1.0.0".into(),
            ..State::new()
        }
    }

    #[test]
    fn sealed_state_is_read_by_its_cipher_only() {
        let stored = codec(false).encode(&state()).unwrap();
        assert!(is_sealed(&stored));
        let read = codec(false).decode(&stored).unwrap().unwrap();
        assert_eq!((read.state.serial, read.outdated), (7, false));
        assert_eq!(Codec::PLAIN.decode(&stored).unwrap_err(), FormatError::Encrypted);
    }

    #[test]
    fn changed_head_of_a_sealed_state_is_refused() {
        let stored = String::from_utf8(codec(false).encode(&state()).unwrap()).unwrap();
        for (from, to) in [("\"serial\":7", "\"serial\":8"), ("\"one\"", "\"two\"")] {
            let error = codec(false).decode(stored.replace(from, to).as_bytes()).unwrap_err();
            assert!(error.to_string().contains("field mismatch"), "{error}");
        }
    }

    #[test]
    fn plain_state_is_read_where_the_cipher_accepts_it_and_is_outdated_then() {
        let stored = Codec::PLAIN.encode(&state()).unwrap();
        assert!(codec(true).decode(&stored).unwrap().unwrap().outdated);
        assert!(codec(false).decode(&stored).is_err());
        assert!(codec(false).decode(b"").unwrap().is_none());
    }
}
