//! Curves of ECDSA keys, and the operations on them. P-224 is implemented by another crate, because aws-lc-rs lacks it.

use aws_lc_rs::agreement;
use aws_lc_rs::encoding::AsBigEndian;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm,
};
use p224::ecdsa::signature::hazmat::PrehashSigner;
use p224::elliptic_curve::sec1::ToSec1Point;
use sha2::{Digest, Sha256};

use super::error::KeyError;
use crate::oid::{self, Oid};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Curve {
    P224,
    P256,
    P384,
    P521,
}

const CURVES: [Curve; 4] = [Curve::P224, Curve::P256, Curve::P384, Curve::P521];

impl Curve {
    /// Names of the curves in configurations.
    pub const NAMES: &'static [&'static str] = &["P224", "P256", "P384", "P521"];

    /// Returns the curve with this name in configurations.
    pub fn named(name: &str) -> Option<Curve> {
        Curve::NAMES
            .iter()
            .zip(CURVES)
            .find(|(n, _)| **n == name)
            .map(|(_, c)| c)
    }

    /// Returns the curve with this object identifier.
    pub fn from_object_identifier(oid: &[u64]) -> Option<Curve> {
        CURVES.into_iter().find(|c| c.oid() == oid)
    }

    pub fn oid(self) -> Oid {
        match self {
            Curve::P224 => oid::P224,
            Curve::P256 => oid::P256,
            Curve::P384 => oid::P384,
            Curve::P521 => oid::P521,
        }
    }

    /// Returns the object identifier of signatures with keys on this curve. The hash has the strength of the curve.
    pub fn signature(self) -> Oid {
        match self {
            Curve::P224 | Curve::P256 => oid::ECDSA_WITH_SHA256,
            Curve::P384 => oid::ECDSA_WITH_SHA384,
            Curve::P521 => oid::ECDSA_WITH_SHA512,
        }
    }

    /// Returns the name of the curve in SSH; `None` for P-224, which SSH does not support.
    pub fn ssh_name(self) -> Option<&'static str> {
        match self {
            Curve::P224 => None,
            Curve::P256 => Some("nistp256"),
            Curve::P384 => Some("nistp384"),
            Curve::P521 => Some("nistp521"),
        }
    }

    /// Returns the curve with this name in SSH.
    pub fn named_by_ssh(name: &[u8]) -> Option<Curve> {
        CURVES
            .into_iter()
            .find(|c| c.ssh_name().is_some_and(|n| n.as_bytes() == name))
    }

    /// Returns the length of a private scalar in bytes.
    pub fn scalar_len(self) -> usize {
        match self {
            Curve::P224 => 28,
            Curve::P256 => 32,
            Curve::P384 => 48,
            Curve::P521 => 66,
        }
    }

    pub fn generate(self) -> Result<Vec<u8>, KeyError> {
        let Some((signing, _)) = self.library() else {
            // Nearly every number of this length is a valid scalar. If it is not, another one is drawn.
            loop {
                let mut bytes = [0; 28];
                aws_lc_rs::rand::fill(&mut bytes).map_err(|_| KeyError::NoRandomBytes)?;
                if p224::SecretKey::from_slice(&bytes).is_ok() {
                    return Ok(bytes.to_vec());
                }
            }
        };
        let pair = EcdsaKeyPair::generate(signing).map_err(|_| KeyError::NotGenerated)?;
        let bytes = pair.private_key().as_be_bytes().map_err(|_| KeyError::NotGenerated)?;
        Ok(bytes.as_ref().to_vec())
    }

    /// Returns the uncompressed public point for a private scalar; `None` if the scalar is out of range.
    pub fn point(self, scalar: &[u8]) -> Option<Vec<u8>> {
        match self.library() {
            Some((_, agreement)) => {
                let key = agreement::PrivateKey::from_private_key(agreement, scalar).ok()?;
                Some(key.compute_public_key().ok()?.as_ref().to_vec())
            }
            None => {
                let key = p224::SecretKey::from_slice(scalar).ok()?;
                Some(key.public_key().to_sec1_point(false).as_bytes().to_vec())
            }
        }
    }

    /// Signs a message. Returns the signature as DER.
    pub fn sign(self, scalar: &[u8], point: &[u8], message: &[u8]) -> Result<Vec<u8>, KeyError> {
        const FAILED: KeyError = KeyError::CannotSign;
        match self.library() {
            Some((signing, _)) => {
                let pair = EcdsaKeyPair::from_private_key_and_public_key(signing, scalar, point).map_err(|_| FAILED)?;
                let signature = pair.sign(&SystemRandom::new(), message).map_err(|_| FAILED)?;
                Ok(signature.as_ref().to_vec())
            }
            None => {
                let key = p224::ecdsa::SigningKey::from_slice(scalar).map_err(|_| FAILED)?;
                let signature: p224::ecdsa::Signature =
                    key.sign_prehash(&Sha256::digest(message)).map_err(|_| FAILED)?;
                Ok(signature.to_der().as_bytes().to_vec())
            }
        }
    }

    fn library(self) -> Option<(&'static EcdsaSigningAlgorithm, &'static agreement::Algorithm)> {
        match self {
            Curve::P224 => None,
            Curve::P256 => Some((&ECDSA_P256_SHA256_ASN1_SIGNING, &agreement::ECDH_P256)),
            Curve::P384 => Some((&ECDSA_P384_SHA384_ASN1_SIGNING, &agreement::ECDH_P384)),
            Curve::P521 => Some((&ECDSA_P521_SHA512_ASN1_SIGNING, &agreement::ECDH_P521)),
        }
    }
}
