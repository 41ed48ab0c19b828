//! RSA keys. Those of usual sizes are made by aws-lc-rs, several times faster; the others, and everything else, by a crate
//! that handles any size.

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use openssh::without_leading_zeros;
use rsa::RsaPrivateKey;
use rsa::pkcs1v15::SigningKey;
use rsa::pkcs8::DecodePrivateKey;
use rsa::signature::{SignatureEncoding, Signer};
use rsa::traits::{PrivateKeyParts, PublicKeyParts};
use rsa::{BoxedUint, pkcs1};
use sha2::Sha256;

use super::error::KeyError;
use super::public::Public;

/// Least size of an RSA key; smaller ones can be factored.
const LEAST_BITS: i64 = 1024;
/// Larger ones take hours to make.
const MOST_BITS: i64 = 16384;

/// A new key of this size.
pub(super) fn generate(bits: i64) -> Result<RsaPrivateKey, KeyError> {
    if bits < LEAST_BITS {
        return Err(KeyError::TooFewBits {
            bits,
            least: LEAST_BITS,
        });
    }
    let size = match bits {
        2048 => KeySize::Rsa2048,
        3072 => KeySize::Rsa3072,
        4096 => KeySize::Rsa4096,
        8192 => KeySize::Rsa8192,
        ..=MOST_BITS => {
            return RsaPrivateKey::new(&mut rand::rng(), bits as usize)
                .map_err(|source| KeyError::RsaNotGenerated { bits, source });
        }
        _ => return Err(KeyError::TooManyBits { bits, most: MOST_BITS }),
    };
    let pair = KeyPair::generate(size).map_err(|_| KeyError::NotGenerated)?;
    let der: aws_lc_rs::encoding::Pkcs8V1Der<'_> = pair.as_der().map_err(|_| KeyError::NotGenerated)?;
    Ok(RsaPrivateKey::from_pkcs8_der(der.as_ref())?)
}

pub(super) fn public(key: &RsaPrivateKey) -> Public {
    Public::Rsa {
        n: without_leading_zeros(&key.n_bytes()).to_vec(),
        e: without_leading_zeros(&key.e_bytes()).to_vec(),
    }
}

/// A signature of a message with SHA-256.
pub(super) fn sign(key: &RsaPrivateKey, message: &[u8]) -> Result<Vec<u8>, KeyError> {
    let signature = SigningKey::<Sha256>::new(key.clone()).try_sign(message);
    Ok(signature.map_err(KeyError::RsaSignature)?.to_vec())
}

pub(super) fn write(key: &RsaPrivateKey) -> Result<Vec<u8>, KeyError> {
    let [n, e, d, coefficient, p, q] = numbers(key)?;
    let exponents = [
        key.dp().ok_or(KeyError::NoCoefficient)?.to_be_bytes(),
        key.dq().ok_or(KeyError::NoCoefficient)?.to_be_bytes(),
    ];
    Ok(yasna::construct_der(|w| {
        w.write_sequence(|w| {
            w.next().write_u8(0);
            for number in [&n, &e, &d, &p, &q] {
                w.next().write_bigint_bytes(number, true);
            }
            for number in &exponents {
                w.next().write_bigint_bytes(number, true);
            }
            w.next().write_bigint_bytes(&coefficient, true);
        });
    }))
}

/// Decodes PKCS#1.
pub(super) fn read(der: &[u8]) -> Result<RsaPrivateKey, KeyError> {
    use pkcs1::DecodeRsaPrivateKey;
    Ok(RsaPrivateKey::from_pkcs1_der(der)?)
}

/// Modulus, public and private exponent, coefficient, primes.
pub(super) fn numbers(key: &RsaPrivateKey) -> Result<[Vec<u8>; 6], KeyError> {
    let [p, q] = key.primes() else {
        return Err(KeyError::ManyPrimes);
    };
    let coefficient = key.crt_coefficient().ok_or(KeyError::NoCoefficient)?;
    let bytes = |number: &BoxedUint| number.to_be_bytes().to_vec();
    Ok([
        key.n_bytes().to_vec(),
        key.e_bytes().to_vec(),
        bytes(key.d()),
        bytes(&coefficient),
        bytes(p),
        bytes(q),
    ])
}

/// A key of these numbers.
pub(super) fn from_numbers(n: &[u8], e: &[u8], d: &[u8], p: &[u8], q: &[u8]) -> Result<RsaPrivateKey, KeyError> {
    let number = |bytes: &[u8], width: usize| {
        BoxedUint::from_be_slice(bytes, (width * 8) as u32).map_err(|_| KeyError::SshRsaTooLarge)
    };
    RsaPrivateKey::from_components(
        number(n, n.len())?,
        number(e, e.len())?,
        number(d, n.len())?,
        vec![number(p, n.len())?, number(q, n.len())?],
    )
    .map_err(KeyError::SshRsa)
}
