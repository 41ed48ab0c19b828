//! A directory that carries modules to where nothing can be fetched: `modules mirror` fills it, `-mirror` installs from it.
//!
//! It lies inside the directory that `providers mirror` fills, so that one directory carries both:
//!
//! ```text
//! modules/index.json                                   what is where
//! modules/registry.terraform.io/acme/net/aws/1.2.0/    a package of a registry module
//! modules/packages/3f1c…/                              any other package, by the checksum of its address
//! ```
//!
//! Packages lie there unpacked, so that they can be looked at and compared. Passwords and keys in addresses are not recorded.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use config::manifest::Manifest;
use config::source_address::{ModuleSource, RegistrySource, RemoteSource};
use config::version::Version;
use data_encoding::HEXLOWER;
use files::io_reason;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::available::Available;
use crate::fetch::{FetchError, file_error};
use crate::shown::public;
use crate::tree;

/// The directory inside the mirror.
const DIR: &str = "modules";
/// The only format there is.
const FORMAT: &str = "1.0";
/// How an address begins that means a registry module's package in a mirror.
const REGISTRY: &str = "registry::";

/// A mirror that can be installed from.
#[derive(Clone, Debug)]
pub struct Mirror {
    dir: PathBuf,
    index: Index,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Index {
    format_version: String,
    /// By address: that of the package, or `registry::HOST/NAMESPACE/NAME/SYSTEM@VERSION`.
    modules: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Entry {
    /// Where the package is, seen from the index.
    dir: String,
    /// Where in it the registry says that the module is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subdir: Option<String>,
}

/// Why a mirror cannot be used or written. The text is a sentence.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MirrorError {
    /// The index cannot be read.
    #[error("The mirror cannot be used: {} cannot be read: {}.", path.display(), io_reason(source))]
    Read {
        /// The index.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The index is not JSON of the expected form.
    #[error("The mirror cannot be used: {} is invalid: {source}.", path.display())]
    Json {
        /// The index.
        path: PathBuf,
        /// The reason.
        source: serde_json::Error,
    },
    /// The index has another format version.
    #[error("The mirror cannot be used: {} is invalid: its format {version} is not known.", path.display())]
    Format {
        /// The index.
        path: PathBuf,
        /// The format version.
        version: String,
    },
    /// The index names a directory outside of the mirror.
    #[error("The mirror cannot be used: {} is invalid: \"{dir}\" leads out of the mirror.", path.display())]
    Outside {
        /// The index.
        path: PathBuf,
        /// The directory.
        dir: String,
    },
    /// The mirror cannot be written.
    #[error("The directory {} cannot be written: {}.", path.display(), io_reason(source))]
    Write {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl Mirror {
    /// Reads the index of a mirror.
    ///
    /// # Errors
    ///
    /// The index cannot be read or is invalid.
    pub fn open(dir: &Path) -> Result<Mirror, MirrorError> {
        let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned()).join(DIR);
        let path = dir.join("index.json");
        let index = match std::fs::read(&path) {
            Ok(text) => read(&path, &text)?,
            // It carries no modules, as its configuration called none from elsewhere.
            Err(e) if e.kind() == io::ErrorKind::NotFound && dir.parent().is_some_and(Path::is_dir) => Index::new(),
            Err(source) => return Err(MirrorError::Read { path, source }),
        };
        Ok(Mirror { dir, index })
    }

    /// The versions of a registry module that it has.
    pub(crate) fn versions(&self, module: &RegistrySource) -> Vec<Available> {
        let prefix = key(module, "");
        let texts = self.index.modules.keys().filter_map(|k| k.strip_prefix(&prefix));
        let available = texts.filter_map(|text| {
            let version = Version::parse(text).ok()?;
            Some(Available {
                version,
                text: text.to_owned(),
            })
        });
        available.collect()
    }

    /// Where a version of a registry module is: an address for [`Mirror::copy`].
    pub(crate) fn location(&self, module: &RegistrySource, version: &str) -> Option<RemoteSource> {
        let package = key(module, version);
        let subdir = self.index.modules.get(&package)?.subdir.clone();
        Some(RemoteSource { package, subdir })
    }

    /// Copies a package to a path that does not exist.
    pub(crate) fn copy(&self, package: &str, to: &Path) -> Result<(), FetchError> {
        let entry = self.index.modules.get(&public(package));
        let entry = entry.ok_or_else(|| FetchError::NotInMirror(self.dir.clone()))?;
        let from = self.dir.join(&entry.dir);
        tree::copy(&from, to).map_err(file_error("copying", &from))
    }
}

/// Adds the registry and remote modules of an installed configuration to a mirror. Returns the addresses that were added.
///
/// # Errors
///
/// The index is invalid, or the mirror cannot be written.
pub fn fill(to: &Path, data_dir: &Path, manifest: &Manifest) -> Result<Vec<String>, MirrorError> {
    let dir = to.join(DIR);
    let path = dir.join("index.json");
    let mut index = match std::fs::read(&path) {
        Ok(text) => read(&path, &text)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => Index::new(),
        Err(source) => return Err(MirrorError::Read { path, source }),
    };
    let failed = |source: io::Error| MirrorError::Write {
        path: dir.clone(),
        source,
    };
    let mut added = Vec::new();
    for (name, entry) in &manifest.modules {
        let package_dir = data_dir.join(DIR).join(name);
        let (address, relative, subdir) = match ModuleSource::parse(&entry.source, entry.version.is_some()) {
            Ok(ModuleSource::Registry(module)) => {
                let version = entry.version.as_deref().unwrap_or_default();
                let subdir = below(&package_dir, Path::new(&entry.dir), module.subdir.as_deref());
                (key(&module, version), format!("{}/{version}", module.package()), subdir)
            }
            Ok(ModuleSource::Remote(remote)) if !name.is_empty() => {
                let address = public(&remote.package);
                let mut sum = HEXLOWER.encode(&Sha256::digest(address.as_bytes()));
                sum.truncate(32);
                (address, format!("packages/{sum}"), None)
            }
            _ => continue,
        };
        if added.contains(&address) {
            continue;
        }
        let target = dir.join(&relative);
        std::fs::create_dir_all(target.parent().unwrap_or(&dir)).map_err(failed)?;
        let staging = tempfile::Builder::new()
            .prefix(".staging-")
            .tempdir_in(&dir)
            .map_err(failed)?;
        let new = staging.path().join("package");
        tree::copy(&package_dir, &new).map_err(failed)?;
        // It is not read before the index names it.
        tree::remove(&target)
            .and_then(|()| std::fs::rename(&new, &target))
            .map_err(failed)?;
        index.modules.insert(address.clone(), Entry { dir: relative, subdir });
        added.push(address);
    }
    if !added.is_empty() {
        index.write(&path).map_err(failed)?;
    }
    Ok(added)
}

impl Index {
    fn new() -> Index {
        Index {
            format_version: FORMAT.to_owned(),
            modules: BTreeMap::new(),
        }
    }

    /// Writes the index, whole or not at all.
    fn write(&self, path: &Path) -> io::Result<()> {
        files::replace(path, &serde_json::to_vec_pretty(self)?, files::Policy::SHARED)
    }
}

/// Parses an index. A path that leads out of the mirror is an error.
fn read(path: &Path, text: &[u8]) -> Result<Index, MirrorError> {
    let path = path.to_owned();
    let index: Index = match serde_json::from_slice(text) {
        Ok(index) => index,
        Err(source) => return Err(MirrorError::Json { path, source }),
    };
    if index.format_version.split('.').next() != FORMAT.split('.').next() {
        return Err(MirrorError::Format {
            path,
            version: index.format_version,
        });
    }
    let inside = |dir: &str| !dir.is_empty() && Path::new(dir).components().all(|c| matches!(c, Component::Normal(_)));
    match index.modules.values().find(|entry| !inside(&entry.dir)) {
        Some(entry) => Err(MirrorError::Outside {
            path,
            dir: entry.dir.clone(),
        }),
        None => Ok(index),
    }
}

fn key(module: &RegistrySource, version: &str) -> String {
    let RegistrySource {
        host,
        namespace,
        name,
        system,
        ..
    } = module;
    format!("{REGISTRY}{host}/{namespace}/{name}/{system}@{version}")
}

/// What a registry said about where the module is in its package: the path from the package to the module, less what the
/// call itself says.
fn below(package: &Path, module: &Path, called: Option<&str>) -> Option<String> {
    let path = module.strip_prefix(package).ok()?.to_str()?.to_owned();
    let outer = match called {
        Some(called) => path.strip_suffix(called)?.trim_end_matches('/').to_owned(),
        None => path,
    };
    (!outer.is_empty()).then_some(outer)
}
