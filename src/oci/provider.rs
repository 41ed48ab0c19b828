//! Provider packages in OCI registries.
//!
//! A version is a tag of an index, which has one manifest for each platform, with the usual ZIP archive as its layer.
//! Tags cannot contain `+`: `_` replaces it before build metadata.

use net::{Client, Url};

use crate::address::{Reference, Repository};
use crate::error::OciError;
use crate::manifest::{Descriptor, IMAGE, INDEX, Manifest};
use crate::registry::{Authorization, Registry};
use crate::unfit::UnfitManifest;

/// The artifact type of an index of provider packages.
pub(crate) const PROVIDER: &str = "application/vnd.opentofu.provider";
/// The artifact type of the package of one platform.
pub(crate) const TARGET: &str = "application/vnd.opentofu.provider-target";
/// The artifact type of a module package.
pub(crate) const MODULE: &str = "application/vnd.opentofu.modulepkg";

/// The location of a provider package for one platform.
#[derive(Clone, Debug)]
pub struct ProviderPackage {
    /// The URL of the ZIP archive.
    pub url: Url,
    /// The authorization of the request, if the registry requires one. Targets of redirects must not receive it.
    pub authorization: Option<Authorization>,
    /// The SHA-256 of the archive in hexadecimal digits.
    pub sha256: String,
}

/// Returns the tags of a repository as possible versions, with `+` in place of `_`.
///
/// # Errors
///
/// Returns an error if the repository does not exist, or if a request failed.
pub async fn versions(client: &Client, repository: &Repository) -> Result<Vec<String>, OciError> {
    let tags = Registry::new(client, repository.clone()).tags().await?;
    Ok(tags.into_iter().map(|tag| tag.replacen('_', "+", 1)).collect())
}

/// Returns the package of a version for a platform.
///
/// # Errors
///
/// Returns an error if there is no such package, if the artifact is not a provider, or if a request failed.
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
    // Checksums in the lock file and of other sources are SHA-256, too.
    let not_sha256 = || unfit(UnfitManifest::NotSha256(layer.to_string()));
    let sha256 = layer.sha256().map(str::to_owned).ok_or_else(not_sha256)?;
    Ok(ProviderPackage {
        url: registry.blob_url(&layer)?,
        authorization: registry.authorization(),
        sha256,
    })
}

/// Checks that a manifest is an index of provider packages.
fn check_index(manifest: &Manifest, kind: &str) -> Result<(), UnfitManifest> {
    if manifest.artifact_type.as_deref() == Some(MODULE) {
        return Err(UnfitManifest::Module);
    }
    if kind != INDEX {
        return Err(UnfitManifest::NotIndex(kind.to_owned()));
    }
    check_artifact_type(manifest, PROVIDER)
}

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

/// Lists the platforms of an index for messages.
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
