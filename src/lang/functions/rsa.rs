//! `rsadecrypt`: RSA with the padding of PKCS #1 v1.5, and private keys in PEM form.
//!
//! Keys come in three formats: PKCS #1, PKCS #8 and OpenSSH's own, all in PEM. The arithmetic is that of `dashu_int`.
//! The cryptography library of the TLS connections refuses keys below 2048 bits, which this function accepts, and
//! another RSA library would add its own arithmetic for a single exponentiation. The exponentiation does not run in
//! constant time: only a process on the same machine could measure its time, and the key is on that machine.

use base64::Engine;
use cty::Value;
use dashu_int::UBig;
use dashu_int::fast_div::ConstDivisor;
use dashu_int::ops::BitTest;

use super::encoding::LENIENT;
use super::{CallError, CallResult, Function, Returns, string, text};

pub(super) const FUNCTIONS: &[Function] = &[Function::new(
    "rsadecrypt",
    &[string("ciphertext"), string("privatekey")],
    Returns::String,
    |a, _, _| rsadecrypt(text(a, 0), text(a, 1)),
)];

fn rsadecrypt(ciphertext: &str, key: &str) -> CallResult {
    // Go's decoder ignores line breaks in base64.
    let compact: String = ciphertext.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let bytes = LENIENT
        .decode(compact)
        .map_err(|_| CallError::argument(0, format!("the text {ciphertext:?} is not base64")))?;
    let key = Key::parse(key).map_err(|why| CallError::argument(1, why.to_string()))?;
    let plain = key
        .decrypt(&bytes)
        .ok_or_else(|| CallError::failed("the text cannot be decrypted with this key"))?;
    match String::from_utf8(plain) {
        Ok(plain) => Ok(Value::string(plain)),
        Err(_) => Err(CallError::failed(
            "the decrypted message is not text in UTF-8, which is the only kind of string there is",
        )),
    }
}

/// Reason why a text is not a usable private key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum KeyError {
    #[error("invalid private key: no key found")]
    NoKey,
    #[error("invalid private key: this private key is passphrase protected")]
    Encrypted,
    #[error("invalid ASN1 data in the given private key: it is not a whole key of the kind its first line names")]
    Asn1,
    #[error("invalid private key: malformed OpenSSH key")]
    OpenSsh,
    #[error("invalid private key type: this is an {0} key, where an RSA key is needed")]
    OtherAlgorithm(&'static str),
    #[error("invalid private key type: an RSA key is needed")]
    NotRsa,
    /// Unknown label of the PEM block.
    #[error("invalid private key: unsupported key type {0:?}")]
    Label(String),
}

/// An RSA private key.
struct Key {
    modulus: UBig,
    exponent: UBig,
}

impl Key {
    fn parse(pem: &str) -> Result<Key, KeyError> {
        let block = Pem::first(pem).ok_or(KeyError::NoKey)?;
        if block.encrypted {
            return Err(KeyError::Encrypted);
        }
        match block.label.as_str() {
            "RSA PRIVATE KEY" => Key::pkcs1(&block.bytes).ok_or(KeyError::Asn1),
            "PRIVATE KEY" => match pkcs8(&block.bytes).ok_or(KeyError::Asn1)? {
                (RSA_ENCRYPTION, key) => Key::pkcs1(key).ok_or(KeyError::Asn1),
                (ELLIPTIC, _) => Err(KeyError::OtherAlgorithm("elliptic curve")),
                (ED25519, _) => Err(KeyError::OtherAlgorithm("Ed25519")),
                _ => Err(KeyError::NotRsa),
            },
            "EC PRIVATE KEY" => Err(KeyError::OtherAlgorithm("elliptic curve")),
            "OPENSSH PRIVATE KEY" => Key::openssh(&block.bytes),
            label => Err(KeyError::Label(label.to_owned())),
        }
    }

    fn pkcs1(der: &[u8]) -> Option<Key> {
        // PKCS #1 has version, modulus, public exponent and private exponent in this order; the primes after them are
        // not needed.
        let mut fields = Der(Der(der).expect(SEQUENCE)?);
        fields.expect(INTEGER)?;
        let modulus = UBig::from_be_bytes(fields.expect(INTEGER)?);
        fields.expect(INTEGER)?;
        let exponent = UBig::from_be_bytes(fields.expect(INTEGER)?);
        Key { modulus, exponent }.checked()
    }

    /// Reads a key in the format of `ssh-keygen`.
    fn openssh(bytes: &[u8]) -> Result<Key, KeyError> {
        match openssh::PrivateKey::read(bytes) {
            Ok(openssh::PrivateKey::Rsa { n, d, .. }) => Key {
                modulus: UBig::from_be_bytes(&n),
                exponent: UBig::from_be_bytes(&d),
            }
            .checked()
            .ok_or(KeyError::OpenSsh),
            Ok(_) | Err(openssh::Error::Type(_)) => Err(KeyError::NotRsa),
            Err(openssh::Error::Encrypted) => Err(KeyError::Encrypted),
            Err(_) => Err(KeyError::OpenSsh),
        }
    }

    /// Returns the key if its numbers are valid: the modulus is odd, greater than 1 and has at most 16384 bits, and the
    /// exponent is less than the modulus.
    fn checked(self) -> Option<Key> {
        let odd = self.modulus.bit(0) && self.modulus > UBig::ONE;
        // The limit on bits bounds the time of the exponentiation.
        let small = self.modulus.bit_len() <= 16384 && self.exponent < self.modulus;
        (odd && small).then_some(self)
    }

    fn decrypt(&self, ciphertext: &[u8]) -> Option<Vec<u8>> {
        let size = self.modulus.bit_len().div_ceil(8);
        let number = UBig::from_be_bytes(ciphertext);
        if ciphertext.len() > size || number >= self.modulus || size < 11 {
            return None;
        }
        let ring = ConstDivisor::new(self.modulus.clone());
        let message = ring.reduce(number).pow(&self.exponent).residue().to_be_bytes();
        // The leading zero byte of the padding is not part of the number.
        let [2, padded @ ..] = &*message else { return None };
        if message.len() + 1 != size {
            return None;
        }
        // PKCS #1 requires at least eight bytes of padding.
        let end = padded.iter().position(|b| *b == 0).filter(|padding| *padding >= 8)?;
        padded.get(end + 1..).map(<[u8]>::to_vec)
    }
}

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const OBJECT: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const ELLIPTIC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// Returns the algorithm and the key of a PKCS #8 document.
fn pkcs8(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut fields = Der(Der(der).expect(SEQUENCE)?);
    fields.expect(INTEGER)?;
    let algorithm = Der(fields.expect(SEQUENCE)?).expect(OBJECT)?;
    Some((algorithm, fields.expect(OCTETS)?))
}

/// Unread rest of a DER document.
struct Der<'b>(&'b [u8]);

impl<'b> Der<'b> {
    /// Returns the content of the next element, if it has this tag.
    fn expect(&mut self, tag: u8) -> Option<&'b [u8]> {
        let [found, first, rest @ ..] = self.0 else { return None };
        if *found != tag {
            return None;
        }
        let (length, rest) = match *first {
            short @ 0..=0x7f => (usize::from(short), rest),
            // Four bytes are enough for any key, and cannot overflow the length.
            long @ 0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
                (bytes.iter().fold(0, |n, b| n << 8 | usize::from(*b)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(content)
    }
}

struct Pem {
    label: String,
    encrypted: bool,
    bytes: Vec<u8>,
}

impl Pem {
    /// Returns the first PEM block in a text whose content is base64. `None` if there is none, or if a block before it
    /// has no end.
    fn first(text: &str) -> Option<Pem> {
        let mut lines = text.lines().map(str::trim_end);
        loop {
            let begin = lines.find_map(|l| l.strip_prefix("-----BEGIN ")?.strip_suffix("-----"))?;
            let end = format!("-----END {begin}-----");
            let mut body = String::new();
            let mut encrypted = false;
            let mut complete = false;
            for line in lines.by_ref() {
                if line == end {
                    complete = true;
                    break;
                }
                // Lines with a colon are headers; base64 has no colon.
                match line.split_once(':') {
                    Some((name, value)) => encrypted |= name == "Proc-Type" && value.contains("ENCRYPTED"),
                    None => body.push_str(line.trim()),
                }
            }
            if !complete {
                return None;
            }
            if let Ok(bytes) = LENIENT.decode(body) {
                return Some(Pem {
                    label: begin.to_owned(),
                    encrypted,
                    bytes,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_keys_are_refused() {
        let key = |text: &str| Key::parse(text).err();
        assert_eq!(key(""), Some(KeyError::NoKey));
        assert_eq!(key("-----BEGIN RSA PRIVATE KEY-----\nMIIB"), Some(KeyError::NoKey));
        let block = |label: &str, body: &str| format!("text\n-----BEGIN {label}-----\n{body}\n-----END {label}-----\n");
        assert_eq!(key(&block("X", "AAAA")), Some(KeyError::Label("X".to_owned())));
        for body in ["", "MAAA", "MIIBAA==", "MP////8="] {
            assert_eq!(key(&block("RSA PRIVATE KEY", body)), Some(KeyError::Asn1), "{body}");
            assert_eq!(key(&block("PRIVATE KEY", body)), Some(KeyError::Asn1), "{body}");
            assert_eq!(
                key(&block("OPENSSH PRIVATE KEY", body)),
                Some(KeyError::OpenSsh),
                "{body}"
            );
        }
        let locked = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----\n";
        assert_eq!(key(locked), Some(KeyError::Encrypted));
    }
}
