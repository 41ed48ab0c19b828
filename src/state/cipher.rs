//! Interface of the encryption of states and plans.

use std::fmt;

/// Serial and lineage, which stay in clear text beside an encrypted state.
#[derive(Clone, Copy, Debug)]
pub struct Head<'h> {
    pub serial: u64,
    pub lineage: &'h str,
}

/// Text from which a cipher has removed the encryption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    pub text: Vec<u8>,
    /// True if the text should be written again, because it is not encrypted, or only a fallback could decrypt it.
    pub outdated: bool,
}

/// Encryption of stored texts.
pub trait Cipher: fmt::Debug + Send + Sync {
    /// Encrypts a text. The head is for states only.
    ///
    /// # Errors
    /// The text cannot be encrypted.
    fn seal(&self, text: Vec<u8>, head: Option<Head<'_>>) -> Result<Vec<u8>, CipherError>;

    /// Decrypts a text that [`is_sealed`](crate::codec::is_sealed).
    ///
    /// # Errors
    /// No key fits, or a key is not available.
    fn open(&self, sealed: &[u8]) -> Result<Opened, CipherError>;

    /// Accepts a text that is not encrypted. Returns true if it must be encrypted when it is
    /// written again.
    ///
    /// # Errors
    /// Texts must be encrypted.
    fn accept_plain(&self) -> Result<bool, CipherError>;
}

/// Reason why a text cannot be encrypted or decrypted, as a clause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CipherError(pub String);
