//! Mirrors in OCI registries: one repository for each provider, one tag for each version.

use std::collections::BTreeSet;

use addrs::Provider;
use addrs::platform::Platform;
use net::Client;
use oci::OciError;
use versions::Version;

use crate::metadata::{Authentication, AvailableVersion, Location, PackageMetadata, SourceError};
use crate::repository_template::RepositoryTemplate;

/// Returns the versions of a provider at the mirror: the tags that are versions.
pub async fn versions(
    client: &Client,
    template: &RepositoryTemplate,
    provider: &Provider,
) -> Result<Vec<AvailableVersion>, SourceError> {
    let repository = template.repository(provider).map_err(source_error)?;
    let tags = oci::provider_versions(client, &repository)
        .await
        .map_err(source_error)?;
    let version = |tag: &String| {
        Some(AvailableVersion {
            version: Version::parse(tag).ok()?,
            // The platforms are not in the tag, but in the manifest behind it.
            platforms: None,
        })
    };
    Ok(tags.iter().filter_map(version).collect())
}

/// Returns the metadata of a package. Its checksum is the digest of the archive's blob.
pub async fn metadata(
    client: &Client,
    template: &RepositoryTemplate,
    provider: &Provider,
    version: &Version,
    platform: &Platform,
) -> Result<PackageMetadata, SourceError> {
    let repository = template.repository(provider).map_err(source_error)?;
    let (os, architecture) = (&*platform.os, &*platform.arch);
    let package = oci::provider_package(client, &repository, &version.to_string(), (os, architecture))
        .await
        .map_err(source_error)?;
    Ok(PackageMetadata {
        location: Location::Blob {
            url: package.url,
            authorization: package.authorization,
        },
        authentication: Authentication::Checksum,
        hashes: BTreeSet::from([format!("zh:{}", package.sha256)]),
        known: BTreeSet::new(),
    })
}

fn source_error(error: OciError) -> SourceError {
    match &error {
        OciError::NotFound { .. } => SourceError::Missing(error.to_string()),
        error if error.is_unreachable() => SourceError::Unreachable(error.to_string()),
        _ => SourceError::Failed(error.to_string()),
    }
}
