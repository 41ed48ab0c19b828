//! Reader and writer of private keys in OpenSSH's own format (RFC 4251, and `PROTOCOL.key` of OpenSSH).
//!
//! This is the wire format only: the numbers of a key are bytes, and callers that compute with them check their
//! consistency. Start with [`PrivateKey`]. The usual crate for this format rejects one in 256 keys of P-256: those
//! whose secret scalar begins with a zero byte, which OpenSSH omits.

mod error;
mod read;
mod wire;

pub use error::Error;
pub use wire::{Writer, without_leading_zeros};

/// The prefix of every key.
const MAGIC: &[u8] = b"openssh-key-v1\0";
/// The block size in bytes to which the secret part is padded.
const BLOCK: usize = 8;

/// A private key without a passphrase. Numbers are big-endian without leading zeros.
#[derive(Clone, PartialEq, Eq)]
pub enum PrivateKey {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
        d: Vec<u8>,
        /// The inverse of `q` modulo `p`.
        coefficient: Vec<u8>,
        p: Vec<u8>,
        q: Vec<u8>,
    },
    Ecdsa {
        /// The curve's name in SSH: `nistp256`, `nistp384` or `nistp521`.
        curve: String,
        /// The public point in the encoding of SEC 1.
        point: Vec<u8>,
        scalar: Vec<u8>,
    },
    Ed25519 {
        /// The secret of 32 bytes.
        seed: Vec<u8>,
        public: Vec<u8>,
    },
}

/// Shows the type of the key, and no part of the key.
impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PrivateKey({})", self.type_name())
    }
}

impl PrivateKey {
    /// Returns the SSH name of the key's type, such as `ssh-rsa`.
    #[must_use]
    pub fn type_name(&self) -> String {
        match self {
            PrivateKey::Rsa { .. } => "ssh-rsa".to_owned(),
            PrivateKey::Ecdsa { curve, .. } => format!("ecdsa-sha2-{curve}"),
            PrivateKey::Ed25519 { .. } => "ssh-ed25519".to_owned(),
        }
    }

    /// Returns the public key in SSH's encoding.
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

    /// Encodes the key as the content of a PEM block, without a passphrase and without a comment.
    ///
    /// `check` can be any number, because nothing is encrypted.
    #[must_use]
    pub fn write(&self, check: u32) -> Vec<u8> {
        let mut secret = Writer::default();
        // Readers compare the two check numbers to see whether decryption succeeded.
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
                // The format repeats the public key after the seed.
                secret.string(public).string(&[seed.as_slice(), public].concat());
            }
        }
        secret.string(b"");
        // The padding consists of the bytes 1, 2, 3, and so on; readers check it.
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
