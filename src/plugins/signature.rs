//! Signatures of the checksums that a registry publishes: by one of the keys that the registry names.

use crate::openpgp::{Certificate, Signature};

/// The key that HashiCorp signs its own providers with, by its fingerprint: whoever has this one needs no registry to say
/// whose it is.
const VENDOR: &str = "C874011F0AB405110D02105534365D9472D7468F";

/// Who has signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    /// The ID of the key, in hexadecimal digits.
    pub key_id: String,
    /// The key is HashiCorp's own.
    pub vendor: bool,
}

/// Who of these has signed a document. The error is a sentence without its full stop.
pub fn verify(document: &[u8], signature: &[u8], keys: &[String]) -> Result<Signer, String> {
    if keys.is_empty() {
        return Err("the registry names no key that it could be signed with".to_owned());
    }
    let signature = Signature::read(signature).map_err(|e| format!("its signature cannot be read: {e}"))?;
    let mut known = Vec::new();
    let mut claimed = false;
    for armored in keys {
        let parsed = Certificate::read_all(armored.as_bytes());
        for key in parsed.map_err(|e| format!("a key that the registry names cannot be read: {e}"))? {
            let key_id = key.id();
            if key.has_signed(document, &signature) {
                let vendor = key.fingerprint() == VENDOR;
                return Ok(Signer { key_id, vendor });
            }
            claimed |= signature.issuer().is_some_and(|id| key.has_key(&id));
            known.push(key_id);
        }
    }
    Err(match signature.issuer() {
        Some(by) if claimed => {
            format!("its signature by the key {by} is wrong: it was changed after it was signed")
        }
        Some(by) => format!(
            "it is signed by the key {by}, which is not among those that the registry names ({})",
            known.join(", ")
        ),
        None => format!(
            "its signature is by none of the keys that the registry names ({})",
            known.join(", ")
        ),
    })
}
