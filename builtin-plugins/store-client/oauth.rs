//! OAuth 2 access tokens, which are cached until shortly before they expire, and JWTs signed with an RSA key, with which programs request
//! tokens.

#![expect(clippy::disallowed_methods, reason = "a signed statement has the time in it")]

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use rustls::SignatureScheme;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value as Json, json};
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use crate::client::{Answer, Failure, HttpClient};

/// A token is not used in this time before its expiry.
const HEADROOM: Duration = Duration::from_secs(120);

/// An access token.
#[derive(Clone)]
pub struct Token {
    pub text: String,
    /// Expiry; `None` if it is unknown or the token does not expire.
    pub expires: Option<Instant>,
}

impl Token {
    /// Creates a token without expiry.
    #[must_use]
    pub fn without_expiry(text: impl Into<String>) -> Token {
        Token {
            text: text.into(),
            expires: None,
        }
    }

    /// Creates a token that expires after this time.
    #[must_use]
    pub fn ending(text: impl Into<String>, after: Duration) -> Token {
        Token {
            text: text.into(),
            expires: Instant::now().checked_add(after),
        }
    }

    /// Creates a token that expires at an RFC 3339 timestamp. If the timestamp cannot be parsed, the token has no expiry.
    #[must_use]
    pub fn until(text: impl Into<String>, time: &str) -> Token {
        let left = time
            .parse::<jiff::Timestamp>()
            .ok()
            .map(|at| at.duration_since(jiff::Timestamp::now()));
        match left {
            Some(left) => Token::ending(text, Duration::try_from(left).unwrap_or_default()),
            None => Token::without_expiry(text),
        }
    }

    /// Returns the value of the header `authorization`; `None` if the token has characters that are not allowed in a header.
    #[must_use]
    pub fn bearer(&self) -> Option<HeaderValue> {
        bearer(&self.text)
    }

    /// Returns true if the token does not expire within the next two minutes.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.expires.is_none_or(|at| at > Instant::now() + HEADROOM)
    }
}

/// Omits the secret text.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

/// Returns the value of the header `authorization` for a token; `None` if the token has characters that are not allowed in a header.
#[must_use]
pub fn bearer(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    // A sensitive value does not appear in debug output.
    value.set_sensitive(true);
    Some(value)
}

/// Cache of a token. An expiring token is replaced by a new one.
#[derive(Default)]
pub struct TokenCache(Mutex<Option<Token>>);

impl TokenCache {
    /// Returns the cached token, or requests a new one.
    ///
    /// # Errors
    /// The token could not be requested.
    pub async fn get<E>(&self, ask: impl Future<Output = Result<Token, E>>) -> Result<Token, E> {
        // The lock is held during the request, so that only one of several tasks requests a token.
        let mut current = self.0.lock().await;
        if let Some(token) = current.as_ref().filter(|token| token.holds()) {
            return Ok(token.clone());
        }
        let token = ask.await?;
        *current = Some(token.clone());
        Ok(token)
    }
}

/// Sends a POST request with a form.
///
/// # Errors
/// There was no answer.
pub async fn send_form(http: &HttpClient, url: &Url, form: &[(&str, &str)]) -> Result<Answer, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/x-www-form-urlencoded"),
    );
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(form)
        .finish();
    http.send(Method::POST, url, headers, Some(body.into_bytes())).await
}

/// Reads the token from an answer.
///
/// # Errors
/// The answer has no token.
pub fn token_in(answer: &Answer) -> Result<Token, TokenError> {
    let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
    // Some servers send numbers as text.
    let seconds = &json["expires_in"];
    let seconds = seconds.as_u64().or_else(|| seconds.as_str()?.parse().ok());
    match json["access_token"].as_str() {
        Some(text) if answer.status.is_success() => Ok(match seconds {
            Some(seconds) => Token::ending(text, Duration::from_secs(seconds)),
            None => Token::without_expiry(text),
        }),
        _ => Err(TokenError::from_answer(answer)),
    }
}

/// Error of a server that did not issue a token, with advice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the status is {status}{}{}", self.description(), self.hint())]
pub struct TokenError {
    pub status: StatusCode,
    /// Error code of the server.
    pub code: String,
    pub description: String,
}

impl TokenError {
    /// Reads the error from an answer without a token.
    #[must_use]
    pub fn from_answer(answer: &Answer) -> TokenError {
        let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
        // In OAuth, the error code is a text. Google's services send an object.
        let error = &json["error"];
        let code = error.as_str().or_else(|| error["status"].as_str());
        let description = json["error_description"].as_str().or_else(|| error["message"].as_str());
        TokenError {
            status: answer.status,
            code: code.unwrap_or_default().to_owned(),
            description: description.unwrap_or_default().to_owned(),
        }
    }

    fn description(&self) -> String {
        match (&*self.code, &*self.description) {
            ("", "") => String::new(),
            ("", text) | (text, "") => format!(": {}", shortened(text)),
            (code, description) => format!(": {code}: {}", shortened(description)),
        }
    }

    fn hint(&self) -> &'static str {
        // Signed requests contain the time, so a wrong clock is the usual reason.
        let lower = self.description.to_ascii_lowercase();
        if ["iat", "timeframe", "not within its valid time"]
            .iter()
            .any(|part| lower.contains(part))
        {
            ". The clock of this machine may be wrong"
        } else if self.code == "invalid_grant" && (lower.contains("expired") || lower.contains("revoked")) {
            ". Log in again"
        } else {
            ""
        }
    }
}

/// Returns the first line of a text, at most 300 characters.
fn shortened(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(300).collect()
}

/// Returns the seconds since 1970 according to the clock of this machine.
#[must_use]
pub fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// Reason why a private key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("the private key cannot be read as PEM text: {0}")]
    Pem(#[from] pem::Error),
    #[error("the private key cannot be used: {0}")]
    Unusable(rustls::Error),
    #[error("the private key is no RSA key")]
    NotRsa,
    #[error("the private key does not sign: {0}")]
    Sign(rustls::Error),
}

/// RSA private key for signatures.
pub struct PrivateKey(PrivateKeyDer<'static>);

impl PrivateKey {
    /// Reads a key in PEM.
    ///
    /// # Errors
    /// The text has no private key.
    pub fn from_pem(text: &str) -> Result<PrivateKey, KeyError> {
        Ok(PrivateKey(PrivateKeyDer::from_pem_slice(text.as_bytes())?))
    }

    /// Wraps a key in PKCS #8.
    #[must_use]
    pub fn from_pkcs8(der: Vec<u8>) -> PrivateKey {
        PrivateKey(PrivatePkcs8KeyDer::from(der).into())
    }

    /// Signs bytes by PKCS #1 version 1.5 with SHA-256.
    ///
    /// # Errors
    /// The key is not an RSA key.
    pub fn sign_sha256(&self, bytes: &[u8]) -> Result<Vec<u8>, KeyError> {
        let key = trust::PROVIDER
            .key_provider
            .load_private_key(self.0.clone_key())
            .map_err(KeyError::Unusable)?;
        let signer = key
            .choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256])
            .ok_or(KeyError::NotRsa)?;
        signer.sign(bytes).map_err(KeyError::Sign)
    }
}

/// Creates a JSON Web Token that is signed with the algorithm RS256. `header` has the fields besides `alg` and `typ`.
///
/// # Errors
/// The key is not an RSA key.
pub fn signed_statement(header: &[(&str, &str)], claims: &Json, key: &PrivateKey) -> Result<String, KeyError> {
    let mut head = json!({"alg": "RS256", "typ": "JWT"});
    for (name, value) in header {
        head[*name] = Json::from(*value);
    }
    let text = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(head.to_string()),
        URL_SAFE_NO_PAD.encode(claims.to_string())
    );
    let signature = key.sign_sha256(text.as_bytes())?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Answer {
        Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: body.into(),
        }
    }

    #[test]
    fn tokens_are_read_with_their_end() {
        let token = token_in(&answer(200, r#"{"access_token":"t","expires_in":"3600"}"#)).unwrap();
        assert!(token.text == "t" && token.holds());
        let token = token_in(&answer(200, r#"{"access_token":"t","expires_in":60}"#)).unwrap();
        assert!(!token.holds(), "it is not used to its last minute");
        assert!(!format!("{token:?}").contains("\"t\""));
    }

    #[test]
    fn refusals_are_reported_with_a_remedy() {
        let text = r#"{"error":"invalid_grant","error_description":"Invalid JWT: check your iat and exp values"}"#;
        let told = token_in(&answer(400, text)).unwrap_err().to_string();
        assert!(told.contains("invalid_grant") && told.contains("clock"), "{told}");
        assert_eq!(
            token_in(&answer(500, "")).unwrap_err().to_string(),
            "the status is 500 Internal Server Error"
        );
    }

    #[tokio::test]
    async fn a_token_that_holds_is_not_asked_for_again() {
        let cache = TokenCache::default();
        let token = |text| async move { Ok::<_, ()>(Token::without_expiry(text)) };
        assert_eq!(cache.get(token("one")).await.unwrap().text, "one");
        assert_eq!(cache.get(token("two")).await.unwrap().text, "one");
        let cache = TokenCache::default();
        let ended = async { Ok::<_, ()>(Token::ending("one", Duration::from_secs(1))) };
        assert_eq!(cache.get(ended).await.unwrap().text, "one");
        assert_eq!(cache.get(token("two")).await.unwrap().text, "two");
    }
}
