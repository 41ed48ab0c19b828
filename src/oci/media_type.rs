//! Media types of manifests and layers.

/// The media type of a manifest of one artifact.
pub const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
/// The media type of an index, a manifest with one manifest for each platform.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The media type of a ZIP layer.
pub const ZIP: &str = "archive/zip";
