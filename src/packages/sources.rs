//! Where packages are installed from: the registry that a provider's address names, network mirrors, and archives in
//! filesystem mirrors.
//!
//! Each [`PackageSource`] returns the available versions, and the [`PackageMetadata`] of one version for a platform. The
//! metadata of a registry are accepted only if they are signed ([`crate::signature`]).

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use addrs::Provider;
use net::{Client, Url};

use crate::cli_config::Source;
use crate::discovery;
use crate::repository_template::RepositoryTemplate;
use crate::settings::Settings;
use crate::signature::Standing;
use crate::{network_mirror, not_available, oci_mirror, registry};
use addrs::platform::Platform;
use versions::Version;

/// A source of packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackageSource {
    /// Archives in a directory in mirror layout.
    Packed(PathBuf),
    /// A network mirror.
    Mirror(Url),
    /// Repositories of OCI registries.
    Oci(RepositoryTemplate),
    /// The provider's own registry.
    Direct,
}

/// How a package was authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// Not at all.
    None,
    /// A source that the configuration trusts has its checksum.
    Checksum,
    /// It is signed.
    Signed(crate::signature::Signer),
}

impl fmt::Display for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Authentication::None => f.write_str("unauthenticated"),
            Authentication::Checksum => f.write_str("verified checksum"),
            Authentication::Signed(signer) => match signer.standing {
                Standing::Vendor => f.write_str("signed by HashiCorp"),
                Standing::Partner => write!(f, "signed by a HashiCorp partner, key ID {}", signer.key_id),
                Standing::Registry => write!(f, "self-signed, key ID {}", signer.key_id),
            },
        }
    }
}

/// A version that a source has.
#[derive(Clone, Debug)]
pub struct AvailableVersion {
    /// The version.
    pub version: Version,
    /// The platforms it is for, if that is said.
    pub platforms: Option<BTreeSet<String>>,
}

/// Where an archive is.
#[derive(Clone, Debug)]
pub enum Location {
    /// On a server.
    Url(Url),
    /// A blob in an OCI registry.
    Blob {
        /// Its address.
        url: Url,
        /// What the request for it needs.
        authorization: Option<oci::Authorization>,
    },
    /// On this machine.
    File(PathBuf),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Url(url) | Location::Blob { url, .. } => f.write_str(&net::shown(url)),
            Location::File(path) => path.display().fmt(f),
        }
    }
}

/// The metadata of a package at its source.
#[derive(Clone, Debug)]
pub struct PackageMetadata {
    /// Where its archive is.
    pub location: Location,
    /// The checksums of which one must fit, if there are any.
    pub hashes: BTreeSet<String>,
    /// Checksums of packages of the same version for all platforms, which can be relied on as much as this package.
    pub known: BTreeSet<String>,
    /// How the package was authenticated.
    pub authentication: Authentication,
}

/// Why a source does not return versions or metadata. The text is a clause without a full stop.
#[derive(Clone, Debug)]
pub enum SourceError {
    /// It does not have the provider or the version; another source may.
    Missing(String),
    /// The request failed or the response is invalid.
    Failed(String),
    /// It cannot be reached: perhaps there is no network.
    Unreachable(String),
}

impl SourceError {
    /// The sentence.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            SourceError::Missing(text) | SourceError::Failed(text) | SourceError::Unreachable(text) => text,
        }
    }

    /// What a request that failed means.
    #[must_use]
    pub fn from_net(error: &net::Error, explained: impl FnOnce(String) -> String) -> SourceError {
        let text = explained(error.to_string());
        match error.is_unreachable() {
            true => SourceError::Unreachable(text),
            false => SourceError::Failed(text),
        }
    }

    /// The sentence, and what helps where it is about the network: for the end of a text that is complete sentences.
    #[must_use]
    pub fn advised(&self) -> String {
        match self {
            SourceError::Unreachable(text) => format!("{text}. {}", net::WITHOUT_NETWORK.trim_end_matches('.')),
            other => other.text().to_owned(),
        }
    }
}

/// The package sources of a provider, in order.
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
            // The configuration was checked when it was read.
            Source::NetworkMirror(url) => Url::parse(url).ok().map(PackageSource::Mirror),
            Source::OciMirror(template) => Some(PackageSource::Oci(template.clone())),
            Source::Direct => Some(PackageSource::Direct),
        };
        let methods = methods.iter().filter(|m| m.applies_to(provider));
        return methods.filter_map(|m| place(&m.source)).collect();
    }
    // Providers in the user's mirror directories are never searched for in other sources.
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
    /// The versions of a provider at this source.
    pub async fn versions(&self, client: &Client, provider: &Provider) -> Result<Vec<AvailableVersion>, SourceError> {
        match self {
            PackageSource::Packed(dir) => {
                let listed = |(version, platforms): (Version, BTreeSet<Platform>)| AvailableVersion {
                    version,
                    platforms: Some(platforms.iter().map(Platform::to_string).collect()),
                };
                Ok(not_available::mirrored(dir, provider).into_iter().map(listed).collect())
            }
            PackageSource::Mirror(base) => network_mirror::versions(client, base, provider).await,
            PackageSource::Oci(template) => oci_mirror::versions(client, template, provider).await,
            PackageSource::Direct => registry::versions(client, provider).await,
        }
    }

    /// The metadata of a version for a platform.
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
                    hashes: BTreeSet::new(),
                    known: BTreeSet::new(),
                    authentication: Authentication::None,
                })
                .ok_or_else(|| {
                    SourceError::Missing(match not_available::mirrored(dir, provider).get(version) {
                        Some(platforms) => format!("{self} has it for {} only", not_available::listed(platforms)),
                        None => format!("{self} does not have it"),
                    })
                }),
            PackageSource::Mirror(base) => network_mirror::metadata(client, base, provider, version, platform).await,
            PackageSource::Oci(template) => oci_mirror::metadata(client, template, provider, version, platform).await,
            PackageSource::Direct => registry::metadata(client, provider, version, platform).await,
        }
    }
}

/// An archive in a filesystem mirror.
#[derive(Clone, Debug)]
pub struct Packed {
    /// The version.
    pub version: Version,
    /// The platform it is for.
    pub platform: Platform,
    /// The file.
    pub path: PathBuf,
}

/// The archives of a provider in a directory in mirror layout: `HOST/NS/TYPE/terraform-provider-TYPE_VERSION_OS_ARCH.zip`.
#[must_use]
pub fn packed(base: &Path, provider: &Provider) -> Vec<Packed> {
    let dir = discovery::provider_dir(base, provider);
    let prefix = format!("terraform-provider-{}_", provider.ty);
    let mut out = Vec::new();
    for name in discovery::entries(&dir) {
        let lower = name.to_lowercase();
        let Some(rest) = lower.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".zip")) else {
            continue;
        };
        let parsed = rest
            .split_once('_')
            .and_then(|(version, platform)| Some((Version::parse(version).ok()?, platform.parse::<Platform>().ok()?)));
        match parsed {
            Some((version, platform)) => out.push(Packed {
                version,
                platform,
                path: dir.join(name),
            }),
            None => tracing::warn!(name, "archive ignored: its name says no version and platform"),
        }
    }
    out
}
