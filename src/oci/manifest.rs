//! What manifests contain: the parts of the OCI image specification 1.1 that packages use.

use serde::Deserialize;

use crate::address::Digest;

/// The media type of a manifest of one artifact.
pub const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
/// The media type of a manifest that lists manifests, one a platform.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The media type of a layer that is a ZIP archive.
pub const ZIP: &str = "archive/zip";

/// A manifest of either kind.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    #[serde(default)]
    pub media_type: Option<String>,
    #[serde(default)]
    pub artifact_type: Option<String>,
    /// Of an index.
    #[serde(default, deserialize_with = "net::absent::list")]
    pub manifests: Vec<Descriptor>,
    /// Of an artifact.
    #[serde(default, deserialize_with = "net::absent::list")]
    pub layers: Vec<Descriptor>,
}

/// What names a blob or a manifest.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    pub media_type: String,
    pub digest: String,
    pub size: u64,
    #[serde(default)]
    pub artifact_type: Option<String>,
    #[serde(default)]
    pub platform: Option<PlatformOf>,
}

/// The platform of an entry of an index.
#[derive(Clone, Debug, Deserialize)]
pub struct PlatformOf {
    #[serde(default, deserialize_with = "net::absent::or_default")]
    pub os: String,
    #[serde(default, deserialize_with = "net::absent::or_default")]
    pub architecture: String,
}

impl Manifest {
    /// Returns the one layer that is a ZIP archive.
    pub fn zip_layer(&self) -> Result<(&Descriptor, Digest), UnfitManifest> {
        let mut fitting = self.layers.iter().filter(|layer| layer.media_type == ZIP);
        let (first, second) = (fitting.next(), fitting.next());
        let layer = match (first, second) {
            (Some(layer), None) => layer,
            (Some(_), Some(_)) => return Err(UnfitManifest::SeveralLayers),
            (None, _) => {
                let types: Vec<&str> = self.layers.iter().map(|layer| &*layer.media_type).collect();
                return Err(match types.as_slice() {
                    [] => UnfitManifest::NoLayer,
                    types => UnfitManifest::OtherLayers(types.join(", ")),
                });
            }
        };
        let digest = layer
            .digest()
            .ok_or_else(|| UnfitManifest::UnknownDigest(layer.digest.clone()))?;
        Ok((layer, digest))
    }
}

impl Descriptor {
    /// The digest, if it is of an algorithm that is known.
    pub fn digest(&self) -> Option<Digest> {
        Digest::parse(&self.digest)
    }
}

/// Reason why a manifest is not that of the expected artifact. The text is a clause.
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
    /// The digest is of an algorithm that is not known, so that it cannot be verified.
    #[error("the digest \"{0}\" is neither a SHA-256 nor a SHA-512")]
    UnknownDigest(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn absent_null_and_empty_are_one_thing() {
        for manifest in [
            json!({}),
            json!({"mediaType": null, "artifactType": null, "manifests": null, "layers": null, "config": null, "annotations": null}),
            json!({"manifests": [], "layers": []}),
            json!({"manifests": [null], "layers": [null]}),
        ] {
            let read: Manifest = serde_json::from_value(manifest).unwrap();
            assert!(read.manifests.is_empty() && read.layers.is_empty());
        }
        let entry = json!({"mediaType": "m", "digest": "d", "size": 1, "artifactType": null, "platform": null, "annotations": null});
        assert!(serde_json::from_value::<Descriptor>(entry).unwrap().platform.is_none());
        for platform in [json!({}), json!({"os": null, "architecture": null, "variant": null})] {
            assert_eq!(serde_json::from_value::<PlatformOf>(platform).unwrap().os, "");
        }
    }
}
