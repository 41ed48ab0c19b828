//! Network mirrors: `HOST/NS/TYPE/index.json` lists the versions, `VERSION.json` the packages of a version.

use std::collections::{BTreeMap, BTreeSet};

use addrs::Provider;
use net::{Client, Host, Url};
use serde::{Deserialize, Serialize};

use crate::metadata::{Authentication, AvailableVersion, Location, PackageMetadata, SourceError};
use addrs::platform::Platform;
use versions::Version;

/// Limit of a document's size in bytes. Documents only list names and checksums.
const LIMIT: u64 = 64 << 20;
const REDIRECTS: usize = 5;

/// `index.json`.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Index {
    #[serde(default, deserialize_with = "net::absent::names")]
    pub versions: BTreeMap<String, serde_json::Map<String, serde_json::Value>>,
}

/// `VERSION.json`.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Archives {
    /// Archives by platform, such as `linux_amd64`.
    #[serde(default, deserialize_with = "net::absent::map")]
    pub archives: BTreeMap<String, Archive>,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Archive {
    /// Checksums, of which one must match.
    #[serde(
        default,
        deserialize_with = "net::absent::list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub hashes: Vec<String>,
    /// URL, relative to that of the document.
    pub url: String,
}

/// Returns the versions of a provider at a mirror, without those that cannot be parsed.
pub async fn versions(client: &Client, base: &Url, provider: &Provider) -> Result<Vec<AvailableVersion>, SourceError> {
    let missing = || format!("the network mirror {} has no provider {provider}", net::shown(base));
    let (_, index): (_, Index) = document(client, base, provider, "index.json", missing).await?;
    let listed = |text: &String| {
        let version = Version::parse(text).ok()?;
        Some(AvailableVersion {
            version,
            // The index does not have the platforms: they are in the document of each version.
            platforms: None,
        })
    };
    Ok(index.versions.keys().filter_map(listed).collect())
}

/// Returns the metadata of the package of a version at a mirror.
pub async fn metadata(
    client: &Client,
    base: &Url,
    provider: &Provider,
    version: &Version,
    platform: &Platform,
) -> Result<PackageMetadata, SourceError> {
    let shown = net::shown(base);
    let missing = || format!("the network mirror {shown} has no version {version} of the provider {provider}");
    let name = format!("{version}.json");
    let (at, mut archives): (_, Archives) = document(client, base, provider, &name, missing).await?;
    let archive = archives.archives.remove(&platform.to_string()).ok_or_else(|| {
        SourceError::Missing(format!(
            "the network mirror {shown} has no package of it for {platform}"
        ))
    })?;
    let url = at
        .join(&archive.url)
        .ok()
        // A mirror must not be able to select local files or other schemes.
        .filter(|url| matches!(url.scheme(), "https" | "http"));
    let url = url.ok_or_else(|| {
        SourceError::Failed(format!(
            "the network mirror {shown} gives an address that is none: \"{}\"",
            archive.url
        ))
    })?;
    let hashes: BTreeSet<String> = archive.hashes.into_iter().collect();
    Ok(PackageMetadata {
        location: Location::Url(url),
        authentication: if hashes.is_empty() {
            Authentication::None
        } else {
            Authentication::Checksum
        },
        hashes,
        known: BTreeSet::new(),
    })
}

async fn document<T: for<'d> Deserialize<'d>>(
    client: &Client,
    base: &Url,
    provider: &Provider,
    name: &str,
    missing: impl Fn() -> String,
) -> Result<(Url, T), SourceError> {
    let explained = |e: String| format!("the network mirror {} is of no use: {e}", net::shown(base));
    let failed = |e: String| SourceError::Failed(explained(e));
    let request_failed = |e: net::Error| SourceError::from_net(&e, explained);
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty()
            .extend([&*provider.host, &*provider.namespace, &*provider.ty, name]);
    }
    // Credentials are those of the mirror's host, not of the provider's registry.
    let host = match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => Host::parse(&format!("{host}:{port}")),
        (Some(host), None) => Host::parse(host),
        (None, _) => None,
    };
    let token = match &host {
        Some(host) => client.token(host).await.map_err(request_failed)?,
        None => None,
    };
    let request = client
        .get(url)
        .token(token.as_ref())
        .header("accept", "application/json");
    // Relative URLs of the archives refer to the URL of the document after redirects.
    let sent = request.to_registry().redirects(REDIRECTS).send().await;
    let mut response = sent.map_err(request_failed)?;
    if response.status().as_u16() == 404 {
        return Err(SourceError::Missing(missing()));
    }
    let kind = response.header("content-type").unwrap_or("").to_owned();
    let at = response.url.clone();
    // A login page or a directory listing has another type, and this error explains it better than the JSON
    // parser's.
    if response.status().is_success() && kind.split(';').next().unwrap_or("").trim() != "application/json" {
        return Err(failed(format!(
            "the content type of {} is \"{kind}\" and not application/json",
            net::shown(&at)
        )));
    }
    if !response.status().is_success() {
        return Err(failed(response.failure().to_string()));
    }
    let body = response.bytes(LIMIT).await.map_err(request_failed)?;
    let parsed = serde_json::from_slice(&body);
    let parsed = parsed.map_err(|e| {
        failed(format!(
            "the answer of {} cannot be used: {}",
            net::shown(&at),
            files::json_reason(e)
        ))
    })?;
    Ok((at, parsed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn absent_null_and_empty_are_one_thing() {
        for index in [json!({}), json!({"versions": null}), json!({"versions": {}})] {
            assert!(serde_json::from_value::<Index>(index).unwrap().versions.is_empty());
        }
        let index: Index = serde_json::from_value(json!({"versions": {"1.0.0": null, "1.1.0": {}}})).unwrap();
        assert_eq!(index.versions.len(), 2, "the names count");
        for archives in [
            json!({}),
            json!({"archives": null}),
            json!({"archives": {}}),
            json!({"archives": {"linux_amd64": null}}),
        ] {
            assert!(
                serde_json::from_value::<Archives>(archives)
                    .unwrap()
                    .archives
                    .is_empty()
            );
        }
        for archive in [
            json!({"url": "a.zip"}),
            json!({"url": "a.zip", "hashes": null}),
            json!({"url": "a.zip", "hashes": []}),
            json!({"url": "a.zip", "hashes": [null]}),
        ] {
            assert!(serde_json::from_value::<Archive>(archive).unwrap().hashes.is_empty());
        }
    }
}
