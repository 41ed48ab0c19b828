//! Signatures of a registry's list of checksums, by the signing keys that the registry publishes.

#![expect(clippy::disallowed_methods, reason = "a key is valid until a time")]

use std::time::{SystemTime, UNIX_EPOCH};

use crate::openpgp::{self, Certificate, Signature};

/// Fingerprint of the key that HashiCorp signs its own providers with. It is fixed here, so no registry decides whose key it is.
const VENDOR: &str = "C874011F0AB405110D02105534365D9472D7468F";

/// Key that HashiCorp signs the keys of its partners with, `51890657C5ACDB4B82308656 7D72D4268E4660FC`. It is published with
/// every release of Terraform, not by registries.
const PARTNERS: &str = include_str!("partners.asc");

/// Key that made a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    /// Key ID, in hexadecimal digits.
    pub key_id: String,
    pub standing: Standing,
}

/// Owner of a signing key, as far as it is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Key of HashiCorp.
    Vendor,
    /// Key of a partner, which HashiCorp has signed.
    Partner,
    /// Key that only the registry vouches for.
    Registry,
}

/// Signing key in a registry's metadata.
#[derive(Clone, Debug, Default)]
pub struct Named {
    pub armored: String,
    /// Trust signature of the key by HashiCorp's key for partners; empty if there is none.
    pub trust: String,
}

/// Reason why a signature is not accepted. The text is a clause about the signed document, without a full stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    #[error("the registry names no key that it could be signed with")]
    NoKeys,
    #[error("its signature cannot be read: {0}")]
    Signature(#[source] openpgp::Error),
    #[error("a key that the registry names cannot be read: {0}")]
    Key(#[source] openpgp::Error),
    #[error("its signature by the key {0} has expired")]
    Expired(String),
    #[error("its signature{by} was made with {algorithms}; accepted are RSA, Ed25519 and ECDSA, with SHA-256 or more")]
    Algorithm {
        /// Description of the key for the text: ` by the key ID`, or empty.
        by: String,
        algorithms: String,
    },
    #[error("its signature by the key {0} is wrong: it was changed after it was signed")]
    Mismatch(String),
    /// The key is not among those of the registry.
    #[error("it is signed by the key {by}, which is not among those that the registry names ({known})")]
    OtherKey {
        by: String,
        /// Key IDs that the registry has.
        known: String,
    },
    /// The signature names no key, and none of the signing keys made it.
    #[error("its signature is by none of the keys that the registry names ({0})")]
    NoneOf(String),
    #[error("the registry calls its key {key} the key of a HashiCorp partner, but {reason}")]
    Partner { key: String, reason: PartnerError },
}

/// Reason why the key of a partner is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartnerError {
    #[error("{0}")]
    Key(#[from] openpgp::Error),
    #[error("the signature that should say so cannot be read: {0}")]
    Signature(#[source] openpgp::Error),
    /// The trust signature is not by HashiCorp's key for partners.
    #[error("the signature that should say so is not by HashiCorp")]
    NotByVendor,
}

/// Verifies the signature of a document. Returns the key that made it.
///
/// # Errors
///
/// No key made a valid signature of the document with accepted algorithms.
pub fn verify(document: &[u8], signature: &[u8], keys: &[Named]) -> Result<Signer, SignatureError> {
    verify_by(document, signature, keys, PARTNERS)
}

fn verify_by(document: &[u8], signature: &[u8], keys: &[Named], partners: &str) -> Result<Signer, SignatureError> {
    if keys.is_empty() {
        return Err(SignatureError::NoKeys);
    }
    let signatures = Signature::read_all(signature).map_err(SignatureError::Signature)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs());
    let mut known = Vec::new();
    let mut unreadable = None;
    for named in keys {
        let parsed = match Certificate::read_all(named.armored.as_bytes()) {
            Ok(parsed) => parsed,
            // Another key may be the one that made the signature.
            Err(why) => {
                unreadable = Some(why);
                continue;
            }
        };
        for key in parsed {
            let Some(made) = signatures.iter().find(|s| key.has_signed(document, s)) else {
                known.push(key);
                continue;
            };
            if made.has_expired(now) {
                return Err(SignatureError::Expired(key.id()));
            }
            let standing = standing(&key, named, partners)?;
            let key_id = key.id();
            return Ok(Signer { key_id, standing });
        }
    }
    // No key has verified the signature. The rest selects the most helpful explanation.
    let ids = known.iter().map(Certificate::id).collect::<Vec<_>>().join(", ");
    let one_of = |made: &Signature| made.issuer().is_some_and(|id| known.iter().any(|key| key.has_key(&id)));
    // A refused algorithm explains the failure better than a key that did not match.
    if let Some((by, what)) = signatures.iter().find_map(|s| Some((s.issuer(), s.not_relied_on()?))) {
        let by = by.map_or_else(String::new, |id| format!(" by the key {id}"));
        return Err(SignatureError::Algorithm { by, algorithms: what });
    }
    if let Some(by) = signatures.iter().filter(|s| one_of(s)).find_map(Signature::issuer) {
        return Err(SignatureError::Mismatch(by));
    }
    if let (Some(why), true) = (unreadable, known.is_empty()) {
        return Err(SignatureError::Key(why));
    }
    let ids = if ids.is_empty() {
        "none that was not revoked".to_owned()
    } else {
        ids
    };
    Err(match signatures.iter().find_map(Signature::issuer) {
        Some(by) => SignatureError::OtherKey { by, known: ids },
        None => SignatureError::NoneOf(ids),
    })
}

/// Determines the owner of a key. A key with an invalid trust signature is an error, because a false claim is worse than none.
fn standing(key: &Certificate, named: &Named, partners: &str) -> Result<Standing, SignatureError> {
    if key.fingerprint() == VENDOR {
        return Ok(Standing::Vendor);
    }
    if named.trust.trim().is_empty() {
        return Ok(Standing::Registry);
    }
    let wrong = |reason: PartnerError| SignatureError::Partner { key: key.id(), reason };
    let signed = openpgp::bytes_of(&named.armored).map_err(|e| wrong(e.into()))?;
    let signatures = Signature::read_all(named.trust.as_bytes()).map_err(|e| wrong(PartnerError::Signature(e)))?;
    let authorities = Certificate::read_all(partners.as_bytes()).map_err(|e| wrong(e.into()))?;
    let vouches = |s: &Signature| authorities.iter().any(|a| a.has_signed(&signed, s));
    if signatures.iter().any(vouches) {
        Ok(Standing::Partner)
    } else {
        Err(wrong(PartnerError::NotByVendor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &[u8] = b"abc  file_1.zip\n";
    const AUTHOR: &str = include_str!("tests/openpgp/rsa2048.asc");
    const SIGNATURE: &[u8] = include_bytes!("tests/openpgp/rsa2048.sig");

    fn named(trust: &str) -> [Named; 1] {
        [Named {
            armored: AUTHOR.to_owned(),
            trust: trust.to_owned(),
        }]
    }

    #[test]
    fn the_key_of_partners_is_the_one_that_is_published() {
        let keys = Certificate::read_all(PARTNERS.as_bytes()).unwrap();
        assert_eq!(keys[0].fingerprint(), "51890657C5ACDB4B823086567D72D4268E4660FC");
    }

    #[test]
    fn partners_are_distinguished_and_their_keys_need_the_signature_of_the_authority() {
        let signed = |trust: &str, partners: &str| verify_by(DOCUMENT, SIGNATURE, &named(trust), partners);
        assert_eq!(signed("", PARTNERS).unwrap().standing, Standing::Registry);
        let authority = include_str!("tests/openpgp/authority.asc");
        let trust = include_str!("tests/openpgp/trust.asc");
        assert_eq!(signed(trust, authority).unwrap().standing, Standing::Partner);
        let error = signed(trust, PARTNERS).unwrap_err().to_string();
        assert!(
            error.ends_with("the signature that should say so is not by HashiCorp"),
            "{error}"
        );
        let error = signed("nothing", PARTNERS).unwrap_err().to_string();
        assert!(
            error.contains("the signature that should say so cannot be read"),
            "{error}"
        );
    }

    #[test]
    fn a_key_that_cannot_be_read_does_not_hide_another() {
        let broken = Named {
            armored: "broken".to_owned(),
            trust: String::new(),
        };
        let keys = [broken.clone(), named("")[0].clone()];
        assert!(verify(DOCUMENT, SIGNATURE, &keys).is_ok());
        let error = verify(DOCUMENT, SIGNATURE, &[broken]).unwrap_err().to_string();
        assert!(
            error.starts_with("a key that the registry names cannot be read"),
            "{error}"
        );
    }
}
