//! Provider packages as an OCI image layout: a directory that tools for registries copy into a repository.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use data_encoding::HEXLOWER;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use crate::media_type::{IMAGE, INDEX, ZIP};
use crate::provider::{PROVIDER, TARGET};

/// Writes a layout with one version of a provider, whose tag is the version. `archives` are operating system, processor
/// architecture and path of each ZIP archive. Other versions in the layout stay.
///
/// # Errors
/// A file cannot be read or written, or the directory has an index that cannot be read.
pub fn provider_layout(to: &Path, version: &str, archives: &[(&str, &str, &Path)]) -> io::Result<()> {
    let blobs = to.join("blobs/sha256");
    fs::create_dir_all(&blobs)?;
    let put = |content: &[u8]| -> io::Result<(String, usize)> {
        let sum = HEXLOWER.encode(&Sha256::digest(content));
        files::replace(&blobs.join(&sum), content, files::Policy::SHARED)?;
        Ok((format!("sha256:{sum}"), content.len()))
    };
    let (config, config_size) = put(b"{}")?;
    let mut entries = Vec::new();
    for (os, architecture, path) in archives {
        let (layer, size) = put(&fs::read(path)?)?;
        let title = path.file_name().unwrap_or_default().to_string_lossy();
        let image = json!({
            "schemaVersion": 2,
            "mediaType": IMAGE,
            "artifactType": TARGET,
            "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": config, "size": config_size},
            "layers": [{
                "mediaType": ZIP,
                "digest": layer,
                "size": size,
                "annotations": {"org.opencontainers.image.title": title},
            }],
        });
        let (image, size) = put(image.to_string().as_bytes())?;
        entries.push(json!({
            "mediaType": IMAGE,
            "digest": image,
            "size": size,
            "artifactType": TARGET,
            "platform": {"os": os, "architecture": architecture},
        }));
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "artifactType": PROVIDER, "manifests": entries});
    let (index, size) = put(index.to_string().as_bytes())?;
    let tag = version.replacen('+', "_", 1);
    let mut tags = tags(&to.join("index.json"))?;
    let descriptor = json!({
        "mediaType": INDEX,
        "digest": index,
        "size": size,
        "artifactType": PROVIDER,
        "annotations": {"org.opencontainers.image.ref.name": tag},
    });
    tags.insert(tag, descriptor);
    let manifests: Vec<Json> = tags.into_values().collect();
    let layout = json!({"imageLayoutVersion": "1.0.0"});
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
    for (name, document) in [("oci-layout", layout), ("index.json", index)] {
        files::replace(&to.join(name), document.to_string().as_bytes(), files::Policy::SHARED)?;
    }
    Ok(())
}

/// Returns the descriptors in an index by their tags; empty if there is no index.
fn tags(index: &Path) -> io::Result<BTreeMap<String, Json>> {
    let text = match fs::read(index) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let index: Json = serde_json::from_slice(&text)?;
    let manifests = index
        .get("manifests")
        .and_then(Json::as_array)
        .cloned()
        .unwrap_or_default();
    let tag = |entry: &Json| {
        let annotations = entry.get("annotations")?;
        Some(
            annotations
                .get("org.opencontainers.image.ref.name")?
                .as_str()?
                .to_owned(),
        )
    };
    Ok(manifests
        .into_iter()
        .filter_map(|entry| Some((tag(&entry)?, entry)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_descriptor_leads_to_its_blob_and_versions_stay() {
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("a.zip");
        fs::write(&archive, "content").unwrap();
        let to = dir.path().join("layout");
        for version in ["1.0.0", "1.1.0+build", "1.0.0"] {
            provider_layout(&to, version, &[("linux", "amd64", &archive)]).unwrap();
        }
        let read = |path: &Path| serde_json::from_slice::<Json>(&fs::read(path).unwrap()).unwrap();
        let blob = |descriptor: &Json| {
            let sum = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
            let path = to.join("blobs/sha256").join(sum);
            assert_eq!(fs::metadata(&path).unwrap().len(), descriptor["size"].as_u64().unwrap());
            path
        };
        let index = read(&to.join("index.json"));
        let tags: Vec<&str> = index["manifests"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| {
                entry["annotations"]["org.opencontainers.image.ref.name"]
                    .as_str()
                    .unwrap()
            })
            .collect();
        assert_eq!(tags, ["1.0.0", "1.1.0_build"]);
        let version = read(&blob(&index["manifests"][0]));
        assert_eq!(version["manifests"][0]["platform"]["os"], "linux");
        let image = read(&blob(&version["manifests"][0]));
        assert_eq!(fs::read(blob(&image["layers"][0])).unwrap(), b"content");
    }
}
