//! Key providers `aws_kms`, `azure_vault` and `gcp_kms`: keys from the key services of cloud providers.
//!
//! A separate process of this executable answers each request, so that the core contains neither the clients nor the authentication methods
//! of cloud providers. This module has the arguments, and the protocol between the processes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cty::Type;
use cty::types::{ObjectAttribute, ObjectType};
use schema::{BlockSchema, NestedBlock, Nesting};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;

use super::program::{self, Header};
use super::{Arguments, ProviderError, Source};
use crate::Programs;
use crate::arguments::schema_of;

const HEADER: Header = Header {
    magic: "Monoform-Key-Provider",
    what: "the key provider",
    // The time includes several requests to log in, each of which may be repeated if the service is busy.
    limit: Duration::from_secs(300),
};

/// Cloud provider whose key service has the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cloud {
    Aws,
    Azure,
    Gcp,
}

impl Cloud {
    pub fn of_type(ty: &str) -> Option<Cloud> {
        match ty {
            "aws_kms" => Some(Cloud::Aws),
            "azure_vault" => Some(Cloud::Azure),
            "gcp_kms" => Some(Cloud::Gcp),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Cloud::Aws => "aws_kms",
            Cloud::Azure => "azure_vault",
            Cloud::Gcp => "gcp_kms",
        }
    }

    pub fn schema(self) -> BlockSchema {
        match self {
            Cloud::Aws => aws(),
            Cloud::Azure => azure(),
            Cloud::Gcp => gcp(),
        }
    }
}

fn texts() -> Type {
    Type::list(Type::String)
}

/// Builds an object type with optional attributes.
fn optional_object(attributes: &[(&str, Type)]) -> Type {
    let attributes = attributes.iter().map(|(name, ty)| ObjectAttribute {
        name: (*name).into(),
        ty: ty.clone(),
        optional: true,
    });
    Type::Object(Arc::new(ObjectType::new(attributes)))
}

fn aws() -> BlockSchema {
    let role = [
        ("role_arn", Type::String),
        ("duration", Type::String),
        ("policy", Type::String),
        ("policy_arns", texts()),
        ("session_name", Type::String),
    ];
    let mut assumed = role.to_vec();
    assumed.extend([
        ("external_id", Type::String),
        ("tags", Type::map(Type::String)),
        ("transitive_tag_keys", texts()),
    ]);
    let mut with_token = role.to_vec();
    with_token.extend([
        ("web_identity_token", Type::String),
        ("web_identity_token_file", Type::String),
    ]);
    let mut schema = schema_of(&[
        ("kms_key_id", Type::String, true),
        ("key_spec", Type::String, true),
        ("encryption_context", Type::map(Type::String), false),
        ("access_key", Type::String, false),
        ("max_retries", Type::Number, false),
        ("profile", Type::String, false),
        ("region", Type::String, false),
        ("secret_key", Type::String, false),
        ("skip_credentials_validation", Type::Bool, false),
        ("skip_requesting_account_id", Type::Bool, false),
        ("sts_region", Type::String, false),
        ("token", Type::String, false),
        ("http_proxy", Type::String, false),
        ("https_proxy", Type::String, false),
        ("no_proxy", Type::String, false),
        ("insecure", Type::Bool, false),
        ("use_dualstack_endpoint", Type::Bool, false),
        ("use_fips_endpoint", Type::Bool, false),
        ("custom_ca_bundle", Type::String, false),
        ("ec2_metadata_service_endpoint", Type::String, false),
        ("ec2_metadata_service_endpoint_mode", Type::String, false),
        ("skip_metadata_api_check", Type::Bool, false),
        ("shared_credentials_files", texts(), false),
        ("shared_config_files", texts(), false),
        ("assume_role", optional_object(&assumed), false),
        ("assume_role_with_web_identity", optional_object(&with_token), false),
        ("allowed_account_ids", texts(), false),
        ("forbidden_account_ids", texts(), false),
        ("retry_mode", Type::String, false),
    ]);
    let endpoints = NestedBlock {
        block: schema_of(&[("iam", Type::String, false), ("sts", Type::String, false)]),
        nesting: Nesting::Single,
        min_items: 0,
        max_items: 1,
    };
    schema.blocks.insert("endpoints".into(), endpoints);
    schema
}

fn azure() -> BlockSchema {
    schema_of(&[
        ("vault_uri", Type::String, true),
        ("vault_key_name", Type::String, true),
        ("key_length", Type::Number, true),
        ("symmetric", Type::Bool, false),
        ("symmetric_key_size", Type::Number, false),
        ("use_cli", Type::Bool, false),
        ("client_id", Type::String, false),
        ("client_id_file_path", Type::String, false),
        ("client_secret", Type::String, false),
        ("client_secret_file_path", Type::String, false),
        ("client_certificate", Type::String, false),
        ("client_certificate_password", Type::String, false),
        ("client_certificate_path", Type::String, false),
        ("use_oidc", Type::Bool, false),
        ("oidc_token", Type::String, false),
        ("oidc_token_file_path", Type::String, false),
        ("oidc_request_url", Type::String, false),
        ("oidc_request_token", Type::String, false),
        ("use_msi", Type::Bool, false),
        ("msi_endpoint", Type::String, false),
        ("use_aks_workload_identity", Type::Bool, false),
        ("metadata_host", Type::String, false),
        ("environment", Type::String, false),
        ("subscription_id", Type::String, false),
        ("tenant_id", Type::String, false),
    ])
}

fn gcp() -> BlockSchema {
    schema_of(&[
        ("kms_encryption_key", Type::String, true),
        ("key_length", Type::Number, true),
        ("additional_authenticated_data", Type::String, false),
        ("credentials", Type::String, false),
        ("access_token", Type::String, false),
        ("impersonate_service_account", Type::String, false),
        ("impersonate_service_account_delegates", texts(), false),
    ])
}

/// A configured key provider of a cloud provider.
pub(crate) struct CloudProvider {
    command: Vec<String>,
    arguments: Json,
    key_length: usize,
}

#[derive(Deserialize)]
struct Answer {
    key: Option<String>,
    metadata: Option<String>,
    error: Option<AnswerError>,
}

#[derive(Deserialize)]
struct AnswerError {
    kind: String,
    text: String,
}

/// Reason why the answer of the process cannot be used, as a clause.
#[derive(Debug, thiserror::Error)]
enum AnswerFault {
    #[error("the answer of the key provider is not valid: {0}")]
    NotRead(#[from] serde_json::Error),
    #[error("the answer of the key provider is not valid: {0}")]
    NotBase64(#[from] base64::DecodeError),
    #[error("the key provider answered without {0}")]
    Missing(&'static str),
}

impl CloudProvider {
    pub fn new(cloud: Cloud, arguments: &Arguments, programs: &Programs) -> Result<CloudProvider, ProviderError> {
        let mut command = programs.key_providers.clone();
        command.push(cloud.name().to_owned());
        let key_length = match cloud {
            Cloud::Aws if arguments.text("key_spec") == Some("AES_128") => 16,
            Cloud::Aws => 32,
            Cloud::Azure | Cloud::Gcp => arguments.number("key_length")?.unwrap_or(32) as usize,
        };
        Ok(CloudProvider {
            command,
            arguments: cty::json::to_simple_json(&arguments.0)
                .map_err(|error| ProviderError::Configuration(error.to_string()))?,
            key_length,
        })
    }

    fn ask(&self, metadata: Option<&[u8]>) -> Result<(Vec<u8>, Option<Vec<u8>>), ProviderError> {
        let stored = metadata.map(|metadata| STANDARD.encode(metadata));
        // The request contains secrets, so it is sent through the standard input: other users can read the arguments of a process.
        let request = json!({ "arguments": self.arguments, "metadata": stored }).to_string();
        let output = program::run(&self.command, request.as_bytes(), &HEADER).map_err(ProviderError::failure)?;
        let answer: Answer =
            serde_json::from_slice(&output).map_err(|e| ProviderError::failure(AnswerFault::from(e)))?;
        if let Some(AnswerError { kind, text }) = answer.error {
            return Err(match kind.as_str() {
                "configuration" => ProviderError::Configuration(text),
                "metadata" => ProviderError::Metadata(text),
                _ => ProviderError::Failure(text),
            });
        }
        let decoded = |text: String| {
            STANDARD
                .decode(text)
                .map_err(|e| ProviderError::failure(AnswerFault::from(e)))
        };
        let key = answer
            .key
            .ok_or_else(|| ProviderError::failure(AnswerFault::Missing("a key")))?;
        Ok((decoded(key)?, answer.metadata.map(decoded).transpose()?))
    }
}

impl Source for CloudProvider {
    fn new_key(&self) -> Result<(Vec<u8>, Vec<u8>), ProviderError> {
        let (key, metadata) = self.ask(None)?;
        let metadata = metadata.ok_or_else(|| ProviderError::failure(AnswerFault::Missing("metadata")))?;
        Ok((key, metadata))
    }

    fn stored_key(&self, metadata: &[u8]) -> Result<Vec<u8>, ProviderError> {
        self.ask(Some(metadata)).map(|(key, _)| key)
    }

    fn key_length(&self) -> usize {
        self.key_length
    }
}
