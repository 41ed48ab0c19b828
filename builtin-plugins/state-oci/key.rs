//! Private keys in PEM, encrypted or not.

use aws_lc_rs::cipher::{AES_128, AES_192, AES_256, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey};
use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::KeyPair as _;
use pem::Pem;
use pkcs8::EncryptedPrivateKeyInfoRef;
use store_client::oauth::{self, PrivateKey};
use store_client::sum::md5;

/// Reason why a private key cannot be used, as a part of a sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("the private key cannot be read as PEM text: {0}")]
    Pem(#[from] pem::PemError),
    #[error("there is no private key in the PEM text")]
    NoKey,
    #[error(
        "the private key has a password: set private_key_password (or pass_phrase in the profile of the configuration file)"
    )]
    NoPassword,
    #[error("the private key cannot be decrypted: {0} (is its password right?)")]
    Encrypted(pkcs8::Error),
    #[error(
        "the private key is encrypted with {0}, which is not supported. Convert it: openssl pkcs8 -topk8 -v2 aes256 -in KEY -out NEW"
    )]
    Cipher(String),
    #[error("the header DEK-Info of the private key has no first block")]
    NoFirstBlock,
    #[error("the private key cannot be decrypted: its password is wrong, or the text is damaged")]
    WrongPassword,
    #[error("a key cannot be made")]
    NotMade,
    #[error(transparent)]
    Unusable(#[from] oauth::KeyError),
}

/// Reads the first private key of a PEM text.
pub(crate) fn read(text: &str, password: Option<&str>) -> Result<PrivateKey, KeyError> {
    // In environment variables and one-line arguments, line breaks are often written as `\n`.
    let text = text.replace("\\n", "\n");
    let blocks = pem::parse_many(&text)?;
    let block = blocks.iter().find(|block| block.tag().ends_with("PRIVATE KEY"));
    let block = block.ok_or(KeyError::NoKey)?;
    let is_old = block.headers().get("DEK-Info").is_some();
    if !is_old && block.tag() != "ENCRYPTED PRIVATE KEY" {
        return Ok(PrivateKey::from_pem(&pem::encode(block))?);
    }
    let password = password
        .filter(|password| !password.is_empty())
        .ok_or(KeyError::NoPassword)?;
    if is_old {
        return decrypted(block, password);
    }
    let info = EncryptedPrivateKeyInfoRef::try_from(block.contents()).map_err(KeyError::Encrypted)?;
    let document = info.decrypt(password.as_bytes()).map_err(KeyError::Encrypted)?;
    Ok(PrivateKey::from_pkcs8(document.as_bytes().to_vec()))
}

/// Decrypts a key in OpenSSL's traditional format. The header `DEK-Info` has the cipher and the IV, and the key of the cipher is derived
/// from the password with MD5.
fn decrypted(block: &Pem, password: &str) -> Result<PrivateKey, KeyError> {
    let info = block.headers().get("DEK-Info").unwrap_or_default();
    let (algorithm, start) = info.split_once(',').unwrap_or((info, ""));
    let (cipher, length) = match algorithm.trim() {
        "AES-128-CBC" => (&AES_128, 16),
        "AES-192-CBC" => (&AES_192, 24),
        "AES-256-CBC" => (&AES_256, 32),
        other => return Err(KeyError::Cipher(other.to_owned())),
    };
    let start = start.trim();
    let bytes = |at: usize| {
        start
            .get(2 * at..2 * at + 2)
            .and_then(|two| u8::from_str_radix(two, 16).ok())
    };
    let start: Option<Vec<u8>> = (0..16).map(bytes).collect();
    let start: [u8; 16] = start
        .and_then(|start| start.try_into().ok())
        .ok_or(KeyError::NoFirstBlock)?;
    // OpenSSL's EVP_BytesToKey, whose salt is the first eight bytes of the IV.
    let salt = &start[..8];
    let mut key: Vec<u8> = Vec::new();
    let mut last: Vec<u8> = Vec::new();
    while key.len() < length {
        last = md5(&[last.as_slice(), password.as_bytes(), salt].concat());
        key.extend(&last);
    }
    key.truncate(length);
    let key = UnboundCipherKey::new(cipher, &key).and_then(PaddedBlockDecryptingKey::cbc_pkcs7);
    let mut content = block.contents().to_vec();
    let plain = key
        .and_then(|key| {
            Ok(key
                .decrypt(&mut content, DecryptionContext::Iv128((&start).into()))?
                .to_vec())
        })
        .map_err(|_| KeyError::WrongPassword)?;
    Ok(PrivateKey::from_pem(&pem::encode(&Pem::new("RSA PRIVATE KEY", plain)))?)
}

/// Generates a key. Returns it with its public part in DER.
pub(crate) fn fresh() -> Result<(PrivateKey, Vec<u8>), KeyError> {
    let failed = |_| KeyError::NotMade;
    let pair = aws_lc_rs::rsa::KeyPair::generate(KeySize::Rsa2048).map_err(failed)?;
    let private: Pkcs8V1Der<'_> = pair.as_der().map_err(failed)?;
    let public: PublicKeyX509Der<'_> = pair.public_key().as_der().map_err(failed)?;
    Ok((
        PrivateKey::from_pkcs8(private.as_ref().to_vec()),
        public.as_ref().to_vec(),
    ))
}

/// Returns the SHA-1 of a certificate as pairs of hexadecimal digits, by which Oracle identifies certificates.
pub(crate) fn fingerprint(certificate: &[u8]) -> String {
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    context.update(certificate);
    let pairs: Vec<String> = context
        .finish()
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    pairs.join(":")
}
