//! Contents of manifests: the parts of the OCI image specification 1.1 that packages use.

use serde::Deserialize;

use crate::address::Digest;
pub use crate::media_type::{IMAGE, INDEX, ZIP};
use crate::unfit::UnfitManifest;

/// A manifest of one artifact or an index.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    #[serde(default)]
    pub media_type: Option<String>,
    #[serde(default)]
    pub artifact_type: Option<String>,
    /// The entries of an index.
    #[serde(default, deserialize_with = "net::absent::list")]
    pub manifests: Vec<Descriptor>,
    /// The layers of an artifact.
    #[serde(default, deserialize_with = "net::absent::list")]
    pub layers: Vec<Descriptor>,
}

/// A reference to a blob or a manifest.
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

/// The platform of an index entry.
#[derive(Clone, Debug, Deserialize)]
pub struct PlatformOf {
    #[serde(default, deserialize_with = "net::absent::or_default")]
    pub os: String,
    #[serde(default, deserialize_with = "net::absent::or_default")]
    pub architecture: String,
}

impl Manifest {
    /// Returns the only layer that is a ZIP archive.
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
    /// Returns the digest; `None` for an unknown algorithm.
    pub fn digest(&self) -> Option<Digest> {
        Digest::parse(&self.digest)
    }
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
