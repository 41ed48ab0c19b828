//! Provider packages in a pack: see the crate `pack`.
//!
//! Packed providers need no installation. When one is used, it is unpacked once into a directory of the user, named by its
//! checksum. If there is no suitable directory, its executable is run from memory by `internal-plugin packed`.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addrs::Provider;
use addrs::platform::Platform;
use data_encoding::HEXLOWER;
use files::{Environment, io_reason};
use pack::index::{Index, PackedProvider};
use pack::{Conditions, Pack, PackError};
use sha2::{Digest as _, Sha256};
use syntax::Diagnostic;
use versions::Version;

use crate::hash;

/// Environment variable with the directory that packed providers are unpacked into; `none` runs them from memory.
pub const UNPACK_DIR: &str = "MONOFORM_UNPACK_DIR";

/// Pack of this executable.
#[derive(Clone, Debug, Default)]
pub enum Carried {
    /// The executable is not a pack.
    #[default]
    Nothing,
    Pack(Arc<Pack>),
    /// The pack cannot be used; the reason is a clause.
    Damaged(String),
}

impl Carried {
    /// Opens the pack in an executable. If the environment names a key, the pack must be signed with it.
    #[must_use]
    pub fn by(executable: &Path, environment: &Environment) -> Carried {
        match Pack::find(executable, &Conditions::from_environment(environment)) {
            Ok(Some(pack)) => Carried::Pack(Arc::new(pack)),
            // An executable that cannot be read may still run, so an unreadable file must not make every command fail.
            Ok(None) | Err(PackError::Read { .. }) => Carried::Nothing,
            Err(error) => Carried::Damaged(error.to_string()),
        }
    }

    /// Returns the pack, if there is one that can be used.
    #[must_use]
    pub fn pack(&self) -> Option<&Arc<Pack>> {
        match self {
            Carried::Pack(pack) => Some(pack),
            Carried::Nothing | Carried::Damaged(_) => None,
        }
    }

    /// Returns the packages of a provider for a platform, the newest first.
    #[must_use]
    pub fn packages_for(&self, provider: &Provider, platform: &Platform) -> Vec<Packed> {
        let Some(pack) = self.pack() else { return Vec::new() };
        let all = pack.index().providers.iter().enumerate();
        let mut out: Vec<Packed> = all
            .filter(|(_, packed)| packed.address == *provider && packed.platform == *platform)
            .map(|(at, packed)| Packed {
                pack: pack.clone(),
                at,
                address: packed.address.clone(),
                version: packed.version.clone(),
                executable: None,
            })
            .collect();
        out.sort_by(|a, b| b.version.cmp(&a.version));
        out
    }
}

/// Provider package in a pack.
#[derive(Clone, Debug)]
pub struct Packed {
    pack: Arc<Pack>,
    /// Index in the list of the pack's providers.
    at: usize,
    address: Provider,
    pub version: Version,
    /// Path of the unpacked executable; `None` if it runs from memory, or is not prepared yet.
    pub executable: Option<PathBuf>,
}

/// Computes the `h1:` checksum of a package in a pack: that of its unpacked files. The index has the checksum of each file, so
/// nothing is read.
#[must_use]
pub fn package_hash(index: &Index, provider: &PackedProvider) -> String {
    let lines = provider.files.iter().filter_map(|file| {
        let blob = index.blob_of(file)?;
        Some((file.path.clone(), blob.sha256.clone()))
    });
    hash::summed(lines.collect())
}

impl Packed {
    fn provider(&self) -> Option<&PackedProvider> {
        self.pack.index().providers.get(self.at)
    }

    #[must_use]
    pub fn pack(&self) -> &Path {
        self.pack.path()
    }

    #[must_use]
    pub fn address(&self) -> &Provider {
        &self.address
    }

    /// Computes the `h1:` checksum of the package.
    #[must_use]
    pub fn hash(&self) -> String {
        let provider = self.provider();
        provider
            .map(|provider| package_hash(self.pack.index(), provider))
            .unwrap_or_default()
    }

    /// Returns the checksums for the lock file: that of the package, and those recorded when it was packed.
    #[must_use]
    pub fn hashes(&self) -> std::collections::BTreeSet<String> {
        let mut hashes = self
            .provider()
            .map(|provider| provider.hashes.clone())
            .unwrap_or_default();
        hashes.insert(self.hash());
        hashes
    }

    /// Prepares the executable: unpacked into the user's directory, or else to be run from memory. Files that were unpacked
    /// earlier are verified.
    ///
    /// # Errors
    /// The package has no executable, or is damaged.
    pub fn ready(&mut self, environment: &Environment) -> Result<(), Diagnostic> {
        let invalid = |why: String| {
            let provider = self.address.for_display();
            let detail = format!(
                "The provider {provider} {} of the pack cannot be unpacked: {why}.",
                self.version
            );
            Diagnostic::error("Failed to unpack provider", detail)
        };
        let Some(provider) = self.provider() else {
            return Err(invalid("it is not in the index".to_owned()));
        };
        let Some(executable) = provider.executable() else {
            return Err(invalid(format!(
                "it has no file terraform-provider-{} at its top",
                self.address.ty
            )));
        };
        let Some(base) = place(environment) else {
            tracing::debug!(provider = %provider.address, "no place to unpack into; it runs from memory");
            return Ok(());
        };
        match unpacked(&self.pack, provider, &base) {
            Ok(dir) => self.executable = Some(dir.join(&executable.path)),
            // If the disk is full or read-only, the provider can still run from memory.
            Err(PackError::Write { path, source }) => {
                tracing::warn!(path = %path.display(), error = %source, "cannot unpack; the provider runs from memory");
            }
            Err(error) => return Err(invalid(error.to_string())),
        }
        Ok(())
    }
}

/// Returns the directory for unpacked packages, which is created if necessary; `None` if [`UNPACK_DIR`] is `none`, or if the directory
/// cannot be created, can be written by other users, or does not allow execution.
#[must_use]
pub fn place(environment: &Environment) -> Option<PathBuf> {
    let absolute = |dir: &str| Path::new(dir).is_absolute().then(|| PathBuf::from(dir));
    let base = match environment.get(UNPACK_DIR) {
        Some("none") => return None,
        Some(dir) if !dir.is_empty() => std::path::absolute(dir).ok()?,
        _ => {
            let cache = environment.get("XDG_CACHE_HOME").and_then(absolute);
            cache
                .or_else(|| Some(environment.home()?.join(".cache")))?
                .join("monoform/packed")
        }
    };
    match files::private_directory(&base) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && base.is_dir() => {
            tracing::warn!(path = %base.display(), "not used to unpack into: others can write to it");
            return None;
        }
        Err(_) => return None,
    }
    // A file system with the option noexec would otherwise be noticed only when the plugin is started.
    can_run(&base).then_some(base)
}

/// Returns the directory of the user for the modules of a pack, for a working directory that cannot be written; `None` if [`place`]
/// returns none, or if the path is not valid UTF-8.
#[must_use]
pub fn place_of_modules(environment: &Environment, pack: &Pack, working_dir: &Path) -> Option<String> {
    let text = format!("{}\n{}", pack.identity(), working_dir.display());
    let name = HEXLOWER.encode(&Sha256::digest(text));
    let dir = place(environment)?.join("modules").join(name.get(..32)?);
    Some(dir.to_str()?.to_owned())
}

/// Returns true if the mount options of a directory's file system allow writing and executing.
#[cfg(target_os = "linux")]
fn can_run(dir: &Path) -> bool {
    let flags = rustix::fs::statvfs(dir).map(|found| found.f_flag);
    let not = rustix::fs::StatVfsMountFlags::NOEXEC | rustix::fs::StatVfsMountFlags::RDONLY;
    flags.is_ok_and(|flags| !flags.intersects(not))
}

#[cfg(not(target_os = "linux"))]
fn can_run(_dir: &Path) -> bool {
    true
}

/// Unpacks a package, and returns the directory with its files. The directory appears by a rename. If several processes need the package,
/// one of them unpacks it while the others wait.
fn unpacked(pack: &Pack, provider: &PackedProvider, base: &Path) -> Result<PathBuf, PackError> {
    let write = |path: &Path| {
        let path = path.to_owned();
        move |source: io::Error| PackError::Write { path, source }
    };
    let hash = package_hash(pack.index(), provider);
    // The checksum in the name distinguishes packages of the same version from different packs. The characters `/`, `+` and `=` of
    // Base64 are skipped.
    let sum: String = hash
        .bytes()
        .skip("h1:".len())
        .filter(u8::is_ascii_alphanumeric)
        .map(char::from)
        .take(32)
        .collect();
    let name = format!("{}_{}_{sum}", provider.address.ty, provider.version);
    let dir = base.join(&name);
    // The unpacked package is checked without the lock first, because this is the usual case, and needs no
    // write access.
    if intact(pack.index(), provider, &dir) {
        return Ok(dir);
    }
    let lock = base.join(format!(".{name}.lock"));
    let turn = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&lock)
        .map_err(write(&lock))?;
    // Without file locks, each process unpacks into its own staging directory, and a rename that comes too late fails harmlessly.
    let locked = turn.lock().is_ok();
    // Another process may have unpacked it while this one waited.
    if intact(pack.index(), provider, &dir) {
        return Ok(dir);
    }
    // A killed run may have left this directory. While the lock is held, no other process uses it.
    let suffix = if locked {
        String::new()
    } else {
        format!("-{}", std::process::id())
    };
    let staging = base.join(format!(".{name}.new{suffix}"));
    remove(&staging).map_err(write(&staging))?;
    fs::create_dir(&staging).map_err(write(&staging))?;
    let result = pack.unpack(&provider.files, &staging).and_then(|()| {
        remove(&dir)
            .and_then(|()| system::rename(&staging, &dir))
            .map_err(write(&dir))
    });
    if let Err(error) = result {
        let _ = remove(&staging);
        // Another process without file locks may have unpacked the package first.
        return match intact(pack.index(), provider, &dir) {
            true => Ok(dir),
            false => Err(error),
        };
    }
    Ok(dir)
}

fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns true if a directory has exactly the files of a package, with their content. Sizes are compared first, without reading.
/// Contents are compared, too, so that no other program of the same length runs.
fn intact(index: &Index, provider: &PackedProvider, dir: &Path) -> bool {
    let sizes = provider.files.iter().all(|file| {
        let size = index.blob_of(file).map(|blob| blob.size);
        let meta = fs::symlink_metadata(dir.join(&file.path))
            .ok()
            .filter(fs::Metadata::is_file);
        size.is_some() && meta.map(|meta| meta.len()) == size
    });
    let same = |found: io::Result<String>| match found {
        Ok(hash) => hash == package_hash(index, provider),
        Err(error) => {
            tracing::warn!(path = %dir.display(), error = io_reason(&error), "the unpacked provider cannot be read");
            false
        }
    };
    sizes && same(hash::directory(dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_others_can_write_to_are_not_used() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let dir = tempfile::tempdir().unwrap();
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let environment = |name: &str, value: String| Environment::read([(name.into(), value.into())]);
        let base = dir.path().join("a/b");
        assert_eq!(place(&environment(UNPACK_DIR, text(&base))), Some(base.clone()));
        assert_eq!(fs::metadata(&base).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&base, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(place(&environment(UNPACK_DIR, text(&base))), None);
        assert_eq!(place(&environment(UNPACK_DIR, "none".to_owned())), None);
        let cache = environment("XDG_CACHE_HOME", text(dir.path()));
        assert_eq!(place(&cache), Some(dir.path().join("monoform/packed")));
        let home = environment("HOME", text(dir.path()));
        assert_eq!(place(&home), Some(dir.path().join(".cache/monoform/packed")));
        fs::write(dir.path().join("file"), "").unwrap();
        let file = environment(UNPACK_DIR, text(&dir.path().join("file")));
        assert_eq!(place(&file), None);
    }
}
