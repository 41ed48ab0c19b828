//! Module mirrors, for networks where nothing can be fetched: a directory, which `modules mirror` fills and `-mirror` installs
//! from, or a pack.
//!
//! The directory is inside the one that `providers mirror` fills, so that one directory carries both:
//!
//! ```text
//! modules/index.json                                   the index of all packages
//! modules/registry.terraform.io/acme/net/aws/1.2.0/    a package of a registry module
//! modules/packages/3f1c…/                              any other package, by the checksum of its address
//! ```
//!
//! Packages are unpacked, so that they can be inspected and compared. Passwords and keys in addresses are not recorded. A pack
//! has packages under the same addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use config::files::{Disk, join};
use config::manifest::{Manifest, ManifestEntry};
use config::source_address::{ModuleSource, RegistrySource, RemoteSource};
use config::version::Version;
use data_encoding::HEXLOWER;
use files::io_reason;
use files::mounts::{Directory, Mounts};
use pack::write::{ModuleContents, tree as tree_of};
use pack::{Pack, PackError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::available::Available;
use crate::fetch::{FetchError, file_error};
use crate::shown::public;
use crate::tree;

/// Directory of modules, both in a mirror and in the data directory.
const DIR: &str = "modules";
/// Version of the index format; only the major part is compared.
const FORMAT: &str = "1.0";
/// Prefix of the address of a registry module's package in a mirror.
const REGISTRY: &str = "registry::";

/// Mirror that modules are installed from.
#[derive(Clone, Debug)]
pub struct Mirror(Storage);

/// Form of a mirror.
#[derive(Clone, Debug)]
enum Storage {
    /// Unpacked packages in a directory, with their index.
    Directory { dir: PathBuf, index: Index },
    /// Packages in a pack, as positions in its index by address.
    Pack {
        pack: Arc<Pack>,
        modules: BTreeMap<String, usize>,
    },
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Index {
    format_version: String,
    /// Entries by address: the address of a package, or `registry::HOST/NAMESPACE/NAME/SYSTEM@VERSION`.
    modules: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Entry {
    /// Directory of the package, relative to the index.
    dir: String,
    /// Subdirectory of the module in its package, as the registry gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subdir: Option<String>,
}

/// Reason why a mirror cannot be used or written. The text is a sentence.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MirrorError {
    #[error("The mirror cannot be used: {} cannot be read: {}.", path.display(), io_reason(source))]
    Read { path: PathBuf, source: io::Error },
    #[error("The mirror cannot be used: {} is invalid: {}.", path.display(), files::json_reason(source))]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("The mirror cannot be used: {} is invalid: its format {version} is not known.", path.display())]
    Format { path: PathBuf, version: String },
    /// The index names a directory outside of the mirror. A mirror from an untrusted source must not give access to other directories.
    #[error("The mirror cannot be used: {} is invalid: \"{dir}\" leads out of the mirror.", path.display())]
    Outside { path: PathBuf, dir: String },
    #[error("The modules of the pack cannot be unpacked: {0}.")]
    Pack(PackError),
    #[error("The directory {} cannot be written: {}.", path.display(), io_reason(source))]
    Write { path: PathBuf, source: io::Error },
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
            // `providers mirror` writes no index if the configuration calls no remote modules, so the mirror is valid without
            // one.
            Err(e) if e.kind() == io::ErrorKind::NotFound && dir.parent().is_some_and(Path::is_dir) => Index::new(),
            Err(source) => return Err(MirrorError::Read { path, source }),
        };
        Ok(Mirror(Storage::Directory { dir, index }))
    }

    /// Returns the modules of a pack as a mirror.
    #[must_use]
    pub fn in_pack(pack: Arc<Pack>) -> Mirror {
        let modules = pack.index().modules.iter().enumerate();
        let modules = modules.map(|(at, module)| (module.address.clone(), at)).collect();
        Mirror(Storage::Pack { pack, modules })
    }

    pub(crate) fn is_pack(&self) -> bool {
        matches!(self.0, Storage::Pack { .. })
    }

    /// Returns the versions of a registry module in the mirror.
    pub(crate) fn versions(&self, module: &RegistrySource) -> Vec<Available> {
        let prefix = key(module, "");
        let available = |address: &String| {
            let text = address.strip_prefix(&prefix)?;
            let version = Version::parse(text).ok()?;
            Some(Available {
                version,
                text: text.to_owned(),
            })
        };
        match &self.0 {
            Storage::Directory { index, .. } => index.modules.keys().filter_map(available).collect(),
            Storage::Pack { modules, .. } => modules.keys().filter_map(available).collect(),
        }
    }

    /// Returns the location of a version of a registry module in the mirror, for [`Mirror::copy`]; `None` if the mirror does not have
    /// it.
    pub(crate) fn location(&self, module: &RegistrySource, version: &str) -> Option<RemoteSource> {
        let package = key(module, version);
        let subdir = match &self.0 {
            Storage::Directory { index, .. } => index.modules.get(&package)?.subdir.clone(),
            Storage::Pack { pack, modules } => {
                let at = *modules.get(&package)?;
                pack.index().modules.get(at)?.subdir.clone()
            }
        };
        Some(RemoteSource { package, subdir })
    }

    pub(crate) fn has(&self, package: &str) -> bool {
        let address = public(package);
        match &self.0 {
            Storage::Directory { index, .. } => index.modules.contains_key(&address),
            Storage::Pack { modules, .. } => modules.contains_key(&address),
        }
    }

    /// Mounts the modules of an installed configuration that this pack has and that are not on the disk, as if they were
    /// installed in this data directory. A module that cannot be read is left out, and the command that needs it reports it as
    /// missing.
    pub fn mount(&self, manifest: &Manifest, data_dir: &str, mounts: &Mounts) {
        // Several calls often use the same package, which is decompressed only once.
        let mut read: BTreeMap<String, Arc<Directory>> = BTreeMap::new();
        for (key, entry) in &manifest.modules {
            let Some((_, package)) = source_and_address(key, entry) else {
                continue;
            };
            let at = join(&join(data_dir, DIR), key);
            let inside = Path::new(&entry.dir).starts_with(&at);
            if !inside || !self.has(&package) || Path::new(&entry.dir).is_dir() {
                continue;
            }
            let directory = match read.get(&package) {
                Some(directory) => directory.clone(),
                None => match self.in_memory(&package) {
                    Ok(directory) => Arc::new(directory),
                    Err(error) => {
                        tracing::warn!(package, %error, "cannot be read into memory");
                        continue;
                    }
                },
            };
            mounts.mount(&at, directory.clone());
            read.insert(package, directory);
        }
    }

    /// Reads a package of the pack into memory.
    pub(crate) fn in_memory(&self, package: &str) -> Result<Directory, FetchError> {
        let Storage::Pack { pack, modules } = &self.0 else {
            return Err(FetchError::NotCarried);
        };
        let module = modules.get(&public(package));
        let module = module.and_then(|at| pack.index().modules.get(*at));
        let module = module.ok_or(FetchError::NotCarried)?;
        let mut directory = Directory::default();
        for file in &module.files {
            let Some(blob) = pack.index().blob_of(file) else {
                continue;
            };
            let mut content = Vec::new();
            let copied = pack.copy(blob, &mut content);
            copied.map_err(|error| FetchError::Pack(error.at(Path::new(&file.path))))?;
            directory.add_file(&file.path, content);
        }
        for link in &module.links {
            directory.add_link(&link.path, &link.target);
        }
        Ok(directory)
    }

    /// Copies a package to a path that does not exist.
    pub(crate) fn copy(&self, package: &str, to: &Path) -> Result<(), FetchError> {
        let address = public(package);
        match &self.0 {
            Storage::Directory { dir, index } => {
                let entry = index.modules.get(&address);
                let entry = entry.ok_or_else(|| FetchError::NotInMirror(dir.clone()))?;
                let from = dir.join(&entry.dir);
                tree::copy(&from, to).map_err(file_error("copying", &from))
            }
            Storage::Pack { pack, modules } => {
                let module = modules.get(&address).and_then(|at| pack.index().modules.get(*at));
                let module = module.ok_or(FetchError::NotCarried)?;
                std::fs::create_dir(to).map_err(file_error("creating the directory", to))?;
                let unpacked = pack.unpack_tree(&module.files, &module.links, to);
                unpacked.map_err(FetchError::Pack)
            }
        }
    }
}

/// Package of an installed configuration, as a mirror has it.
struct Package {
    /// Address in the index of a mirror.
    address: String,
    /// Subdirectory of the module in the package, as the registry gave it.
    subdir: Option<String>,
    /// Directory where the package is installed.
    dir: PathBuf,
}

/// Returns the source of an installed module and the address of its package in a mirror; `None` for local modules and the root module.
fn source_and_address(name: &str, entry: &ManifestEntry) -> Option<(ModuleSource, String)> {
    let source = ModuleSource::parse(&entry.source, entry.version.is_some()).ok()?;
    let address = match &source {
        ModuleSource::Registry(module) => key(module, entry.version.as_deref().unwrap_or_default()),
        ModuleSource::Remote(remote) if !name.is_empty() => public(&remote.package),
        _ => return None,
    };
    Some((source, address))
}

/// Returns the packages of the remote modules of an installed configuration, each once.
fn packages(data_dir: &Path, manifest: &Manifest) -> Vec<Package> {
    let (mut out, mut seen) = (Vec::new(), BTreeSet::new());
    for (name, entry) in &manifest.modules {
        let Some((source, address)) = source_and_address(name, entry) else {
            continue;
        };
        let dir = data_dir.join(DIR).join(name);
        let subdir = match source {
            ModuleSource::Registry(module) => below(&dir, Path::new(&entry.dir), module.subdir.as_deref()),
            _ => None,
        };
        if seen.insert(address.clone()) {
            out.push(Package { address, subdir, dir });
        }
    }
    out
}

/// Returns the directory of a package in a mirror, relative to the index.
fn place_of(address: &str) -> String {
    if let Some((package, version)) = address.strip_prefix(REGISTRY).and_then(|rest| rest.rsplit_once('@')) {
        return format!("{package}/{version}");
    }
    // Addresses may be too long for a file name, or contain characters that it cannot have. Half of the checksum
    // distinguishes them.
    let mut sum = HEXLOWER.encode(&Sha256::digest(address.as_bytes()));
    sum.truncate(32);
    format!("packages/{sum}")
}

/// Copies the modules that are installed in a data directory to another one, which is empty. An installation there finds them. Without
/// a readable manifest, nothing is copied.
///
/// # Errors
///
/// A file cannot be read or written.
pub fn adopt(data_dir: &str, to: &Path) -> io::Result<()> {
    let from = Path::new(data_dir).join(DIR);
    let Ok(mut manifest) = Manifest::read(&Disk, data_dir) else {
        return Ok(());
    };
    if manifest.modules.is_empty() {
        return Ok(());
    }
    let old = join(data_dir, DIR);
    let new = to.join(DIR);
    for entry in manifest.modules.values_mut() {
        // Local modules outside of the copied directory keep their paths.
        if let Some(rest) = entry.dir.strip_prefix(&old).and_then(|rest| rest.strip_prefix('/')) {
            entry.dir = new.join(rest).to_string_lossy().into_owned();
        }
    }
    tree::copy(&from, &new)?;
    std::fs::write(to.join(Manifest::PATH), manifest.to_json())
}

/// Returns the packages of an installed configuration for a pack. `leave` is called with the address of a package and each link
/// in it that leads out of the package and is left out.
///
/// # Errors
///
/// A file cannot be read.
pub fn contents(
    data_dir: &Path,
    manifest: &Manifest,
    leave: &mut dyn FnMut(&str, &str),
) -> Result<Vec<ModuleContents<'static>>, PackError> {
    let mut out = Vec::new();
    for package in packages(data_dir, manifest) {
        let (tree, outside) = tree_of(&package.dir, &|path, _| tree::is_working_copy_entry(path))?;
        for link in outside {
            leave(&package.address, &link);
        }
        out.push(ModuleContents {
            address: package.address,
            subdir: package.subdir,
            tree,
        });
    }
    Ok(out)
}

/// Adds the registry and remote modules of an installed configuration to a mirror. Returns their addresses.
///
/// # Errors
///
/// The index is invalid, or the mirror cannot be written.
pub fn fill(to: &Path, data_dir: &Path, manifest: &Manifest) -> Result<Vec<String>, MirrorError> {
    let dir = to.join(DIR);
    let path = dir.join("index.json");
    let mut index = read_or_new(&path)?;
    let failed = |source: io::Error| MirrorError::Write {
        path: dir.clone(),
        source,
    };
    let mut added = Vec::new();
    for package in packages(data_dir, manifest) {
        let relative = place_of(&package.address);
        put(&dir, &relative, &mut |new| tree::copy(&package.dir, new)).map_err(failed)?;
        let subdir = package.subdir;
        index
            .modules
            .insert(package.address.clone(), Entry { dir: relative, subdir });
        added.push(package.address);
    }
    if !added.is_empty() {
        // The index is written last, so that it never names a package that is incomplete.
        index.write(&path).map_err(failed)?;
    }
    Ok(added)
}

/// Adds the modules of a pack to a mirror. Returns the addresses that were added; packages that are already there stay as they
/// are.
///
/// # Errors
///
/// The index is invalid, the mirror cannot be written, or the pack is damaged.
pub fn unpack(to: &Path, pack: &Pack) -> Result<Vec<String>, MirrorError> {
    let dir = to.join(DIR);
    let path = dir.join("index.json");
    let mut index = read_or_new(&path)?;
    let failed = |source: io::Error| MirrorError::Write {
        path: dir.clone(),
        source,
    };
    let mut added = Vec::new();
    for module in &pack.index().modules {
        if index.modules.contains_key(&module.address) {
            continue;
        }
        let relative = place_of(&module.address);
        // A pack may be from an untrusted source, and an address in it could lead out of the mirror.
        if !is_inside(&relative) {
            return Err(MirrorError::Outside {
                path: pack.path().to_owned(),
                dir: module.address.clone(),
            });
        }
        // `put` returns only I/O errors. The pack's own error is recorded separately, because it is the one to report.
        let mut damage = None;
        let written = put(&dir, &relative, &mut |new| {
            std::fs::create_dir(new)?;
            pack.unpack_tree(&module.files, &module.links, new).map_err(|error| {
                let text = error.to_string();
                damage = Some(error);
                io::Error::other(text)
            })
        });
        if let Some(error) = damage {
            return Err(MirrorError::Pack(error));
        }
        written.map_err(failed)?;
        let subdir = module.subdir.clone();
        index
            .modules
            .insert(module.address.clone(), Entry { dir: relative, subdir });
        added.push(module.address.clone());
    }
    if !added.is_empty() {
        index.write(&path).map_err(failed)?;
    }
    Ok(added)
}

/// Puts a package into a mirror by a rename, so that it is complete or absent. Clients find it once the index names it.
fn put(dir: &Path, relative: &str, make: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let target = dir.join(relative);
    std::fs::create_dir_all(target.parent().unwrap_or(dir))?;
    // The temporary directory is created in the mirror itself, because a rename works only within one file
    // system.
    let staging = tempfile::Builder::new().prefix(".staging-").tempdir_in(dir)?;
    let new = staging.path().join("package");
    make(&new)?;
    tree::remove(&target)?;
    system::rename(&new, &target)
}

/// Reads the index at a path; an empty one if there is none yet.
fn read_or_new(path: &Path) -> Result<Index, MirrorError> {
    match std::fs::read(path) {
        Ok(text) => read(path, &text),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Index::new()),
        Err(source) => Err(MirrorError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Returns the address of a package for display: that of a registry module without its prefix.
#[must_use]
pub fn for_display(address: &str) -> String {
    match address.strip_prefix(REGISTRY).and_then(|rest| rest.rsplit_once('@')) {
        Some((package, version)) => format!("{package} {version}"),
        None => address.to_owned(),
    }
}

impl Index {
    fn new() -> Index {
        Index {
            format_version: FORMAT.to_owned(),
            modules: BTreeMap::new(),
        }
    }

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
    // Only another major version is incompatible.
    if index.format_version.split('.').next() != FORMAT.split('.').next() {
        return Err(MirrorError::Format {
            path,
            version: index.format_version,
        });
    }
    match index.modules.values().find(|entry| !is_inside(&entry.dir)) {
        Some(entry) => Err(MirrorError::Outside {
            path,
            dir: entry.dir.clone(),
        }),
        None => Ok(index),
    }
}

/// Returns true if a relative path stays inside the directory that it starts from.
fn is_inside(dir: &str) -> bool {
    !dir.is_empty() && Path::new(dir).components().all(|c| matches!(c, Component::Normal(_)))
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

/// Returns the subdirectory that a registry gave for a module: the path from the package to the module, without the subdirectory
/// of the call itself. `None` if the registry gave no subdirectory.
fn below(package: &Path, module: &Path, called: Option<&str>) -> Option<String> {
    let path = module.strip_prefix(package).ok()?.to_str()?.to_owned();
    let outer = match called {
        Some(called) => path.strip_suffix(called)?.trim_end_matches('/').to_owned(),
        None => path,
    };
    (!outer.is_empty()).then_some(outer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_have_their_places_in_a_mirror() {
        let place = place_of("registry::registry.terraform.io/acme/net/aws@1.2.0");
        assert_eq!(place, "registry.terraform.io/acme/net/aws/1.2.0");
        let other = place_of("git::https://example.com/a.git?ref=v1");
        assert!(other.starts_with("packages/") && is_inside(&other), "{other}");
        assert_eq!(for_display("registry::h.example/a/b/c@1.0.0"), "h.example/a/b/c 1.0.0");
        for outside in ["registry::../../x@1.0.0", "registry::a@../..", "registry::/etc/x@1.0.0"] {
            assert!(!is_inside(&place_of(outside)), "{outside}");
        }
    }
}
