//! Private keys: generation, and conversion to and from their file formats.

pub(crate) mod curve;
mod error;
pub(crate) mod public;
mod rsa;
mod ssh;

use ::rsa::RsaPrivateKey;
use ::rsa::pkcs8::PrivateKeyInfoRef;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use openssh::without_leading_zeros;
use sec1::EcParameters;
use sec1::der::Decode;
use sec1::der::asn1::{ObjectIdentifier, OctetStringRef};
use yasna::{DERWriter, Tag};

use self::curve::Curve;
pub(crate) use self::error::KeyError;
use self::public::Public;
use crate::oid::{self, Oid};
use crate::pem::{self, Pem};

/// Names of the algorithms in configurations.
pub(crate) const ALGORITHMS: &[&str] = &["RSA", "ECDSA", "ED25519"];

const PKCS1: &str = "RSA PRIVATE KEY";
const SEC1: &str = "EC PRIVATE KEY";
const PKCS8: &str = "PRIVATE KEY";
const OPENSSH: &str = "OPENSSH PRIVATE KEY";

#[derive(Clone)]
pub(crate) enum Key {
    Rsa(Box<RsaPrivateKey>),
    Ecdsa(EcKey),
    Ed25519 {
        /// Private seed of 32 random bytes.
        seed: Vec<u8>,
        /// Public key of 32 bytes.
        public: Vec<u8>,
    },
}

#[derive(Clone)]
pub(crate) struct EcKey {
    curve: Curve,
    /// Private scalar, padded with leading zeros to the length of the curve.
    scalar: Vec<u8>,
    point: Vec<u8>,
}

impl EcKey {
    fn new(curve: Curve, number: &[u8]) -> Result<EcKey, KeyError> {
        let number = without_leading_zeros(number);
        // Padded, because some programs omit leading zeros of the scalar, and others expect its full length.
        let length = curve.scalar_len();
        let missing = length.checked_sub(number.len()).ok_or(KeyError::ScalarTooLarge)?;
        let scalar = [&vec![0; missing], number].concat();
        let point = curve.point(&scalar).ok_or(KeyError::ScalarOutOfRange)?;
        Ok(EcKey { curve, scalar, point })
    }

    /// Encodes the key in SEC 1. Inside of PKCS#8 the curve is omitted, since the container names it.
    fn write(&self, with_curve: bool) -> Vec<u8> {
        yasna::construct_der(|w| {
            w.write_sequence(|w| {
                w.next().write_u8(1);
                w.next().write_bytes(&self.scalar);
                if with_curve {
                    w.next()
                        .write_tagged(Tag::context(0), |w| w.write_oid(&oid::der(self.curve.oid())));
                }
                w.next().write_tagged(Tag::context(1), |w| {
                    w.write_bitvec_bytes(&self.point, self.point.len() * 8);
                });
            });
        })
    }

    fn read(der: &[u8], curve: Option<Curve>) -> Result<EcKey, KeyError> {
        let key = sec1::EcPrivateKey::from_der(der)?;
        let named = match key.parameters {
            Some(EcParameters::NamedCurve(oid)) => Some(supported_curve(oid)?),
            None => None,
        };
        let curve = curve.or(named).ok_or(KeyError::NoCurve)?;
        EcKey::new(curve, key.private_key)
    }
}

fn arcs(oid: ObjectIdentifier) -> Vec<u64> {
    oid.arcs().map(u64::from).collect()
}

fn supported_curve(oid: ObjectIdentifier) -> Result<Curve, KeyError> {
    Curve::from_object_identifier(&arcs(oid)).ok_or(KeyError::Curve(oid))
}

impl Key {
    pub fn generate(algorithm: &str, rsa_bits: i64, curve: &str) -> Result<Key, KeyError> {
        match algorithm {
            "RSA" => Ok(Key::Rsa(Box::new(rsa::generate(rsa_bits)?))),
            "ECDSA" => {
                let curve = Curve::named(curve).ok_or_else(|| KeyError::UnknownCurveName(curve.to_owned()))?;
                Ok(Key::Ecdsa(EcKey::new(curve, &curve.generate()?)?))
            }
            "ED25519" => {
                let mut seed = [0; 32];
                aws_lc_rs::rand::fill(&mut seed).map_err(|_| KeyError::NoRandomBytes)?;
                Key::ed25519(&seed)
            }
            other => Err(KeyError::UnknownAlgorithm(other.to_owned())),
        }
    }

    fn ed25519(seed: &[u8]) -> Result<Key, KeyError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| KeyError::Ed25519)?;
        Ok(Key::Ed25519 {
            seed: seed.to_vec(),
            public: pair.public_key().as_ref().to_vec(),
        })
    }

    /// Returns the name of the algorithm in configurations.
    pub fn algorithm(&self) -> &'static str {
        match self {
            Key::Rsa(_) => "RSA",
            Key::Ecdsa(_) => "ECDSA",
            Key::Ed25519 { .. } => "ED25519",
        }
    }

    pub fn public(&self) -> Public {
        match self {
            Key::Rsa(key) => rsa::public(key),
            Key::Ecdsa(EcKey { curve, point, .. }) => Public::Ecdsa {
                curve: *curve,
                point: point.clone(),
            },
            Key::Ed25519 { public, .. } => Public::Ed25519(public.clone()),
        }
    }

    /// Reads the first block of a PEM text, which must be in PKCS#1, SEC 1 or PKCS#8.
    pub fn from_pem(text: &str) -> Result<Key, KeyError> {
        let block = pem::first(text).ok_or(KeyError::NoPemBlock)?;
        match block.tag() {
            PKCS1 | SEC1 | PKCS8 => Key::from_block(&block),
            OPENSSH => Err(KeyError::OpenSshFormat),
            other => Err(KeyError::PemLabel(other.to_owned())),
        }
    }

    /// Reads the first block of a PEM text, which may be in OpenSSH format or any of the others, as SSH programs do.
    pub fn from_openssh(text: &str) -> Result<Key, KeyError> {
        let block = pem::first(text).ok_or(KeyError::NoSshKey)?;
        match block.tag() {
            OPENSSH => ssh::read(block.contents()),
            PKCS1 | SEC1 | PKCS8 => Key::from_block(&block),
            other => Err(KeyError::SshPemLabel(other.to_owned())),
        }
    }

    fn from_block(block: &Pem) -> Result<Key, KeyError> {
        let label = block.tag();
        let failed = |source| KeyError::PemBlock {
            label: label.to_owned(),
            source: Box::new(source),
        };
        // Traditional PEM encryption is announced by a header of the block. Without this check, the encrypted content would be reported as
        // malformed DER.
        if block
            .headers()
            .get("Proc-Type")
            .is_some_and(|value| value.contains("ENCRYPTED"))
        {
            return Err(failed(KeyError::Encrypted));
        }
        match label {
            PKCS1 => rsa::read(block.contents()).map(|key| Key::Rsa(Box::new(key))),
            SEC1 => EcKey::read(block.contents(), None).map(Key::Ecdsa),
            _ => Key::from_pkcs8(block.contents()),
        }
        .map_err(failed)
    }

    fn from_pkcs8(der: &[u8]) -> Result<Key, KeyError> {
        let info = PrivateKeyInfoRef::from_der(der)?;
        let bytes = info.private_key.as_bytes();
        let algorithm = arcs(info.algorithm.oid);
        let is = |oid: Oid| algorithm == oid;
        if is(oid::RSA) {
            Ok(Key::Rsa(Box::new(rsa::read(bytes)?)))
        } else if is(oid::EC) {
            let curve = info.algorithm.parameters_oid()?;
            EcKey::read(bytes, Some(supported_curve(curve)?)).map(Key::Ecdsa)
        } else if is(oid::ED25519) {
            let seed = <&OctetStringRef>::from_der(bytes)?;
            Key::ed25519(seed.as_bytes())
        } else {
            Err(KeyError::Algorithm(info.algorithm.oid))
        }
    }

    /// Encodes the key as PEM, in the traditional format for its algorithm.
    pub fn pem(&self) -> Result<String, KeyError> {
        match self {
            Key::Rsa(key) => Ok(pem::encode(PKCS1, rsa::write(key)?)),
            Key::Ecdsa(key) => Ok(pem::encode(SEC1, key.write(true))),
            Key::Ed25519 { .. } => self.pkcs8_pem(),
        }
    }

    /// Encodes the key as PEM, in PKCS#8.
    pub fn pkcs8_pem(&self) -> Result<String, KeyError> {
        let inner = match self {
            Key::Rsa(key) => rsa::write(key)?,
            Key::Ecdsa(key) => key.write(false),
            // The key is an octet string inside of an octet string (RFC 8410, section 7).
            Key::Ed25519 { seed, .. } => yasna::construct_der(|w| w.write_bytes(seed)),
        };
        let der = yasna::construct_der(|w| {
            w.write_sequence(|w| {
                w.next().write_u8(0);
                w.next().write_sequence(|w| match self {
                    Key::Rsa(_) => {
                        w.next().write_oid(&oid::der(oid::RSA));
                        w.next().write_null();
                    }
                    Key::Ecdsa(key) => {
                        w.next().write_oid(&oid::der(oid::EC));
                        w.next().write_oid(&oid::der(key.curve.oid()));
                    }
                    // The algorithm has no parameters, not even null (RFC 8410, section 3).
                    Key::Ed25519 { .. } => w.next().write_oid(&oid::der(oid::ED25519)),
                });
                w.next().write_bytes(&inner);
            });
        });
        Ok(pem::encode(PKCS8, der))
    }

    /// Encodes the key as PEM in OpenSSH format; empty if SSH does not support such keys.
    pub fn openssh_pem(&self) -> Result<String, KeyError> {
        Ok(match ssh::write(self)? {
            Some(bytes) => pem::encode(OPENSSH, bytes),
            None => String::new(),
        })
    }

    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        match self {
            Key::Rsa(key) => rsa::sign(key, message),
            Key::Ecdsa(EcKey { curve, scalar, point }) => curve.sign(scalar, point, message),
            Key::Ed25519 { seed, public } => {
                let pair = Ed25519KeyPair::from_seed_and_public_key(seed, public).map_err(|_| KeyError::CannotSign)?;
                Ok(pair.sign(message).as_ref().to_vec())
            }
        }
    }

    /// Writes the algorithm identifier of the key's signatures.
    pub fn write_signature_algorithm(&self, writer: DERWriter<'_>) {
        writer.write_sequence(|w| match self {
            Key::Rsa(_) => {
                w.next().write_oid(&oid::der(oid::SHA256_WITH_RSA));
                w.next().write_null();
            }
            Key::Ecdsa(key) => w.next().write_oid(&oid::der(key.curve.signature())),
            Key::Ed25519 { .. } => w.next().write_oid(&oid::der(oid::ED25519)),
        });
    }
}

/// Wraps content and its signature, as in certificates and requests.
pub(crate) fn signed(key: &Key, content: &[u8]) -> Result<Vec<u8>, KeyError> {
    let signature = key.sign(content)?;
    Ok(yasna::construct_der(|w| {
        w.write_sequence(|w| {
            w.next().write_der(content);
            key.write_signature_algorithm(w.next());
            w.next().write_bitvec_bytes(&signature, signature.len() * 8);
        });
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scalar with leading zeros is easily written too short, or refused when it is read.
    #[test]
    fn small_numbers_survive_every_form() {
        for name in Curve::NAMES {
            let curve = Curve::named(name).unwrap();
            let key = Key::Ecdsa(EcKey::new(curve, &[0xfe; 20]).unwrap());
            for text in [key.pem().unwrap(), key.pkcs8_pem().unwrap()] {
                assert_eq!(Key::from_pem(&text).unwrap().public(), key.public(), "{name}");
            }
            let openssh = key.openssh_pem().unwrap();
            assert_eq!(openssh.is_empty(), curve == Curve::P224);
            if curve != Curve::P224 {
                assert_eq!(Key::from_openssh(&openssh).unwrap().public(), key.public(), "{name}");
            }
        }
    }

    #[test]
    fn numbers_that_are_none_of_a_curve_are_refused() {
        for name in Curve::NAMES {
            let curve = Curve::named(name).unwrap();
            assert!(EcKey::new(curve, &[]).is_err());
            assert!(EcKey::new(curve, &vec![0xff; curve.scalar_len()]).is_err());
            assert!(EcKey::new(curve, &[1; 67]).is_err());
        }
    }

    #[test]
    fn damaged_openssh_keys_are_refused() {
        let key = Key::generate("ED25519", 0, "").unwrap();
        let whole = pem::first(&key.openssh_pem().unwrap()).unwrap().into_contents();
        assert!(ssh::read(&whole).is_ok());
        for length in 0..whole.len() {
            assert!(ssh::read(&whole[..length]).is_err(), "{length}");
        }
        for position in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[position] ^= 0x55;
            // Changed bytes may be refused, or read as the same key, but never as another key.
            if let Ok(read) = ssh::read(&bytes) {
                assert_eq!(read.public(), key.public(), "{position}");
            }
        }
    }
}
