//! Key provider `external`: keys from a program of the user.

use cty::Type;
use schema::BlockSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::program::{self, Header};
use super::{Arguments, ProviderError, Source, base64_text};
use crate::arguments::schema_of;

const HEADER: Header = Header {
    magic: "OpenTofu-External-Key-Provider",
    what: "the external key provider",
    limit: program::LIMIT,
};

pub(super) fn schema() -> BlockSchema {
    schema_of(&[("command", Type::List(Arc::new(Type::String)), true)])
}

/// Metadata that the program produces and later reads.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    external_data: BTreeMap<String, Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Output {
    keys: OutputKeys,
    meta: Option<Metadata>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutputKeys {
    #[serde(with = "base64_text")]
    encryption_key: Vec<u8>,
    #[serde(default, with = "base64_text")]
    decryption_key: Vec<u8>,
}

pub(super) struct External {
    command: Vec<String>,
}

impl External {
    pub fn new(arguments: &Arguments) -> Result<External, ProviderError> {
        let command = arguments.texts("command");
        if command.first().is_none_or(String::is_empty) {
            return Err(ProviderError::Configuration(
                "the command option is required".to_owned(),
            ));
        }
        Ok(External { command })
    }

    fn run(&self, input: &[u8]) -> Result<Output, ProviderError> {
        let output = program::run(&self.command, input, &HEADER).map_err(ProviderError::failure)?;
        serde_json::from_slice(&output).map_err(|e| {
            ProviderError::Failure(format!(
                "the external command returned an invalid JSON response ({})",
                ::files::json_reason(e)
            ))
        })
    }
}

impl Source for External {
    fn new_key(&self) -> Result<(Vec<u8>, Vec<u8>), ProviderError> {
        // In the protocol, a request for a new key is null in place of metadata.
        let output = self.run(b"null")?;
        let metadata = output.meta.unwrap_or(Metadata {
            external_data: BTreeMap::new(),
        });
        Ok((output.keys.encryption_key, super::written(&metadata)?))
    }

    fn stored_key(&self, stored: &[u8]) -> Result<Vec<u8>, ProviderError> {
        let metadata: Metadata = super::metadata(stored)?;
        let key = self.run(&super::written(&metadata)?)?.keys.decryption_key;
        match key.is_empty() {
            true => Err(ProviderError::Failure(
                "the external command returned no decryption key for the stored metadata".to_owned(),
            )),
            false => Ok(key),
        }
    }
}
