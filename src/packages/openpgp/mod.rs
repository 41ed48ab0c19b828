//! Detached OpenPGP signatures, limited to what provider registries use: keys and signatures of version 4, by RSA, EdDSA (Ed25519) or ECDSA
//! (NIST curves), with SHA-2.
//!
//! The crate that implements all of OpenPGP (`pgp`, without its default features) brings 104 more crates, for ciphers and keys that no
//! registry signs with. Here the cryptography is that of aws-lc, which TLS brings anyway, and the rest is the parsing of packets
//! ([`packet`]), about as much as for the directory of a zip file. DSA, SHA-1 and version 6 are refused by name.
//!
//! Signatures of two kinds of keys of a [`Certificate`] are accepted: of the primary key, unless it declares that it does not sign
//! documents, and of each subkey that the primary key binds for signing. Such a subkey must itself have signed the binding. Signatures of
//! revoked keys are refused, whatever the reason of the revocation. Expiry of keys is ignored: packages stay signed.

mod error;
mod key;
mod packet;
mod signature;
mod signer;
#[cfg(test)]
mod tests;

use data_encoding::HEXUPPER;

pub use error::Error;
use key::PublicKey;
use packet::{Reader, dearmored};
pub use signature::Signature;
use signature::kind;
pub(crate) use signer::SigningKey;

const SIGNATURE: u8 = 2;
const PUBLIC_KEY: u8 = 6;
const USER_ID: u8 = 13;
const PUBLIC_SUBKEY: u8 = 14;
const USER_ATTRIBUTE: u8 = 17;

/// Primary key with the keys that can sign for it.
#[derive(Clone, Debug)]
pub struct Certificate {
    primary: PublicKey,
    /// Keys that may sign documents.
    signing: Vec<PublicKey>,
}

/// Packet after a primary key. The signatures that follow it are over this packet.
enum About {
    Primary,
    /// User ID or attribute, in the form that is hashed for signatures over it.
    User(Vec<u8>),
    Subkey(PublicKey),
    /// Packet of a kind or version that is not supported.
    Unknown,
}

/// Decodes an armored text. Trust signatures of keys are over these bytes.
pub fn bytes_of(text: &str) -> Result<Vec<u8>, Error> {
    dearmored(text.as_bytes())
}

impl Certificate {
    /// Parses the keys in a text. Keys of unsupported versions and revoked keys are left out.
    pub fn read_all(text: &[u8]) -> Result<Vec<Certificate>, Error> {
        let bytes = dearmored(text)?;
        let mut reader = Reader(&bytes);
        /// Primary key, if it is supported, and the packets after it with the signatures over them.
        type Parts = (Option<PublicKey>, Vec<(About, Vec<Signature>)>);
        let mut all: Vec<Parts> = Vec::new();
        while !reader.0.is_empty() {
            let (tag, body) = reader.packet()?;
            // An unsupported key stays in the list as an empty entry, so that the packets after it are not assigned to
            // the previous key.
            if tag == PUBLIC_KEY {
                all.push((PublicKey::read(body).ok(), vec![(About::Primary, Vec::new())]));
                continue;
            }
            // Packets before the first primary key belong to no certificate.
            let Some((_, parts)) = all.last_mut() else {
                continue;
            };
            match tag {
                USER_ID => parts.push((user(0xb4, body), Vec::new())),
                USER_ATTRIBUTE => parts.push((user(0xd1, body), Vec::new())),
                PUBLIC_SUBKEY => {
                    let about = PublicKey::read(body).map_or(About::Unknown, About::Subkey);
                    parts.push((about, Vec::new()));
                }
                SIGNATURE => {
                    if let (Ok(signature), Some((_, signatures))) = (Signature::read_body(body), parts.last_mut()) {
                        signatures.push(signature);
                    }
                }
                _ => {}
            }
        }
        let certificate = |(primary, parts): (Option<PublicKey>, _)| Certificate::assemble(primary?, parts);
        Ok(all.into_iter().filter_map(certificate).collect())
    }

    /// Evaluates the signatures after a key, in whatever order they come. Returns `None` if the key was revoked.
    fn assemble(primary: PublicKey, parts: Vec<(About, Vec<Signature>)>) -> Option<Certificate> {
        let own = primary.hashed();
        let revokes = |s: &Signature| s.kind == kind::REVOKES_KEY && primary.has_made(s, &own);
        // Revocations are checked first, because packets are not authenticated by their order.
        if parts.iter().flat_map(|(_, signatures)| signatures).any(revokes) {
            return None;
        }
        // The latest self-signature of the key: its time, and whether the key may sign.
        let mut says: Option<(u64, bool)> = None;
        let mut signing = Vec::new();
        for (about, signatures) in parts {
            let made = |kinds: &dyn Fn(u8) -> bool, of: &[u8]| -> Vec<Signature> {
                let all = signatures.iter().filter(|s| kinds(s.kind) && primary.has_made(s, of));
                all.cloned().collect()
            };
            let about_itself = match about {
                About::Primary => made(&|k| k == kind::ABOUT_KEY, &own),
                About::User(user) => {
                    let of = [&own[..], &user].concat();
                    match made(&|k| k == kind::REVOKES_NAME, &of).is_empty() {
                        true => made(&|k| kind::NAMES.contains(&k), &of),
                        false => Vec::new(),
                    }
                }
                About::Subkey(subkey) => {
                    let both = [&own[..], &subkey.hashed()].concat();
                    let bindings = made(&|k| k == kind::BINDS_SUBKEY, &both);
                    let last = bindings.iter().max_by_key(|s| s.made);
                    // Without the subkey's own signature, a certificate could claim somebody else's signing key as its subkey.
                    let agrees = |s: &Signature| s.embedded.as_ref().is_some_and(|back| subkey.has_made(back, &both));
                    if last.is_some_and(|s| s.for_signing == Some(true) && agrees(s))
                        && made(&|k| k == kind::REVOKES_SUBKEY, &both).is_empty()
                    {
                        signing.push(subkey);
                    }
                    continue;
                }
                About::Unknown => continue,
            };
            let flags = about_itself.iter().filter_map(|s| Some((s.made, s.for_signing?)));
            // The latest self-signature decides.
            says = says.into_iter().chain(flags).max();
        }
        if says.is_none_or(|(_, may_sign)| may_sign) {
            signing.insert(0, primary.clone());
        }
        Some(Certificate { primary, signing })
    }

    /// Returns the fingerprint, in hexadecimal digits.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        HEXUPPER.encode(&self.primary.fingerprint())
    }

    /// Returns the key ID: the last 16 digits of the fingerprint.
    #[must_use]
    pub fn id(&self) -> String {
        self.fingerprint().split_off(24)
    }

    /// Returns true if a signature of a document is by one of the certificate's keys that may sign documents.
    #[must_use]
    pub fn has_signed(&self, document: &[u8], signature: &Signature) -> bool {
        let document = match signature.kind {
            kind::OF_BYTES => document.to_vec(),
            kind::OF_TEXT => with_network_line_ends(document),
            _ => return false,
        };
        self.signing.iter().any(|key| key.has_made(signature, &document))
    }

    /// Returns true if the key with this ID may sign for this certificate.
    #[must_use]
    pub fn has_key(&self, id: &str) -> bool {
        let mut ids = self.signing.iter().map(|key| HEXUPPER.encode(&key.fingerprint()));
        ids.any(|fingerprint| fingerprint.ends_with(id))
    }
}

/// Returns a user ID or attribute in the form that is hashed for signatures over it.
fn user(mark: u8, body: &[u8]) -> About {
    match u32::try_from(body.len()) {
        Ok(length) => About::User([&[mark], &length.to_be_bytes()[..], body].concat()),
        Err(_) => About::Unknown,
    }
}

/// Converts line ends to CRLF: text signatures are computed over that form.
fn with_network_line_ends(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|b| *b == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) => {
                out.extend(line.strip_suffix(b"\r").unwrap_or(line));
                out.extend(b"\r\n");
            }
            None => out.extend(line),
        }
    }
    out
}
