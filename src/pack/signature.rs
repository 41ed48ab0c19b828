//! Signatures of packs: Ed25519 (RFC 8032), with keys in the files that `openssl genpkey -algorithm ed25519` and `openssl pkey
//! -pubout` write.

use std::path::Path;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use data_encoding::{BASE64, HEXLOWER};
use files::io_reason;
use sha2::{Digest, Sha256};

use crate::error::PackError;

/// Length of a public key.
const KEY: usize = 32;
/// Length of the key and the signature in a pack.
pub(crate) const LENGTH: usize = KEY + 64;

/// First bytes of a public key in DER (RFC 8410): the algorithm and the length of the key.
const PUBLIC_KEY_DER: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

#[derive(Debug)]
pub struct SigningKey(Ed25519KeyPair);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; KEY]);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    pub key: PublicKey,
    bytes: [u8; 64],
}

/// Returns the signed bytes: the checksum of the index, which has the checksums of all the rest.
fn message(index: &[u8]) -> Vec<u8> {
    // The prefix makes signatures invalid for any other purpose.
    [b"monoform pack 1\n".as_slice(), &Sha256::digest(index)].concat()
}

/// Returns the content (DER) of the first block with this label in a PEM file.
fn block(path: &Path, label: &str, what: &str) -> Result<Vec<u8>, PackError> {
    let invalid = |reason: String| PackError::Key {
        path: path.to_owned(),
        reason,
    };
    let text = std::fs::read(path).map_err(|error| invalid(io_reason(&error)))?;
    let blocks = pem::parse_many(&text).map_err(|_| invalid("it is not in PEM form".to_owned()))?;
    let found = blocks.into_iter().find(|block| block.tag() == label);
    found
        .map(pem::Pem::into_contents)
        .ok_or_else(|| invalid(format!("it has no block \"{label}\", which is the form of {what}")))
}

impl SigningKey {
    /// Reads a private key from a file: PKCS #8 in PEM form.
    ///
    /// # Errors
    /// The file cannot be read, or has no Ed25519 key.
    pub fn read(path: &Path) -> Result<SigningKey, PackError> {
        let der = block(path, "PRIVATE KEY", "private keys without a password")?;
        // OpenSSL writes keys without the public key, which the checked form requires.
        Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der)
            .map(SigningKey)
            .map_err(|_| PackError::Key {
                path: path.to_owned(),
                reason: "it is not an Ed25519 key; \"openssl genpkey -algorithm ed25519\" makes one".to_owned(),
            })
    }

    /// Returns the key that verifies the signatures of this one.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        let mut key = [0; KEY];
        for (to, from) in key.iter_mut().zip(self.0.public_key().as_ref()) {
            *to = *from;
        }
        PublicKey(key)
    }

    /// Returns the bytes after an index: the public key and the signature.
    pub(crate) fn sign(&self, index: &[u8]) -> Vec<u8> {
        let signature = self.0.sign(&message(index));
        [self.public().0.as_slice(), signature.as_ref()].concat()
    }
}

impl PublicKey {
    /// Reads a public key from a file in PEM form.
    ///
    /// # Errors
    /// The file cannot be read, or has no Ed25519 key.
    pub fn read(path: &Path) -> Result<PublicKey, PackError> {
        let der = block(path, "PUBLIC KEY", "public keys")?;
        let key = der.strip_prefix(&PUBLIC_KEY_DER).and_then(|key| key.try_into().ok());
        key.map(PublicKey).ok_or_else(|| PackError::Key {
            path: path.to_owned(),
            reason: "it is not an Ed25519 key; \"openssl pkey -pubout\" writes the one of a private key".to_owned(),
        })
    }

    /// Returns the fingerprint for display: the SHA-256 of the key.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        HEXLOWER.encode(&Sha256::digest(self.0))
    }

    #[must_use]
    pub fn to_base64(&self) -> String {
        BASE64.encode(&self.0)
    }
}

impl Signature {
    /// Parses the bytes after an index: a public key and a signature. `None` if there are too few.
    pub fn read(bytes: &[u8]) -> Option<Signature> {
        let (key, signature) = bytes.split_at_checked(KEY)?;
        Some(Signature {
            key: PublicKey(key.try_into().ok()?),
            bytes: signature.try_into().ok()?,
        })
    }

    /// Returns true if this is the signature of an index by its key.
    pub fn fits(&self, index: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, self.key.0);
        key.verify(&message(index), &self.bytes).is_ok()
    }
}
