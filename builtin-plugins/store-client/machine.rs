//! Access keys for the role of a virtual machine, from the metadata service of its cloud.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use serde_json::Value as Json;
use url::Url;

use crate::client::{Failure, HttpClient, Proxy, Retries, Settings};
use crate::credential::Current;
use crate::name::encoded;
use crate::tls::TlsError;

/// Reason why the metadata service provides no keys.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    #[error(transparent)]
    Address(#[from] url::ParseError),
    #[error(transparent)]
    Client(#[from] TlsError),
    #[error("{}", .0.reason())]
    Unanswered(#[from] Failure),
    #[error("the status is {0}")]
    NoKeys(StatusCode),
}

/// Requests the keys of a role. `service` is the URL below which the roles are, `patience` is the time limit of one request, and `read`
/// takes the keys from an answer.
///
/// # Errors
/// There was no answer, or it has no keys.
pub async fn of_machine(
    service: &str,
    role: &str,
    patience: Duration,
    read: impl Fn(&Json) -> Option<Current>,
) -> Result<Current, MachineError> {
    let url = Url::parse(&format!("{service}/{}", encoded(role)))?;
    let http = HttpClient::new(Settings {
        // No proxy, since the address is local to the machine, and a proxy would reach another service.
        proxy: Proxy::None,
        timeout: Some(patience),
        retries: Retries {
            // A machine outside of the cloud gets no answer at this address, which should not delay a command for long.
            max: 1,
            wait_min: Duration::from_millis(200),
            ..Retries::default()
        },
        ..Settings::default()
    })?;
    let answer = http.send(Method::GET, &url, HeaderMap::new(), None).await?;
    let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
    let found = answer.status.is_success().then(|| read(&json)).flatten();
    found.ok_or(MachineError::NoKeys(answer.status))
}

#[cfg(test)]
#[cfg(feature = "testing")]
mod tests {
    use super::*;
    use crate::credential::Credential;
    use crate::testing::{Reply, Server};

    #[tokio::test]
    async fn keys_of_a_role_are_read_from_the_machine() {
        let server = Server::start(|asked| match asked.path() {
            "/roles/the%20one" => Reply::new(200, r#"{"id":"a"}"#),
            "/roles/none" => Reply::new(200, "{}"),
            _ => Reply::new(404, r#"{"id":"not these"}"#),
        })
        .await;
        let read = |json: &Json| {
            Some(Current {
                credential: Credential {
                    id: json["id"].as_str()?.to_owned(),
                    ..Credential::default()
                },
                ends: None,
            })
        };
        let service = format!("{}/roles", server.address());
        let of = |role| of_machine(&service, role, Duration::from_secs(5), read);
        assert_eq!(of("the one").await.unwrap().credential.id, "a");
        let refused = of("other").await.map(|found| found.credential.id).unwrap_err();
        assert_eq!(refused.to_string(), "the status is 404 Not Found");
        assert!(of("none").await.is_err(), "an answer without keys");
    }
}
