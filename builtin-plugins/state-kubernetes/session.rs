//! Credentials for the Kubernetes API: a client certificate or a bearer token, cached until they expire.

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use monoform_sdk::{Diagnostic, Diagnostics, Result};
use serde_json::json;
use store_client::oauth::{Token, bearer};
use store_client::{
    HeaderMap, HeaderName, HeaderValue, HttpClient, Proxy, Retries, Settings as HttpSettings, Tls, Url,
};
use tokio::sync::Mutex;

use crate::exec::Credential;
use crate::kubeconfig::Access;

/// HTTP client, the headers for its requests, and the expiry of the credentials.
#[derive(Clone)]
pub(crate) struct Session {
    pub http: Arc<HttpClient>,
    pub headers: HeaderMap,
    /// Expiry of a credential plugin's output, as a token without a value.
    token: Option<Token>,
}

/// Access settings of the cluster, and a cache of the current session.
pub(crate) struct Sessions {
    access: Access,
    current: Mutex<Option<Session>>,
}

fn problem(detail: String) -> Diagnostics {
    Diagnostic::error("No access to the Kubernetes cluster", detail).into()
}

fn token_of(path: &PathBuf) -> Result<String> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| problem(format!("The token in {} cannot be read: {e}.", path.display())))?;
    Ok(text.trim().to_owned())
}

impl Sessions {
    pub fn new(access: Access) -> Sessions {
        Sessions {
            access,
            current: Mutex::default(),
        }
    }

    /// Returns the address of the API server.
    pub fn server(&self) -> &str {
        &self.access.server
    }

    /// Returns the cached session, or a new one if its credentials expire within two minutes or come from a token file.
    pub async fn get(&self) -> Result<Session> {
        let mut current = self.current.lock().await;
        let holds =
            // With a token file, there is a new session for each request, because the content of the file may change at any time.
            |session: &&Session| session.token.as_ref().is_none_or(Token::holds) && self.access.token_file.is_none();
        if let Some(session) = current.as_ref().filter(holds) {
            return Ok(session.clone());
        }
        let session = self.make(current.as_ref()).await?;
        *current = Some(session.clone());
        Ok(session)
    }

    /// Drops a session whose credentials the server has refused. Returns true if a new session may have other credentials.
    pub async fn refused(&self) -> bool {
        let mut current = self.current.lock().await;
        *current = None;
        self.access.exec.is_some() || self.access.token_file.is_some()
    }

    async fn make(&self, before: Option<&Session>) -> Result<Session> {
        let access = &self.access;
        let has_own = access.token.is_some() || access.token_file.is_some() || access.username.is_some();
        let said = match &access.exec {
            // As in client-go, static credentials take precedence over a plugin.
            Some(exec) if !has_own => {
                let cluster = json!({
                    "server": access.server,
                    "certificate-authority-data": access.authorities.as_ref().map(|pem| BASE64.encode(pem)),
                    "insecure-skip-tls-verify": access.insecure,
                });
                let said = exec.run(&cluster).await;
                said.map_err(|why| problem(format!("Getting credentials failed: {why}.")))?
            }
            _ => Credential::default(),
        };
        let token = match &access.token_file {
            Some(path) => Some(token_of(path)?),
            None => said.token.clone().or_else(|| access.token.clone()),
        };
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static("application/json"));
        if let Some(token) = token {
            let value = bearer(&token)
                .ok_or_else(|| problem("The token has characters that HTTP headers cannot have.".to_owned()))?;
            headers.insert("authorization", value);
        } else if let Some(name) = &access.username {
            let password = access.password.as_deref().unwrap_or_default();
            let login = format!("Basic {}", BASE64.encode(format!("{name}:{password}")));
            if let Ok(mut value) = HeaderValue::from_str(&login) {
                value.set_sensitive(true);
                headers.insert("authorization", value);
            }
        }
        for (name, value) in &access.instead {
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
                headers.append(name, value);
            }
        }
        // Unless the plugin has returned a new certificate, the HTTP client is reused with its open connections.
        let http = match before.filter(|_| said.certificate.is_none()) {
            Some(before) => before.http.clone(),
            None => Arc::new(self.client(&said)?),
        };
        let token = access.exec.as_ref().map(|_| match &said.expires {
            Some(end) => Token::until(String::new(), end),
            None => Token::without_expiry(String::new()),
        });
        Ok(Session { http, headers, token })
    }

    fn client(&self, said: &Credential) -> Result<HttpClient> {
        let access = &self.access;
        let certificate = said.certificate.clone().or_else(|| access.certificate.clone());
        let key = said.key.clone().or_else(|| access.key.clone());
        let client = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) => {
                return Err(problem(
                    "There is a client certificate, and no key of it (client_key).".to_owned(),
                ));
            }
            (None, Some(_)) => {
                return Err(problem(
                    "There is a client key, and no certificate of it (client_certificate).".to_owned(),
                ));
            }
        };
        let url = Url::parse(&access.server)
            .map_err(|e| problem(format!("{:?} is not where a cluster can be: {e}.", access.server)))?;
        let client = HttpClient::new(HttpSettings {
            tls: Tls {
                authorities: access.authorities.clone().filter(|_| !access.insecure),
                insecure: access.insecure,
                client: client.filter(|_| url.scheme() == "https"),
                server_name: access.server_name.clone(),
                ..Tls::default()
            },
            proxy: match &access.proxy {
                Some(proxy) => Proxy::Always(proxy.clone()),
                None => Proxy::Environment,
            },
            retries: Retries {
                max: 3,
                again: |answer| matches!(answer.status.as_u16(), 429 | 503 | 504),
                ..Retries::default()
            },
            ..HttpSettings::default()
        });
        client.map_err(|e| problem(format!("The certificates for the cluster cannot be used: {e}.")))
    }
}
