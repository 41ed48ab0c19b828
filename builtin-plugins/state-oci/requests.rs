//! HTTP settings from the environment variables of Oracle's CLI and SDKs.

use std::time::Duration;

use store_client::{Answer, HttpClient, Retries, Settings as HttpSettings, Tls, TlsError};

use crate::config::variable;
use crate::profile::expanded;

/// Returns true if the value of a variable means true.
pub(crate) fn is_true(text: &str) -> bool {
    gotext::boolean(text) == Some(true)
}

/// Reason why the HTTP client cannot be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("{} (custom_cert_location) cannot be read: {source}", path.display())]
    Authorities {
        path: std::path::PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Creates an HTTP client with the settings of the environment. `max` is the number of retries.
pub(crate) fn http(max: u32) -> Result<HttpClient, ClientError> {
    let time = |name: &str, usual: Duration| {
        let given = variable(name);
        given.as_deref().and_then(gotext::duration::parse).unwrap_or(usual)
    };
    let ten = Duration::from_secs(10);
    let timeout = time("HTTP_REQUEST_TIMEOUT", Duration::ZERO);
    let file = variable("custom_cert_location");
    let authorities = file.map(|file| {
        let path = expanded(&file);
        std::fs::read_to_string(&path).map_err(|source| ClientError::Authorities { path, source })
    });
    let agent = variable("SDK_APPEND_USER_AGENT").or_else(|| variable("APPEND_USER_AGENT"));
    let client = HttpClient::new(HttpSettings {
        tls: Tls {
            authorities: authorities.transpose()?,
            insecure: variable("accept_local_certs").is_some_and(|text| is_true(&text)),
            ..Tls::default()
        },
        retries: Retries {
            max,
            wait_min: Duration::from_secs(2),
            wait_max: Duration::from_secs(50),
            again: busy,
        },
        timeout: (timeout > Duration::ZERO).then_some(timeout),
        connect_timeout: Some(time("DIAL_CONTEXT_CONNECTION_TIMEOUT", ten) + time("TLS_HANDSHAKE_TIMEOUT", ten)),
        user_agent: agent.map(|name| format!("Monoform/{} {name}", env!("CARGO_PKG_VERSION"))),
        ..HttpSettings::default()
    })?;
    Ok(client)
}

/// Returns true if a request with this answer is sent again, as in Oracle's SDKs.
fn busy(answer: &Answer) -> bool {
    matches!(answer.status.as_u16(), 429 | 500 | 503)
}
