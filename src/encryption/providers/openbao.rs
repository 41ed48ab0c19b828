//! Key provider `openbao`: data keys from the transit engine of OpenBao or HashiCorp Vault.

use ::files::Environment;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cty::Type;
use http::{Bytes, HeaderMap, HeaderValue, Transport, Url};
use schema::BlockSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::request::{PostError, Trust, post, transport};
use super::{Arguments, ProviderError, Source, base64_text, metadata, written};
use crate::arguments::schema_of;

pub(super) fn schema() -> BlockSchema {
    schema_of(&[
        ("address", Type::String, false),
        ("token", Type::String, false),
        ("key_name", Type::String, true),
        ("key_length", Type::Number, false),
        ("transit_engine_path", Type::String, false),
        ("associated_data", Type::String, false),
    ])
}

#[derive(Serialize, Deserialize)]
struct Stored {
    /// The data key, encrypted by the server.
    #[serde(with = "base64_text")]
    ciphertext: Vec<u8>,
}

pub(super) struct Openbao {
    transport: Transport,
    /// URL of the transit engine.
    base: Url,
    headers: HeaderMap,
    key_name: String,
    key_length: u32,
    /// Data that the server authenticates together with a key, in base64.
    associated_data: Option<String>,
}

/// Reason why the server has returned no key, as a clause.
#[derive(Debug, thiserror::Error)]
enum ServerError {
    #[error(transparent)]
    Post(#[from] PostError),
    #[error("the server answers with status {status}{errors}")]
    Status {
        status: u16,
        /// Error messages of the server, after a colon; or empty.
        errors: String,
    },
    #[error("the answer of the server has no \"{0}\"")]
    Missing(&'static str),
    #[error("the \"plaintext\" in the answer of the server is not base64: {0}")]
    NotBase64(#[from] base64::DecodeError),
}

impl Openbao {
    pub fn new(arguments: &Arguments, environment: &Environment) -> Result<Openbao, ProviderError> {
        let refused = ProviderError::Configuration;
        // As in OpenBao's client library, the variables of Vault are supported, too.
        let variable = |name: &str| {
            let named = |prefix: &str| environment.get(&format!("{prefix}_{name}")).filter(|v| !v.is_empty());
            named("BAO").or_else(|| named("VAULT"))
        };
        let key_name = arguments
            .text("key_name")
            .ok_or_else(|| refused("key_name is not set".into()))?;
        let key_length = arguments.number("key_length")?.unwrap_or(32);
        if !matches!(key_length, 16 | 32 | 64) {
            return Err(refused(format!(
                "key_length must be 16, 32 or 64 bytes, and is {key_length}"
            )));
        }
        let associated_data = arguments.text("associated_data");
        if associated_data.is_some_and(|text| STANDARD.decode(text).is_err()) {
            return Err(refused("associated data is not valid base64".into()));
        }
        let address = arguments.text("address").or_else(|| variable("ADDR"));
        let address = address.unwrap_or("https://127.0.0.1:8200");
        let path = arguments.text("transit_engine_path").unwrap_or("/transit");
        let url = format!("{}/v1/{}/", address.trim_end_matches('/'), path.trim_matches('/'));
        let base = Url::parse(&url).map_err(|e| refused(format!("\"{address}\" is not an address: {e}")))?;
        let mut headers = HeaderMap::new();
        let mut header = |name: &'static str, value: &str| -> Result<(), ProviderError> {
            let value = HeaderValue::from_str(value.trim());
            let mut value = value.map_err(|_| refused(format!("the value for {name} has invalid characters")))?;
            // Sensitive headers are not printed in debug logs.
            value.set_sensitive(true);
            headers.insert(name, value);
            Ok(())
        };
        // OpenBao's client library sends this header, and an agent in front of the server may refuse requests without it.
        header("x-vault-request", "true")?;
        if let Some(token) = arguments.text("token").or_else(|| variable("TOKEN")) {
            header("x-vault-token", token)?;
        }
        if let Some(namespace) = variable("NAMESPACE") {
            header("x-vault-namespace", namespace)?;
        }
        let insecure = variable("SKIP_VERIFY").is_some_and(|v| matches!(v, "1" | "t" | "T" | "true" | "TRUE" | "True"));
        let trust = match (insecure, variable("CACERT")) {
            (true, _) => Trust::Any,
            (false, None) => Trust::System,
            (false, Some(path)) => Trust::Pem(std::fs::read_to_string(path).map_err(|e| {
                refused(format!(
                    "the certificates in \"{path}\" cannot be read: {}",
                    ::files::io_reason(&e)
                ))
            })?),
        };
        Ok(Openbao {
            transport: transport(environment, &trust).map_err(ProviderError::configuration)?,
            base,
            headers,
            key_name: key_name.to_owned(),
            key_length,
            associated_data: associated_data.map(str::to_owned),
        })
    }

    /// Sends a request about the key. Returns the field `data` of the answer.
    fn request(&self, action: &[&str], mut body: Json) -> Result<Json, ServerError> {
        // Only sent if it is configured, because servers before OpenBao 2 and Vault 1.9 do not support it.
        if let Some(data) = &self.associated_data {
            body["associated_data"] = data.clone().into();
        }
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            // Path segments are escaped when they are added, so a slash in the name of the key does not change the path.
            path.pop_if_empty().extend(action).push(&self.key_name);
        }
        let answer = post(&self.transport, &url, &self.headers, &Bytes::from(body.to_string()))?;
        if answer.status / 100 == 2 {
            return Ok(answer.body["data"].clone());
        }
        let errors = answer.body["errors"].as_array().into_iter().flatten();
        let errors: Vec<&str> = errors.filter_map(Json::as_str).map(str::trim).collect();
        Err(ServerError::Status {
            status: answer.status,
            errors: match errors.is_empty() {
                true => String::new(),
                false => format!(": {}", errors.join("; ")),
            },
        })
    }
}

fn plaintext(data: &Json) -> Result<Vec<u8>, ServerError> {
    let text = data["plaintext"].as_str().ok_or(ServerError::Missing("plaintext"))?;
    Ok(STANDARD.decode(text)?)
}

impl Source for Openbao {
    fn new_key(&self) -> Result<(Vec<u8>, Vec<u8>), ProviderError> {
        let failed = |why: ServerError| {
            ProviderError::Failure(format!(
                "the server made no data key (check its address, the token, and the name of the key): {why}"
            ))
        };
        let data = self
            .request(&["datakey", "plaintext"], json!({ "bits": self.key_length * 8 }))
            .map_err(failed)?;
        let key = plaintext(&data).map_err(failed)?;
        let ciphertext = data["ciphertext"].as_str();
        let ciphertext = ciphertext.ok_or_else(|| failed(ServerError::Missing("ciphertext")))?;
        // OpenTofu stores the server's text as bytes, so that it is encoded as base64 in the metadata. This program must do the same.
        let stored = Stored {
            ciphertext: ciphertext.as_bytes().to_vec(),
        };
        Ok((key, written(&stored)?))
    }

    fn stored_key(&self, stored: &[u8]) -> Result<Vec<u8>, ProviderError> {
        let stored: Stored = metadata(stored)?;
        let ciphertext = String::from_utf8(stored.ciphertext)
            .map_err(|_| ProviderError::Metadata("the stored key is not text".to_owned()))?;
        let body = json!({ "ciphertext": ciphertext });
        let data = self.request(&["decrypt"], body);
        data.and_then(|data| plaintext(&data)).map_err(|why| {
            ProviderError::Failure(format!(
                "the server did not decrypt the stored key (check its address, the token, and the name of the key): {why}"
            ))
        })
    }

    fn key_length(&self) -> usize {
        self.key_length as usize
    }
}
