//! Private keys of users and public keys of hosts, from the arguments of the connection block.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use russh::keys::ssh_key::private::{EcdsaKeypair, KeypairData};
use russh::keys::ssh_key::public::EcdsaPublicKey;
use russh::keys::ssh_key::{self, Fingerprint, PublicKey};
use russh::keys::{Algorithm, Certificate, EcdsaCurve, HashAlg, PrivateKey, PublicKeyOrCertificate};

use crate::{Error, Result};

/// Private key of the user, with its certificate if there is one.
#[derive(Clone, Debug)]
pub struct UserKey {
    pub key: Arc<PrivateKey>,
    pub certificate: Option<Certificate>,
}

/// Reads a private key in PEM or OpenSSH format, and its certificate. A certificate without a private key is ignored, since it cannot be
/// used.
pub fn user_key(key: &str, certificate: &str) -> Result<Option<UserKey>> {
    if key.is_empty() {
        return Ok(None);
    }
    if !key.contains("-----BEGIN ") {
        return Err(Error::fatal(
            "private_key cannot be read: no key found. A key is a text that begins with a line like -----BEGIN OPENSSH \
             PRIVATE KEY-----; with file() it is read from a file.",
        ));
    }
    // Keys in heredocs are often indented, or have Windows line endings.
    let text: String = key.lines().map(|line| format!("{}\n", line.trim())).collect();
    let encrypted = || {
        Error::fatal(
            "private_key cannot be used: password protected keys are not supported. Remove the passphrase, or add the key to an \
             SSH agent.",
        )
    };
    // The parser reports other errors for these two encrypted formats, so they are detected here.
    if text.contains("Proc-Type: 4,ENCRYPTED") || text.contains("BEGIN ENCRYPTED PRIVATE KEY") {
        return Err(encrypted());
    }
    let key = match russh::keys::decode_secret_key(&text, None) {
        Ok(key) if key.is_encrypted() => return Err(encrypted()),
        Ok(key) => key,
        Err(russh::keys::Error::KeyIsEncrypted | russh::keys::Error::SshKey(ssh_key::Error::Encrypted)) => {
            return Err(encrypted());
        }
        Err(error) => match short_p256_key(&text) {
            Some(key) => key,
            None => return Err(Error::fatal(format!("Failed to parse ssh private key: {error}"))),
        },
    };
    let certificate = match certificate.trim() {
        "" => None,
        text => {
            let certificate = Certificate::from_openssh(text)
                .map_err(|error| Error::fatal(format!("failed to parse certificate: {error}")))?;
            // Checked here, since the server would refuse the mismatched pair with nothing but "permission denied".
            if certificate.public_key() != key.public_key().key_data() {
                return Err(Error::fatal(
                    "failed to use certificate: it is for another key than private_key",
                ));
            }
            Some(certificate)
        }
    };
    Ok(Some(UserKey {
        key: Arc::new(key),
        certificate,
    }))
}

/// Reads a P-256 private key in OpenSSH format whose scalar has leading zero bytes.
fn short_p256_key(text: &str) -> Option<PrivateKey> {
    let lines = text
        .lines()
        .skip_while(|line| !line.contains("BEGIN OPENSSH PRIVATE KEY"));
    let data: String = lines.skip(1).take_while(|line| !line.starts_with('-')).collect();
    let openssh::PrivateKey::Ecdsa { point, scalar, .. } =
        openssh::PrivateKey::read(&STANDARD.decode(data).ok()?).ok()?
    else {
        return None;
    };
    let EcdsaPublicKey::NistP256(public) = EcdsaPublicKey::from_sec1_bytes(&point).ok()? else {
        return None;
    };
    // OpenSSH omits leading zero bytes, which one in 256 keys has. The parser requires 32 bytes.
    let mut bytes = [0; 32];
    bytes
        .get_mut(32_usize.checked_sub(scalar.len())?..)?
        .copy_from_slice(&scalar);
    let private = bytes.into();
    PrivateKey::new(KeypairData::from(EcdsaKeypair::NistP256 { public, private }), "").ok()
}

/// Reads `host_key`, in the form `TYPE DATA [COMMENT]`: the key of the host, or that of the authority that has signed its certificate.
pub fn host_key(text: &str) -> Result<Option<PublicKey>> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    PublicKey::from_openssh(text)
        .map(Some)
        .map_err(|error| Error::fatal(format!("host_key is not the line of a public key file: {error}")))
}

/// Returns the signature algorithms to offer for a host with this key.
pub fn algorithms_of(key: &PublicKey) -> Vec<Algorithm> {
    match key.algorithm() {
        Algorithm::Rsa { .. } => [Some(HashAlg::Sha512), Some(HashAlg::Sha256), None]
            .map(|hash| Algorithm::Rsa { hash })
            .to_vec(),
        other => vec![other],
    }
}

/// Returns all algorithms of host certificates.
pub fn certificate_algorithms() -> Vec<Algorithm> {
    // All of them, whatever the type of `host_key` is: an authority with a key of one type signs host keys of any type.
    let ecdsa = |curve| Algorithm::Ecdsa { curve };
    vec![
        Algorithm::Ed25519,
        ecdsa(EcdsaCurve::NistP256),
        ecdsa(EcdsaCurve::NistP384),
        ecdsa(EcdsaCurve::NistP521),
        Algorithm::Rsa {
            hash: Some(HashAlg::Sha512),
        },
        Algorithm::Rsa {
            hash: Some(HashAlg::Sha256),
        },
    ]
}

/// Reason why the host key is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum HostKeyError {
    #[error(
        "key mismatch: {host} has a host key of type {shown_type} ({shown}), and host_key is one of type {expected_type} ({expected})"
    )]
    Key {
        host: String,
        shown_type: Algorithm,
        shown: Box<Fingerprint>,
        expected_type: Algorithm,
        expected: Box<Fingerprint>,
    },
    #[error("{0} shows a certificate of a user, not of a host")]
    UserCertificate(String),
    #[error("key mismatch: {host} has a host certificate by the authority {authority}, and host_key is {expected}")]
    Authority {
        host: String,
        authority: Box<Fingerprint>,
        expected: Box<Fingerprint>,
    },
    #[error("{host} has a host certificate for other names: {names}")]
    Names { host: String, names: String },
    #[error("the host certificate of {host} is not valid now, or not signed as it says: {source}")]
    Invalid { host: String, source: ssh_key::Error },
}

/// Checks that a host has the expected key, or a certificate for its name that the expected key has signed.
pub fn check_host(
    expected: &PublicKey,
    shown: &PublicKeyOrCertificate,
    host: &str,
) -> std::result::Result<(), HostKeyError> {
    let named = || host.to_owned();
    let fingerprint = Box::new(expected.fingerprint(HashAlg::Sha256));
    let certificate = match shown {
        PublicKeyOrCertificate::PublicKey { key, .. } => {
            return if key.key_data() == expected.key_data() {
                Ok(())
            } else {
                Err(HostKeyError::Key {
                    host: named(),
                    shown_type: key.algorithm(),
                    shown: Box::new(key.fingerprint(HashAlg::Sha256)),
                    expected_type: expected.algorithm(),
                    expected: fingerprint,
                })
            };
        }
        PublicKeyOrCertificate::Certificate(certificate) => certificate,
    };
    // A host with a certificate proves possession of the key in it, so that key may be the expected one itself.
    if certificate.public_key() == expected.key_data() {
        return Ok(());
    }
    // A user certificate from the same authority must not be accepted for a host.
    if !certificate.cert_type().is_host() {
        return Err(HostKeyError::UserCertificate(named()));
    }
    if certificate.signature_key() != expected.key_data() {
        return Err(HostKeyError::Authority {
            host: named(),
            authority: Box::new(certificate.signature_key().fingerprint(HashAlg::Sha256)),
            expected: fingerprint,
        });
    }
    let names = certificate.valid_principals();
    // A certificate without host names is valid for every host.
    if !names.is_empty() && !names.iter().any(|name| name == host) {
        return Err(HostKeyError::Names {
            host: named(),
            names: names.join(", "),
        });
    }
    certificate
        .validate([&*fingerprint])
        .map_err(|source| HostKeyError::Invalid { host: named(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p256_key_whose_secret_begins_with_a_zero_byte_is_read() {
        let mut point = vec![7; 65];
        point[0] = 4;
        let key = openssh::PrivateKey::Ecdsa {
            curve: "nistp256".into(),
            point,
            scalar: vec![9; 31],
        };
        let text = format!(
            "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n",
            STANDARD.encode(key.write(1))
        );
        let read = user_key(&text, "").unwrap().unwrap().key;
        let KeypairData::Ecdsa(EcdsaKeypair::NistP256 { private, .. }) = read.key_data() else {
            panic!("{:?}", read.algorithm());
        };
        assert_eq!(private.as_slice()[..2], [0, 9]);
    }

    #[test]
    fn unusable_keys_have_different_errors() {
        for (text, part) in [
            ("secret", "no key found"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----",
                "password protected",
            ),
            (
                "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----",
                "Failed to parse",
            ),
        ] {
            let error = user_key(text, "").map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(user_key("", "anything").unwrap().is_none());
    }
}
