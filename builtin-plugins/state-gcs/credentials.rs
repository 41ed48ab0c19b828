//! Credentials: access tokens from the first source that is configured.

use std::path::PathBuf;
use std::time::Duration;

use monoform_sdk::{Result, env};
use serde_json::{Value as Json, json};
use store_client::oauth::{self, PrivateKey, Token, TokenCache, send_form, signed_statement, token_in};
use store_client::{
    HeaderMap, HeaderValue, HttpClient, Method, Proxy, Retries, Settings as HttpSettings, io_reason, json_reason,
};

use crate::federation;
use crate::impersonation::{EVERYTHING, address, impersonated, problem};

/// OAuth scope of tokens for objects.
pub(crate) const OBJECTS: &str = "https://www.googleapis.com/auth/devstorage.read_write";
const TOKENS: &str = "https://oauth2.googleapis.com/token";
const GOOGLE: &str = "googleapis.com";

/// Sources of credentials.
#[derive(Clone)]
pub(crate) enum Source {
    /// An access token.
    Token(String),
    /// Content of a credentials file.
    Json(Json),
    /// Application default credentials, or else the service account of the machine.
    Default,
    /// No credentials, for an emulator.
    Nobody,
}

impl Source {
    /// Returns the domain of the cloud that the credentials belong to.
    pub fn universe(&self) -> &str {
        match self {
            Source::Json(json) => json["universe_domain"].as_str().unwrap_or(GOOGLE),
            _ => GOOGLE,
        }
    }
}

/// Credentials for Google Cloud APIs: their source, the service account to impersonate, if any, and the cached access token.
pub(crate) struct Credentials {
    source: Source,
    impersonate: Option<String>,
    delegates: Vec<String>,
    scope: &'static str,
    token: TokenCache,
}

/// Returns the path of the application default credentials: from GOOGLE_APPLICATION_CREDENTIALS, even if the file is missing, or else that
/// of gcloud's file if it exists.
fn default_file() -> Option<PathBuf> {
    if let Some(path) = env::var("GOOGLE_APPLICATION_CREDENTIALS") {
        return Some(path.into());
    }
    let folder = match env::var("CLOUDSDK_CONFIG") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env::home()?).join(".config/gcloud"),
    };
    Some(folder.join("application_default_credentials.json")).filter(|path| path.exists())
}

fn default_json(path: &PathBuf) -> Result<Json> {
    let failed = |why: String| {
        problem(format!(
            "The application default credentials in {} cannot be used: {why}.",
            path.display()
        ))
    };
    let text = std::fs::read(path).map_err(|e| failed(io_reason(&e)))?;
    serde_json::from_slice(&text).map_err(|e| failed(format!("they are no JSON: {}", json_reason(e))))
}

impl Credentials {
    pub fn new(
        source: Source,
        impersonate: Option<String>,
        delegates: Vec<String>,
        scope: &'static str,
    ) -> Credentials {
        Credentials {
            source,
            impersonate,
            delegates,
            scope,
            token: TokenCache::default(),
        }
    }

    /// Describes the source for messages.
    pub fn origin(&self) -> String {
        let base = match &self.source {
            Source::Token(_) => {
                "the access token that was given (access_token or GOOGLE_OAUTH_ACCESS_TOKEN)".to_owned()
            }
            Source::Json(json) => match json["client_email"].as_str() {
                Some(account) => format!("those of the service account {account}"),
                None => {
                    "those that were given (credentials, GOOGLE_BACKEND_CREDENTIALS or GOOGLE_CREDENTIALS)".to_owned()
                }
            },
            Source::Default => match default_file() {
                Some(path) => format!("the application default credentials in {}", path.display()),
                None => "those of the machine".to_owned(),
            },
            Source::Nobody => "none, because STORAGE_EMULATOR_HOST is set".to_owned(),
        };
        match &self.impersonate {
            Some(account) => format!("{base}, in the place of {account}"),
            None => base,
        }
    }

    /// Adds the authorization to the headers of a request.
    pub async fn sign(&self, http: &HttpClient, headers: &mut HeaderMap) -> Result<()> {
        if matches!(self.source, Source::Nobody) && self.impersonate.is_none() {
            return Ok(());
        }
        let token = self.token.get(self.find(http)).await?;
        let value = token.bearer().ok_or_else(|| {
            problem(format!(
                "The access token has characters that HTTP headers cannot have: {}.",
                self.origin()
            ))
        })?;
        headers.insert("authorization", value);
        if let Some(project) = self.quota_project()
            && let Ok(project) = HeaderValue::from_str(&project)
        {
            headers.insert("x-goog-user-project", project);
        }
        Ok(())
    }

    /// Returns the project to be charged for requests, if the environment or the credentials name one.
    fn quota_project(&self) -> Option<String> {
        let of = |json: &Json| json["quota_project_id"].as_str().map(str::to_owned);
        match &self.source {
            Source::Json(json) => env::var("GOOGLE_CLOUD_QUOTA_PROJECT").or_else(|| of(json)),
            Source::Default => env::var("GOOGLE_CLOUD_QUOTA_PROJECT")
                .or_else(|| default_json(&default_file()?).ok().as_ref().and_then(of)),
            Source::Token(_) | Source::Nobody => None,
        }
    }

    async fn find(&self, http: &HttpClient) -> Result<Token> {
        let Some(account) = &self.impersonate else {
            return self.base(http, self.scope).await;
        };
        let base = self.base(http, EVERYTHING).await?;
        let host = format!("iamcredentials.{}", self.source.universe());
        let address = format!("https://{host}/v1/projects/-/serviceAccounts/{account}:generateAccessToken");
        impersonated(http, &base, &address, &self.delegates, self.scope).await
    }

    /// Requests a token for the source itself, without impersonation.
    async fn base(&self, http: &HttpClient, scope: &str) -> Result<Token> {
        match &self.source {
            Source::Token(token) => Ok(Token::without_expiry(token.clone())),
            Source::Json(json) => of_json(http, json, scope).await,
            Source::Default => match default_file() {
                Some(path) => of_json(http, &default_json(&path)?, scope).await,
                None => of_machine(scope).await,
            },
            Source::Nobody => Ok(Token::without_expiry("")),
        }
    }
}

/// Requests a token for the content of a credentials file.
async fn of_json(http: &HttpClient, json: &Json, scope: &str) -> Result<Token> {
    match json["type"].as_str().unwrap_or_default() {
        "impersonated_service_account" => {
            // The first token authorizes the request for the second one, for which the requested scope is not enough.
            let base = of_plain_json(http, &json["source_credentials"], EVERYTHING).await?;
            let address = json["service_account_impersonation_url"].as_str().unwrap_or_default();
            let delegates = json["delegates"].as_array().into_iter().flatten();
            let delegates: Vec<String> = delegates.filter_map(|d| d.as_str().map(str::to_owned)).collect();
            impersonated(http, &base, address, &delegates, scope).await
        }
        _ => of_plain_json(http, json, scope).await,
    }
}

/// Requests a token for credentials that do not contain other credentials.
async fn of_plain_json(http: &HttpClient, json: &Json, scope: &str) -> Result<Token> {
    let text = |name: &str| json[name].as_str().unwrap_or_default();
    let given = |name: &str, usual: &str| match text(name) {
        "" => usual.to_owned(),
        text => text.to_owned(),
    };
    match text("type") {
        "service_account" => {
            let address = given("token_uri", TOKENS);
            let account = text("client_email");
            let now = oauth::now();
            // Google accepts assertions that are valid for at most an hour.
            let claims = json!({"iss": account, "scope": scope, "aud": address, "iat": now, "exp": now + 3600});
            let header = [("kid", text("private_key_id"))];
            let assertion = PrivateKey::from_pem(text("private_key"))
                .and_then(|key| signed_statement(&header, &claims, &key))
                .map_err(|why| {
                    problem(format!(
                        "The key of the service account {account} cannot be used: {why}."
                    ))
                })?;
            let form = [
                ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                ("assertion", assertion.as_str()),
            ];
            exchange(http, &address, &form, &format!("the service account {account}")).await
        }
        kind @ ("authorized_user" | "external_account_authorized_user") => {
            let form = [
                ("grant_type", "refresh_token"),
                ("client_id", text("client_id")),
                ("client_secret", text("client_secret")),
                ("refresh_token", text("refresh_token")),
            ];
            let (address, who) = match kind {
                "authorized_user" => (
                    given("token_uri", TOKENS),
                    "the user that is logged in; log in again with \"gcloud auth application-default login\"",
                ),
                _ => (
                    given("token_url", "https://sts.googleapis.com/v1/oauthtoken"),
                    "the user that is logged in",
                ),
            };
            exchange(http, &address, &form, who).await
        }
        "external_account" => federation::token(http, json, scope).await,
        "" => Err(problem(
            "The credentials have no \"type\": they are no JSON that Google has made. Make a key with \"gcloud iam \
             service-accounts keys create\", or log in with \"gcloud auth application-default login\".",
        )),
        other => Err(problem(format!(
            "Credentials of the type {other:?} are not supported. There are: service_account, authorized_user, \
             external_account, external_account_authorized_user, impersonated_service_account."
        ))),
    }
}

async fn exchange(http: &HttpClient, to: &str, form: &[(&str, &str)], who: &str) -> Result<Token> {
    let answer = send_form(http, &address(to)?, form)
        .await
        .map_err(|failure| problem(format!("Asking {to} for a token of {who} failed: {}", failure.message)))?;
    token_in(&answer).map_err(|why| problem(format!("{to} gives no token for {who}: {why}.")))
}

/// Requests a token for the service account of the machine.
async fn of_machine(scope: &str) -> Result<Token> {
    let none = |why: &str| {
        problem(format!(
            "There are no credentials for Google Cloud: none in the backend (credentials, access_token), in the environment \
             (GOOGLE_BACKEND_CREDENTIALS, GOOGLE_CREDENTIALS, GOOGLE_OAUTH_ACCESS_TOKEN, GOOGLE_APPLICATION_CREDENTIALS), or in \
             gcloud's file of application default credentials, and the machine has none: {why}.\n\nLog in with \"gcloud auth \
             application-default login\", or name the file with the key of a service account."
        ))
    };
    let host = env::var("GCE_METADATA_HOST").unwrap_or_else(|| "metadata.google.internal".to_owned());
    // The metadata service is local, so it answers at once or does not exist: a short timeout and one retry are enough.
    let http = HttpClient::new(HttpSettings {
        proxy: Proxy::None,
        timeout: Some(Duration::from_secs(3)),
        retries: Retries {
            max: 1,
            wait_min: Duration::from_millis(200),
            ..Retries::default()
        },
        ..HttpSettings::default()
    })
    .map_err(|e| none(&e.to_string()))?;
    let mut url = address(&format!(
        "http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
    ))?;
    url.query_pairs_mut().append_pair("scopes", scope);
    let mut headers = HeaderMap::new();
    // The service requires this header, so that requests that a browser or proxy was tricked into cannot read tokens.
    headers.insert("metadata-flavor", HeaderValue::from_static("Google"));
    let answer = http
        .send(Method::GET, &url, headers, None)
        .await
        .map_err(|_| none("its metadata service does not answer"))?;
    token_in(&answer).map_err(|why| none(&format!("its metadata service gives no token: {why}")))
}
