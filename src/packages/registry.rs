//! The provider registry protocol, `providers.v1`.

use std::collections::BTreeSet;

use addrs::Provider;
use net::discovery::PROVIDERS;
use net::{Client, Host, Token, Url};
use serde::Deserialize;

use crate::metadata::{Authentication, AvailableVersion, Location, PackageMetadata, SourceError};
use crate::signature::{self, Named};
use addrs::platform::Platform;
use versions::Version;

/// Limit of a list of versions in bytes. Lists grow with every release.
const LIST_LIMIT: u64 = 64 << 20;
/// Limit of a package's metadata, list of checksums or signature in bytes.
const DOCUMENT_LIMIT: u64 = 4 << 20;

#[derive(Deserialize)]
struct Versions {
    #[serde(default, deserialize_with = "net::absent::list")]
    versions: Vec<OneVersion>,
}

#[derive(Deserialize)]
struct OneVersion {
    version: String,
    #[serde(default, deserialize_with = "net::absent::list")]
    platforms: Vec<OnePlatform>,
}

#[derive(Deserialize)]
struct OnePlatform {
    os: String,
    arch: String,
}

#[derive(Deserialize)]
struct PackageAnswer {
    #[serde(default, deserialize_with = "net::absent::list")]
    protocols: Vec<String>,
    filename: String,
    download_url: String,
    shasum: String,
    shasums_url: String,
    #[serde(default, deserialize_with = "net::absent::or_default")]
    shasums_signature_url: String,
    #[serde(default, deserialize_with = "net::absent::or_default")]
    signing_keys: Keys,
}

#[derive(Default, Deserialize)]
struct Keys {
    #[serde(default, deserialize_with = "net::absent::list")]
    gpg_public_keys: Vec<Key>,
}

#[derive(Deserialize)]
struct Key {
    ascii_armor: String,
    #[serde(default)]
    trust_signature: Option<String>,
}

/// Returns the versions of a provider in its registry, without those that cannot be parsed.
pub async fn versions(client: &Client, provider: &Provider) -> Result<Vec<AvailableVersion>, SourceError> {
    let (url, token) = endpoint(client, provider, &["versions"]).await?;
    let request = client
        .get(url)
        .token(token.as_ref())
        .header("accept", "application/json");
    let (_, body) = request.to_registry().read(LIST_LIMIT).await.map_err(|e| {
        let missing = || {
            format!(
                "the registry {} has no provider {}. All modules should say in required_providers which providers they \
                 depend on, with a \"source\" for each that is not of the default namespace",
                provider.host,
                provider.for_display()
            )
        };
        refusal(provider, &e, missing)
    })?;
    let answer: Versions = parse(provider, &body)?;
    let mut out = Vec::with_capacity(answer.versions.len());
    for one in answer.versions {
        match Version::parse(&one.version) {
            Ok(version) => out.push(AvailableVersion {
                version,
                // If a registry lists no platforms, they are unknown; it does not mean that there are none.
                platforms: (!one.platforms.is_empty()).then(|| {
                    one.platforms
                        .into_iter()
                        .map(|p| format!("{}_{}", p.os, p.arch))
                        .collect()
                }),
            }),
            // One version that cannot be parsed must not hide all other versions.
            Err(_) => {
                tracing::warn!(%provider, version = one.version, "the registry lists a version that is not a semantic version")
            }
        }
    }
    Ok(out)
}

/// Returns the metadata of a package in its registry. The list of checksums must be signed.
pub async fn metadata(
    client: &Client,
    provider: &Provider,
    version: &Version,
    platform: &Platform,
) -> Result<PackageMetadata, SourceError> {
    let version_text = version.to_string();
    let path = [&*version_text, "download", &*platform.os, &*platform.arch];
    let (url, token) = endpoint(client, provider, &path).await?;
    let request = client
        .get(url)
        .token(token.as_ref())
        .header("accept", "application/json");
    let (at, body) = request.to_registry().read(DOCUMENT_LIMIT).await.map_err(|e| {
        let missing = || format!("the registry {} has no package of it for {platform}", provider.host);
        refusal(provider, &e, missing)
    })?;
    let answer: PackageAnswer = parse(provider, &body)?;
    speakable(&answer.protocols)?;
    // Relative URLs refer to the URL of the response after redirects.
    let join = |what: &str, text: &str| {
        let url = at
            .join(text)
            .ok()
            .filter(|url| matches!(url.scheme(), "https" | "http"));
        url.ok_or_else(|| {
            SourceError::Failed(format!(
                "the registry {} gives a {what} that is none: \"{text}\"",
                provider.host
            ))
        })
    };
    let archive = join("download_url", &answer.download_url)?;
    let sums = join("shasums_url", &answer.shasums_url)?;
    let read = async |url: Url, what: &str| {
        // The documents are requested without the token, because these URLs may be on other hosts.
        let got = client.get(url).to_registry().read(DOCUMENT_LIMIT).await;
        got.map(|(_, body)| body)
            .map_err(|e| SourceError::from_net(&e, |e| format!("the {what} of the package cannot be read: {e}")))
    };
    let document = read(sums, "list of checksums").await?;
    let known = sums_of(&document);
    let shasum = answer.shasum.to_lowercase();
    // The listed checksum is checked before the signature: the signed list must be the one that the package is
    // compared with.
    listed_as(&known, &answer.filename, &shasum, provider)?;
    let keys: Vec<Named> = answer
        .signing_keys
        .gpg_public_keys
        .into_iter()
        .map(|key| Named {
            armored: key.ascii_armor,
            trust: key.trust_signature.unwrap_or_default(),
        })
        .collect();
    // Without the signature, the list of checksums would only be a claim of the registry.
    if answer.shasums_signature_url.is_empty() {
        return Err(unsigned("the registry gives no signature of it"));
    }
    let signature = read(
        join("shasums_signature_url", &answer.shasums_signature_url)?,
        "signature",
    )
    .await?;
    let signer = signature::verify(&document, &signature, &keys).map_err(|why| unsigned(&why.to_string()))?;
    Ok(PackageMetadata {
        location: Location::Url(archive),
        hashes: [format!("zh:{shasum}")].into(),
        known: known.into_iter().map(|(sum, _)| format!("zh:{sum}")).collect(),
        authentication: Authentication::Signed(signer),
    })
}

/// Checks that the list of checksums has this checksum for the package.
fn listed_as(
    known: &BTreeSet<(String, String)>,
    filename: &str,
    shasum: &str,
    provider: &Provider,
) -> Result<(), SourceError> {
    match known.iter().find(|(_, name)| *name == filename) {
        Some((sum, _)) if *sum == shasum => Ok(()),
        Some((sum, _)) => Err(SourceError::Failed(format!(
            "the registry {} contradicts itself: it says that {} has the checksum {shasum}, and its list of checksums \
                 says {sum}",
            provider.host, filename
        ))),
        None => Err(SourceError::Failed(format!(
            "the list of checksums of the registry {} has no line for {}",
            provider.host, filename
        ))),
    }
}

fn unsigned(why: &str) -> SourceError {
    SourceError::Failed(format!(
        "the list of checksums of the package is not to be relied on: {why}"
    ))
}

/// Parses a list of checksums: a SHA-256 and a file name on each line.
fn sums_of(document: &[u8]) -> BTreeSet<(String, String)> {
    let text = String::from_utf8_lossy(document);
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (sum, name) = (words.next()?, words.next()?);
        let is_sum = sum.len() == 64 && sum.bytes().all(|b| b.is_ascii_hexdigit());
        // sha256sum marks binary files by an asterisk before the name.
        (is_sum && words.next().is_none()).then(|| (sum.to_lowercase(), name.trim_start_matches('*').to_owned()))
    };
    text.lines().filter_map(line).collect()
}

/// Checks that the provider speaks protocol 5 or 6. An empty list means protocol 5, the first one of registries.
fn speakable(protocols: &[String]) -> Result<(), SourceError> {
    let major = |text: &String| text.split('.').next().and_then(|n| n.parse::<u32>().ok());
    if protocols.is_empty() || protocols.iter().any(|p| matches!(major(p), Some(5 | 6))) {
        return Ok(());
    }
    Err(SourceError::Failed(format!(
        "it speaks the plugin protocol {}, and this program speaks 5 and 6: choose another version of the provider, or of this \
         program",
        protocols.join(", ")
    )))
}

fn parse<'b, T: Deserialize<'b>>(provider: &Provider, body: &'b [u8]) -> Result<T, SourceError> {
    serde_json::from_slice(body).map_err(|e| {
        SourceError::Failed(format!(
            "the answer of the registry {} cannot be used: {}",
            provider.host,
            files::json_reason(e)
        ))
    })
}

fn refusal(provider: &Provider, error: &net::Error, missing: impl Fn() -> String) -> SourceError {
    match error.status().map(|s| s.as_u16()) {
        Some(404) => SourceError::Missing(missing()),
        Some(401 | 403) => SourceError::Failed(format!(
            "{error}. The registry wants to know who asks: give a token for {} in a \"credentials\" block of the CLI \
             configuration, or in the environment variable TF_TOKEN_{}",
            provider.host,
            provider.host.replace('-', "__").replace('.', "_")
        )),
        _ => SourceError::from_net(error, |text| text),
    }
}

async fn endpoint(client: &Client, provider: &Provider, more: &[&str]) -> Result<(Url, Option<Token>), SourceError> {
    let host = Host::parse(&provider.host)
        .ok_or_else(|| SourceError::Failed(format!("\"{}\" is not the name of a host", provider.host)))?;
    let mut url = client
        .service(&host, PROVIDERS)
        .await
        .map_err(|e| match e.is_unreachable() {
            true => SourceError::Unreachable(e.to_string()),
            false => SourceError::Failed(e.to_string()),
        })?;
    if let Ok(mut path) = url.path_segments_mut() {
        // Registries announce this URL with or without a slash at its end.
        path.pop_if_empty()
            .extend([&*provider.namespace, &*provider.ty])
            .extend(more);
    }
    // As in Terraform, the token is that of the host in the provider's address, even if discovery names another host.
    let token = client
        .token(&host)
        .await
        .map_err(|e| SourceError::Failed(e.to_string()))?;
    Ok((url, token))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    /// Builds three documents: without a member, with null as the member, and with an empty member.
    fn forms(whole: &Json, place: &str, member: &str, empty: &Json) -> [Json; 3] {
        let mut forms = [whole.clone(), whole.clone(), whole.clone()];
        for (form, value) in forms.iter_mut().zip([None, Some(Json::Null), Some(empty.clone())]) {
            let object = form.pointer_mut(place).and_then(Json::as_object_mut).unwrap();
            object.remove(member);
            object.extend(value.map(|value| (member.to_owned(), value)));
        }
        forms
    }

    #[test]
    fn absent_null_and_empty_are_one_thing() {
        let versions = json!({"versions": [
            {"version": "1.0.0", "protocols": ["5.0"], "platforms": [{"os": "linux", "arch": "amd64"}]},
        ]});
        for form in forms(&versions, "", "versions", &json!([])) {
            assert!(serde_json::from_value::<Versions>(form).unwrap().versions.is_empty());
        }
        for member in ["platforms", "protocols"] {
            for form in forms(&versions, "/versions/0", member, &json!([])) {
                let read: Versions = serde_json::from_value(form).unwrap();
                assert_eq!(read.versions.len(), 1, "{member}");
            }
        }
        let package = json!({
            "protocols": ["5.0"], "os": "linux", "arch": "amd64", "filename": "f", "download_url": "d",
            "shasums_url": "s", "shasums_signature_url": "g", "shasum": "x",
            "signing_keys": {"gpg_public_keys": [{"key_id": "k", "ascii_armor": "a", "trust_signature": "t", "source": "", "source_url": null}]},
        });
        for (place, member, empty) in [
            ("", "protocols", json!([])),
            ("", "shasums_signature_url", json!("")),
            ("", "signing_keys", json!({})),
            ("/signing_keys", "gpg_public_keys", json!([])),
            ("/signing_keys/gpg_public_keys/0", "trust_signature", json!("")),
            ("/signing_keys/gpg_public_keys/0", "key_id", json!("")),
        ] {
            for form in forms(&package, place, member, &empty) {
                let read = serde_json::from_value::<PackageAnswer>(form);
                assert!(read.is_ok(), "{place}/{member}: {:?}", read.err());
            }
        }
        assert!(speakable(&[]).is_ok());
    }
}
