//! Key providers of cloud services, for the encryption of states and saved plans: `aws_kms`, `azure_vault` and `gcp_kms`.
//!
//! The core starts a process for each request, as for the key provider `external`. So only processes that use a key provider load its cloud
//! client and credentials. A request is a JSON document on standard input ([`Request`]). The answer on standard output is a line with the
//! protocol version, and a JSON document.
//!
//! The credentials come from the same places as for the backends of the same clouds, whose crates send the requests. The metadata in the
//! answers has the format of OpenTofu.

mod aws;
mod azure;
mod gcp;

use std::io::{Read as _, Write as _};
use std::process::ExitCode;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use monoform_sdk::cty::Type;
use monoform_sdk::{Cty, Diagnostics, Json as Document, Severity};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

/// First line of the output.
pub const HEADER: &str = "{\"magic\":\"Monoform-Key-Provider\",\"version\":1}";

/// Names of the key providers.
pub const NAMES: &[&str] = &["aws_kms", "azure_vault", "gcp_kms"];

/// Arguments of a block by name. Those that are not set are absent or null.
type Arguments = Map<String, Json>;

/// Request for a key.
#[derive(Deserialize)]
struct Request {
    arguments: Arguments,
    /// Metadata of an existing key, in base64; `None` for a new key.
    metadata: Option<String>,
}

/// A key with its metadata; the metadata is `None` for an existing key.
struct Key {
    key: Vec<u8>,
    metadata: Option<Vec<u8>>,
}

/// Reason why there is no key, as a clause for a message.
#[derive(Debug, thiserror::Error)]
enum KeyError {
    #[error("{0}")]
    Configuration(String),
    #[error("{0}")]
    Metadata(String),
    #[error("{0}")]
    Failure(String),
}

impl KeyError {
    fn kind(&self) -> &'static str {
        match self {
            KeyError::Configuration(_) => "configuration",
            KeyError::Metadata(_) => "metadata",
            KeyError::Failure(_) => "failure",
        }
    }

    fn configuration(problems: Diagnostics) -> KeyError {
        KeyError::Configuration(clause(&problems))
    }

    fn failure(problems: Diagnostics) -> KeyError {
        KeyError::Failure(clause(&problems))
    }

    fn missing(field: &str) -> KeyError {
        KeyError::Failure(format!("the answer of the service has no {field}"))
    }
}

/// Joins errors to a clause for a message.
fn clause(problems: &Diagnostics) -> String {
    let errors = problems.0.iter().filter(|d| d.severity == Severity::Error);
    let texts: Vec<String> = errors
        .map(|d| format!("{}: {}", d.summary, d.detail.trim_end_matches('.')))
        .collect();
    texts.join("; ")
}

/// Answers one request for a key of the key provider `name`.
#[must_use]
pub fn serve(name: &str) -> ExitCode {
    let mut text = Vec::new();
    let answer = match std::io::stdin().read_to_end(&mut text) {
        Ok(_) => answer(name, &text),
        Err(e) => Err(KeyError::Failure(format!("the request cannot be read: {e}"))),
    };
    let answer = match answer {
        Ok(Key { key, metadata }) => {
            json!({ "key": BASE64.encode(key), "metadata": metadata.map(|metadata| BASE64.encode(metadata)) })
        }
        Err(error) => json!({ "error": { "kind": error.kind(), "text": error.to_string() } }),
    };
    let mut out = std::io::stdout();
    let written = out
        .write_all(format!("{HEADER}\n{answer}").as_bytes())
        .and_then(|()| out.flush());
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn answer(name: &str, text: &[u8]) -> Result<Key, KeyError> {
    let request: Request =
        serde_json::from_slice(text).map_err(|e| KeyError::Failure(format!("the request is not valid: {e}")))?;
    let stored = request.metadata.map(|text| BASE64.decode(text)).transpose();
    let stored = stored.map_err(|e| KeyError::Metadata(e.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| KeyError::Failure(format!("the process cannot start its runtime: {e}")))?;
    let (arguments, stored) = (&request.arguments, stored.as_deref());
    runtime.block_on(async {
        match name {
            "aws_kms" => aws::key(arguments, stored).await,
            "azure_vault" => azure::key(arguments, stored).await,
            "gcp_kms" => gcp::key(arguments, stored).await,
            other => Err(KeyError::Configuration(format!("there is no key provider \"{other}\""))),
        }
    })
}

/// Reads the arguments that a key provider shares with a backend. Arguments in `other` are left out, because they have another meaning in
/// the backend.
fn of_backend<C: Cty>(arguments: &Arguments, other: &[&str]) -> Result<C, KeyError> {
    let shared = arguments.iter().filter(|(name, _)| !other.contains(&name.as_str()));
    let document = Json::Object(shared.map(|(name, value)| (name.clone(), value.clone())).collect());
    let ty = C::ty();
    let document = completed(document, &ty).to_string();
    let document = Document::parse(document.as_bytes()).map_err(|e| KeyError::Configuration(e.to_string()))?;
    let value = document
        .to_value(&ty)
        .map_err(|e| KeyError::Configuration(e.to_string()))?;
    C::from_cty(&value).map_err(|e| KeyError::Configuration(e.message))
}

/// Converts a document to an object of a type: missing attributes become null, and additional ones are dropped.
fn completed(document: Json, ty: &Type) -> Json {
    match (document, ty) {
        (Json::Object(mut members), Type::Object(object)) => {
            let attributes = object.attributes().iter();
            let attributes = attributes.map(|attribute| {
                let value = members.remove(&*attribute.name).unwrap_or_default();
                (attribute.name.to_string(), completed(value, &attribute.ty))
            });
            Json::Object(attributes.collect())
        }
        (other, _) => other,
    }
}

/// Returns the text of a required argument.
fn text<'a>(arguments: &'a Arguments, name: &str) -> Result<&'a str, KeyError> {
    let text = arguments
        .get(name)
        .and_then(Json::as_str)
        .filter(|text| !text.is_empty());
    text.ok_or_else(|| KeyError::Configuration(format!("{name} must be provided")))
}

/// Returns the argument `key_length`, which is in bytes, from 1 to `limit`.
fn key_length(arguments: &Arguments, limit: Option<u64>) -> Result<usize, KeyError> {
    let length = arguments
        .get("key_length")
        .and_then(Json::as_u64)
        .filter(|length| *length > 0);
    let refused = |why: String| Err(KeyError::Configuration(why));
    match (length, limit) {
        (None, _) => refused("key_length must be at least 1".to_owned()),
        (Some(length), Some(limit)) if length > limit => refused(format!("key_length must be at most {limit}")),
        (Some(length), _) => usize::try_from(length).or_else(|_| refused("key_length is too large".to_owned())),
    }
}

/// Makes a key of random bytes.
fn random(length: usize) -> Result<Vec<u8>, KeyError> {
    let mut key = vec![0; length];
    aws_lc_rs::rand::fill(&mut key)
        .map_err(|_| KeyError::Failure("the system has no random numbers for a key".to_owned()))?;
    Ok(key)
}

fn metadata<T: DeserializeOwned>(stored: &[u8]) -> Result<T, KeyError> {
    serde_json::from_slice(stored).map_err(|e| KeyError::Metadata(e.to_string()))
}

fn written(metadata: &impl Serialize) -> Result<Vec<u8>, KeyError> {
    serde_json::to_vec(metadata).map_err(|e| KeyError::Failure(e.to_string()))
}

/// Decodes the base64 text in a field of an answer.
fn decoded(answer: &Json, field: &str) -> Result<Vec<u8>, KeyError> {
    let text = answer[field].as_str().ok_or_else(|| KeyError::missing(field))?;
    BASE64.decode(text).map_err(|_| KeyError::missing(field))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &str) -> Arguments {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn arguments_of_the_backends_are_read_from_documents() {
        let given = arguments(
            r#"{"kms_key_id": "k", "region": "r", "max_retries": 3, "shared_config_files": ["a", "b"],
                "endpoints": {"iam": "i", "sts": null}, "assume_role": {"role_arn": "arn", "tags": {"a": "b"}}, "insecure": null}"#,
        );
        let config: state_s3::Config = of_backend(&given, &["kms_key_id"]).unwrap();
        assert!(config.kms_key_id.is_null() && config.insecure.is_null());
        assert_eq!((config.region.text(), config.max_retries.known()), ("r", Some(&3)));
        assert_eq!(config.shared_config_files.known().unwrap().0, ["a", "b"]);
        assert_eq!(config.endpoints.known().unwrap().iam.text(), "i");
        let role = config.assume_role.known().unwrap();
        assert_eq!((role.role_arn.text(), role.tags.known().unwrap().len()), ("arn", 1));
        assert!(role.policy.is_null());
    }

    #[test]
    fn wrong_arguments_are_named() {
        let error = |name: &str, given: &str| {
            let request = format!("{{\"arguments\":{given},\"metadata\":null}}");
            answer(name, request.as_bytes())
                .err()
                .map(|error| (error.kind(), error.to_string()))
                .unwrap_or_default()
        };
        let configuration = |text: &str| ("configuration", text.to_owned());
        assert_eq!(error("aws_kms", "{}"), configuration("kms_key_id must be provided"));
        assert_eq!(
            error("aws_kms", r#"{"kms_key_id":"k","key_spec":"AES_512"}"#),
            configuration("key_spec must be one of AES_256, AES_128, and not \"AES_512\"")
        );
        assert_eq!(
            error("gcp_kms", r#"{"kms_encryption_key":"k","key_length":1025}"#),
            configuration("key_length must be at most 1024")
        );
        assert_eq!(
            error(
                "gcp_kms",
                r#"{"kms_encryption_key":"k","key_length":32,"additional_authenticated_data":"?"}"#
            ),
            configuration("additional_authenticated_data must be valid standard base64")
        );
        let vault = r#"{"vault_uri":"https://a--b.vault.azure.net","vault_key_name":"k","key_length":32}"#;
        assert!(error("azure_vault", vault).1.contains("hyphens"));
        let symmetric =
            r#"{"vault_uri":"https://abc.vault.azure.net","vault_key_name":"k","key_length":32,"symmetric":true}"#;
        assert!(error("azure_vault", symmetric).1.contains("128, 192, or 256"));
    }
}
