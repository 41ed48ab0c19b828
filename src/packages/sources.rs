//! Package sources: a provider's registry, network mirrors, OCI mirrors, and archives in filesystem mirrors.
//!
//! Each [`PackageSource`] returns the available versions, and the [`PackageMetadata`] of one version for a platform. A
//! registry's metadata is accepted only if it is signed ([`crate::signature`]).

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use addrs::Provider;
use net::{Client, Url};

use crate::cli_config::Source;
use crate::discovery;
use crate::metadata::{Authentication, AvailableVersion, Location, PackageMetadata, SourceError};
use crate::mirror_archives::{listed, mirrored, packed};
use crate::repository_template::RepositoryTemplate;
use crate::settings::Settings;
use crate::{network_mirror, oci_mirror, registry};
use addrs::platform::Platform;
use versions::Version;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackageSource {
    Packed(PathBuf),
    Mirror(Url),
    /// OCI mirror: repositories of OCI registries.
    Oci(RepositoryTemplate),
    /// Registry of the provider's address.
    Direct,
}

/// Returns the package sources of a provider, in the order in which they are tried.
#[must_use]
pub fn sources(settings: &Settings, provider: &Provider) -> Vec<PackageSource> {
    if !settings.plugin_dirs.is_empty() {
        return settings
            .plugin_dirs
            .iter()
            .cloned()
            .map(PackageSource::Packed)
            .collect();
    }
    if let Some(methods) = &settings.config.provider_installation {
        let place = |source: &Source| match source {
            Source::FilesystemMirror(path) => Some(PackageSource::Packed(path.clone())),
            // Invalid URLs were refused when the CLI configuration was read.
            Source::NetworkMirror(url) => Url::parse(url).ok().map(PackageSource::Mirror),
            Source::OciMirror(template) => Some(PackageSource::Oci(template.clone())),
            Source::Direct => Some(PackageSource::Direct),
        };
        let methods = methods.iter().filter(|m| m.applies_to(provider));
        return methods.filter_map(|m| place(&m.source)).collect();
    }
    // As in Terraform, a provider in an implied mirror directory is never requested from its registry.
    let dirs: Vec<PathBuf> = discovery::search_dirs(settings)
        .into_iter()
        .filter(discovery::SearchDir::is_mirror)
        .map(|dir| dir.path)
        .filter(|dir| dir.is_dir())
        .collect();
    let here = dirs
        .iter()
        .any(|dir| !discovery::platforms_below(dir, provider).is_empty() || !packed(dir, provider).is_empty());
    if here {
        dirs.into_iter().map(PackageSource::Packed).collect()
    } else {
        vec![PackageSource::Direct]
    }
}

impl fmt::Display for PackageSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PackageSource::Packed(dir) => write!(f, "the directory {}", dir.display()),
            PackageSource::Mirror(url) => write!(f, "the network mirror {}", net::shown(url)),
            PackageSource::Oci(template) => write!(f, "the OCI mirror {template}"),
            PackageSource::Direct => f.write_str("its registry"),
        }
    }
}

impl PackageSource {
    /// Returns the versions of a provider at this source.
    pub async fn versions(&self, client: &Client, provider: &Provider) -> Result<Vec<AvailableVersion>, SourceError> {
        match self {
            PackageSource::Packed(dir) => {
                let available = |(version, platforms): (Version, BTreeSet<Platform>)| AvailableVersion {
                    version,
                    platforms: Some(platforms.iter().map(Platform::to_string).collect()),
                };
                Ok(mirrored(dir, provider).into_iter().map(available).collect())
            }
            PackageSource::Mirror(base) => network_mirror::versions(client, base, provider).await,
            PackageSource::Oci(template) => oci_mirror::versions(client, template, provider).await,
            PackageSource::Direct => registry::versions(client, provider).await,
        }
    }

    /// Returns the metadata of a package at this source.
    pub async fn metadata(
        &self,
        client: &Client,
        provider: &Provider,
        version: &Version,
        platform: &Platform,
    ) -> Result<PackageMetadata, SourceError> {
        match self {
            PackageSource::Packed(dir) => packed(dir, provider)
                .into_iter()
                .find(|a| a.version == *version && a.platform == *platform)
                .map(|archive| PackageMetadata {
                    location: Location::File(archive.path),
                    // A directory has no list of checksums, so the unpacked package is compared with the lock
                    // file only.
                    hashes: BTreeSet::new(),
                    known: BTreeSet::new(),
                    authentication: Authentication::None,
                })
                .ok_or_else(|| {
                    SourceError::Missing(match mirrored(dir, provider).get(version) {
                        Some(platforms) => format!("{self} has it for {} only", listed(platforms)),
                        None => format!("{self} does not have it"),
                    })
                }),
            PackageSource::Mirror(base) => network_mirror::metadata(client, base, provider, version, platform).await,
            PackageSource::Oci(template) => oci_mirror::metadata(client, template, provider, version, platform).await,
            PackageSource::Direct => registry::metadata(client, provider, version, platform).await,
        }
    }
}
