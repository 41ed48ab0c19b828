//! Provider packages in OCI registries.
//!
//! A version is a tag that names an index; the index has one manifest a platform; that one has the usual ZIP archive as its
//! layer. `+` cannot be part of a tag: build metadata are written behind `_`.

use net::{Client, Url};

use crate::address::{Reference, Repository};
use crate::error::OciError;
use crate::manifest::{Descriptor, IMAGE, INDEX, Manifest};
use crate::registry::{Authorization, Registry};
use crate::unfit::UnfitManifest;

/// The artifact type of an index of provider packages.
const PROVIDER: &str = "application/vnd.opentofu.provider";
/// The artifact type of the package of one platform.
const TARGET: &str = "application/vnd.opentofu.provider-target";
/// The artifact type of a module package.
pub(crate) const MODULE: &str = "application/vnd.opentofu.modulepkg";

/// Where the package of a provider for one platform is.
#[derive(Clone, Debug)]
pub struct ProviderPackage {
    /// The address of its ZIP archive.
    pub url: Url,
    /// What the request for it needs, if anything. It is for the registry, and not for where that redirects.
    pub authorization: Option<Authorization>,
    /// The SHA-256 of the archive in hexadecimal digits.
    pub sha256: String,
}

/// The tags of a repository as versions, as far as they may be some: with `+` for `_`.
///
/// # Errors
///
/// The repository does not exist, or a request failed.
pub async fn versions(client: &Client, repository: &Repository) -> Result<Vec<String>, OciError> {
    let tags = Registry::new(client, repository.clone()).tags().await?;
    Ok(tags.into_iter().map(|tag| tag.replacen('_', "+", 1)).collect())
}

/// The package of a version for a platform.
///
/// # Errors
///
/// There is none, the artifact is not a provider, or a request failed.
pub async fn package(
    client: &Client,
    repository: &Repository,
    version: &str,
    (os, architecture): (&str, &str),
) -> Result<ProviderPackage, OciError> {
    let registry = Registry::new(client, repository.clone());
    let tag = version.replacen('+', "_", 1);
    let unfit = |reason| OciError::Artifact {
        artifact: format!("{repository}:{tag}"),
        reason,
    };
    let (index, kind) = registry.manifest(&Reference::Tag(tag.clone())).await?;
    check_index(&index, &kind).map_err(unfit)?;
    let fits = |entry: &&Descriptor| {
        let platform = entry.platform.as_ref();
        entry.artifact_type.as_deref() == Some(TARGET)
            && platform.is_some_and(|platform| platform.os == os && platform.architecture == architecture)
    };
    let mut entries = index.manifests.iter().filter(fits);
    let entry = match (entries.next(), entries.next()) {
        (Some(entry), None) => entry,
        (Some(_), Some(_)) => return Err(unfit(UnfitManifest::SeveralPackages(format!("{os}_{architecture}")))),
        (None, _) => {
            return Err(registry.not_found(format!(
                "has no package of the version {version} for {os}_{architecture}, only for {}",
                platforms(&index)
            )));
        }
    };
    if entry.media_type != IMAGE {
        return Err(unfit(UnfitManifest::PackageMediaType {
            platform: format!("{os}_{architecture}"),
            found: entry.media_type.clone(),
        }));
    }
    let digest = entry
        .digest()
        .ok_or_else(|| unfit(UnfitManifest::UnknownDigest(entry.digest.clone())))?;
    let (image, _) = registry.manifest(&Reference::Digest(digest.clone())).await?;
    let unfit = |reason| OciError::Artifact {
        artifact: registry.artifact(&digest),
        reason,
    };
    check_artifact_type(&image, TARGET).map_err(unfit)?;
    let (_, layer) = image.zip_layer().map_err(unfit)?;
    let not_sha256 = || unfit(UnfitManifest::NotSha256(layer.to_string()));
    let sha256 = layer.sha256().map(str::to_owned).ok_or_else(not_sha256)?;
    Ok(ProviderPackage {
        url: registry.blob_url(&layer)?,
        authorization: registry.authorization(),
        sha256,
    })
}

/// Checks that a manifest is an index of the packages of a provider.
fn check_index(manifest: &Manifest, kind: &str) -> Result<(), UnfitManifest> {
    if manifest.artifact_type.as_deref() == Some(MODULE) {
        return Err(UnfitManifest::Module);
    }
    if kind != INDEX {
        return Err(UnfitManifest::NotIndex(kind.to_owned()));
    }
    check_artifact_type(manifest, PROVIDER)
}

/// Checks the artifact type of a manifest.
pub(crate) fn check_artifact_type(manifest: &Manifest, expected: &'static str) -> Result<(), UnfitManifest> {
    match manifest.artifact_type.as_deref() {
        Some(found) if found == expected => Ok(()),
        Some(PROVIDER | TARGET) => Err(UnfitManifest::Provider),
        Some(found) => Err(UnfitManifest::ArtifactType {
            found: found.to_owned(),
            expected,
        }),
        None => Err(UnfitManifest::NoArtifactType(expected)),
    }
}

/// The platforms of an index, for messages.
fn platforms(index: &Manifest) -> String {
    let mut names: Vec<String> = index
        .manifests
        .iter()
        .filter(|entry| entry.artifact_type.as_deref() == Some(TARGET))
        .filter_map(|entry| entry.platform.as_ref())
        .map(|platform| format!("{}_{}", platform.os, platform.architecture))
        .collect();
    names.sort();
    names.dedup();
    match names.is_empty() {
        true => "no platform at all".to_owned(),
        false => names.join(", "),
    }
}
