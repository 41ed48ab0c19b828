//! Public keys, and the verification of signatures by them. The cryptography is that of aws-lc.

use aws_lc_rs::signature::{
    self, EcdsaVerificationAlgorithm, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
};
use sha2::{Digest, Sha256, Sha384, Sha512};

use super::Error;
use super::packet::Reader;
use super::signature::Signature;

const ED25519_CURVE: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x0f, 0x01];
const P256_CURVE: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384_CURVE: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const P521_CURVE: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x23];

/// Primary key or subkey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PublicKey {
    body: Vec<u8>,
    material: Material,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Material {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    Ed25519(Vec<u8>),
    /// Curve and point.
    Ecdsa(Curve, Vec<u8>),
    /// Algorithm whose signatures are not accepted.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Curve {
    P256,
    P384,
    P521,
}

impl PublicKey {
    pub(super) fn read(body: &[u8]) -> Result<PublicKey, Error> {
        let mut reader = Reader(body);
        let version = reader.byte()?;
        if version != 4 {
            return Err(Error::KeyVersion(version));
        }
        // Signatures of a key, and its fingerprint, hash the key's length in two bytes.
        if u16::try_from(body.len()).is_err() {
            return Err(Error::KeyTooLarge);
        }
        // The creation time is not used; see the module's documentation.
        reader.take(4)?;
        let material = match reader.byte()? {
            1 | 3 => Material::Rsa {
                n: reader.mpi()?,
                e: reader.mpi()?,
            },
            algorithm @ (19 | 22) => {
                let length = reader.number(1)?;
                let curve = reader.take(length)?;
                let point = reader.mpi()?;
                // 22 is EdDSA with a curve, whose point has the prefix 0x40; 19 is ECDSA; 27 is Ed25519 of RFC 9580.
                match (algorithm, curve, point.split_first()) {
                    (22, ED25519_CURVE, Some((0x40, key))) => Material::Ed25519(key.to_vec()),
                    (19, P256_CURVE, _) => Material::Ecdsa(Curve::P256, point),
                    (19, P384_CURVE, _) => Material::Ecdsa(Curve::P384, point),
                    (19, P521_CURVE, _) => Material::Ecdsa(Curve::P521, point),
                    _ => Material::Other,
                }
            }
            27 => Material::Ed25519(reader.take(32)?.to_vec()),
            _ => Material::Other,
        };
        Ok(PublicKey {
            body: body.to_vec(),
            material,
        })
    }

    /// Returns the key in the form that is hashed for signatures over it.
    pub(super) fn hashed(&self) -> Vec<u8> {
        let length = u16::try_from(self.body.len()).unwrap_or(u16::MAX).to_be_bytes();
        [&[0x99], &length[..], &self.body].concat()
    }

    pub(super) fn fingerprint(&self) -> Vec<u8> {
        sha1::Sha1::digest(self.hashed()).to_vec()
    }

    /// Returns true if a signature over these bytes was made by this key.
    pub(super) fn has_made(&self, made: &Signature, of: &[u8]) -> bool {
        let message = [of, &made.trailer].concat();
        match (&self.material, made.numbers.as_slice()) {
            (Material::Rsa { n, e }, [number]) if matches!(made.algorithm, 1 | 3) => {
                // Leading zeros are not part of OpenPGP's numbers, but aws-lc expects a signature as long as the modulus.
                let (Some(parameters), Some(number)) = (rsa(made.hash), padded(number, n.len())) else {
                    return false;
                };
                RsaPublicKeyComponents { n, e }
                    .verify(parameters, &message, &number)
                    .is_ok()
            }
            (Material::Ed25519(point), [r, s]) if matches!(made.algorithm, 22 | 27) => {
                // OpenPGP signs the hash of the message with EdDSA, not the message.
                let digest = match made.hash {
                    8 => Sha256::digest(&message).to_vec(),
                    9 => Sha384::digest(&message).to_vec(),
                    10 => Sha512::digest(&message).to_vec(),
                    _ => return false,
                };
                let (Some(r), Some(s)) = (padded(r, 32), padded(s, 32)) else {
                    return false;
                };
                let key = UnparsedPublicKey::new(&signature::ED25519, point);
                key.verify(&digest, &[r, s].concat()).is_ok()
            }
            (Material::Ecdsa(curve, point), [r, s]) if made.algorithm == 19 => {
                let (Some(parameters), Some(pair)) = (ecdsa(*curve, made.hash), der_pair(r, s)) else {
                    return false;
                };
                let key = UnparsedPublicKey::new(parameters, point);
                key.verify(&message, &pair).is_ok()
            }
            _ => false,
        }
    }
}

fn rsa(hash: u8) -> Option<&'static RsaParameters> {
    Some(match hash {
        8 => &signature::RSA_PKCS1_2048_8192_SHA256,
        9 => &signature::RSA_PKCS1_2048_8192_SHA384,
        10 => &signature::RSA_PKCS1_2048_8192_SHA512,
        _ => return None,
    })
}

fn ecdsa(curve: Curve, hash: u8) -> Option<&'static EcdsaVerificationAlgorithm> {
    // In OpenPGP, 8, 9 and 10 are SHA-256, SHA-384 and SHA-512.
    Some(match (curve, hash) {
        (Curve::P256, 8) => &signature::ECDSA_P256_SHA256_ASN1,
        (Curve::P256, 9) => &signature::ECDSA_P256_SHA384_ASN1,
        (Curve::P256, 10) => &signature::ECDSA_P256_SHA512_ASN1,
        (Curve::P384, 8) => &signature::ECDSA_P384_SHA256_ASN1,
        (Curve::P384, 9) => &signature::ECDSA_P384_SHA384_ASN1,
        (Curve::P384, 10) => &signature::ECDSA_P384_SHA512_ASN1,
        (Curve::P521, 8) => &signature::ECDSA_P521_SHA256_ASN1,
        (Curve::P521, 9) => &signature::ECDSA_P521_SHA384_ASN1,
        (Curve::P521, 10) => &signature::ECDSA_P521_SHA512_ASN1,
        _ => return None,
    })
}

/// Encodes two numbers without leading zeros in DER, the form for which aws-lc allows any hash with any curve.
fn der_pair(r: &[u8], s: &[u8]) -> Option<Vec<u8>> {
    let number = |n: &[u8]| {
        // DER numbers are signed: without a zero byte, a set first bit would make them negative.
        let zero: &[u8] = if n.first().is_none_or(|first| first & 0x80 != 0) {
            &[0]
        } else {
            &[]
        };
        let length = u8::try_from(zero.len() + n.len()).ok().filter(|l| *l < 0x80)?;
        Some([&[2, length], zero, n].concat())
    };
    let both = [number(r)?, number(s)?].concat();
    let length = u8::try_from(both.len()).ok()?;
    let head: &[u8] = if length < 0x80 {
        &[0x30, length]
    } else {
        &[0x30, 0x81, length]
    };
    Some([head, &both].concat())
}

/// Pads a number with leading zeros to a size in bytes; `None` if it is longer.
fn padded(number: &[u8], size: usize) -> Option<Vec<u8>> {
    let zeros = size.checked_sub(number.len())?;
    Some([&vec![0; zeros][..], number].concat())
}
