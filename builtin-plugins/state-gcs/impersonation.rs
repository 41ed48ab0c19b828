//! Tokens of impersonated service accounts, and code that all kinds of tokens share.

use monoform_sdk::{Diagnostic, Diagnostics, Result};
use serde_json::{Value as Json, json};
use store_client::oauth::{Token, TokenError};
use store_client::{HeaderMap, HeaderValue, HttpClient, Method, Url};

/// OAuth scope of tokens that are used to request other tokens.
pub(crate) const EVERYTHING: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Lifetime of a token of an impersonated account.
const HOUR: &str = "3600s";

pub(crate) fn problem(detail: impl Into<String>) -> Diagnostics {
    Diagnostic::error("No valid credentials found", detail).into()
}

/// Parses a URL in credentials.
pub(crate) fn address(text: &str) -> Result<Url> {
    let url = Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or_else(|| {
        problem(format!(
            "The credentials have an address that cannot be understood: {text:?}."
        ))
    })
}

/// Requests a token for an impersonated service account.
pub(crate) async fn impersonated(
    http: &HttpClient,
    base: &Token,
    to: &str,
    delegates: &[String],
    scope: &str,
) -> Result<Token> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    if let Some(value) = base.bearer() {
        headers.insert("authorization", value);
    }
    let delegates: Vec<String> = delegates
        .iter()
        .map(|account| match account.contains('/') {
            true => account.clone(),
            // The API requires full resource names. With `-` as the project, it finds the project of the account.
            false => format!("projects/-/serviceAccounts/{account}"),
        })
        .collect();
    let body = json!({"scope": [scope], "lifetime": HOUR, "delegates": delegates});
    let answer = http
        .send(
            Method::POST,
            &address(to)?,
            headers,
            Some(body.to_string().into_bytes()),
        )
        .await
        .map_err(|failure| problem(format!("Asking {to} for a token failed: {}", failure.message)))?;
    let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
    match json["accessToken"].as_str().filter(|_| answer.status.is_success()) {
        Some(token) => Ok(Token::until(token, json["expireTime"].as_str().unwrap_or_default())),
        None => Err(problem(format!(
            "{to} gives no token: {}. Whoever takes the place of a service account needs the role Service Account Token Creator \
             on it (roles/iam.serviceAccountTokenCreator).",
            TokenError::from_answer(&answer)
        ))),
    }
}
