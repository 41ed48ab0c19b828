//! Methods, which encrypt and decrypt texts with keys.

use std::sync::Arc;

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cty::Type;
use schema::BlockSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::schema_of;
use crate::providers::program::{self, Header};
use crate::providers::{ArgumentError, Arguments, Keys};

pub(crate) const UNENCRYPTED: &str = "unencrypted";
pub(crate) const TYPES: &[&str] = &["aes_gcm", "external", UNENCRYPTED];

const HEADER: Header = Header {
    magic: "OpenTofu-External-Encryption-Method",
    what: "the external encryption method",
    limit: program::LIMIT,
};
const TAG: usize = 16;

/// Returns the schema of the arguments of a method type; `None` if there is no such type.
pub(crate) fn schema(ty: &str) -> Option<BlockSchema> {
    let texts = || Type::List(Arc::new(Type::String));
    match ty {
        "aes_gcm" => Some(schema_of(&[
            ("keys", Type::Dynamic, true),
            ("aad", Type::Dynamic, false),
        ])),
        "external" => Some(schema_of(&[
            ("keys", Type::Dynamic, false),
            ("encrypt_command", texts(), true),
            ("decrypt_command", texts(), true),
        ])),
        UNENCRYPTED => Some(schema_of(&[])),
        _ => None,
    }
}

pub(crate) enum Method {
    AesGcm {
        keys: Keys,
        /// Additional authenticated data. It is not stored, and must be the same for decryption.
        aad: Vec<u8>,
    },
    External {
        keys: Option<Keys>,
        encrypt: Vec<String>,
        decrypt: Vec<String>,
    },
    Unencrypted,
}

/// Reason why a text cannot be encrypted or decrypted, as a clause.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Failed(pub String);

/// Reason why a method cannot be configured, as a clause.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MethodError {
    #[error("the argument \"keys\" is null")]
    NoKeys,
    #[error("AES-GCM requires the key length to be one of: 16, 24, 32, received {length} bytes in the {which} key")]
    KeyLength { which: &'static str, length: usize },
    #[error("the {0} option is required")]
    NoCommand(&'static str),
    #[error(transparent)]
    Argument(#[from] ArgumentError),
}

#[derive(Serialize)]
struct Input {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    payload: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Output {
    payload: String,
}

impl Method {
    /// Builds the encryption method of type `ty` from the arguments of its block. The caller has checked that the type exists: any other
    /// type builds [`Method::Unencrypted`].
    pub fn build(ty: &str, arguments: &Arguments) -> Result<Method, MethodError> {
        match ty {
            "aes_gcm" => {
                let keys = arguments.keys("keys")?.ok_or(MethodError::NoKeys)?;
                let both = [
                    ("encryption", Some(&keys.encryption)),
                    ("decryption", keys.decryption.as_ref()),
                ];
                for (which, key) in both {
                    if let Some(key) = key.filter(|key| !matches!(key.len(), 16 | 24 | 32)) {
                        return Err(MethodError::KeyLength {
                            which,
                            length: key.len(),
                        });
                    }
                }
                Ok(Method::AesGcm {
                    keys,
                    aad: arguments.bytes("aad")?.unwrap_or_default(),
                })
            }
            "external" => {
                let command = |name: &'static str| {
                    let command = arguments.texts(name);
                    match command.first().is_none_or(String::is_empty) {
                        true => Err(MethodError::NoCommand(name)),
                        false => Ok(command),
                    }
                };
                Ok(Method::External {
                    keys: arguments.keys("keys")?,
                    encrypt: command("encrypt_command")?,
                    decrypt: command("decrypt_command")?,
                })
            }
            _ => Ok(Method::Unencrypted),
        }
    }

    pub fn encrypt(&self, text: Vec<u8>) -> Result<Vec<u8>, Failed> {
        match self {
            Method::Unencrypted => Ok(text),
            Method::AesGcm { keys, aad } => {
                let key = aes_key(&keys.encryption)?;
                let mut nonce = [0; aead::NONCE_LEN];
                rand::fill(&mut nonce).map_err(|_| Failed("the system has no random numbers".to_owned()))?;
                let mut data = text;
                data.reserve(TAG);
                key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(aad), &mut data)
                    .map_err(|_| Failed("the text cannot be encrypted".to_owned()))?;
                // As in OpenTofu, the nonce comes first, then the encrypted text with its tag.
                let mut out = Vec::with_capacity(nonce.len() + data.len());
                out.extend_from_slice(&nonce);
                out.append(&mut data);
                Ok(out)
            }
            Method::External { keys, encrypt, .. } => {
                exchange(encrypt, keys.as_ref().map(|keys| &*keys.encryption), &text)
            }
        }
    }

    pub fn decrypt(&self, data: &[u8]) -> Result<Vec<u8>, Failed> {
        let unavailable = || Failed("there is no decryption key for it".to_owned());
        match self {
            Method::Unencrypted => Ok(data.to_vec()),
            Method::AesGcm { keys, aad } => {
                let key = aes_key(keys.decryption.as_deref().ok_or_else(unavailable)?)?;
                let Some((nonce, sealed)) = data.split_first_chunk::<{ aead::NONCE_LEN }>() else {
                    return Err(Failed(
                        "cannot decrypt data because it is too small (likely data corruption)".to_owned(),
                    ));
                };
                let mut text = sealed.to_vec();
                let nonce = Nonce::assume_unique_for_key(*nonce);
                let length = key
                    .open_in_place(nonce, Aad::from(aad), &mut text)
                    .map_err(|_| Failed("message authentication failed".to_owned()))?
                    .len();
                text.truncate(length);
                Ok(text)
            }
            Method::External { keys, decrypt, .. } => {
                let key = match keys {
                    Some(keys) => Some(keys.decryption.as_deref().ok_or_else(unavailable)?),
                    None => None,
                };
                exchange(decrypt, key, data)
            }
        }
    }
}

fn aes_key(bytes: &[u8]) -> Result<LessSafeKey, Failed> {
    let algorithm = match bytes.len() {
        16 => &aead::AES_128_GCM,
        24 => &aead::AES_192_GCM,
        _ => &aead::AES_256_GCM,
    };
    let key = UnboundKey::new(algorithm, bytes).map_err(|_| Failed("the key has no valid length".to_owned()))?;
    Ok(LessSafeKey::new(key))
}

/// Runs a program that encrypts or decrypts data.
fn exchange(command: &[String], key: Option<&[u8]>, payload: &[u8]) -> Result<Vec<u8>, Failed> {
    let input = Input {
        key: key.map(|key| STANDARD.encode(key)),
        payload: STANDARD.encode(payload),
    };
    let input = serde_json::to_vec(&input).map_err(|e| Failed(e.to_string()))?;
    // A separate process for each text, because the protocol allows one request, and the end of the input marks its end.
    let output = program::run(command, &input, &HEADER).map_err(|e| Failed(e.to_string()))?;
    let invalid = |why: String| {
        Failed(format!(
            "the external command returned an invalid JSON response ({why})"
        ))
    };
    let output: Output = serde_json::from_slice(&output).map_err(|e| invalid(::files::json_reason(e)))?;
    STANDARD.decode(output.payload).map_err(|e| invalid(e.to_string()))
}
