//! Requests to a key vault, with the same credential arguments as the backend.

use monoform_sdk::{Diagnostic, Diagnostics, Result};
use serde_json::Value as Json;
use store_client::{Answer, HeaderMap, HeaderValue, HttpClient, Method, Url};
use tokio::sync::OnceCell;

use crate::config::Config;
use crate::login::{For, Login};
use crate::settings;

const SUMMARY: &str = "Error making a request to the key vault";
/// Version of the Key Vault REST API.
const VERSION: &str = "7.4";

/// Client for a key vault.
pub struct Vault {
    http: HttpClient,
    login: Login,
    address: Url,
    /// Resource (audience) of tokens for the vault, from its first answer.
    resource: OnceCell<String>,
}

impl Vault {
    /// Creates a client for the vault with this URL. Arguments about the storage account are ignored.
    ///
    /// # Errors
    /// The URL or the credentials are invalid.
    pub async fn connect(config: &Config, address: &str) -> Result<Vault> {
        let url = Url::parse(address)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let address = url.ok_or_else(|| {
            let detail = format!(
                "vault_uri must be the address of a vault, as in \"https://NAME.vault.azure.net/\", and not {address:?}."
            );
            Diagnostic::error(SUMMARY, detail)
        })?;
        let http = settings::client()?;
        let cloud = settings::cloud(config, &http).await?;
        Ok(Vault {
            login: settings::login(config, &cloud)?,
            http,
            address,
            resource: OnceCell::new(),
        })
    }

    /// Sends a request about a key in the vault. Without a version the newest version is used.
    ///
    /// # Errors
    /// There are no credentials, there was no answer, or the answer is an error.
    pub async fn call(&self, key: &str, version: &str, operation: &str, body: &Json, what: &str) -> Result<Json> {
        let mut url = self.address.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["keys", key]);
            if !version.is_empty() {
                path.push(version);
            }
            path.push(operation);
        }
        url.query_pairs_mut().append_pair("api-version", VERSION);
        let resource = self.resource.get_or_try_init(|| self.ask_resource(&url, what)).await?;
        let token = self.login.token(&self.http, For::Vault(resource)).await?;
        let mut headers = json_headers();
        if let Some(value) = token.bearer() {
            headers.insert("authorization", value);
        }
        let sent = self
            .http
            .send(Method::POST, &url, headers, Some(body.to_string().into_bytes()));
        let answer = sent.await.map_err(|failure| failure.diagnostic(SUMMARY, what))?;
        match answer.status.is_success() {
            true => Ok(serde_json::from_slice(&answer.body).unwrap_or_default()),
            false => Err(self.problem(what, &answer)),
        }
    }

    /// Requests the token audience from the vault, because vaults, managed HSMs and sovereign clouds have different ones.
    async fn ask_resource(&self, url: &Url, what: &str) -> Result<String> {
        // The request is sent without a token and without a body, because the body can contain the key that is to be wrapped.
        let sent = self.http.send(Method::POST, url, json_headers(), Some(Vec::new()));
        let answer = sent.await.map_err(|failure| failure.diagnostic(SUMMARY, what))?;
        let challenge = answer.header("www-authenticate").unwrap_or_default();
        let Some(resource) = resource_of(challenge) else {
            return Err(self.problem(what, &answer));
        };
        // The vault must be in the domain of the audience. Otherwise another server could obtain a token for Azure's vaults.
        let fits = Url::parse(&resource).ok().and_then(|found| {
            let (domain, host) = (found.host_str()?.to_owned(), self.address.host_str()?);
            Some(host == domain || host.ends_with(&format!(".{domain}")))
        });
        if fits != Some(true) {
            let detail = format!(
                "{what} failed: the server {} requests a token for {resource:?}, to which it does not belong.",
                self.address
            );
            return Err(Diagnostic::error(SUMMARY, detail).into());
        }
        Ok(resource)
    }

    fn problem(&self, what: &str, answer: &Answer) -> Diagnostics {
        let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
        let part = |name: &str| json["error"][name].as_str().unwrap_or_default();
        let advice = match answer.status.as_u16() {
            401 => format!("The token is not accepted. It is from {}.", self.login.origin()),
            403 => format!(
                "The identity ({}) needs the role Key Vault Crypto User on the key, or an access policy with the permissions \
                 encrypt and decrypt.",
                self.login.origin()
            ),
            404 => "Correct vault_key_name or vault_uri, or create the key.".to_owned(),
            _ => String::new(),
        };
        Diagnostic::error(SUMMARY, answer.describe(what, part("code"), part("message"), &advice)).into()
    }
}

fn json_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers
}

/// Returns the audience in the challenge of a vault: `Bearer authorization="…", resource="…"`. Newer servers send a `scope` instead.
fn resource_of(challenge: &str) -> Option<String> {
    let parameters = challenge.strip_prefix("Bearer ")?;
    let parameter = |name: &str| {
        let mut pairs = parameters
            .split([',', ' '])
            .filter_map(|pair| pair.trim().split_once('='));
        let (_, value) = pairs.find(|(found, _)| *found == name)?;
        Some(value.trim_matches('"').to_owned()).filter(|value| !value.is_empty())
    };
    let scope = || Some(parameter("scope")?.trim_end_matches("/.default").to_owned());
    Some(parameter("resource").or_else(scope)?.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn challenges_name_a_resource_or_a_scope() {
        let of = |text: &str| resource_of(text).unwrap_or_default();
        let vault = "https://vault.azure.net";
        assert_eq!(
            of("Bearer authorization=\"https://login.microsoftonline.com/t\", resource=\"https://vault.azure.net\""),
            vault
        );
        assert_eq!(
            of("Bearer authorization=\"a\" scope=\"https://vault.azure.net/.default\""),
            vault
        );
        assert_eq!(of("Basic realm=\"x\""), "");
        assert_eq!(of("Bearer authorization=\"a\""), "");
    }
}
