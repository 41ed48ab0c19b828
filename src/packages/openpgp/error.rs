//! Errors of parsing keys and signatures.

/// Reason why a key or signature cannot be read. The text is a clause about it ("it …"), without a full stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes end inside a packet.
    #[error("it ends too early")]
    Truncated,
    /// A packet of indeterminate length.
    #[error("a part of it has no length")]
    NoLength,
    /// The first bit of a packet is not set.
    #[error("it is not made of OpenPGP packets")]
    NoPacket,
    /// The text is neither binary nor armored.
    #[error("it is neither OpenPGP packets nor armored text")]
    NotOpenPgp,
    /// The armor is not base64.
    #[error("its armor is damaged: {0}")]
    Armor(#[from] base64::DecodeError),
    #[error("it is a key of version {0}, and only version 4 is known")]
    KeyVersion(u8),
    /// A key of more than 65535 bytes.
    #[error("it is larger than a key can be")]
    KeyTooLarge,
    #[error("it is a signature of version {0}, and only version 4 is known")]
    SignatureVersion(u8),
    /// A packet of another type than signature.
    #[error("it is OpenPGP, but no signature")]
    NotASignature,
    #[error("it does not say when it was made")]
    NoDate,
    /// A critical subpacket of an unknown type.
    #[error("it has a critical part of the unknown type {0}")]
    UnknownCritical(u8),
}
