//! Package metadata, versions and authentication, as package sources return them.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use net::Url;

use crate::signature::Standing;
use versions::Version;

/// Authentication of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// Not authenticated.
    None,
    /// Compared with a checksum from a package source that the user has configured.
    Checksum,
    /// Compared with the registry's list of checksums, which is signed.
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

/// Version of a provider at a source.
#[derive(Clone, Debug)]
pub struct AvailableVersion {
    pub version: Version,
    /// Platforms that have packages of the version, if the source lists them.
    pub platforms: Option<BTreeSet<String>>,
}

/// Location of an archive.
#[derive(Clone, Debug)]
pub enum Location {
    Url(Url),
    /// Blob in an OCI registry.
    Blob {
        url: Url,
        /// Authorization of the request.
        authorization: Option<oci::Authorization>,
    },
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

#[derive(Clone, Debug)]
pub struct PackageMetadata {
    pub location: Location,
    /// Expected checksums, of which one must match; no check if empty.
    pub hashes: BTreeSet<String>,
    /// Checksums of packages of the same version for all platforms, with the same authentication as this package.
    pub known: BTreeSet<String>,
    pub authentication: Authentication,
}

/// Reason why a source does not return versions or metadata. The text is a clause without a full stop.
#[derive(Clone, Debug)]
pub enum SourceError {
    /// The source does not have the provider or the version. Another source may have it.
    Missing(String),
    /// The request failed or the response is invalid.
    Failed(String),
    /// The source cannot be reached: perhaps there is no network.
    Unreachable(String),
}

impl SourceError {
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            SourceError::Missing(text) | SourceError::Failed(text) | SourceError::Unreachable(text) => text,
        }
    }

    /// Classifies the error of a request.
    #[must_use]
    pub fn from_net(error: &net::Error, explained: impl FnOnce(String) -> String) -> SourceError {
        let text = explained(error.to_string());
        match error.is_unreachable() {
            true => SourceError::Unreachable(text),
            false => SourceError::Failed(text),
        }
    }

    /// Returns the text, followed by advice if there may be no network. It is meant for the end of a text of complete sentences.
    #[must_use]
    pub fn advised(&self) -> String {
        match self {
            SourceError::Unreachable(text) => format!("{text}. {}", net::WITHOUT_NETWORK.trim_end_matches('.')),
            other => other.text().to_owned(),
        }
    }
}
