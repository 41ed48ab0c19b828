//! Public keys, as in certificates and in SSH, and their fingerprints.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use data_encoding::HEXLOWER;
use md5::Md5;
use openssh::{Writer, without_leading_zeros};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use x509_parser::x509::SubjectPublicKeyInfo;
use yasna::DERWriter;

use super::curve::Curve;
use crate::oid::{self, Oid};
use crate::pem;
use crate::problem::CertificateError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Public {
    /// Modulus and exponent, as bytes without leading zeros.
    Rsa { n: Vec<u8>, e: Vec<u8> },
    /// Uncompressed point on a curve.
    Ecdsa { curve: Curve, point: Vec<u8> },
    /// Ed25519 point of 32 bytes.
    Ed25519(Vec<u8>),
}

impl Public {
    /// Reads the key of a request or certificate.
    pub fn read(info: &SubjectPublicKeyInfo<'_>) -> Result<Public, CertificateError> {
        let bits = info.subject_public_key.data.to_vec();
        let algorithm = &info.algorithm;
        let arcs = oid::arcs(&algorithm.algorithm);
        let is = |oid: Oid| arcs == oid;
        if is(oid::RSA) {
            return match info.parsed() {
                Ok(x509_parser::public_key::PublicKey::RSA(key)) => Ok(Public::Rsa {
                    n: without_leading_zeros(key.modulus).to_vec(),
                    e: without_leading_zeros(key.exponent).to_vec(),
                }),
                _ => Err(CertificateError::RsaKey),
            };
        }
        if is(oid::EC) {
            let parameters = algorithm.parameters.as_ref().and_then(|p| p.as_oid().ok());
            let curve = parameters
                .as_ref()
                .and_then(|oid| Curve::from_object_identifier(&oid::arcs(oid)))
                .ok_or(CertificateError::Curve)?;
            // Compressed points are refused, because most programs cannot read them.
            if bits.first() != Some(&4) || bits.len() != 1 + 2 * curve.scalar_len() {
                return Err(CertificateError::Point);
            }
            return Ok(Public::Ecdsa { curve, point: bits });
        }
        if is(oid::ED25519) && bits.len() == 32 {
            return Ok(Public::Ed25519(bits));
        }
        Err(CertificateError::Algorithm)
    }

    /// Writes the key as a SubjectPublicKeyInfo structure.
    pub fn write(&self, writer: DERWriter<'_>) {
        let bits = self.bits();
        writer.write_sequence(|w| {
            w.next().write_sequence(|w| match self {
                Public::Rsa { .. } => {
                    w.next().write_oid(&oid::der(oid::RSA));
                    w.next().write_null();
                }
                Public::Ecdsa { curve, .. } => {
                    w.next().write_oid(&oid::der(oid::EC));
                    w.next().write_oid(&oid::der(curve.oid()));
                }
                Public::Ed25519(_) => w.next().write_oid(&oid::der(oid::ED25519)),
            });
            w.next().write_bitvec_bytes(&bits, bits.len() * 8);
        });
    }

    /// Encodes the key (SubjectPublicKeyInfo) as DER.
    pub fn der(&self) -> Vec<u8> {
        yasna::construct_der(|w| self.write(w))
    }

    /// Encodes the key (SubjectPublicKeyInfo) as PEM.
    pub fn pem(&self) -> String {
        pem::encode("PUBLIC KEY", self.der())
    }

    /// Returns the bits of the key without its algorithm.
    fn bits(&self) -> Vec<u8> {
        match self {
            Public::Rsa { n, e } => yasna::construct_der(|w| {
                w.write_sequence(|w| {
                    w.next().write_bigint_bytes(n, true);
                    w.next().write_bigint_bytes(e, true);
                });
            }),
            Public::Ecdsa { point, .. } => point.clone(),
            Public::Ed25519(bytes) => bytes.clone(),
        }
    }

    /// Returns the key identifier for certificates: a hash of the key's bits.
    pub fn key_id(&self) -> Vec<u8> {
        // For Ed25519, the official provider hashes the bits as an octet string, unlike the proposal of RFC 5280. Any hash is valid, but
        // all certificates of a chain must use the same one, even if they come from two providers.
        let bytes = match self {
            Public::Ed25519(bytes) => yasna::construct_der(|w| w.write_bytes(bytes)),
            _ => self.bits(),
        };
        Sha1::digest(bytes).to_vec()
    }

    /// Encodes the key in the wire format of SSH; `None` if SSH does not support such keys.
    pub fn ssh(&self) -> Option<Vec<u8>> {
        let mut wire = Writer::default();
        wire.string(self.ssh_type()?.as_bytes());
        match self {
            Public::Rsa { n, e } => wire.number(e).number(n),
            Public::Ecdsa { curve, point } => wire.string(curve.ssh_name()?.as_bytes()).string(point),
            Public::Ed25519(bytes) => wire.string(bytes),
        };
        Some(wire.0)
    }

    /// Returns the key type in SSH; `None` if SSH does not support such keys.
    pub fn ssh_type(&self) -> Option<String> {
        match self {
            Public::Rsa { .. } => Some("ssh-rsa".into()),
            Public::Ecdsa { curve, .. } => Some(format!("ecdsa-sha2-{}", curve.ssh_name()?)),
            Public::Ed25519(_) => Some("ssh-ed25519".into()),
        }
    }

    /// Returns the line for `authorized_keys`; empty if SSH does not support such keys.
    pub fn openssh(&self) -> String {
        match (self.ssh_type(), self.ssh()) {
            (Some(kind), Some(bytes)) => format!("{kind} {}\n", STANDARD.encode(bytes)),
            _ => String::new(),
        }
    }

    /// Returns the MD5 fingerprint in the form of older SSH clients; empty if SSH does not support such keys.
    pub fn fingerprint_md5(&self) -> String {
        let Some(bytes) = self.ssh() else { return String::new() };
        let pairs: Vec<String> = Md5::digest(bytes).iter().map(|b| HEXLOWER.encode(&[*b])).collect();
        pairs.join(":")
    }

    /// Returns the SHA-256 fingerprint in the form of SSH clients; empty if SSH does not support such keys.
    pub fn fingerprint_sha256(&self) -> String {
        match self.ssh() {
            Some(bytes) => format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(bytes))),
            None => String::new(),
        }
    }

    /// Returns the ID of objects with this key.
    pub fn id(&self) -> String {
        identifier(&self.der())
    }
}

/// Returns the ID for these bytes: their SHA-1 after white space at both ends has been trimmed.
pub(crate) fn identifier(mut bytes: &[u8]) -> String {
    // Trimming makes no sense for DER, but the IDs in existing states were computed in this way.
    let space = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok_and(|t| t.chars().count() == 1 && t.trim().is_empty());
    while let Some(length) = (1..=4.min(bytes.len())).find(|n| space(&bytes[..*n])) {
        bytes = &bytes[length..];
    }
    while let Some(length) = (1..=4.min(bytes.len())).find(|n| space(&bytes[bytes.len() - n..])) {
        bytes = &bytes[..bytes.len() - length];
    }
    HEXLOWER.encode(&Sha1::digest(bytes))
}
