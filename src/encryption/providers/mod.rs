//! Key providers, which create keys, and find stored keys again.
//!
//! A provider creates a new key for each run that writes, together with metadata. The metadata is stored beside the encrypted text, and the
//! provider finds the key from it.

mod cloud;
mod external;
mod openbao;
mod pbkdf2;
pub(crate) mod program;
mod request;

use ::files::Environment;
use cloud::{Cloud, CloudProvider};
use cty::{Type, Value};
use schema::BlockSchema;
use serde::de::DeserializeOwned;

use crate::Programs;

/// Types of key providers.
pub(crate) const TYPES: &[&str] = &["aws_kms", "azure_vault", "external", "gcp_kms", "openbao", "pbkdf2"];

/// Reason why a provider has no key, as a clause.
#[derive(Debug)]
pub(crate) enum ProviderError {
    Configuration(String),
    /// Stored metadata that are invalid.
    Metadata(String),
    Failure(String),
}

impl std::fmt::Display for ProviderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (ProviderError::Configuration(text) | ProviderError::Metadata(text) | ProviderError::Failure(text)) = self;
        f.write_str(text.trim_end().trim_end_matches('.'))
    }
}

impl ProviderError {
    fn configuration(error: impl std::error::Error) -> ProviderError {
        ProviderError::Configuration(error.to_string())
    }

    fn failure(error: impl std::error::Error) -> ProviderError {
        ProviderError::Failure(error.to_string())
    }
}

/// Reason why an argument cannot be used, as a clause.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgumentError {
    #[error("\"{0}\" must be a list of numbers from 0 to 255")]
    NotBytes(String),
    #[error("\"{0}\" must be the output of a key provider: an object with \"encryption_key\"")]
    NotKeys(String),
}

/// Arguments of a block. The value has no marks and is wholly known.
pub(crate) struct Arguments(pub Value);

impl Arguments {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Returns a string argument; `None` if it is not set or empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    /// Returns a whole number; `None` if the argument is not set. A negative number, a fraction or a number above `u32` is an error.
    pub fn number(&self, name: &str) -> Result<Option<u32>, ProviderError> {
        let Some(number) = self.get(name).and_then(Value::as_number) else {
            return Ok(None);
        };
        let number = number.to_string();
        match number.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(ProviderError::Configuration(format!(
                "\"{name}\" must be a positive whole number, and is {number}"
            ))),
        }
    }

    /// Returns a list of strings; empty if the argument is not set.
    pub fn texts(&self, name: &str) -> Vec<String> {
        let items = self.get(name).and_then(Value::as_seq).unwrap_or_default();
        items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Returns a list of numbers as bytes; `None` if the argument is not set.
    pub fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>, ArgumentError> {
        self.get(name).map(|value| bytes(value, name)).transpose()
    }

    /// Returns the keys in an argument; `None` if it is not set. Its value is the output of a key provider, or an object of the same form.
    pub fn keys(&self, name: &str) -> Result<Option<Keys>, ArgumentError> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let part = |part: &str| value.get(part).filter(|value| !value.is_null());
        let Some(encryption) = part("encryption_key") else {
            return Err(ArgumentError::NotKeys(name.to_owned()));
        };
        Ok(Some(Keys {
            encryption: bytes(encryption, "encryption_key")?,
            decryption: part("decryption_key")
                .map(|value| bytes(value, "decryption_key"))
                .transpose()?,
        }))
    }
}

fn bytes(value: &Value, name: &str) -> Result<Vec<u8>, ArgumentError> {
    let invalid = || ArgumentError::NotBytes(name.to_owned());
    let items = value.as_seq().ok_or_else(invalid)?;
    let byte = |value: &Value| value.as_number()?.to_string().parse().ok();
    items.iter().map(|value| byte(value).ok_or_else(invalid)).collect()
}

/// Keys that a key provider has returned.
pub(crate) struct Keys {
    pub encryption: Vec<u8>,
    /// Key for decryption; `None` if there is nothing to decrypt.
    pub decryption: Option<Vec<u8>>,
}

impl Keys {
    /// Converts the keys to a value for expressions.
    pub fn to_value(&self) -> Value {
        let list = |bytes: &[u8]| {
            let numbers = bytes.iter().map(|byte| Value::number(i64::from(*byte)));
            Value::list(Type::Number, numbers.collect())
        };
        let none = || Value::null(Type::List(std::sync::Arc::new(Type::Number)));
        Value::object([
            ("encryption_key", list(&self.encryption)),
            ("decryption_key", self.decryption.as_deref().map_or_else(none, list)),
        ])
    }
}

/// A configured key provider.
pub(crate) trait Source {
    /// Creates a key. Returns it with its metadata, which is JSON.
    fn new_key(&self) -> Result<(Vec<u8>, Vec<u8>), ProviderError>;

    /// Finds the key that belongs to stored metadata.
    fn stored_key(&self, metadata: &[u8]) -> Result<Vec<u8>, ProviderError>;

    /// Length of the keys in bytes: 32, unless the configuration sets another one.
    fn key_length(&self) -> usize {
        32
    }
}

/// Type of a key provider.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyProvider {
    Cloud(Cloud),
    External,
    Openbao,
    Pbkdf2,
}

impl KeyProvider {
    pub fn of_type(ty: &str) -> Option<KeyProvider> {
        match ty {
            "external" => Some(KeyProvider::External),
            "openbao" => Some(KeyProvider::Openbao),
            "pbkdf2" => Some(KeyProvider::Pbkdf2),
            _ => Cloud::of_type(ty).map(KeyProvider::Cloud),
        }
    }

    pub fn schema(self) -> BlockSchema {
        match self {
            KeyProvider::Cloud(cloud) => cloud.schema(),
            KeyProvider::External => external::schema(),
            KeyProvider::Openbao => openbao::schema(),
            KeyProvider::Pbkdf2 => pbkdf2::schema(),
        }
    }

    pub fn build(
        self,
        arguments: &Arguments,
        environment: &Environment,
        programs: &Programs,
    ) -> Result<Box<dyn Source>, ProviderError> {
        Ok(match self {
            KeyProvider::Cloud(cloud) => Box::new(CloudProvider::new(cloud, arguments, programs)?),
            KeyProvider::External => Box::new(external::External::new(arguments)?),
            KeyProvider::Openbao => Box::new(openbao::Openbao::new(arguments, environment)?),
            KeyProvider::Pbkdf2 => Box::new(pbkdf2::Pbkdf2::new(arguments)?),
        })
    }
}

/// Parses stored metadata.
fn metadata<T: DeserializeOwned>(text: &[u8]) -> Result<T, ProviderError> {
    serde_json::from_slice(text).map_err(|e| ProviderError::Metadata(::files::json_reason(e)))
}

/// Writes metadata.
fn written(metadata: &impl serde::Serialize) -> Result<Vec<u8>, ProviderError> {
    serde_json::to_vec(metadata).map_err(|e| ProviderError::Failure(e.to_string()))
}

/// Serialization of bytes as base64 text.
mod base64_text {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = Option::<String>::deserialize(from)?.unwrap_or_default();
        STANDARD.decode(text).map_err(serde::de::Error::custom)
    }
}
