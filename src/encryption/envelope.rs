//! The JSON document around an encrypted text.
//!
//! The fields, and the names in `meta`, are in the order in which OpenTofu writes them.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use state::CipherError;
use state::codec::Head;

/// The only version of the format.
const VERSION: &str = "v0";

/// Metadata that key providers store with a text to find its key again, by the address or alias of the provider.
pub(crate) type Metadata = BTreeMap<String, Vec<u8>>;

#[derive(Serialize)]
struct Written<'e> {
    #[serde(skip_serializing_if = "Option::is_none")]
    serial: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lineage: Option<&'e str>,
    meta: BTreeMap<&'e str, String>,
    encrypted_data: String,
    encryption_version: &'e str,
}

#[derive(Deserialize)]
struct Read {
    #[serde(default)]
    meta: Option<BTreeMap<String, Option<String>>>,
    #[serde(default)]
    encrypted_data: Option<String>,
    encryption_version: String,
}

/// An encrypted text, and the metadata from which its keys are found.
pub(crate) struct Sealed {
    pub metadata: Metadata,
    pub data: Vec<u8>,
}

impl Sealed {
    /// Writes the document. `head` is given for a state, and `None` for a plan.
    pub fn write(&self, head: Option<Head<'_>>) -> Result<Vec<u8>, CipherError> {
        let metadata = self.metadata.iter();
        let document = Written {
            serial: head.map(|head| head.serial),
            lineage: head.map(|head| head.lineage),
            meta: metadata.map(|(key, data)| (&**key, STANDARD.encode(data))).collect(),
            encrypted_data: STANDARD.encode(&self.data),
            encryption_version: VERSION,
        };
        serde_json::to_vec(&document).map_err(|e| CipherError(e.to_string()))
    }

    /// Parses the document of an encrypted text.
    pub fn read(text: &[u8]) -> Result<Sealed, CipherError> {
        let invalid = |why: String| CipherError(format!("invalid data format for decryption: {why}"));
        let document: Read = serde_json::from_slice(text).map_err(|e| invalid(::files::json_reason(e)))?;
        if document.encryption_version != VERSION {
            return Err(CipherError(format!(
                "invalid encrypted payload version: {} != {VERSION}",
                document.encryption_version
            )));
        }
        let bytes = |what: &str, text: Option<String>| {
            STANDARD
                .decode(text.unwrap_or_default())
                .map_err(|e| invalid(format!("{what} is not base64 ({e})")))
        };
        let metadata = document.meta.unwrap_or_default().into_iter();
        Ok(Sealed {
            metadata: metadata
                .map(|(key, text)| Ok((key.clone(), bytes(&format!("the metadata of {key}"), text)?)))
                .collect::<Result<_, _>>()?,
            data: bytes("the encrypted data", document.encrypted_data)?,
        })
    }
}
