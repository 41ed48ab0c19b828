//! Module packages in OCI registries: a manifest with the module as a ZIP archive.

use std::path::Path;

use net::Client;

use crate::address::ModuleAddress;
use crate::error::OciError;
use crate::manifest::{IMAGE, INDEX};
use crate::provider::{MODULE, check_artifact_type};
use crate::registry::Registry;
use crate::unfit::UnfitManifest;

/// Downloads the ZIP archive of a module package to a new file of at most `limit` bytes, and verifies its digest.
///
/// # Errors
///
/// Returns an error if the registry does not have the package, if the artifact is not a module package, or if a request
/// failed.
pub async fn fetch(client: &Client, address: &ModuleAddress, to: &Path, limit: u64) -> Result<(), OciError> {
    let registry = Registry::new(client, address.repository.clone());
    let unfit = |reason| OciError::Artifact {
        artifact: format!("{} ({})", address.repository, address.reference),
        reason,
    };
    let (manifest, kind) = registry.manifest(&address.reference).await?;
    check_artifact_type(&manifest, MODULE).map_err(unfit)?;
    match &*kind {
        IMAGE => {}
        INDEX => {
            return Err(unfit(UnfitManifest::Index));
        }
        other => {
            return Err(unfit(UnfitManifest::MediaType(other.to_owned())));
        }
    }
    let (layer, digest) = manifest.zip_layer().map_err(unfit)?;
    registry.download(&digest, layer.size, to, limit).await
}
