//! Packages as their sources describe them: versions, metadata, and how they were authenticated.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use net::Url;

use crate::signature::Standing;
use versions::Version;

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
