//! Key provider `pbkdf2`: a key that is derived from a passphrase, or from the key of another provider.

use std::num::NonZeroU32;

use aws_lc_rs::{pbkdf2, rand};
use cty::Type;
use schema::BlockSchema;
use serde::{Deserialize, Serialize};

use super::{Arguments, Keys, ProviderError, Source, base64_text, metadata, written};
use crate::arguments::schema_of;

// The limits and defaults of OpenTofu, so that both programs accept the same configurations.
const MIN_PASSPHRASE: usize = 16;
const MIN_ITERATIONS: u32 = 200_000;

pub(super) fn schema() -> BlockSchema {
    schema_of(&[
        ("passphrase", Type::String, false),
        ("chain", Type::Dynamic, false),
        ("key_length", Type::Number, false),
        ("iterations", Type::Number, false),
        ("hash_function", Type::String, false),
        ("salt_length", Type::Number, false),
    ])
}

/// Parameters of a key derivation, as they are stored.
#[derive(Serialize, Deserialize)]
struct Parameters {
    #[serde(with = "base64_text")]
    salt: Vec<u8>,
    iterations: u32,
    hash_function: String,
    key_length: u32,
}

pub(super) struct Pbkdf2 {
    secret: Keys,
    key_length: u32,
    iterations: u32,
    hash_function: String,
    salt_length: u32,
}

impl Pbkdf2 {
    pub fn new(arguments: &Arguments) -> Result<Pbkdf2, ProviderError> {
        let refused = |why: String| Err(ProviderError::Configuration(why));
        let chain = arguments.keys("chain").map_err(ProviderError::configuration)?;
        let secret = match (arguments.text("passphrase"), chain) {
            (Some(_), Some(_)) => return refused("only one of passphrase and chain can be set".into()),
            (None, None) => return refused("neither passphrase nor chain is set".into()),
            (Some(text), None) => Keys {
                encryption: text.as_bytes().to_vec(),
                decryption: Some(text.as_bytes().to_vec()),
            },
            (None, Some(keys)) => keys,
        };
        let lengths = [Some(&secret.encryption), secret.decryption.as_ref()];
        if lengths.into_iter().flatten().any(|key| key.len() < MIN_PASSPHRASE) {
            return refused(format!("passphrase is too short (minimum {MIN_PASSPHRASE} characters)"));
        }
        let provider = Pbkdf2 {
            secret,
            key_length: arguments.number("key_length")?.unwrap_or(32),
            iterations: arguments.number("iterations")?.unwrap_or(600_000),
            hash_function: arguments.text("hash_function").unwrap_or("sha512").to_owned(),
            salt_length: arguments.number("salt_length")?.unwrap_or(32),
        };
        if provider.iterations < MIN_ITERATIONS {
            return refused(format!(
                "iterations must be at least {MIN_ITERATIONS}: a key from fewer is easy to guess"
            ));
        }
        if provider.key_length == 0 || provider.salt_length == 0 {
            return refused("the key and the salt must have at least one byte".into());
        }
        algorithm(&provider.hash_function).map_err(ProviderError::configuration)?;
        Ok(provider)
    }
}

/// Reason why no key can be derived, as a clause.
#[derive(Debug, thiserror::Error)]
enum DeriveError {
    #[error("invalid hash function name: {0}")]
    HashFunction(String),
    #[error("the number of iterations is zero")]
    NoIterations,
    #[error("the salt or the length of the key is missing")]
    Lengths,
}

fn algorithm(name: &str) -> Result<pbkdf2::Algorithm, DeriveError> {
    match name {
        "sha256" => Ok(pbkdf2::PBKDF2_HMAC_SHA256),
        "sha512" => Ok(pbkdf2::PBKDF2_HMAC_SHA512),
        other => Err(DeriveError::HashFunction(other.to_owned())),
    }
}

fn derive(secret: &[u8], parameters: &Parameters) -> Result<Vec<u8>, DeriveError> {
    // Limits for parameters from stored metadata, which is not authenticated and could demand endless work.
    const MAX_LENGTH: u32 = 1 << 20;
    let iterations = NonZeroU32::new(parameters.iterations).ok_or(DeriveError::NoIterations)?;
    if parameters.salt.is_empty() || parameters.key_length == 0 || parameters.key_length > MAX_LENGTH {
        return Err(DeriveError::Lengths);
    }
    let mut key = vec![0; parameters.key_length as usize];
    let algorithm = algorithm(&parameters.hash_function)?;
    pbkdf2::derive(algorithm, iterations, &parameters.salt, secret, &mut key);
    Ok(key)
}

impl Source for Pbkdf2 {
    fn new_key(&self) -> Result<(Vec<u8>, Vec<u8>), ProviderError> {
        // Each run has a new salt, so that no two runs use the same key.
        let mut salt = vec![0; self.salt_length as usize];
        rand::fill(&mut salt)
            .map_err(|_| ProviderError::Failure("the system has no random numbers for a salt".to_owned()))?;
        let parameters = Parameters {
            salt,
            iterations: self.iterations,
            hash_function: self.hash_function.clone(),
            key_length: self.key_length,
        };
        let key = derive(&self.secret.encryption, &parameters).map_err(ProviderError::failure)?;
        Ok((key, written(&parameters)?))
    }

    fn stored_key(&self, stored: &[u8]) -> Result<Vec<u8>, ProviderError> {
        let parameters: Parameters = metadata(stored)?;
        let Some(secret) = &self.secret.decryption else {
            return Err(ProviderError::Failure(
                "the chained key provider has no key for decryption".to_owned(),
            ));
        };
        derive(secret, &parameters).map_err(|e| ProviderError::Metadata(e.to_string()))
    }

    fn key_length(&self) -> usize {
        self.key_length as usize
    }
}
