//! Reasons of rejected manifests.

use crate::media_type::{IMAGE, INDEX, ZIP};

/// The reason why a manifest does not describe the expected artifact. The text is a clause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnfitManifest {
    #[error("it is a module package, and not a provider")]
    Module,
    #[error("it is a provider, and not a module package")]
    Provider,
    #[error(
        "its manifest is of the media type \"{0}\", and the one of a provider is {INDEX}, with one entry a platform"
    )]
    NotIndex(String),
    #[error("its artifact type is {found}, and not {expected}")]
    ArtifactType { found: String, expected: &'static str },
    #[error("it has no artifact type, and {0} is expected")]
    NoArtifactType(&'static str),
    #[error("it has more than one package for {0}")]
    SeveralPackages(String),
    #[error("its package for {platform} is of the media type {found}, and not of {IMAGE}")]
    PackageMediaType { platform: String, found: String },
    #[error("it is an index of several manifests; a module package has one")]
    Index,
    #[error("its manifest is of the media type \"{0}\", and not of {IMAGE}")]
    MediaType(String),
    #[error("the digest of its archive is {0}, and checksums of provider packages are SHA-256")]
    NotSha256(String),
    #[error("it has more than one layer of the type {ZIP}")]
    SeveralLayers,
    #[error("it has no layer")]
    NoLayer,
    #[error("it has no layer of the type {ZIP}, only {0}")]
    OtherLayers(String),
    /// The digest has an unknown algorithm, so that it cannot be verified.
    #[error("the digest \"{0}\" is neither a SHA-256 nor a SHA-512")]
    UnknownDigest(String),
}
