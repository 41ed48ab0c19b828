//! Effective settings from the arguments and the environment.

use monoform_sdk::{Diagnostic, Result};
use store_client::Url;
use tokio::sync::Mutex;

use crate::auth::Source;
use crate::cloud::Cloud;
use crate::config::{Config, SUMMARY, text, variable};
use crate::region::host;
use crate::requests::{http, is_true};

/// Encryption of objects: the bucket's own, or with a key of this configuration.
pub(crate) enum Encryption {
    Usual,
    /// Encryption with a key of the Vault service.
    Service(String),
    /// Encryption with a customer-supplied key: the algorithm, the key, and the SHA-256 of the key.
    Own(String, String, String),
}

/// Effective settings of the client.
pub(crate) struct Settings {
    pub key: String,
    pub prefix: String,
    pub encryption: Encryption,
    pub cloud: Cloud,
}

/// Merges the configuration with the environment, the OCI configuration file and the defaults.
pub(crate) fn effective(config: &Config) -> Result<Settings> {
    let (source, region) = Source::from_config(config)?;
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

/// Returns the URL of a region's object storage. Environment variables can override it.
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
        // The last two parts of the host name are the domain.
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
