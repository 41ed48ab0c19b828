//! API calls of services other than the bucket.

#![expect(clippy::disallowed_methods, reason = "requests are signed with the time in them")]

use std::collections::BTreeMap;

use serde_json::Value as Json;
use store_client::credential::Credential;
use store_client::{Failure, HttpClient, Url};

use crate::sign;

/// Client for services other than the bucket.
pub(crate) struct Services {
    pub region: String,
    /// URL of the security token service (STS), which issues credentials of roles.
    pub sts: Url,
    /// HTTP client for short calls, with a time limit of 30 seconds.
    pub calls: HttpClient,
}

/// Failure of a call to a service.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("{}", .0.reason())]
    Unanswered(#[from] Failure),
    /// Error of the service, with advice for the user.
    #[error("{0}")]
    Refused(String),
}

/// A call: the URL of the service, the version of its API, and the action.
pub(crate) struct Service<'a> {
    pub url: &'a Url,
    pub version: &'a str,
    pub action: &'a str,
}

impl<'a> Service<'a> {
    pub fn sts(url: &'a Url, action: &'a str) -> Service<'a> {
        Service {
            url,
            version: "2015-04-01",
            action,
        }
    }
}

/// Returns the current time in this `strftime` format.
pub(crate) fn now(form: &str) -> String {
    jiff::Timestamp::now().strftime(form).to_string()
}

impl Services {
    /// Calls a service. Without credentials, the call is not signed.
    pub async fn call(
        &self,
        http: &HttpClient,
        credential: Option<&Credential>,
        service: Service<'_>,
        parameters: &[(&str, &str)],
    ) -> Result<Json, CallError> {
        let (time, nonce) = (now("%Y-%m-%dT%H:%M:%SZ"), uuid::Uuid::new_v4().to_string());
        // Sorted by name, because the signature covers the sorted parameters.
        let mut all: BTreeMap<&str, &str> = parameters.iter().copied().collect();
        all.extend([
            ("Action", service.action),
            ("Version", service.version),
            ("Format", "JSON"),
            ("Timestamp", &time),
            // Against replays, the service refuses a nonce that it has seen before.
            ("SignatureNonce", &nonce),
        ]);
        if !self.region.is_empty() {
            all.insert("RegionId", &self.region);
        }
        let signature;
        if let Some(credential) = credential {
            all.extend([
                ("AccessKeyId", credential.id.as_str()),
                ("SignatureMethod", "HMAC-SHA1"),
                ("SignatureVersion", "1.0"),
            ]);
            all.extend(credential.token.as_deref().map(|token| ("SecurityToken", token)));
            signature = sign::of_call(&credential.key, "POST", &all);
            all.insert("Signature", &signature);
        }
        let parts: Vec<(&str, &str)> = all.into_iter().collect();
        let sent = store_client::oauth::send_form(http, service.url, &parts).await;
        let answer = sent?;
        let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
        if answer.status.is_success() && json.is_object() {
            return Ok(json);
        }
        let part = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
        let (code, message) = (part("Code"), part("Message"));
        let advice = match code.as_str() {
            "InvalidAccessKeyId.NotFound" | "SignatureDoesNotMatch" | "InvalidSecurityToken.Expired" => {
                "Check the credentials (access_key, secret_key, security_token)"
            }
            "InvalidTimeStamp.Expired" => "The clock of this machine is wrong",
            _ => "",
        };
        let told = answer.describe(&format!("The service {}", service.url), &code, &message, advice);
        Err(CallError::Refused(told.trim_end_matches('.').to_owned()))
    }
}
