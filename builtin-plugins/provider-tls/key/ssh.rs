//! Keys as OpenSSH stores and sends them: strings and numbers with their length before them (RFC 4251, and `PROTOCOL.key` of
//! OpenSSH). The crate there is for this refuses one in 256 of P-256 keys, those whose secret begins with a zero byte.

use sha2::{Digest, Sha256};

use super::curve::Curve;
use super::public::{Public, without_zeros};
use super::{EcKey, Key};

/// What stands before everything else.
const MAGIC: &[u8] = b"openssh-key-v1\0";
/// Secrets are filled up to a multiple of this.
const BLOCK: usize = 8;

/// Bytes to be sent.
#[derive(Default)]
pub(crate) struct Wire(pub Vec<u8>);

impl Wire {
    fn u32(&mut self, number: u32) -> &mut Wire {
        self.0.extend(number.to_be_bytes());
        self
    }

    /// Bytes with their length.
    pub fn string(&mut self, bytes: &[u8]) -> &mut Wire {
        // Nothing of a key comes near the four billion bytes that the length can say.
        self.u32(bytes.len() as u32);
        self.0.extend(bytes);
        self
    }

    /// A positive number.
    pub fn number(&mut self, bytes: &[u8]) -> &mut Wire {
        let mut bytes = without_zeros(bytes);
        if bytes.first().is_some_and(|b| *b >= 0x80) {
            bytes.insert(0, 0);
        }
        self.string(&bytes)
    }
}

/// Received bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        match self.0.split_at_checked(length) {
            Some((taken, rest)) => {
                self.0 = rest;
                Ok(taken)
            }
            None => Err("the key ends too soon".into()),
        }
    }

    fn u32(&mut self) -> Result<u32, String> {
        let bytes = self.take(4)?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    fn string(&mut self) -> Result<&'a [u8], String> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    fn number(&mut self) -> Result<Vec<u8>, String> {
        let bytes = self.string()?;
        if bytes.first().is_some_and(|b| *b >= 0x80) {
            return Err("a number in the key is negative".into());
        }
        Ok(without_zeros(bytes))
    }
}

/// A key as OpenSSH stores it, without a passphrase and without a comment; `None` if SSH does not know such keys.
pub(super) fn write(key: &Key) -> Result<Option<Vec<u8>>, String> {
    let public = key.public();
    let (Some(kind), Some(public_bytes)) = (public.ssh_type(), public.ssh()) else {
        return Ok(None);
    };
    // Readers compare the two, to see whether they deciphered well. Nothing is ciphered here, so any number will do; with this
    // one the same key is always written the same way.
    let check = Reader(&Sha256::digest(&public_bytes)).u32()?;
    let mut secret = Wire::default();
    secret.u32(check).u32(check).string(kind.as_bytes());
    match key {
        Key::Rsa(key) => {
            let [n, e, d, coefficient, p, q] = super::rsa::numbers(key)?;
            secret
                .number(&n)
                .number(&e)
                .number(&d)
                .number(&coefficient)
                .number(&p)
                .number(&q);
        }
        Key::Ecdsa(EcKey { curve, scalar, point }) => {
            let name = curve.ssh_name().unwrap_or_default();
            secret.string(name.as_bytes()).string(point).number(scalar);
        }
        Key::Ed25519 { seed, public } => {
            secret.string(public).string(&[seed.as_slice(), public].concat());
        }
    }
    secret.string(b"");
    let mut padding = 1..;
    while secret.0.len() % BLOCK != 0 {
        secret.0.extend(padding.next());
    }
    let mut out = Wire(MAGIC.to_vec());
    out.string(b"none")
        .string(b"none")
        .string(b"")
        .u32(1)
        .string(&public_bytes)
        .string(&secret.0);
    Ok(Some(out.0))
}

/// Reads a key as OpenSSH stores it.
pub(super) fn read(bytes: &[u8]) -> Result<Key, String> {
    let mut outer = Reader(
        bytes
            .strip_prefix(MAGIC)
            .ok_or("ssh: the key is not in OpenSSH's format")?,
    );
    let cipher = outer.string()?;
    let (_function, _options) = (outer.string()?, outer.string()?);
    if outer.u32()? != 1 {
        return Err("ssh: files with several keys are not supported".into());
    }
    let _public = outer.string()?;
    if cipher != b"none" {
        return Err("ssh: this private key is passphrase protected; give it without one (ssh-keygen -p)".into());
    }
    let mut secret = Reader(outer.string()?);
    if secret.u32()? != secret.u32()? {
        return Err("ssh: malformed OpenSSH key".into());
    }
    let kind = secret.string()?;
    let key = match kind {
        b"ssh-rsa" => {
            let (n, e, d) = (secret.number()?, secret.number()?, secret.number()?);
            let _coefficient = secret.number()?;
            let (p, q) = (secret.number()?, secret.number()?);
            Key::Rsa(Box::new(super::rsa::from_numbers(&n, &e, &d, &p, &q)?))
        }
        b"ssh-ed25519" => {
            let _public = secret.string()?;
            let (seed, public) = secret
                .string()?
                .split_at_checked(32)
                .ok_or("ssh: the private key has an unexpected length")?;
            let key = Key::ed25519(seed)?;
            if key.public() != Public::Ed25519(public.to_vec()) {
                return Err("ssh: the public key does not match the private key".into());
            }
            key
        }
        _ if kind.starts_with(b"ecdsa-sha2-") => {
            let curve = Curve::named_by_ssh(secret.string()?).ok_or("ssh: unhandled elliptic curve")?;
            let point = secret.string()?;
            let key = EcKey::new(curve, &secret.number()?)?;
            if key.point != point {
                return Err("ssh: the public key does not match the private key".into());
            }
            Key::Ecdsa(key)
        }
        other => return Err(format!("ssh: unhandled key type {:?}", String::from_utf8_lossy(other))),
    };
    let _comment = secret.string()?;
    if !secret.0.iter().zip(1u8..).all(|(byte, expected)| *byte == expected) {
        return Err("ssh: the padding is not as expected".into());
    }
    Ok(key)
}
