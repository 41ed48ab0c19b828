//! Tokens of OAuth 2: asked for by form, kept until shortly before they expire; and statements (JWT) that are signed with an RSA
//! key, by which programs ask for them.

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

/// How long before its end a token is not used any more.
const HEADROOM: Duration = Duration::from_secs(120);

/// A token that a request may carry.
#[derive(Clone)]
pub struct Token {
    /// The token itself.
    pub text: String,
    /// When it ends, if that is known.
    pub expires: Option<Instant>,
}

impl Token {
    /// A token without an end.
    #[must_use]
    pub fn lasting(text: impl Into<String>) -> Token {
        Token {
            text: text.into(),
            expires: None,
        }
    }

    /// A token that ends after this time from now on.
    #[must_use]
    pub fn ending(text: impl Into<String>, after: Duration) -> Token {
        Token {
            text: text.into(),
            expires: Instant::now().checked_add(after),
        }
    }

    /// A token that ends at this time, as RFC 3339 writes it; one that cannot be understood is a token without an end.
    #[must_use]
    pub fn until(text: impl Into<String>, time: &str) -> Token {
        let left = time
            .parse::<jiff::Timestamp>()
            .ok()
            .map(|at| at.duration_since(jiff::Timestamp::now()));
        match left {
            Some(left) => Token::ending(text, Duration::try_from(left).unwrap_or_default()),
            None => Token::lasting(text),
        }
    }

    /// The header that carries it; `None` if it has characters that no header can have.
    #[must_use]
    pub fn bearer(&self) -> Option<HeaderValue> {
        bearer(&self.text)
    }

    /// Whether it holds for some time yet.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.expires.is_none_or(|at| at > Instant::now() + HEADROOM)
    }
}

/// A secret is not shown.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

/// The value of the header `authorization` for a token.
#[must_use]
pub fn bearer(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A token that is asked for again before it ends.
#[derive(Default)]
pub struct TokenCache(Mutex<Option<Token>>);

impl TokenCache {
    /// The token, which is asked for if there is none that holds. Of several who ask at the same time, one does it.
    ///
    /// # Errors
    /// There is none.
    pub async fn get<E>(&self, ask: impl Future<Output = Result<Token, E>>) -> Result<Token, E> {
        let mut current = self.0.lock().await;
        if let Some(token) = current.as_ref().filter(|token| token.holds()) {
            return Ok(token.clone());
        }
        let token = ask.await?;
        *current = Some(token.clone());
        Ok(token)
    }
}

/// Sends a form.
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

/// The token in an answer. An error says what the server has said, and what may help.
///
/// # Errors
/// The answer has no token.
pub fn token_in(answer: &Answer) -> Result<Token, TokenError> {
    let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
    // Some servers write numbers as text.
    let seconds = &json["expires_in"];
    let seconds = seconds.as_u64().or_else(|| seconds.as_str()?.parse().ok());
    match json["access_token"].as_str() {
        Some(text) if answer.status.is_success() => Ok(match seconds {
            Some(seconds) => Token::ending(text, Duration::from_secs(seconds)),
            None => Token::lasting(text),
        }),
        _ => Err(TokenError::of(answer)),
    }
}

/// The reason why a server gives no token, in its words and in ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the status is {status}{}{}", self.said(), self.hint())]
pub struct TokenError {
    pub status: StatusCode,
    /// The name of the error.
    pub code: String,
    pub description: String,
}

impl TokenError {
    /// The error in an answer that has no token.
    #[must_use]
    pub fn of(answer: &Answer) -> TokenError {
        let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
        let error = &json["error"];
        let code = error.as_str().or_else(|| error["status"].as_str());
        let description = json["error_description"].as_str().or_else(|| error["message"].as_str());
        TokenError {
            status: answer.status,
            code: code.unwrap_or_default().to_owned(),
            description: description.unwrap_or_default().to_owned(),
        }
    }

    fn said(&self) -> String {
        match (&*self.code, &*self.description) {
            ("", "") => String::new(),
            ("", text) | (text, "") => format!(": {}", shortened(text)),
            (code, description) => format!(": {code}: {}", shortened(description)),
        }
    }

    fn hint(&self) -> &'static str {
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

/// The first line of a text, at most 300 characters of it.
fn shortened(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(300).collect()
}

/// Seconds since 1970, by the clock of this machine.
#[must_use]
pub fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// Why a private key cannot be used.
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

/// A private key that signs with RSA.
pub struct PrivateKey(PrivateKeyDer<'static>);

impl PrivateKey {
    /// The key in PEM text.
    ///
    /// # Errors
    /// There is none that can be read.
    pub fn from_pem(text: &str) -> Result<PrivateKey, KeyError> {
        Ok(PrivateKey(PrivateKeyDer::from_pem_slice(text.as_bytes())?))
    }

    /// The key in the form of PKCS #8.
    #[must_use]
    pub fn from_pkcs8(der: Vec<u8>) -> PrivateKey {
        PrivateKey(PrivatePkcs8KeyDer::from(der).into())
    }

    /// Signs bytes: PKCS #1 version 1.5 with SHA-256.
    ///
    /// # Errors
    /// The key is no RSA key.
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

/// A signed statement: a JSON Web Token with the algorithm RS256. `header` has what goes beside `alg` and `typ`.
///
/// # Errors
/// The key is no RSA key.
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
    fn refusals_are_told_with_what_may_help() {
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
        let token = |text| async move { Ok::<_, ()>(Token::lasting(text)) };
        assert_eq!(cache.get(token("one")).await.unwrap().text, "one");
        assert_eq!(cache.get(token("two")).await.unwrap().text, "one");
        let cache = TokenCache::default();
        let ended = async { Ok::<_, ()>(Token::ending("one", Duration::from_secs(1))) };
        assert_eq!(cache.get(ended).await.unwrap().text, "one");
        assert_eq!(cache.get(token("two")).await.unwrap().text, "two");
    }
}
