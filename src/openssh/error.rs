//! Errors of reading a key.

/// The error for a key that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes do not begin with the prefix of OpenSSH's format.
    #[error("the key is not in OpenSSH's format")]
    NotOpenSsh,
    /// The key ends in the middle of a field.
    #[error("the key ends too soon")]
    Truncated,
    #[error("this private key is passphrase protected")]
    Encrypted,
    /// The number of keys is not one.
    #[error("files with several keys are not supported")]
    SeveralKeys,
    /// The two check numbers differ.
    #[error("malformed OpenSSH key")]
    CheckNumbers,
    /// A number of the key is negative.
    #[error("a number in the key is negative")]
    NegativeNumber,
    /// The secret of an Ed25519 key does not have 64 bytes.
    #[error("the private key has an unexpected length")]
    Length,
    /// The type of the key is not one of [`PrivateKey`](crate::PrivateKey).
    #[error("unhandled key type {0:?}")]
    Type(String),
    /// The padding after the key is not as expected.
    #[error("the padding is not as expected")]
    Padding,
}
