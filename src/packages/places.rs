//! Where packages are installed from: the registry that a provider's address names, network mirrors, and archives in
//! filesystem mirrors.
//!
//! Each [`Place`] answers two questions: which versions there are, and what there is of one version for a platform (an
//! [`Offer`]). What a registry says about a package is believed only as far as it is signed ([`crate::signature`]).

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use addrs::Provider;
use net::{Client, Url};

use crate::cli_config::Source;
use crate::discovery;
use crate::settings::Settings;
use crate::signature::Standing;
use crate::{network_mirror, not_available, origin};
use addrs::platform::Platform;
use versions::Version;

/// A place to install from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Archives in a directory in mirror layout.
    Packed(PathBuf),
    /// A network mirror.
    Mirror(Url),
    /// The provider's own registry.
    Direct,
}

/// How far it is known that a package is what its authors made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// Not at all.
    None,
    /// Somebody who is trusted by the configuration vouches for its checksum.
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

/// A version that a place has.
#[derive(Clone, Debug)]
pub struct Listed {
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
    /// On this machine.
    File(PathBuf),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Url(url) => f.write_str(&net::shown(url)),
            Location::File(path) => path.display().fmt(f),
        }
    }
}

/// A package that can be had.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Where its archive is.
    pub location: Location,
    /// The checksums of which one must fit, if there are any.
    pub hashes: BTreeSet<String>,
    /// Checksums of packages of the same version for all platforms, which can be relied on as much as this package.
    pub known: BTreeSet<String>,
    /// How far all this is to be relied on.
    pub authentication: Authentication,
}

/// Why a place has no answer. Both are sentences without their full stop.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// It has no such thing; perhaps another place has.
    Missing(String),
    /// It should know, but something is wrong.
    Failed(String),
    /// It cannot be reached: perhaps there is no network.
    Unreachable(String),
}

impl Refusal {
    /// The sentence.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Refusal::Missing(text) | Refusal::Failed(text) | Refusal::Unreachable(text) => text,
        }
    }

    /// What a request that failed means.
    #[must_use]
    pub fn of(error: &net::Error, explained: impl FnOnce(String) -> String) -> Refusal {
        let text = explained(error.to_string());
        match error.is_unreachable() {
            true => Refusal::Unreachable(text),
            false => Refusal::Failed(text),
        }
    }

    /// The sentence, and what helps where it is about the network: for the end of a text that is complete sentences.
    #[must_use]
    pub fn advised(&self) -> String {
        match self {
            Refusal::Unreachable(text) => format!("{text}. {}", net::WITHOUT_NETWORK.trim_end_matches('.')),
            other => other.text().to_owned(),
        }
    }
}

/// The places for a provider, in order.
#[must_use]
pub fn places(settings: &Settings, provider: &Provider) -> Vec<Place> {
    if !settings.plugin_dirs.is_empty() {
        return settings.plugin_dirs.iter().cloned().map(Place::Packed).collect();
    }
    if let Some(methods) = &settings.config.provider_installation {
        let place = |source: &Source| match source {
            Source::FilesystemMirror(path) => Some(Place::Packed(path.clone())),
            // The configuration was checked when it was read.
            Source::NetworkMirror(url) => Url::parse(url).ok().map(Place::Mirror),
            Source::Direct => Some(Place::Direct),
        };
        let methods = methods.iter().filter(|m| m.applies_to(provider));
        return methods.filter_map(|m| place(&m.source)).collect();
    }
    // What somebody has put into a mirror on this machine is never looked for anywhere else.
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
        dirs.into_iter().map(Place::Packed).collect()
    } else {
        vec![Place::Direct]
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Packed(dir) => write!(f, "the directory {}", dir.display()),
            Place::Mirror(url) => write!(f, "the network mirror {}", net::shown(url)),
            Place::Direct => f.write_str("its registry"),
        }
    }
}

impl Place {
    /// The versions of a provider that this place has.
    pub async fn versions(&self, client: &Client, provider: &Provider) -> Result<Vec<Listed>, Refusal> {
        match self {
            Place::Packed(dir) => {
                let listed = |(version, platforms): (Version, BTreeSet<Platform>)| Listed {
                    version,
                    platforms: Some(platforms.iter().map(Platform::to_string).collect()),
                };
                Ok(not_available::mirrored(dir, provider).into_iter().map(listed).collect())
            }
            Place::Mirror(base) => network_mirror::versions(client, base, provider).await,
            Place::Direct => origin::versions(client, provider).await,
        }
    }

    /// What this place has of a version.
    pub async fn offer(
        &self,
        client: &Client,
        provider: &Provider,
        version: &Version,
        platform: &Platform,
    ) -> Result<Offer, Refusal> {
        match self {
            Place::Packed(dir) => packed(dir, provider)
                .into_iter()
                .find(|a| a.version == *version && a.platform == *platform)
                .map(|archive| Offer {
                    location: Location::File(archive.path),
                    hashes: BTreeSet::new(),
                    known: BTreeSet::new(),
                    authentication: Authentication::None,
                })
                .ok_or_else(|| {
                    Refusal::Missing(match not_available::mirrored(dir, provider).get(version) {
                        Some(platforms) => format!("{self} has it for {} only", not_available::listed(platforms)),
                        None => format!("{self} does not have it"),
                    })
                }),
            Place::Mirror(base) => network_mirror::offer(client, base, provider, version, platform).await,
            Place::Direct => origin::offer(client, provider, version, platform).await,
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
