//! Private keys in OpenSSH format, which the crate `openssh` encodes and decodes.

use openssh::PrivateKey;
use sha2::{Digest, Sha256};

use super::curve::Curve;
use super::error::KeyError;
use super::public::Public;
use super::{EcKey, Key};

/// Encodes a key without passphrase and comment; `None` if SSH does not support such keys.
pub(super) fn write(key: &Key) -> Result<Option<Vec<u8>>, KeyError> {
    let key = match key {
        Key::Rsa(key) => {
            let [n, e, d, coefficient, p, q] = super::rsa::numbers(key)?;
            PrivateKey::Rsa {
                n,
                e,
                d,
                coefficient,
                p,
                q,
            }
        }
        Key::Ecdsa(EcKey { curve, scalar, point }) => {
            let Some(name) = curve.ssh_name() else { return Ok(None) };
            PrivateKey::Ecdsa {
                curve: name.to_owned(),
                point: point.clone(),
                scalar: scalar.clone(),
            }
        }
        Key::Ed25519 { seed, public } => PrivateKey::Ed25519 {
            seed: seed.clone(),
            public: public.clone(),
        },
    };
    // OpenSSH uses a random check number. Here it is computed from the public key, so that a key is always encoded in the same way.
    let hash = Sha256::digest(key.public());
    let check = hash
        .iter()
        .take(4)
        .fold(0, |number, byte| number << 8 | u32::from(*byte));
    Ok(Some(key.write(check)))
}

/// Reads a key in OpenSSH format.
pub(super) fn read(bytes: &[u8]) -> Result<Key, KeyError> {
    match PrivateKey::read(bytes)? {
        PrivateKey::Rsa { n, e, d, p, q, .. } => Ok(Key::Rsa(Box::new(super::rsa::from_numbers(&n, &e, &d, &p, &q)?))),
        PrivateKey::Ed25519 { seed, public } => {
            let key = Key::ed25519(&seed)?;
            if key.public() != Public::Ed25519(public) {
                return Err(KeyError::SshMismatch);
            }
            Ok(key)
        }
        PrivateKey::Ecdsa { curve, point, scalar } => {
            let curve = Curve::named_by_ssh(curve.as_bytes()).ok_or(KeyError::SshCurve)?;
            let key = EcKey::new(curve, &scalar)?;
            if key.point != point {
                return Err(KeyError::SshMismatch);
            }
            Ok(Key::Ecdsa(key))
        }
    }
}
