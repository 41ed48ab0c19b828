//! Fetching a package from its source into the working directory, through the plugin cache if there is one.
//!
//! A package is downloaded, verified and unpacked in a staging directory beside the target, and then renamed. A package is
//! therefore complete or absent, however many processes fetch it at once, and wherever one of them is killed.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use addrs::Provider;
use archive::{Entries, Format, Limits};
use net::Client;

use crate::discovery::{self, Package};
use crate::download::{Progress, download};
use crate::error::{PackageError, read_error, write_error};
use crate::hash;
use crate::metadata::{Authentication, Location, PackageMetadata, SourceError};
use crate::place::place;
use crate::settings::Settings;
use crate::sources::PackageSource;
use addrs::platform::Platform;
use versions::Version;

/// Package to fetch.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub provider: Provider,
    pub version: Version,
    /// Checksums that the lock file allows; empty if it has none.
    pub locked: BTreeSet<String>,
    /// Sources that are tried, in order.
    pub sources: Vec<PackageSource>,
}

/// Origin of an installed package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// Installed by an earlier run.
    AlreadyInstalled,
    /// Linked from the plugin cache.
    Cached,
    /// Downloaded or copied from a package source.
    Installed(Authentication),
}

/// Reason why a package cannot be fetched. Each text is a clause without a full stop.
#[derive(Debug)]
pub(crate) enum FetchError {
    /// The sources have the version, but not for this platform. Each text is from one source.
    NotForPlatform(Vec<String>),
    /// The CLI configuration allows no source.
    NoSource,
    /// A source failed.
    Source(SourceError),
    /// The package is not usable or cannot be stored.
    Package(PackageError),
}

impl<E: Into<PackageError>> From<E> for FetchError {
    fn from(why: E) -> FetchError {
        let why = why.into();
        FetchError::Package(why)
    }
}

impl FetchError {
    /// Returns the text for the user.
    pub fn text(&self) -> String {
        match self {
            FetchError::NotForPlatform(missing) => missing.join("; "),
            FetchError::NoSource => "the CLI configuration names no source that it may be installed from".to_owned(),
            FetchError::Source(refusal) => refusal.advised(),
            FetchError::Package(why) => why.to_string(),
        }
    }
}

/// Package that [`fetch`] has made available: its directory, provenance and checksums.
#[derive(Clone, Debug)]
pub(crate) struct Fetched {
    pub dir: PathBuf,
    pub how: Provenance,
    /// Checksums for the lock file.
    pub hashes: BTreeSet<String>,
}

/// Makes a package available in the working directory: the installed package is used, or one from the plugin cache, or else one
/// from a package source.
pub(crate) async fn fetch(
    settings: &Settings,
    client: &Client,
    wanted: &Wanted,
    progress: &Progress,
) -> Result<Fetched, FetchError> {
    let dir = package_dir(&settings.providers_dir(), wanted);
    // Without a checksum in the lock file, an installed package is fetched again: nothing proves that it is unchanged.
    let before = hash_of(dir.clone(), &wanted.provider).await;
    if let Some(hash) = before.filter(|hash| wanted.locked.contains(hash)) {
        return Ok(fetched(dir, Provenance::AlreadyInstalled, hash, BTreeSet::new()));
    }
    let Some(cache) = &settings.config.plugin_cache_dir else {
        let (hash, metadata) = get(client, wanted, &settings.providers_dir(), &dir, progress).await?;
        return Ok(fetched(
            dir,
            Provenance::Installed(metadata.authentication),
            hash,
            metadata.known,
        ));
    };
    // If the directory were created, a mistyped path would stay unnoticed, and another directory would be
    // filled.
    if !cache.is_dir() {
        return Err(PackageError::NoCache(cache.clone()).into());
    }
    let cache = std::path::absolute(cache).map_err(read_error(cache))?;
    let cached = package_dir(&cache, wanted);
    // As in Terraform, the cache is used only for packages with checksums in the lock file, so that lock files do not
    // depend on caches.
    let good = |hash: &String| wanted.locked.contains(hash) || settings.config.plugin_cache_may_break_lock_file;
    let mut known = BTreeSet::new();
    let mut how = Provenance::Cached;
    let mut hash = hash_of(cached.clone(), &wanted.provider).await.filter(good);
    if hash.is_none() {
        // If several processes need the package, one downloads it while the others wait here; then it is in the cache.
        let _turn = turn(&cached).await;
        hash = hash_of(cached.clone(), &wanted.provider).await.filter(good);
        if hash.is_none() {
            let (got, metadata) = get(client, wanted, &cache, &cached, progress).await?;
            hash = Some(got);
            known = metadata.known;
            how = Provenance::Installed(metadata.authentication);
        }
    }
    let target = dir.clone();
    // The working directory gets a link, so that a package is on the disk only once.
    blocking(move || place(&Package::Directory(cached), &target).map_err(write_error(&target))).await?;
    Ok(fetched(dir, how, hash.unwrap_or_default(), known))
}

fn fetched(dir: PathBuf, how: Provenance, hash: String, mut hashes: BTreeSet<String>) -> Fetched {
    hashes.insert(hash);
    Fetched { dir, how, hashes }
}

fn package_dir(base: &Path, wanted: &Wanted) -> PathBuf {
    discovery::provider_dir(base, &wanted.provider)
        .join(wanted.version.to_string())
        .join(Platform::current().to_string())
}

/// Returns the checksum of an unpacked package; `None` if it has no executable or cannot be read.
async fn hash_of(dir: PathBuf, provider: &Provider) -> Option<String> {
    discovery::executable_in(&dir, &provider.ty)?;
    blocking(move || hash::directory(&dir).map_err(PackageError::Hash))
        .await
        .ok()
}

/// Locks a package in the cache, after waiting for other processes. Returns `None` if locking fails, as on file systems without
/// locks: then several processes may download the package, with the same result.
async fn turn(cached: &Path) -> Option<fs::File> {
    let version = cached.parent()?;
    let name = format!(
        ".{}_{}.lock",
        version.file_name()?.to_string_lossy(),
        cached.file_name()?.to_string_lossy()
    );
    let dir = version.parent()?.to_owned();
    let lock = blocking(move || {
        let open = || {
            fs::create_dir_all(&dir)?;
            let file = fs::OpenOptions::new().create(true).append(true).open(dir.join(name))?;
            file.lock()?;
            Ok(file)
        };
        open().map_err(write_error(&dir))
    });
    lock.await.ok()
}

/// Installs a package at `to` from the first source that has it. The staging directory is created in `beside`.
async fn get(
    client: &Client,
    wanted: &Wanted,
    beside: &Path,
    to: &Path,
    progress: &Progress,
) -> Result<(String, PackageMetadata), FetchError> {
    let metadata = metadata(client, wanted, &Platform::current()).await?;
    fs::create_dir_all(beside).map_err(write_error(beside))?;
    // The temporary directory is created on the file system of the target, so that the package can be renamed
    // into place.
    let staging = tempfile::Builder::new()
        .prefix(".staging-")
        .tempdir_in(beside)
        .map_err(write_error(beside))?;
    let limits = Limits::from_variables(client.settings().environment.all())?;
    let archive = archive(client, &metadata, staging.path(), progress).await?;
    let (wanted, to, checked) = (wanted.clone(), to.to_owned(), metadata.clone());
    let hash = blocking(move || {
        let unpacked = staging.path().join("package");
        let hash = unpack(&wanted, &checked, &archive, &unpacked, &limits)?;
        settle(&unpacked, &to, staging.path(), &hash).map_err(write_error(&to))?;
        Ok(hash)
    });
    Ok((hash.await?, metadata))
}

/// Verifies an archive and its SHA-256 (`sum`), and unpacks it into a new directory. Returns its `h1:` checksum, after comparing
/// it and the `zh:` checksum with the lock file.
pub(crate) fn unpack(
    wanted: &Wanted,
    metadata: &PackageMetadata,
    (path, sum): &(PathBuf, String),
    to: &Path,
    limits: &Limits,
) -> Result<String, PackageError> {
    verify_package(metadata, path, sum, limits)?;
    // Archives from systems without Unix modes would otherwise be unpacked to files that cannot be executed.
    let entries = Entries::Files {
        executable: "terraform-provider-",
    };
    archive::unpack(Format::Zip, path, to, entries, limits)?;
    if discovery::executable_in(to, &wanted.provider.ty).is_none() {
        return Err(PackageError::NoExecutable(wanted.provider.ty.to_string()));
    }
    let hash = hash::directory(to).map_err(PackageError::Hash)?;
    // If the lock file was made on another platform, it may contain only the `zh:` checksum of this package,
    // from the registry's signed list, so either kind is accepted.
    if !wanted.locked.is_empty() && !wanted.locked.contains(&hash) && !wanted.locked.contains(&format!("zh:{sum}")) {
        return Err(PackageError::NotLocked(metadata.location.clone()));
    }
    Ok(hash)
}

/// Returns the metadata of a package at the first source that has it.
pub(crate) async fn metadata(
    client: &Client,
    wanted: &Wanted,
    platform: &Platform,
) -> Result<PackageMetadata, FetchError> {
    let mut missing = Vec::new();
    for source in &wanted.sources {
        match source
            .metadata(client, &wanted.provider, &wanted.version, platform)
            .await
        {
            Ok(metadata) => return Ok(metadata),
            Err(SourceError::Missing(why)) => missing.push(why),
            // A failed source ends the search, because the next source might have another package of that
            // version.
            Err(refusal) => return Err(FetchError::Source(refusal)),
        }
    }
    Err(match missing.is_empty() {
        true => FetchError::NoSource,
        false => FetchError::NotForPlatform(missing),
    })
}

/// Provides the archive of a package as a file, and its SHA-256 in hexadecimal digits. Archives on this machine stay where they
/// are.
pub(crate) async fn archive(
    client: &Client,
    metadata: &PackageMetadata,
    dir: &Path,
    progress: &Progress,
) -> Result<(PathBuf, String), PackageError> {
    match &metadata.location {
        Location::File(path) => {
            let path = path.clone();
            blocking(move || {
                let sum = hash::bytes(&path).map_err(read_error(&path))?;
                Ok((path, sum.trim_start_matches("zh:").to_owned()))
            })
            .await
        }
        Location::Url(url) => {
            let path = dir.join("package.zip");
            let file = fs::File::create_new(&path).map_err(write_error(&path))?;
            let sum = download(client, url, None, file, progress).await?;
            Ok((path, sum))
        }
        Location::Blob { url, authorization } => {
            let path = dir.join("package.zip");
            let file = fs::File::create_new(&path).map_err(write_error(&path))?;
            let sum = download(client, url, authorization.as_ref(), file, progress).await?;
            Ok((path, sum))
        }
    }
}

/// Checks that an archive is the one that its source describes. A source without checksums is not compared.
pub(crate) fn verify_package(
    metadata: &PackageMetadata,
    archive: &Path,
    sum: &str,
    limits: &Limits,
) -> Result<(), PackageError> {
    // Checksums of unknown schemes cannot be compared. If there are no others, the package is refused below.
    let usable = |hash: &&String| hash.starts_with("zh:") || hash.starts_with("h1:");
    let expected: Vec<&String> = metadata.hashes.iter().filter(usable).collect();
    if metadata.hashes.is_empty() || expected.iter().any(|hash| **hash == format!("zh:{sum}")) {
        return Ok(());
    }
    // `h1:` checksums require all files of the archive to be unpacked, so the fast comparison comes first.
    if expected.iter().any(|hash| hash.starts_with("h1:")) {
        let own = hash::archive(archive, limits).map_err(|source| PackageError::Archive {
            location: Box::new(metadata.location.clone()),
            source,
        })?;
        if expected.iter().any(|hash| **hash == own) {
            return Ok(());
        }
    }
    let all: Vec<&str> = metadata.hashes.iter().map(String::as_str).collect();
    Err(PackageError::Checksum {
        location: Box::new(metadata.location.clone()),
        actual: sum.to_owned(),
        expected: all.join(" or "),
    })
}

/// Moves an unpacked package to its final path. An equal package there is not replaced, since another process may run it.
fn settle(package: &Path, to: &Path, staging: &Path, hash: &str) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    // Another process may put a package there between the two renames, so they are tried again.
    let mut tries = 0;
    loop {
        let error = match system::rename(package, to) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let meta = fs::symlink_metadata(to);
        tries += 1;
        if meta.is_err() || tries > 20 {
            return Err(error);
        }
        if meta.is_ok_and(|m| m.is_dir()) && hash::directory(to).is_ok_and(|there| there == hash) {
            return Ok(());
        }
        // The old package is moved away by one rename; removing it would leave half a package in between.
        match system::rename(to, &staging.join(format!("old-{tries}"))) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PackageError> + Send + 'static,
) -> Result<T, PackageError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or(Err(PackageError::Task))
}
