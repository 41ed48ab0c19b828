//! Interface of the encryption of states and plans.

use std::fmt;

/// Serial and lineage of a state, which stay in clear text beside the encrypted text.
#[derive(Clone, Copy, Debug)]
pub struct Head<'h> {
    pub serial: u64,
    pub lineage: &'h str,
}

/// Result of a decryption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    pub text: Vec<u8>,
    /// True if the text should be encrypted again, because only a fallback could decrypt it.
    pub outdated: bool,
}

/// Encryption of stored texts.
pub trait Cipher: fmt::Debug + Send + Sync {
    /// Encrypts a text. `head` is `None` for a text that is not a state.
    ///
    /// # Errors
    /// The text cannot be encrypted.
    fn seal(&self, text: Vec<u8>, head: Option<Head<'_>>) -> Result<Vec<u8>, CipherError>;

    /// Decrypts a text that [`is_sealed`](crate::codec::is_sealed).
    ///
    /// # Errors
    /// No key fits, or a key is not available.
    fn open(&self, sealed: &[u8]) -> Result<Opened, CipherError>;

    /// Decides whether a text that is not encrypted is accepted. Returns true if it must be encrypted when it is written again.
    fn accept_plain(&self) -> Result<bool, CipherError>;
}

/// Reason why a text cannot be encrypted or decrypted, as a clause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CipherError(pub String);
