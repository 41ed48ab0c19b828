//! Errors of private keys.

use sec1::der::asn1::ObjectIdentifier;

/// Error of generating, reading, writing or using a private key, as a sentence without its full stop.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    /// The random number generator of the system failed.
    #[error("the system provides no random bytes")]
    NoRandomBytes,
    #[error("the cryptographic library could not generate a key")]
    NotGenerated,
    #[error("the key algorithm {0:?} is not supported")]
    UnknownAlgorithm(String),
    #[error("the ECDSA curve {0:?} is not supported")]
    UnknownCurveName(String),
    /// An RSA key of this size would be insecure.
    #[error("an RSA key of {bits} bits is insecure: use {least} or more")]
    TooFewBits { bits: i64, least: i64 },
    /// Generating an RSA key of this size would take too long.
    #[error("generating an RSA key of {bits} bits would take hours: use {most} or less")]
    TooManyBits { bits: i64, most: i64 },
    /// An RSA key could not be generated.
    #[error("generating an RSA key of {bits} bits failed: {source}")]
    RsaNotGenerated { bits: i64, source: rsa::Error },
    /// The text has no PEM block.
    #[error("failed to decode PEM block: there is none in the text")]
    NoPemBlock,
    /// The text, which may be in OpenSSH format as well, has no PEM block.
    #[error("ssh: no key found")]
    NoSshKey,
    /// The key is in OpenSSH format, but the argument is for the other formats.
    #[error(
        "unsupported PEM preamble/type: OPENSSH PRIVATE KEY; this argument takes the same key as PKCS#1, SEC 1 or PKCS#8"
    )]
    OpenSshFormat,
    /// The PEM block is not a private key.
    #[error("unsupported PEM preamble/type: {0}")]
    PemLabel(String),
    /// The PEM block is neither a private key nor a key in OpenSSH format.
    #[error("ssh: unsupported key type {0:?}")]
    SshPemLabel(String),
    /// The content of the PEM block is invalid.
    #[error("failed to parse private key given PEM preamble '{label}': {source}")]
    PemBlock { label: String, source: Box<KeyError> },
    /// The PEM block is encrypted.
    #[error("it is protected with a passphrase; give it without one")]
    Encrypted,
    /// The DER is malformed.
    #[error(transparent)]
    Der(#[from] sec1::der::Error),
    /// The PKCS#1 structure is malformed.
    #[error(transparent)]
    Pkcs1(#[from] rsa::pkcs1::Error),
    /// The PKCS#8 structure is malformed.
    #[error(transparent)]
    Pkcs8(#[from] rsa::pkcs8::Error),
    /// The parameters of the algorithm are malformed.
    #[error(transparent)]
    Parameters(#[from] rsa::pkcs8::spki::Error),
    /// The algorithm of the key is not supported.
    #[error("keys of the algorithm {0} are not supported: use RSA, ECDSA or ED25519")]
    Algorithm(ObjectIdentifier),
    /// The curve of the key is not supported.
    #[error("the curve {0} is not supported: use P-224, P-256, P-384 or P-521")]
    Curve(ObjectIdentifier),
    /// Neither the key nor its container names the curve.
    #[error("the key does not name its curve")]
    NoCurve,
    /// The private scalar is longer than the curve allows.
    #[error("the number of the ECDSA key is too large")]
    ScalarTooLarge,
    /// The private scalar is out of the curve's range.
    #[error("the number of the ECDSA key is not one of its curve")]
    ScalarOutOfRange,
    /// The Ed25519 key does not have 32 bytes.
    #[error("the ED25519 key is malformed")]
    Ed25519,
    #[error("the key cannot sign")]
    CannotSign,
    /// The RSA key cannot sign.
    #[error("the key cannot sign: {0}")]
    RsaSignature(rsa::signature::Error),
    /// The CRT coefficient, which all formats of an RSA key contain, cannot be computed.
    #[error("the primes of the key have no coefficient")]
    NoCoefficient,
    /// The RSA key has more than two primes.
    #[error("keys with more than two primes are not supported")]
    ManyPrimes,
    /// The key in OpenSSH format is malformed.
    #[error("ssh: {0}")]
    OpenSsh(openssh::Error),
    /// The key in OpenSSH format has a passphrase.
    #[error("ssh: {}; give it without one (ssh-keygen -p)", openssh::Error::Encrypted)]
    OpenSshEncrypted,
    /// OpenSSH format does not support the curve.
    #[error("ssh: unhandled elliptic curve")]
    SshCurve,
    /// The public key in OpenSSH format does not belong to the private key.
    #[error("ssh: the public key does not match the private key")]
    SshMismatch,
    /// A number of an RSA key in OpenSSH format is larger than the modulus.
    #[error("ssh: a number of the RSA key is too large")]
    SshRsaTooLarge,
    /// The numbers of an RSA key in OpenSSH format contradict each other.
    #[error("ssh: the numbers of the RSA key do not fit together: {0}")]
    SshRsa(rsa::Error),
}

impl From<openssh::Error> for KeyError {
    fn from(error: openssh::Error) -> KeyError {
        match error {
            openssh::Error::Encrypted => KeyError::OpenSshEncrypted,
            other => KeyError::OpenSsh(other),
        }
    }
}
