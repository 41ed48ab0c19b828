//! Key provider `gcp_kms`: random keys, encrypted by Google Cloud KMS.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::json;
use state_gcs::Kms;

use crate::{Arguments, Key, KeyError, decoded, key_length, metadata, of_backend, random, text, written};

/// Maximum length of a key in bytes.
const LARGEST_KEY: u64 = 1024;

/// Maximum length of the additional authenticated data in bytes, which is a limit of the service.
const LARGEST_DATA: usize = 64 * 1024;

/// Metadata of a key.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// The key as the service has encrypted it, in base64.
    ciphertext: Option<String>,
}

pub(crate) async fn key(arguments: &Arguments, stored: Option<&[u8]>) -> Result<Key, KeyError> {
    let name = text(arguments, "kms_encryption_key")?;
    let length = key_length(arguments, Some(LARGEST_KEY))?;
    let data = arguments
        .get("additional_authenticated_data")
        .and_then(|value| value.as_str());
    let data = data.filter(|text| !text.is_empty());
    if let Some(text) = data {
        let refused = |why: &str| KeyError::Configuration(format!("additional_authenticated_data must be {why}"));
        let bytes = BASE64.decode(text).map_err(|_| refused("valid standard base64"))?;
        if bytes.len() > LARGEST_DATA {
            return Err(refused("at most 64 KiB"));
        }
    }
    // The backend has an argument of the same name with another meaning: a key for the objects of a bucket.
    let config: state_gcs::Config = of_backend(arguments, &["kms_encryption_key"])?;
    let kms = Kms::new(&config).map_err(KeyError::configuration)?;
    let Some(stored) = stored else {
        let key = random(length)?;
        let mut body = json!({"plaintext": BASE64.encode(&key)});
        if let Some(data) = data {
            body["additionalAuthenticatedData"] = data.into();
        }
        let what = format!("Encrypting a key with {name:?}");
        let answer = kms
            .call(name, "encrypt", &body, &what)
            .await
            .map_err(KeyError::failure)?;
        let stored = Stored {
            ciphertext: Some(BASE64.encode(decoded(&answer, "ciphertext")?)),
        };
        return Ok(Key {
            key,
            metadata: Some(written(&stored)?),
        });
    };
    let stored: Stored = metadata(stored)?;
    let ciphertext = stored.ciphertext.filter(|text| !text.is_empty());
    let ciphertext = ciphertext.ok_or_else(|| KeyError::Metadata("there is no ciphertext".to_owned()))?;
    let mut body = json!({"ciphertext": ciphertext});
    // The metadata does not contain the additional data, so the configuration must have it for decryption, too.
    if let Some(data) = data {
        body["additionalAuthenticatedData"] = data.into();
    }
    let what = format!("Decrypting the key with {name:?}");
    let answer = kms
        .call(name, "decrypt", &body, &what)
        .await
        .map_err(KeyError::failure)?;
    Ok(Key {
        key: decoded(&answer, "plaintext")?,
        metadata: None,
    })
}
