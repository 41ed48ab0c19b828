//! Why a private key cannot be made, read, written or used.

use sec1::der::asn1::ObjectIdentifier;

/// Why a private key cannot be made, read, written or used. Each text is a sentence without its full stop.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    /// The system's generator of random numbers failed.
    #[error("the system provides no random bytes")]
    NoRandomBytes,
    /// The cryptographic library generated no key.
    #[error("the cryptographic library could not generate a key")]
    NotGenerated,
    /// An algorithm that no key is made with.
    #[error("the key algorithm {0:?} is not supported")]
    UnknownAlgorithm(String),
    /// A name that is no curve's.
    #[error("the ECDSA curve {0:?} is not supported")]
    UnknownCurveName(String),
    /// An RSA key would be insecure.
    #[error("an RSA key of {bits} bits is insecure: use {least} or more")]
    TooFewBits { bits: i64, least: i64 },
    /// An RSA key would take very long to make.
    #[error("generating an RSA key of {bits} bits would take hours: use {most} or less")]
    TooManyBits { bits: i64, most: i64 },
    /// An RSA key of this size cannot be made.
    #[error("generating an RSA key of {bits} bits failed: {source}")]
    RsaNotGenerated { bits: i64, source: rsa::Error },
    /// The text has no PEM block.
    #[error("failed to decode PEM block: there is none in the text")]
    NoPemBlock,
    /// The text has no PEM block where SSH's formats are read too.
    #[error("ssh: no key found")]
    NoSshKey,
    /// A key in OpenSSH's format where only the others are read.
    #[error(
        "unsupported PEM preamble/type: OPENSSH PRIVATE KEY; this argument takes the same key as PKCS#1, SEC 1 or PKCS#8"
    )]
    OpenSshFormat,
    /// The PEM block holds something else than a key.
    #[error("unsupported PEM preamble/type: {0}")]
    PemLabel(String),
    /// The PEM block holds something else than a key of SSH.
    #[error("ssh: unsupported key type {0:?}")]
    SshPemLabel(String),
    /// The PEM block cannot be read.
    #[error("failed to parse private key given PEM preamble '{label}': {source}")]
    PemBlock { label: String, source: Box<KeyError> },
    /// The PEM block is enciphered.
    #[error("it is protected with a passphrase; give it without one")]
    Encrypted,
    /// The DER is not what the format expects.
    #[error(transparent)]
    Der(#[from] sec1::der::Error),
    /// The PKCS#1 form cannot be read.
    #[error(transparent)]
    Pkcs1(#[from] rsa::pkcs1::Error),
    /// The PKCS#8 form cannot be read.
    #[error(transparent)]
    Pkcs8(#[from] rsa::pkcs8::Error),
    /// The algorithm's parameters cannot be read.
    #[error(transparent)]
    Parameters(#[from] rsa::pkcs8::spki::Error),
    /// A key of an algorithm that is not supported.
    #[error("keys of the algorithm {0} are not supported: use RSA, ECDSA or ED25519")]
    Algorithm(ObjectIdentifier),
    /// A key on a curve that is not supported.
    #[error("the curve {0} is not supported: use P-224, P-256, P-384 or P-521")]
    Curve(ObjectIdentifier),
    /// The curve is named neither in the key nor around it.
    #[error("the key does not name its curve")]
    NoCurve,
    /// The secret number of an ECDSA key is longer than those of its curve.
    #[error("the number of the ECDSA key is too large")]
    ScalarTooLarge,
    /// The secret number of an ECDSA key is not one of its curve.
    #[error("the number of the ECDSA key is not one of its curve")]
    ScalarOutOfRange,
    /// An Ed25519 key has another length than 32 bytes.
    #[error("the ED25519 key is malformed")]
    Ed25519,
    #[error("the key cannot sign")]
    CannotSign,
    /// The RSA key cannot sign.
    #[error("the key cannot sign: {0}")]
    RsaSignature(rsa::signature::Error),
    /// Numbers that every form of an RSA key needs cannot be computed.
    #[error("the primes of the key have no coefficient")]
    NoCoefficient,
    /// An RSA key of more than two primes.
    #[error("keys with more than two primes are not supported")]
    ManyPrimes,
    /// OpenSSH's format cannot be read.
    #[error("ssh: {0}")]
    OpenSsh(openssh::Error),
    /// OpenSSH's format has a passphrase.
    #[error("ssh: {}; give it without one (ssh-keygen -p)", openssh::Error::Encrypted)]
    OpenSshEncrypted,
    /// A curve that OpenSSH's format does not have.
    #[error("ssh: unhandled elliptic curve")]
    SshCurve,
    /// The public key beside a private one in OpenSSH's format belongs to another.
    #[error("ssh: the public key does not match the private key")]
    SshMismatch,
    /// A number of an RSA key in OpenSSH's format is larger than its modulus.
    #[error("ssh: a number of the RSA key is too large")]
    SshRsaTooLarge,
    /// The numbers of an RSA key in OpenSSH's format contradict each other.
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
