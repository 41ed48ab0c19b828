//! Errors of certificates and requests.

/// Reason why a certificate or a request cannot be read, as a sentence without its full stop.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum CertificateError {
    /// The text has no PEM block.
    #[error("failed to decode PEM of expected type {0:?}: there is no block")]
    NoPemBlock(&'static str),
    /// The first PEM block has another label.
    #[error("invalid PEM type - expected {expected:?}, got {found:?} (only the first block of a text is read)")]
    PemLabel { expected: &'static str, found: String },
    /// Bytes are left over after the end of the structure.
    #[error("failed to parse {0}: there is something after its end")]
    Trailing(&'static str),
    #[error("failed to parse {0}: it is malformed")]
    Malformed(&'static str),
    /// The basic constraints of a certificate cannot be read.
    #[error("failed to parse certificate: its basic constraints are malformed")]
    BasicConstraints,
    /// A string in a name cannot be read.
    #[error("a name holds a string (of type {0}) that is malformed, or not text at all")]
    NameString(u32),
    /// An extension in the request is malformed.
    #[error("it requests a malformed extension: {0}")]
    Extension(String),
    /// An IP address in the request has an invalid length.
    #[error("it requests an IP address of {0} bytes; one has 4 or 16")]
    IpAddress(usize),
    /// An alternative name in the request is malformed.
    #[error("it requests a malformed name")]
    AlternativeName,
    /// The public key is not a valid RSA key.
    #[error("the RSA key in it is malformed")]
    RsaKey,
    /// The curve of the public key is not supported.
    #[error("the curve of the key in it is not supported: use P-224, P-256, P-384 or P-521")]
    Curve,
    /// The point of the public key is malformed or compressed.
    #[error("the point of the ECDSA key in it is malformed, or compressed")]
    Point,
    /// The algorithm of the public key is not supported.
    #[error("the key in it is of an algorithm that is not supported: use RSA, ECDSA or ED25519")]
    Algorithm,
}
