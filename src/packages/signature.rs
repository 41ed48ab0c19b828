//! Signatures of the checksums that a registry publishes: by one of the keys that the registry names.

#![expect(clippy::disallowed_methods, reason = "a key is valid until a time")]

use std::time::{SystemTime, UNIX_EPOCH};

use crate::openpgp::{self, Certificate, Signature};

/// The key that HashiCorp signs its own providers with, by its fingerprint: whoever has this one needs no registry to say
/// whose it is.
const VENDOR: &str = "C874011F0AB405110D02105534365D9472D7468F";

/// The key that HashiCorp signs the keys of its partners with, `51890657C5ACDB4B82308656 7D72D4268E4660FC`. It is published
/// with every release of Terraform; no registry gives it.
const PARTNERS: &str = include_str!("partners.asc");

/// Who has signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    /// The ID of the key, in hexadecimal digits.
    pub key_id: String,
    /// Whose key it is.
    pub standing: Standing,
}

/// Whose key it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// HashiCorp's own.
    Vendor,
    /// HashiCorp has signed it as that of a partner.
    Partner,
    /// The registry says so.
    Registry,
}

/// A key that a registry names.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// The key.
    pub armored: String,
    /// A signature of the key by whoever looks after partners; empty if there is none.
    pub trust: String,
}

/// Who of these has signed a document. The error is a sentence without its full stop.
pub fn verify(document: &[u8], signature: &[u8], keys: &[Named]) -> Result<Signer, String> {
    verify_by(document, signature, keys, PARTNERS)
}

fn verify_by(document: &[u8], signature: &[u8], keys: &[Named], partners: &str) -> Result<Signer, String> {
    if keys.is_empty() {
        return Err("the registry names no key that it could be signed with".to_owned());
    }
    let signatures = Signature::read_all(signature).map_err(|e| format!("its signature cannot be read: {e}"))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs());
    let mut known = Vec::new();
    let mut unreadable = None;
    for named in keys {
        let parsed = match Certificate::read_all(named.armored.as_bytes()) {
            Ok(parsed) => parsed,
            // Another one may be the right one.
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
                return Err(format!(
                    "its signature by the key {} was to be good for some time only, which is over",
                    key.id()
                ));
            }
            let standing = standing(&key, named, partners)?;
            let key_id = key.id();
            return Ok(Signer { key_id, standing });
        }
    }
    let ids = known.iter().map(Certificate::id).collect::<Vec<_>>().join(", ");
    let one_of = |made: &Signature| made.issuer().is_some_and(|id| known.iter().any(|key| key.has_key(&id)));
    if let Some((by, what)) = signatures.iter().find_map(|s| Some((s.issuer(), s.not_relied_on()?))) {
        let by = by.map_or_else(String::new, |id| format!(" by the key {id}"));
        return Err(format!(
            "its signature{by} was made with {what}, which is not relied on: RSA, Ed25519 or ECDSA, with SHA-256 or more, is"
        ));
    }
    if let Some(by) = signatures.iter().filter(|s| one_of(s)).find_map(Signature::issuer) {
        return Err(format!(
            "its signature by the key {by} is wrong: it was changed after it was signed"
        ));
    }
    if let (Some(why), true) = (unreadable, known.is_empty()) {
        return Err(format!("a key that the registry names cannot be read: {why}"));
    }
    let ids = if ids.is_empty() {
        "none that was not revoked".to_owned()
    } else {
        ids
    };
    Err(match signatures.iter().find_map(Signature::issuer) {
        Some(by) => format!("it is signed by the key {by}, which is not among those that the registry names ({ids})"),
        None => format!("its signature is by none of the keys that the registry names ({ids})"),
    })
}

/// Whose a key is. What claims to be a partner's must be one.
fn standing(key: &Certificate, named: &Named, partners: &str) -> Result<Standing, String> {
    if key.fingerprint() == VENDOR {
        return Ok(Standing::Vendor);
    }
    if named.trust.trim().is_empty() {
        return Ok(Standing::Registry);
    }
    let wrong = |why: String| format!("its key {} is said to be a partner's of HashiCorp, but {why}", key.id());
    let signed = openpgp::bytes_of(&named.armored).map_err(wrong)?;
    let signatures = Signature::read_all(named.trust.as_bytes())
        .map_err(|e| wrong(format!("the signature that should say so cannot be read: {e}")))?;
    let authorities = Certificate::read_all(partners.as_bytes()).map_err(wrong)?;
    let vouches = |s: &Signature| authorities.iter().any(|a| a.has_signed(&signed, s));
    if signatures.iter().any(vouches) {
        Ok(Standing::Partner)
    } else {
        Err(wrong("the signature that should say so is not by HashiCorp".to_owned()))
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
    fn partners_are_told_apart_and_must_be_ones() {
        let signed = |trust: &str, partners: &str| verify_by(DOCUMENT, SIGNATURE, &named(trust), partners);
        assert_eq!(signed("", PARTNERS).unwrap().standing, Standing::Registry);
        let authority = include_str!("tests/openpgp/authority.asc");
        let trust = include_str!("tests/openpgp/trust.asc");
        assert_eq!(signed(trust, authority).unwrap().standing, Standing::Partner);
        let error = signed(trust, PARTNERS).unwrap_err();
        assert!(
            error.ends_with("the signature that should say so is not by HashiCorp"),
            "{error}"
        );
        let error = signed("nothing", PARTNERS).unwrap_err();
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
        let error = verify(DOCUMENT, SIGNATURE, &[broken]).unwrap_err();
        assert!(
            error.starts_with("a key that the registry names cannot be read"),
            "{error}"
        );
    }
}
