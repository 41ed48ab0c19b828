//! Key provider `aws_kms`: data keys of AWS KMS.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::json;
use state_s3::Kms;

use crate::{Arguments, Key, KeyError, decoded, metadata, of_backend, text, written};

const SPECS: &[&str] = &["AES_256", "AES_128"];

/// Metadata of a key.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// The data key as KMS has encrypted it, in base64.
    ciphertext_blob: Option<String>,
    /// Encryption context of the data key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    encryption_context: BTreeMap<String, String>,
}

pub(crate) async fn key(arguments: &Arguments, stored: Option<&[u8]>) -> Result<Key, KeyError> {
    let id = text(arguments, "kms_key_id")?;
    let spec = text(arguments, "key_spec")?;
    if !SPECS.contains(&spec) {
        let why = format!("key_spec must be one of {}, and not {spec:?}", SPECS.join(", "));
        return Err(KeyError::Configuration(why));
    }
    let context = arguments.get("encryption_context").and_then(|value| value.as_object());
    let context: BTreeMap<String, String> = context
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect();
    let mut config: state_s3::Config = of_backend(arguments, &["kms_key_id"])?;
    // As in OpenTofu, the region is not checked: the key provider has no argument that would disable the check for new regions and
    // compatible services.
    config.skip_region_validation = true.into();
    let kms = Kms::connect(&config).await.map_err(KeyError::configuration)?;
    let Some(stored) = stored else {
        let mut body = json!({"KeyId": id, "KeySpec": spec});
        if !context.is_empty() {
            body["EncryptionContext"] = json!(context);
        }
        let what = format!("Generating a data key with the key {id:?}");
        let answer = kms
            .call("GenerateDataKey", &body, &what)
            .await
            .map_err(KeyError::failure)?;
        let stored = Stored {
            ciphertext_blob: Some(BASE64.encode(decoded(&answer, "CiphertextBlob")?)),
            encryption_context: context,
        };
        return Ok(Key {
            key: decoded(&answer, "Plaintext")?,
            metadata: Some(written(&stored)?),
        });
    };
    let stored: Stored = metadata(stored)?;
    let blob = stored.ciphertext_blob.filter(|blob| !blob.is_empty());
    let blob = blob.ok_or_else(|| KeyError::Metadata("there is no ciphertext_blob".to_owned()))?;
    let mut body = json!({"KeyId": id, "CiphertextBlob": blob});
    // The stored context is used, so that changing the configured context does not prevent decryption.
    if !stored.encryption_context.is_empty() {
        body["EncryptionContext"] = json!(stored.encryption_context);
    }
    let what = format!("Decrypting the data key with the key {id:?}");
    let answer = kms.call("Decrypt", &body, &what).await.map_err(KeyError::failure)?;
    Ok(Key {
        key: decoded(&answer, "Plaintext")?,
        metadata: None,
    })
}
