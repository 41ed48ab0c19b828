//! Effective settings from the arguments and the environment.

use std::time::Duration;

use monoform_sdk::{Diagnostic, Result};
use store_client::{Answer, HttpClient, Retries, Settings as HttpSettings, Tls, TlsError, Url};
use tokio::sync::Mutex;

use crate::auth::Source;
use crate::cloud::Cloud;
use crate::config::{Config, SUMMARY, text, variable};
use crate::profile::expanded;
use crate::region::host;

/// Encryption of objects beyond that of the bucket.
pub(crate) enum Encryption {
    Usual,
    /// A key of the key service.
    Service(String),
    /// A key of the user: algorithm, key, its SHA-256.
    Own(String, String, String),
}

/// Effective settings of the client.
pub(crate) struct Settings {
    pub key: String,
    pub prefix: String,
    pub encryption: Encryption,
    pub cloud: Cloud,
}

/// Returns the effective settings.
pub(crate) fn of(config: &Config) -> Result<Settings> {
    let (source, region) = Source::of(config)?;
    let wrong = |detail: String| Diagnostic::error(SUMMARY, detail);
    let address = address(&region);
    let url = Url::parse(&address).ok().filter(Url::has_host);
    let own = text(&config.sse_customer_key, "sse_customer_key")
        .zip(text(&config.sse_customer_key_sha256, "sse_customer_key_sha256"));
    let algorithm = text(&config.sse_customer_algorithm, "sse_customer_algorithm");
    let another = variable("use_obo_token");
    Ok(Settings {
        key: text(&config.key, "key").unwrap_or_else(|| "terraform.tfstate".to_owned()),
        prefix: text(&config.workspace_key_prefix, "workspace_key_prefix").unwrap_or_else(|| "tf-state-env".to_owned()),
        encryption: match (text(&config.kms_key_id, "kms_key_id"), own) {
            (Some(key), _) => Encryption::Service(key),
            (None, Some((key, sum))) => Encryption::Own(algorithm.unwrap_or_else(|| "AES256".to_owned()), key, sum),
            (None, None) => Encryption::Usual,
        },
        cloud: Cloud {
            url: url.ok_or_else(|| {
                wrong(format!(
                    "{address:?} is not where object storage can be: correct \"region\"."
                ))
            })?,
            namespace: config.namespace.text().to_owned(),
            bucket: config.bucket.text().to_owned(),
            region,
            http: http(4).map_err(|why| wrong(format!("Requests cannot be made: {why}.")))?,
            source,
            current: Mutex::default(),
            for_another: another.is_some_and(|text| is_true(&text)),
        },
    })
}

fn is_true(text: &str) -> bool {
    gotext::boolean(text) == Some(true)
}

/// Returns the address of a region's object storage, unless variables override it.
fn address(region: &str) -> String {
    let overrides = variable("CLIENT_HOST_OVERRIDES").unwrap_or_default();
    let own = overrides
        .split(';')
        .filter_map(|item| item.split_once('='))
        .find(|(name, _)| *name == "oci_object_storage.ObjectStorageClient");
    let mut address = match own {
        Some((_, host)) => host.to_owned(),
        None => host("objectstorage", region),
    };
    if let Some(ending) = variable("domain_name_override") {
        let kept = variable("has_correct_domain_name").is_some_and(|right| address.ends_with(&right));
        // The last two parts of the name are its domain.
        let at = address.rmatch_indices('.').nth(1).map(|(at, _)| at + 1);
        if let Some(at) = at.filter(|_| !kept) {
            address.replace_range(at.., &ending);
        }
    }
    match address.contains("://") {
        true => address,
        false => format!("https://{address}"),
    }
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

/// Creates an HTTP client with the settings of the variables and this number of retries.
pub(crate) fn http(max: u32) -> std::result::Result<HttpClient, ClientError> {
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
        // Zero means no limit, as in Oracle's client.
        timeout: (timeout > Duration::ZERO).then_some(timeout),
        // Oracle's client limits connection and TLS handshake apart; here one limit covers both.
        connect_timeout: Some(time("DIAL_CONTEXT_CONNECTION_TIMEOUT", ten) + time("TLS_HANDSHAKE_TIMEOUT", ten)),
        user_agent: agent.map(|name| format!("Monoform/{} {name}", env!("CARGO_PKG_VERSION"))),
        ..HttpSettings::default()
    })?;
    Ok(client)
}

/// Returns true if an answer calls for a retry, as in Oracle's clients.
fn busy(answer: &Answer) -> bool {
    matches!(answer.status.as_u16(), 429 | 500 | 503)
}

/// Returns the token of the user for whom requests are made.
pub(crate) fn token_of_another() -> Result<Option<String>> {
    let Some(path) = variable("obo_token_path") else {
        return Ok(variable("obo_token"));
    };
    let read = std::fs::read_to_string(expanded(&path));
    let detail = |e| format!("The token in the file {path:?} (obo_token_path) cannot be read: {e}.");
    Ok(Some(
        read.map_err(|e| Diagnostic::error(SUMMARY, detail(e)))?
            .trim()
            .to_owned(),
    ))
}
