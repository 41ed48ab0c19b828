//! Arguments of the backend, and defaults from the environment.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use monoform_sdk::schema::optional;
use monoform_sdk::schema::required;
use monoform_sdk::{Attr, Diagnostic, Diagnostics, Model, Result, env};
use store_client::arguments::text;
use store_client::profile::{self, UnreadableFile};
use store_client::sum::sha256_base64;
use store_client::{Answer, HttpClient, Retries, Settings as HttpSettings, Url};

use crate::credentials::{Credentials, OBJECTS, Source};

/// The arguments of the block.
#[derive(Clone, Default, Model)]
pub struct Config {
    /// The name of the bucket.
    #[member(required())]
    pub bucket: Attr<String>,
    /// The folder of the bucket in which the states are.
    #[member(optional())]
    pub prefix: Attr<String>,
    /// The key of a service account, or other credentials: JSON text, or the path of a JSON file.
    #[member(optional())]
    pub credentials: Attr<String>,
    /// An OAuth 2.0 access token.
    #[member(optional())]
    pub access_token: Attr<String>,
    /// The service account to impersonate for all requests.
    #[member(optional())]
    pub impersonate_service_account: Attr<String>,
    /// The chain of service accounts (delegates) through which the impersonation is granted.
    #[member(optional())]
    pub impersonate_service_account_delegates: Attr<Vec<Attr<String>>>,
    /// The customer-supplied encryption key of the states: 32 bytes in Base64, or the path of a file with them.
    #[member(optional())]
    pub encryption_key: Attr<String>,
    /// The resource name of the Cloud KMS key that encrypts the states.
    #[member(optional())]
    pub kms_encryption_key: Attr<String>,
    /// URL of the storage service, with the path of its JSON API.
    #[member(optional())]
    pub storage_custom_endpoint: Attr<String>,
}

/// Encryption of the objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Encryption {
    /// The default encryption of the bucket.
    Usual,
    /// Encryption with this Cloud KMS key.
    Kms(String),
    /// Encryption with a customer-supplied key: the key and its SHA-256, both in Base64.
    Customer(String, String),
}

/// Effective settings of the client.
pub(crate) struct Settings {
    pub bucket: String,
    /// Prefix of the objects: empty, or ending in a slash.
    pub prefix: String,
    pub encryption: Encryption,
    /// URL of the JSON API, such as `https://storage.googleapis.com/storage/v1/`.
    pub endpoint: Url,
    pub credentials: Credentials,
    pub http: HttpClient,
}

const SUMMARY: &str = "Invalid GCS backend configuration";

pub(crate) fn problem(attribute: &str, detail: impl Into<String>) -> Diagnostic {
    Diagnostic::error(SUMMARY, detail).at_attribute(attribute)
}

/// If the text is the path of a file, returns the content of the file, otherwise the text itself.
fn path_or_content(text: &str) -> std::result::Result<String, UnreadableFile> {
    let path = env::expand_home(text);
    // A text that cannot be a path, for example because of line breaks, has no metadata.
    if !path.metadata().is_ok_and(|found| found.is_file()) {
        return Ok(text.to_owned());
    }
    profile::text(&path)
}

/// Returns true if an answer calls for a retry.
fn again(answer: &Answer) -> bool {
    matches!(answer.status.as_u16(), 408 | 429 | 500 | 502..=504)
}

/// Creates the HTTP client for all services.
pub(crate) fn client() -> Result<HttpClient> {
    let http = HttpClient::new(HttpSettings {
        retries: Retries {
            max: 4,
            wait_min: Duration::from_secs(1),
            wait_max: Duration::from_secs(30),
            again,
        },
        ..HttpSettings::default()
    });
    Ok(http.map_err(|e| Diagnostic::error(SUMMARY, format!("Requests cannot be made: {e}.")))?)
}

impl Config {
    /// Returns the errors in the arguments that can be found without a request.
    pub(crate) fn problems(&self) -> Diagnostics {
        let mut found = Diagnostics::new();
        if self.bucket.as_str() == Some("") {
            found.push(problem("bucket", "The name of the bucket must not be empty."));
        }
        // As arguments, even empty values conflict. An environment variable counts only if it is not empty.
        let both_here = self.encryption_key.known().is_some() && self.kms_encryption_key.known().is_some();
        let key = text(&self.encryption_key, &["GOOGLE_ENCRYPTION_KEY"]);
        let kms = text(&self.kms_encryption_key, &["GOOGLE_KMS_ENCRYPTION_KEY"]);
        if both_here || key.is_some() && kms.is_some() {
            let detail = "can't set both encryption_key and kms_encryption_key: a state is encrypted with one of them (the \
                          variables GOOGLE_ENCRYPTION_KEY and GOOGLE_KMS_ENCRYPTION_KEY count, too).";
            found.push(problem("encryption_key", detail));
        }
        if let Some(delegates) = self.impersonate_service_account_delegates.known()
            && delegates.iter().any(Attr::is_null)
        {
            let attribute = "impersonate_service_account_delegates";
            found.push(problem(attribute, format!("{attribute} elements must not be null.")));
        }
        found
    }

    /// Returns the effective settings from the arguments and the environment.
    pub(crate) fn settings(&self) -> Result<Settings> {
        // Normalized as in Terraform, so that both programs use the same objects.
        let prefix = self.prefix.text().trim_start_matches('/');
        let prefix = match prefix {
            "" => String::new(),
            prefix if prefix.ends_with('/') => prefix.to_owned(),
            prefix => format!("{prefix}/"),
        };
        let variable = env::first(&["GOOGLE_BACKEND_CREDENTIALS", "GOOGLE_CREDENTIALS"]);
        let source = self.source(variable, env::var("STORAGE_EMULATOR_HOST"))?;
        Ok(Settings {
            bucket: self.bucket.text().to_owned(),
            prefix,
            encryption: self.encryption()?,
            endpoint: self.endpoint(&source)?,
            credentials: self.credentials(source, OBJECTS),
            http: client()?,
        })
    }

    /// Returns the credentials of a source, or those of the service account that is impersonated with it.
    pub(crate) fn credentials(&self, source: Source, scope: &'static str) -> Credentials {
        let impersonate = text(
            &self.impersonate_service_account,
            &[
                "GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT",
                "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT",
            ],
        );
        Credentials::new(source, impersonate, self.delegates(), scope)
    }

    fn delegates(&self) -> Vec<String> {
        let delegates = self.impersonate_service_account_delegates.known();
        delegates
            .into_iter()
            .flatten()
            .filter_map(|d| d.known().cloned())
            .collect()
    }

    /// Returns the source of credentials. `variable` is used if there is no argument. `emulator` is set for an emulator, which needs no
    /// credentials.
    pub(crate) fn source(&self, variable: Option<String>, emulator: Option<String>) -> Result<Source> {
        if let Some(token) = text(&self.access_token, &["GOOGLE_OAUTH_ACCESS_TOKEN"]) {
            return Ok(Source::Token(token));
        }
        let given = match self.credentials.text() {
            "" => variable,
            text => Some(text.to_owned()),
        };
        let Some(given) = given else {
            // As in Google's clients, an emulator is used without credentials.
            return Ok(match emulator {
                Some(_) => Source::Nobody,
                None => Source::Default,
            });
        };
        let content =
            path_or_content(&given).map_err(|e| problem("credentials", format!("Error loading credentials: {e}.")))?;
        let json = serde_json::from_str(&content).map_err(|_| {
            let detail = "The credentials are neither JSON nor the path of a file with JSON. Set the argument (or the variable \
                          GOOGLE_BACKEND_CREDENTIALS or GOOGLE_CREDENTIALS) to the JSON text of a key, or to the path of its \
                          file, as \"gcloud iam service-accounts keys create\" makes it.";
            problem("credentials", detail)
        })?;
        Ok(Source::Json(json))
    }

    fn encryption(&self) -> Result<Encryption> {
        if let Some(given) = text(&self.encryption_key, &["GOOGLE_ENCRYPTION_KEY"]) {
            let attribute = "encryption_key";
            let key = path_or_content(&given)
                .map_err(|e| problem(attribute, format!("Error loading encryption key: {e}.")))?;
            // Key files usually end with a line break.
            let key = BASE64.decode(key.trim_end()).map_err(|e| {
                problem(
                    attribute,
                    format!("Error decoding encryption key: it is no Base64: {e}."),
                )
            })?;
            if key.len() != 32 {
                let detail = format!("The encryption key must have 32 bytes, and has {}.", key.len());
                return Err(problem(attribute, detail).into());
            }
            return Ok(Encryption::Customer(BASE64.encode(&key), sha256_base64(&key)));
        }
        let kms = text(&self.kms_encryption_key, &["GOOGLE_KMS_ENCRYPTION_KEY"]);
        Ok(kms.map_or(Encryption::Usual, Encryption::Kms))
    }

    fn endpoint(&self, source: &Source) -> Result<Url> {
        let attribute = "storage_custom_endpoint";
        let custom = text(
            &self.storage_custom_endpoint,
            &[
                "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT",
                "GOOGLE_STORAGE_CUSTOM_ENDPOINT",
            ],
        );
        let custom = custom.or_else(|| {
            let host = env::var("STORAGE_EMULATOR_HOST")?;
            let host = host.trim_end_matches('/');
            Some(match host.contains("://") {
                true => format!("{host}/storage/v1/"),
                false => format!("http://{host}/storage/v1/"),
            })
        });
        let address = custom.unwrap_or_else(|| format!("https://storage.{}/storage/v1/", source.universe()));
        // Without a slash at the end, joining a path would replace the last segment of the URL.
        let complete = match address.ends_with('/') {
            true => address.clone(),
            false => format!("{address}/"),
        };
        let url = Url::parse(&complete).map_err(|e| {
            problem(
                attribute,
                format!("{attribute} is not an address that can be understood ({address:?}): {e}."),
            )
        })?;
        match url.scheme() {
            "http" | "https" => Ok(url),
            _ => Err(problem(
                attribute,
                format!("{attribute} must begin with http:// or https://, as in \"https://storage.googleapis.com/storage/v1/\"."),
            )
            .into()),
        }
    }
}
