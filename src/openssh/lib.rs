//! Private keys in OpenSSH's own format: reading and writing (RFC 4251, and `PROTOCOL.key` of OpenSSH).
//!
//! This is the wire format only: the numbers of a key are bytes, and whether they fit together is checked by those who compute
//! with them. Begin with [`PrivateKey`]. The usual crate for this format refuses one in 256 keys of P-256: those whose secret
//! number begins with a zero byte, which OpenSSH leaves out.

#![allow(missing_docs, reason = "an internal crate: names and types say the rest")]

mod read;
mod wire;

pub use read::Error;
pub use wire::{Writer, without_leading_zeros};

/// The first bytes of every key.
const MAGIC: &[u8] = b"openssh-key-v1\0";
/// The secret part is padded to a multiple of this.
const BLOCK: usize = 8;

/// A private key without a passphrase. Numbers are big-endian and have no leading zeros.
#[derive(Clone, PartialEq, Eq)]
pub enum PrivateKey {
    /// `ssh-rsa`.
    Rsa {
        /// The modulus.
        n: Vec<u8>,
        /// The public exponent.
        e: Vec<u8>,
        /// The private exponent.
        d: Vec<u8>,
        /// The inverse of `q` modulo `p`.
        coefficient: Vec<u8>,
        /// The first prime.
        p: Vec<u8>,
        /// The second prime.
        q: Vec<u8>,
    },
    /// `ecdsa-sha2-…`.
    Ecdsa {
        /// SSH's name of the curve: `nistp256`, `nistp384` or `nistp521`.
        curve: String,
        /// The public point, as SEC 1 writes it.
        point: Vec<u8>,
        /// The secret number.
        scalar: Vec<u8>,
    },
    /// `ssh-ed25519`.
    Ed25519 {
        /// The secret, 32 bytes.
        seed: Vec<u8>,
        /// The public key.
        public: Vec<u8>,
    },
}

/// Shows the type of the key and nothing of the key.
impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PrivateKey({})", self.type_name())
    }
}

impl PrivateKey {
    /// SSH's name of this type of keys, such as `ssh-rsa`.
    #[must_use]
    pub fn type_name(&self) -> String {
        match self {
            PrivateKey::Rsa { .. } => "ssh-rsa".to_owned(),
            PrivateKey::Ecdsa { curve, .. } => format!("ecdsa-sha2-{curve}"),
            PrivateKey::Ed25519 { .. } => "ssh-ed25519".to_owned(),
        }
    }

    /// The public key as SSH sends it.
    #[must_use]
    pub fn public(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.string(self.type_name().as_bytes());
        match self {
            PrivateKey::Rsa { n, e, .. } => out.number(e).number(n),
            PrivateKey::Ecdsa { curve, point, .. } => out.string(curve.as_bytes()).string(point),
            PrivateKey::Ed25519 { public, .. } => out.string(public),
        };
        out.0
    }

    /// The content of the PEM block, without a passphrase and without a comment.
    ///
    /// `check` is written two times; readers compare the two to see whether they deciphered well. Nothing is ciphered here, so
    /// any number serves.
    #[must_use]
    pub fn write(&self, check: u32) -> Vec<u8> {
        let mut secret = Writer::default();
        secret.u32(check).u32(check).string(self.type_name().as_bytes());
        match self {
            PrivateKey::Rsa {
                n,
                e,
                d,
                coefficient,
                p,
                q,
            } => {
                for number in [n, e, d, coefficient, p, q] {
                    secret.number(number);
                }
            }
            PrivateKey::Ecdsa { curve, point, scalar } => {
                secret.string(curve.as_bytes()).string(point).number(scalar);
            }
            PrivateKey::Ed25519 { seed, public } => {
                secret.string(public).string(&[seed.as_slice(), public].concat());
            }
        }
        secret.string(b"");
        let mut padding = 1..;
        while secret.0.len() % BLOCK != 0 {
            secret.0.extend(padding.next());
        }
        let mut out = Writer(MAGIC.to_vec());
        out.string(b"none")
            .string(b"none")
            .string(b"")
            .u32(1)
            .string(&self.public())
            .string(&secret.0);
        out.0
    }
}

#[cfg(test)]
mod tests;
