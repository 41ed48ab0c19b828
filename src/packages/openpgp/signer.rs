//! A signing key: Ed25519, in the form that provider registries publish.

use std::io;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXUPPER;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// Object identifier of Ed25519 keys (RFC 4880bis), without its first two bytes.
const ED25519: [u8; 9] = [0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x0f, 0x01];
/// Algorithm numbers of EdDSA and SHA-256 in signatures.
const ALGORITHMS: [u8; 2] = [22, 8];
/// User ID of the key.
const USER: &[u8] = b"Monoform providers serve";
/// Creation time of the key: the beginning of 2024. It never expires.
const CREATED: u32 = 1_704_067_200;

/// Type of signatures over documents.
const DOCUMENT: u8 = 0x00;
/// Type of signatures over a key and its user ID.
const CERTIFICATION: u8 = 0x13;

#[derive(Debug)]
pub struct SigningKey {
    pair: Ed25519KeyPair,
    /// Body of the packet with the public key.
    body: Vec<u8>,
}

/// Encodes a packet with a length of four bytes.
fn packet(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[0xc0 | tag, 0xff][..], &length, body].concat()
}

/// Encodes a multiprecision integer: its length in bits, then its bytes.
fn number(bytes: &[u8]) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let bytes = bytes.get(zeros..).unwrap_or_default();
    let unused = bytes.first().map_or(0, |first| first.leading_zeros() as usize);
    let bits = u16::try_from(bytes.len() * 8 - unused).unwrap_or(u16::MAX);
    [&bits.to_be_bytes()[..], bytes].concat()
}

impl SigningKey {
    /// Generates a key.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn generate() -> io::Result<SigningKey> {
        let pair = Ed25519KeyPair::generate().map_err(|_| io::Error::other("a key cannot be made"))?;
        let point = [&[0x40], pair.public_key().as_ref()].concat();
        let length = u8::try_from(ED25519.len()).unwrap_or_default();
        let head = [&[4][..], &CREATED.to_be_bytes(), &[22, length]].concat();
        let body = [&head[..], &ED25519, &number(&point)].concat();
        Ok(SigningKey { pair, body })
    }

    /// Returns the key in the form that is hashed for signatures over it.
    fn hashed(&self) -> Vec<u8> {
        let length = u16::try_from(self.body.len()).unwrap_or(u16::MAX).to_be_bytes();
        [&[0x99][..], &length, &self.body].concat()
    }

    fn id_bytes(&self) -> Vec<u8> {
        Sha1::digest(self.hashed()).iter().skip(12).copied().collect()
    }

    /// Returns the key ID, as registries publish it.
    #[must_use]
    pub fn id(&self) -> String {
        HEXUPPER.encode(&self.id_bytes())
    }

    fn signature(&self, kind: u8, of: &[u8]) -> Vec<u8> {
        // Creation time, and the key flag for signing documents (which only matters in the signature over the
        // key itself).
        let created = [&[5, 2][..], &(CREATED + 1).to_be_bytes()].concat();
        let hashed = [&created[..], &[2, 27, 3]].concat();
        let length = u16::try_from(hashed.len()).unwrap_or_default().to_be_bytes();
        let head = [&[4, kind][..], &ALGORITHMS, &length, &hashed].concat();
        let size = u32::try_from(head.len()).unwrap_or_default().to_be_bytes();
        let digest = Sha256::digest([of, &head[..], &[4, 0xff], &size].concat());
        let made = self.pair.sign(&digest);
        let (r, s) = made.as_ref().split_at(made.as_ref().len() / 2);
        let issuer = [&[9, 16][..], &self.id_bytes()].concat();
        let issuer_length = u16::try_from(issuer.len()).unwrap_or_default().to_be_bytes();
        let first_bytes = digest.get(..2).unwrap_or_default();
        let body = [&head[..], &issuer_length, &issuer, first_bytes, &number(r), &number(s)];
        packet(super::SIGNATURE, &body.concat())
    }

    /// Signs a document. The signature is detached and binary.
    #[must_use]
    pub fn sign(&self, text: &[u8]) -> Vec<u8> {
        self.signature(DOCUMENT, text)
    }

    /// Returns the public key, armored as registries publish it.
    #[must_use]
    pub fn armored(&self) -> String {
        let length = u32::try_from(USER.len()).unwrap_or_default().to_be_bytes();
        // By RFC 9580, 5.2.4, a certification covers the key, then the user ID after 0xb4 and its length.
        let about = [&self.hashed()[..], &[0xb4], &length, USER].concat();
        let all = [
            packet(super::PUBLIC_KEY, &self.body),
            packet(super::USER_ID, USER),
            self.signature(CERTIFICATION, &about),
        ];
        let text = STANDARD.encode(all.concat());
        let mut lines = String::new();
        for (at, c) in text.chars().enumerate() {
            if at > 0 && at % 64 == 0 {
                lines.push('\n');
            }
            lines.push(c);
        }
        format!("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{lines}\n-----END PGP PUBLIC KEY BLOCK-----\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openpgp::{Certificate, Signature};

    #[test]
    fn what_it_signs_is_verified_by_what_it_publishes() {
        let key = SigningKey::generate().unwrap();
        let certificates = Certificate::read_all(key.armored().as_bytes()).unwrap();
        let [certificate] = &certificates[..] else {
            panic!("{certificates:?}")
        };
        let signatures = Signature::read_all(&key.sign(b"sums")).unwrap();
        assert!(certificate.has_signed(b"sums", &signatures[0]));
        assert!(!certificate.has_signed(b"other", &signatures[0]));
        assert_eq!(certificate.id(), key.id());
    }
}
