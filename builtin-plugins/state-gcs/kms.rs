//! Requests to Cloud KMS, with the same credential arguments as the backend.

use monoform_sdk::{Diagnostic, Diagnostics, Result, env};
use serde_json::Value as Json;
use store_client::name::encoded_path;
use store_client::{Answer, HeaderMap, HeaderValue, HttpClient, Method, Url};

use crate::config::{self, Config};
use crate::credentials::Credentials;

/// OAuth scope of tokens for keys.
const KEYS: &str = "https://www.googleapis.com/auth/cloudkms";
const SUMMARY: &str = "Error making a request to Cloud KMS";

/// Client for Cloud KMS.
pub struct Kms {
    http: HttpClient,
    credentials: Credentials,
    /// URL of the service, ending in a slash.
    address: String,
}

impl Kms {
    /// Creates a client. Arguments about the bucket are ignored.
    ///
    /// # Errors
    /// The credentials cannot be read.
    pub fn new(config: &Config) -> Result<Kms> {
        // GOOGLE_BACKEND_CREDENTIALS is not used, because it may contain credentials of another project.
        let source = config.source(env::var("GOOGLE_CREDENTIALS"), None)?;
        Ok(Kms {
            http: config::client()?,
            address: format!("https://cloudkms.{}/v1/", source.universe()),
            credentials: config.credentials(source, KEYS),
        })
    }

    /// Sends a request about a key. `key` is its resource name.
    ///
    /// # Errors
    /// There are no credentials, there was no answer, or the answer is an error.
    pub async fn call(&self, key: &str, operation: &str, body: &Json, what: &str) -> Result<Json> {
        let address = format!("{}{}:{operation}", self.address, encoded_path(key.trim_matches('/')));
        let url = Url::parse(&address)
            .map_err(|e| Diagnostic::error(SUMMARY, format!("{address:?} is not an address: {e}.")))?;
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        self.credentials.sign(&self.http, &mut headers).await?;
        let sent = self
            .http
            .send(Method::POST, &url, headers, Some(body.to_string().into_bytes()));
        let answer = sent.await.map_err(|failure| failure.diagnostic(SUMMARY, what))?;
        match answer.status.is_success() {
            true => Ok(serde_json::from_slice(&answer.body).unwrap_or_default()),
            false => Err(self.problem(what, &answer)),
        }
    }

    fn problem(&self, what: &str, answer: &Answer) -> Diagnostics {
        let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
        let part = |name: &str| json["error"][name].as_str().unwrap_or_default();
        let advice = match answer.status.as_u16() {
            401 => format!("The credentials are not accepted: {}.", self.credentials.origin()),
            403 => format!(
                "The identity needs the role Cloud KMS CryptoKey Encrypter/Decrypter on the key \
                 (roles/cloudkms.cryptoKeyEncrypterDecrypter). Its credentials are {}.",
                self.credentials.origin()
            ),
            404 => "Correct kms_encryption_key, or create the key.".to_owned(),
            400 => {
                "What was encrypted with another key, or with other additional data, cannot be decrypted.".to_owned()
            }
            _ => String::new(),
        };
        Diagnostic::error(SUMMARY, answer.describe(what, part("status"), part("message"), &advice)).into()
    }
}
