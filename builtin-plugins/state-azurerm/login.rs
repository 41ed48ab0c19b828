//! Access tokens of Entra ID.
//!
//! The first authentication method whose settings are complete is used. If it fails, no other method is tried.

use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use monoform_sdk::{Diagnostic, Diagnostics, Result, env};
use p12_keystore::{KeyStore, Pkcs12ImportPolicy};
use serde_json::{Value as Json, json};
use sha1::{Digest as _, Sha1};
use store_client::oauth::{
    self, KeyError, PrivateKey, Token, TokenCache, TokenError, bearer, send_form, signed_statement, token_in,
};
use store_client::{
    Answer, HeaderMap, HeaderValue, HttpClient, Method, Proxy, Retries, Settings as HttpSettings, Url, json_reason,
};

/// Audience of federated tokens for Entra ID.
const AUDIENCE: &str = "api://AzureADTokenExchange";

/// Reason why the certificate of an application cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    #[error("it is no PKCS #12 that can be read with client_certificate_password: {0}")]
    NotRead(#[from] p12_keystore::error::Error),
    #[error("there is no private key in it")]
    NoKey,
    #[error("there is no certificate in it")]
    NoCertificate,
}

/// Certificate of an application, with its key.
#[derive(Clone)]
pub(crate) struct Certificate {
    /// SHA-1 of the certificate.
    fingerprint: [u8; 20],
    key: std::sync::Arc<PrivateKey>,
}

impl Certificate {
    /// Reads a PKCS #12 file.
    pub fn read(bytes: &[u8], password: &str) -> std::result::Result<Certificate, CertificateError> {
        let store = KeyStore::from_pkcs12(bytes, password, Pkcs12ImportPolicy::Relaxed)?;
        let (_, chain) = store.private_key_chain().ok_or(CertificateError::NoKey)?;
        let certificate = chain.certs().first().ok_or(CertificateError::NoCertificate)?;
        Ok(Certificate {
            fingerprint: Sha1::digest(certificate.as_der()).into(),
            key: std::sync::Arc::new(PrivateKey::from_pkcs8(chain.key().as_der().to_vec())),
        })
    }

    /// Builds the signed client assertion of the application.
    fn statement(&self, client: &str, audience: &str) -> std::result::Result<String, KeyError> {
        let now = oauth::now();
        let claims = json!({
            "aud": audience,
            "exp": now + 3600,
            "iss": client,
            "jti": uuid::Uuid::new_v4().to_string(),
            "nbf": now,
            "sub": client,
        });
        // Entra ID finds the certificate by the thumbprint in `x5t`. The header `kid` has the same thumbprint with padding.
        let (id, thumbprint) = (
            URL_SAFE.encode(self.fingerprint),
            URL_SAFE_NO_PAD.encode(self.fingerprint),
        );
        signed_statement(&[("kid", &id), ("x5t", &thumbprint)], &claims, &self.key)
    }
}

/// Service of a CI system that issues ID tokens.
#[derive(Clone)]
pub(crate) struct Requested {
    pub url: String,
    pub token: String,
    /// Service connection in a pipeline of Azure DevOps.
    pub connection: Option<String>,
}

/// Authentication method.
#[derive(Clone)]
enum Way {
    Certificate {
        tenant: String,
        client: String,
        certificate: Certificate,
    },
    Secret {
        tenant: String,
        client: String,
        secret: String,
    },
    Token {
        tenant: String,
        client: String,
        token: String,
    },
    Requested {
        tenant: String,
        client: String,
        requested: Requested,
    },
    Machine {
        endpoint: String,
        client: Option<String>,
    },
    CommandLine {
        tenant: Option<String>,
    },
}

/// Authentication with Entra ID.
pub(crate) struct Login {
    server: String,
    way: Option<Way>,
    /// Cached tokens for the storage, for the Resource Manager, and for a key vault.
    tokens: [TokenCache; 3],
}

/// Service that a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For<'a> {
    Storage(&'a str),
    Manager(&'a str),
    Vault(&'a str),
}

pub(crate) fn problem(detail: impl Into<String>) -> Diagnostics {
    Diagnostic::error("No valid credentials for Azure", detail).into()
}

impl Login {
    #[expect(clippy::too_many_arguments, reason = "each is one part of what may be configured")]
    pub fn new(
        server: String,
        tenant: Option<String>,
        client: Option<String>,
        certificate: Option<Certificate>,
        secret: Option<String>,
        token: Option<String>,
        requested: Option<Requested>,
        machine: Option<String>,
        command_line: bool,
    ) -> Login {
        let application = tenant.clone().zip(client.clone());
        let way = match (application, certificate, secret, token, requested) {
            (Some((tenant, client)), Some(certificate), ..) => Some(Way::Certificate {
                tenant,
                client,
                certificate,
            }),
            (Some((tenant, client)), _, Some(secret), ..) => Some(Way::Secret { tenant, client, secret }),
            (Some((tenant, client)), _, _, Some(token), _) => Some(Way::Token { tenant, client, token }),
            (Some((tenant, client)), _, _, _, Some(requested)) => Some(Way::Requested {
                tenant,
                client,
                requested,
            }),
            _ => match machine {
                Some(endpoint) => Some(Way::Machine { endpoint, client }),
                None => command_line.then_some(Way::CommandLine { tenant }),
            },
        };
        Login {
            server,
            way,
            tokens: Default::default(),
        }
    }

    /// Describes the source of the credentials for messages.
    pub fn origin(&self) -> String {
        match &self.way {
            Some(Way::Certificate { client, .. }) => format!("the certificate of the application {client}"),
            Some(Way::Secret { client, .. }) => format!("the secret of the application {client}"),
            Some(Way::Token { client, .. } | Way::Requested { client, .. }) => {
                format!("a token of another identity provider for the application {client}")
            }
            Some(Way::Machine { .. }) => "the managed identity of this machine".to_owned(),
            Some(Way::CommandLine { .. }) => "the login of the command line of Azure (az)".to_owned(),
            None => "none".to_owned(),
        }
    }

    /// Returns the subscription that is selected in the Azure CLI, if the CLI is used for authentication.
    pub async fn usual_subscription(&self) -> Result<Option<String>> {
        match &self.way {
            Some(Way::CommandLine { .. }) => Ok(az(&["account", "show"]).await?["id"].as_str().map(str::to_owned)),
            _ => Ok(None),
        }
    }

    /// Returns a token for a service.
    pub async fn token(&self, http: &HttpClient, what: For<'_>) -> Result<Token> {
        let (cache, resource) = match what {
            For::Storage(resource) => (&self.tokens[0], resource),
            For::Manager(resource) => (&self.tokens[1], resource),
            For::Vault(resource) => (&self.tokens[2], resource),
        };
        cache.get(self.ask(http, resource)).await
    }

    async fn ask(&self, http: &HttpClient, resource: &str) -> Result<Token> {
        let scope = format!("{resource}/.default");
        match &self.way {
            None => Err(problem(
                "no Authorizer could be configured: nothing says who we are. Set tenant_id, client_id and one of client_secret, \
                 client_certificate_path and oidc_token (ARM_TENANT_ID, ARM_CLIENT_ID, ARM_CLIENT_SECRET, …), or use_msi for the \
                 managed identity of the machine, or log in with \"az login\" and leave use_cli on. Without Entra ID: set \
                 access_key (ARM_ACCESS_KEY) or sas_token (ARM_SAS_TOKEN).",
            )),
            Some(Way::Secret { tenant, client, secret }) => {
                self.exchange(http, tenant, client, &scope, &[("client_secret", secret)])
                    .await
            }
            Some(Way::Certificate {
                tenant,
                client,
                certificate,
            }) => {
                let statement = certificate.statement(client, &self.address(tenant));
                let statement =
                    statement.map_err(|why| problem(format!("The client certificate cannot be used: {why}.")))?;
                self.with_statement(http, tenant, client, &scope, &statement).await
            }
            Some(Way::Token { tenant, client, token }) => {
                self.with_statement(http, tenant, client, &scope, token).await
            }
            Some(Way::Requested {
                tenant,
                client,
                requested,
            }) => {
                let token = requested.ask(http).await?;
                self.with_statement(http, tenant, client, &scope, &token).await
            }
            Some(Way::Machine { endpoint, client }) => of_machine(endpoint, client.as_deref(), resource).await,
            Some(Way::CommandLine { tenant }) => of_command_line(tenant.as_deref(), &scope).await,
        }
    }

    fn address(&self, tenant: &str) -> String {
        format!("{}/{tenant}/oauth2/v2.0/token", self.server.trim_end_matches('/'))
    }

    async fn with_statement(
        &self,
        http: &HttpClient,
        tenant: &str,
        client: &str,
        scope: &str,
        statement: &str,
    ) -> Result<Token> {
        let form = [
            ("client_assertion", statement),
            (
                "client_assertion_type",
                "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            ),
        ];
        self.exchange(http, tenant, client, scope, &form).await
    }

    async fn exchange(
        &self,
        http: &HttpClient,
        tenant: &str,
        client: &str,
        scope: &str,
        more: &[(&str, &str)],
    ) -> Result<Token> {
        let mut form = vec![
            ("client_id", client),
            ("grant_type", "client_credentials"),
            ("scope", scope),
        ];
        form.extend_from_slice(more);
        let answer = send_form(http, &url(&self.address(tenant))?, &form).await;
        let answer = answer.map_err(|failure| {
            problem(format!(
                "Asking {} for a token failed: {}",
                self.server, failure.message
            ))
        })?;
        token_in(&answer).map_err(|why| {
            problem(format!(
                "{} gives no token for {} in the tenant {tenant}: {why}.",
                self.server,
                self.origin()
            ))
        })
    }
}

fn url(text: &str) -> Result<Url> {
    Url::parse(text).map_err(|e| problem(format!("{text:?} is not an address that can be understood: {e}.")))
}

impl Requested {
    /// Requests a federated token from the CI system.
    async fn ask(&self, http: &HttpClient) -> Result<String> {
        let failed = |why: String| {
            problem(format!(
                "The identity provider of this job gives no token: {why}. In GitHub, the job needs the permission \"id-token: \
                 write\"; in Azure DevOps, SYSTEM_ACCESSTOKEN and the service connection must be known."
            ))
        };
        let mut url = url(&self.url)?;
        let is_there = |url: &Url, name: &str| url.query_pairs().any(|(key, _)| key == name);
        let mut wanted = vec![("audience", AUDIENCE)];
        if let Some(connection) = &self.connection {
            wanted = vec![
                ("api-version", "7.1"),
                ("serviceConnectionId", connection),
                ("audience", AUDIENCE),
            ];
        }
        // The URL that the CI system provides may already have some of the parameters.
        wanted.retain(|(name, _)| !is_there(&url, name));
        url.query_pairs_mut().extend_pairs(wanted);
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static("application/json"));
        let value = bearer(&self.token)
            .ok_or_else(|| failed("oidc_request_token has characters that HTTP headers cannot have".to_owned()))?;
        headers.insert("authorization", value);
        let (method, field, body) = match self.connection {
            Some(_) => (Method::POST, "oidcToken", Some(Vec::new())),
            None => (Method::GET, "value", None),
        };
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        let answer = http
            .send(method, &url, headers, body)
            .await
            .map_err(|failure| failed(failure.message))?;
        let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
        let token = json[field].as_str().filter(|_| answer.status.is_success());
        token
            .map(str::to_owned)
            .ok_or_else(|| failed(TokenError::from_answer(&answer).to_string()))
    }
}

/// Requests a token for the managed identity of the machine.
async fn of_machine(endpoint: &str, client: Option<&str>, resource: &str) -> Result<Token> {
    let failed = |why: String| {
        problem(format!(
            "The managed identity of this machine gives no token: {why}. use_msi (or ARM_USE_MSI) is for machines of Azure that \
             have an identity; several identities are told apart by client_id."
        ))
    };
    let mut url = url(endpoint)?;
    url.query_pairs_mut()
        .append_pair("api-version", "2018-02-01")
        .append_pair("resource", resource);
    if let Some(client) = client {
        url.query_pairs_mut().append_pair("client_id", client);
    }
    let mut headers = HeaderMap::new();
    headers.insert("metadata", HeaderValue::from_static("true"));
    let http = HttpClient::new(HttpSettings {
        // The address is link-local, so a proxy would reach the metadata service of another machine.
        proxy: Proxy::None,
        timeout: Some(Duration::from_secs(15)),
        retries: Retries {
            max: 2,
            // While the metadata service starts or is updated, it answers with 404, 410 or 500.
            again: |answer: &Answer| matches!(answer.status.as_u16(), 404 | 410 | 429 | 500..=599),
            ..Retries::default()
        },
        ..HttpSettings::default()
    })
    .map_err(|e| failed(e.to_string()))?;
    let answer = http
        .send(Method::GET, &url, headers, None)
        .await
        .map_err(|failure| failed(failure.message))?;
    token_in(&answer).map_err(|e| failed(e.to_string()))
}

/// Requests a token from the Azure CLI.
async fn of_command_line(tenant: Option<&str>, scope: &str) -> Result<Token> {
    let account = az(&["account", "show"]).await?;
    let user = &account["user"];
    let is_machine = user["type"] == "servicePrincipal"
        && matches!(
            user["name"].as_str(),
            Some("systemAssignedIdentity" | "userAssignedIdentity")
        );
    let in_cloud_shell = env::var("AZUREPS_HOST_ENVIRONMENT").is_some_and(|text| text.starts_with("cloud-shell/"));
    let tenant = tenant.or_else(|| account["tenantId"].as_str()).unwrap_or_default();
    let mut words = vec!["account", "get-access-token", "--scope", scope];
    // Such an identity belongs to one tenant, and the CLI refuses the option with another tenant.
    if !is_machine && !in_cloud_shell {
        words.extend(["--tenant", tenant]);
    }
    let json = az(&words).await?;
    let token = json["accessToken"].as_str();
    let token = token.ok_or_else(|| problem("\"az account get-access-token\" gives no access token.".to_owned()))?;
    // Newer versions of the CLI return the expiry in seconds since 1970. Older ones return a local time without its time zone, so five
    // minutes are assumed.
    let left = json["expires_on"].as_i64().map(|end| end - oauth::now());
    Ok(match left {
        Some(left) => Token::ending(token, Duration::from_secs(left.max(0).unsigned_abs())),
        None => Token::ending(token, Duration::from_secs(300)),
    })
}

/// Runs the Azure CLI and parses its JSON output.
async fn az(words: &[&str]) -> Result<Json> {
    let shown = format!("az {}", words.join(" "));
    let ran = tokio::process::Command::new("az")
        .args(words)
        .arg("-o=json")
        // No input: the CLI could otherwise ask a question and wait forever.
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await;
    let ran = ran.map_err(|e| {
        problem(format!(
            "There is no other way to log in, and the command line of Azure cannot be run: {shown}: {e}. Install it and log in \
             with \"az login\", or set access_key, sas_token, or tenant_id, client_id and client_secret."
        ))
    })?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        return Err(problem(format!(
            "{shown} has failed: {}. Log in with \"az login\".",
            said.trim().trim_end_matches('.')
        )));
    }
    serde_json::from_slice(&ran.stdout)
        .map_err(|e| problem(format!("What {shown} says is no JSON: {}.", json_reason(e))))
}
