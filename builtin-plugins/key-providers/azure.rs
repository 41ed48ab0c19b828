//! Key provider `azure_vault`: random keys, encrypted with a key in Azure Key Vault.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use state_azurerm::Vault;

use crate::{Arguments, Key, KeyError, key_length, metadata, of_backend, random, text, written};

/// Metadata of a key. Bytes are in base64. They are null if the algorithm does not use them.
#[derive(Serialize, Deserialize)]
struct Stored {
    ciphertext: Option<String>,
    iv: Option<String>,
    authentication_tag: Option<String>,
    additional_authenticated_data: Option<String>,
    /// Version of the vault key that has encrypted the key.
    key_version: String,
    algo: String,
}

pub(crate) async fn key(arguments: &Arguments, stored: Option<&[u8]>) -> Result<Key, KeyError> {
    let name = text(arguments, "vault_key_name")?;
    let address = text(arguments, "vault_uri")?;
    let algorithm = algorithm(arguments)?;
    check_names(name, address)
        .map_err(|why| KeyError::Configuration(format!("vault_uri or vault_key_name is not valid: {why}")))?;
    let length = key_length(arguments, None)?;
    let config: state_azurerm::Config = of_backend(arguments, &[])?;
    let vault = Vault::connect(&config, address)
        .await
        .map_err(KeyError::configuration)?;
    let Some(stored) = stored else {
        let key = random(length)?;
        let body = json!({"alg": algorithm, "value": URL_SAFE_NO_PAD.encode(&key)});
        let what = format!("Encrypting a key with {name:?}");
        let answer = vault
            .call(name, "", "encrypt", &body, &what)
            .await
            .map_err(KeyError::failure)?;
        let id = answer["kid"].as_str().ok_or_else(|| KeyError::missing("kid"))?;
        let stored = Stored {
            ciphertext: Some(stored_bytes(&answer, "value")?.ok_or_else(|| KeyError::missing("value"))?),
            iv: stored_bytes(&answer, "iv")?,
            authentication_tag: stored_bytes(&answer, "tag")?,
            additional_authenticated_data: stored_bytes(&answer, "aad")?,
            // The identifier is https://VAULT/keys/NAME/VERSION.
            key_version: id
                .trim_end_matches('/')
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .to_owned(),
            algo: algorithm.to_owned(),
        };
        return Ok(Key {
            key,
            metadata: Some(written(&stored)?),
        });
    };
    let stored: Stored = metadata(stored)?;
    let ciphertext = stored.ciphertext.filter(|text| !text.is_empty());
    let ciphertext = ciphertext.ok_or_else(|| KeyError::Metadata("there is no ciphertext".to_owned()))?;
    let algorithm = if stored.algo.is_empty() {
        algorithm
    } else {
        &stored.algo
    };
    let mut body = json!({"alg": algorithm, "value": sent_bytes(&ciphertext)?});
    for (field, bytes) in [
        ("iv", stored.iv),
        ("tag", stored.authentication_tag),
        ("aad", stored.additional_authenticated_data),
    ] {
        if let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) {
            body[field] = sent_bytes(&bytes)?.into();
        }
    }
    let what = format!("Decrypting the key with {name:?}");
    let answer = vault.call(name, &stored.key_version, "decrypt", &body, &what).await;
    let answer = answer.map_err(KeyError::failure)?;
    let key = answer["value"]
        .as_str()
        .and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    Ok(Key {
        key: key.ok_or_else(|| KeyError::missing("value"))?,
        metadata: None,
    })
}

fn algorithm(arguments: &Arguments) -> Result<&'static str, KeyError> {
    if arguments.get("symmetric").and_then(Json::as_bool) != Some(true) {
        return Ok("RSA-OAEP-256");
    }
    match arguments.get("symmetric_key_size").and_then(Json::as_u64) {
        Some(128) => Ok("A128GCM"),
        Some(192) => Ok("A192GCM"),
        Some(256) => Ok("A256GCM"),
        _ => Err(KeyError::Configuration(
            "with symmetric = true, symmetric_key_size must be 128, 192, or 256".to_owned(),
        )),
    }
}

/// Converts bytes in an answer (URL-safe base64) to the form of the metadata.
fn stored_bytes(answer: &Json, field: &str) -> Result<Option<String>, KeyError> {
    let bytes = answer[field]
        .as_str()
        .map(|text| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')));
    let bytes = bytes.transpose().map_err(|_| KeyError::missing(field))?;
    Ok(bytes.map(|bytes| BASE64.encode(bytes)))
}

/// Converts bytes of the metadata to the form of a request (URL-safe base64).
fn sent_bytes(text: &str) -> Result<String, KeyError> {
    let bytes = BASE64.decode(text).map_err(|e| KeyError::Metadata(e.to_string()))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Reason why Azure does not allow a name, as a clause for a message.
#[derive(Debug, thiserror::Error)]
enum NameError {
    #[error("Azure requires a key name of 1 to 127 letters, numbers, or hyphens")]
    Key,
    #[error("Azure requires a vault name of 3 to 24 letters, numbers, and hyphens, which begins with a letter")]
    Vault,
    #[error("hyphens in a vault name must not follow each other")]
    Hyphens,
}

/// Checks the names of a key and of a vault, since both become parts of URLs.
fn check_names(key: &str, address: &str) -> Result<(), NameError> {
    let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if !is_name(key) || !(1..=127).contains(&key.len()) {
        return Err(NameError::Key);
    }
    let host = address.split_once("://").map_or(address, |(_, rest)| rest);
    let vault = host.split(['/', ':', '.']).next().unwrap_or_default();
    let begins = vault.starts_with(|c: char| c.is_ascii_alphabetic());
    if !is_name(vault) || !begins || vault.ends_with('-') || !(3..=24).contains(&vault.len()) {
        return Err(NameError::Vault);
    }
    match vault.contains("--") {
        true => Err(NameError::Hyphens),
        false => Ok(()),
    }
}
