//! Served packages, of a mirror directory or a pack, as archives.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use addrs::Provider;
use addrs::platform::Platform;
use pack::write::{Entry, Source, entries};
use pack::{CopyError, Pack, PackError};
use system::files::{Identity, MetadataExt as _};
use tempfile::TempPath;
use tokio::sync::{OnceCell, Semaphore};
use versions::Version;
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

use crate::openpgp::SigningKey;
use crate::{discovery, hash, mirror_archives, packed};

/// Limit of concurrent jobs, each of which makes an archive or computes a checksum.
const AT_ONCE: usize = 2;

/// Source of the served packages.
#[derive(Clone, Debug)]
pub enum Contents {
    /// Directory in mirror layout, with archives or unpacked packages.
    Mirror(PathBuf),
    Pack(Arc<Pack>),
}

/// Served packages, with the archives and checksums that were made for earlier requests.
#[derive(Debug)]
pub struct Shelf {
    contents: Contents,
    /// Temporary directory for archives that are made.
    scratch: tempfile::TempDir,
    permits: Semaphore,
    archives: Known<Archive>,
    hashes: Known<String>,
    /// Key that signs the checksums of the registry.
    pub(super) key: SigningKey,
}

/// Overview of the served packages.
#[derive(Debug, Default)]
pub struct Survey {
    /// Providers with packages.
    pub providers: BTreeSet<Provider>,
    /// Reasons why other packages are not served.
    pub left_out: Vec<PackError>,
}

/// Packages of a provider: their locations, by version and platform.
pub(super) type Packages = BTreeMap<Version, BTreeMap<Platform, PackageLocation>>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum PackageLocation {
    Archive(PathBuf),
    Directory(PathBuf),
    /// Package of the pack, as its index in the list of providers.
    Packed(usize),
}

/// Archive on disk.
#[derive(Clone, Debug)]
pub(super) struct Archive {
    pub path: PathBuf,
    pub size: u64,
    /// SHA-256, in hexadecimal digits.
    pub sha256: String,
    /// Temporary archive, deleted when the last user drops it.
    _made: Option<Arc<TempPath>>,
}

/// Files of a package with their path, inode, size and modification time. A change shows that cached results are outdated.
type Stamp = Vec<(PathBuf, Identity, u64, (i64, i64))>;

/// Cache of results for packages, valid as long as the files of a package do not change.
#[derive(Debug)]
struct Known<T>(Mutex<HashMap<PackageLocation, Fact<T>>>);

/// Result, complete or in progress, for one state of the files.
#[derive(Debug)]
struct Fact<T> {
    stamp: Stamp,
    cell: Arc<OnceCell<T>>,
}

impl<T> Default for Known<T> {
    fn default() -> Known<T> {
        Known(Mutex::default())
    }
}

impl<T> Known<T> {
    fn cell(&self, place: &PackageLocation, stamp: &Stamp) -> Arc<OnceCell<T>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(place).filter(|known| known.stamp == *stamp) {
            return known.cell.clone();
        }
        // The caller computes the value after the lock is released, so that requests for other packages need
        // not wait.
        let cell = Arc::default();
        let stamp = stamp.clone();
        all.insert(
            place.clone(),
            Fact {
                stamp,
                cell: Arc::clone(&cell),
            },
        );
        cell
    }
}

impl Shelf {
    /// Prepares packages to be served.
    ///
    /// # Errors
    /// The temporary directory or the key cannot be made.
    pub fn new(contents: Contents) -> io::Result<Shelf> {
        Ok(Shelf {
            contents,
            scratch: tempfile::Builder::new().prefix("monoform-serve-").tempdir()?,
            permits: Semaphore::new(AT_ONCE),
            archives: Known::default(),
            hashes: Known::default(),
            key: SigningKey::generate()?,
        })
    }

    /// Examines all packages, and returns the served providers and the packages that cannot be served.
    #[must_use]
    pub fn survey(&self) -> Survey {
        let mut out = Survey::default();
        let named: Vec<Provider> = match &self.contents {
            Contents::Mirror(dir) => discovery::providers_below(dir),
            Contents::Pack(pack) => pack.index().providers.iter().map(|one| one.address.clone()).collect(),
        };
        for provider in named {
            let (packages, left_out) = self.packages_of(&provider);
            out.left_out.extend(left_out);
            if !packages.is_empty() {
                out.providers.insert(provider);
            }
        }
        out
    }

    /// Returns the packages of a provider. Packages that cannot be served are reported in the log.
    pub(super) fn packages(&self, provider: &Provider) -> Packages {
        let (packages, left_out) = self.packages_of(provider);
        for error in left_out {
            tracing::warn!(%provider, %error, "package not served");
        }
        packages
    }

    /// Returns the packages of a provider, and the reasons why others cannot be served. A listed package must be downloadable.
    fn packages_of(&self, provider: &Provider) -> (Packages, Vec<PackError>) {
        let (mut out, mut left_out) = (Packages::new(), Vec::new());
        match &self.contents {
            Contents::Mirror(dir) => {
                // The original archive of the provider's author takes precedence over an unpacked package.
                for archive in mirror_archives::packed(dir, provider) {
                    match inside(dir, &archive.path).and_then(|()| readable(&archive.path)) {
                        Ok(()) => {
                            let platforms = out.entry(archive.version).or_default();
                            platforms.insert(archive.platform, PackageLocation::Archive(archive.path));
                        }
                        Err(error) => left_out.push(error),
                    }
                }
                let root = dir;
                for (version, platforms) in discovery::platforms_below(dir, provider) {
                    let base = discovery::provider_dir(dir, provider).join(version.to_string());
                    for platform in platforms {
                        let dir = base.join(platform.to_string());
                        if out.get(&version).is_some_and(|known| known.contains_key(&platform)) {
                            continue;
                        }
                        match inside(root, &dir).and_then(|()| files_of(&dir)) {
                            Ok(_) => {
                                let platforms = out.entry(version.clone()).or_default();
                                platforms.insert(platform, PackageLocation::Directory(dir));
                            }
                            Err(error) => left_out.push(error),
                        }
                    }
                }
            }
            Contents::Pack(pack) => {
                let all = pack.index().providers.iter().enumerate();
                for (at, one) in all.filter(|(_, one)| one.address == *provider) {
                    let platforms = out.entry(one.version.clone()).or_default();
                    platforms.insert(one.platform.clone(), PackageLocation::Packed(at));
                }
            }
        }
        (out, left_out)
    }

    /// Returns the checksum of a package for the documents of a mirror: `zh:` for an archive of the mirror, `h1:` for other packages.
    pub(super) async fn hash(self: &Arc<Shelf>, place: &PackageLocation) -> io::Result<String> {
        self.known(place, |shelf| &shelf.hashes, Shelf::new_hash).await
    }

    fn new_hash(&self, place: &PackageLocation) -> io::Result<String> {
        match (place, &self.contents) {
            (PackageLocation::Archive(path), _) => hash::bytes(path),
            (PackageLocation::Directory(dir), _) => {
                let files = files_of(dir).map_err(reason)?;
                hash::h1(files.into_iter().map(|file| (file.path, file.source)).collect())
            }
            (PackageLocation::Packed(at), Contents::Pack(pack)) => {
                let index = pack.index();
                let one = index.providers.get(*at).ok_or(io::ErrorKind::NotFound)?;
                Ok(packed::package_hash(index, one))
            }
            (PackageLocation::Packed(_), Contents::Mirror(_)) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Returns a package as an archive, which is made if there is none.
    pub(super) async fn archive(self: &Arc<Shelf>, place: &PackageLocation) -> io::Result<Archive> {
        let work = |shelf: &Shelf, place: &PackageLocation| match place {
            PackageLocation::Archive(path) => described(path.clone(), None),
            place => shelf.make(place),
        };
        self.known(place, |shelf| &shelf.archives, work).await
    }

    /// Returns a result from the cache, or computes it. The work continues if the client disconnects, so that the next one finds
    /// the result.
    async fn known<T: Clone + Send + Sync + 'static>(
        self: &Arc<Shelf>,
        place: &PackageLocation,
        all: fn(&Shelf) -> &Known<T>,
        work: fn(&Shelf, &PackageLocation) -> io::Result<T>,
    ) -> io::Result<T> {
        let (shelf, place) = (self.clone(), place.clone());
        let done = tokio::spawn(async move {
            let now = {
                let place = place.clone();
                on_a_thread(move || stamp(&place)).await?
            };
            let cell = all(&shelf).cell(&place, &now);
            let found = cell.get_or_try_init(async || {
                let _permit = shelf.permits.acquire().await.map_err(io::Error::other)?;
                let (shelf, place) = (shelf.clone(), place.clone());
                on_a_thread(move || {
                    let found = work(&shelf, &place)?;
                    // If the package is being replaced, the checksum would match neither the old package nor the new
                    // one.
                    match stamp(&place)? == now {
                        true => Ok(found),
                        false => Err(io::Error::other("the package was changed while it was read")),
                    }
                })
                .await
            });
            found.await.cloned()
        });
        done.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    fn make(&self, place: &PackageLocation) -> io::Result<Archive> {
        let file = tempfile::Builder::new()
            .suffix(".zip")
            .tempfile_in(self.scratch.path())?;
        let (file, path) = file.into_parts();
        let mut zip = zip::ZipWriter::new(io::BufWriter::new(file));
        match (place, &self.contents) {
            (PackageLocation::Directory(dir), _) => {
                for file in files_of(dir).map_err(reason)? {
                    let mut source = File::open(&file.source)?;
                    zip.start_file(file.path, options(file.executable, source.metadata()?.len()))?;
                    io::copy(&mut source, &mut zip)?;
                }
            }
            (PackageLocation::Packed(at), Contents::Pack(pack)) => {
                let one = pack.index().providers.get(*at).ok_or(io::ErrorKind::NotFound)?;
                for file in &one.files {
                    let blob = pack.index().blob_of(file).ok_or(io::ErrorKind::NotFound)?;
                    zip.start_file(file.path.as_str(), options(file.executable, blob.size))?;
                    pack.copy(blob, &mut zip).map_err(|error| match error {
                        CopyError::Pack(error) => reason(error),
                        CopyError::Write(error) => error,
                    })?;
                }
            }
            _ => return Err(io::ErrorKind::NotFound.into()),
        }
        // Flushed explicitly, because dropping the buffer would ignore an error of its last write.
        zip.finish()?.flush()?;
        described(path.to_path_buf(), Some(path))
    }
}

async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error)))
}

struct PackageFile {
    path: String,
    source: PathBuf,
    executable: bool,
}

/// Lists the files of an unpacked package, all of them readable. [`entries`] decides which links are followed.
fn files_of(dir: &Path) -> Result<Vec<PackageFile>, PackError> {
    let mut out = Vec::new();
    for Entry {
        path,
        executable,
        source,
    } in entries(dir)?
    {
        let Source::File(source) = source else { continue };
        readable(&source)?;
        out.push(PackageFile {
            path,
            source,
            executable,
        });
    }
    Ok(out)
}

/// Checks that a package is inside the mirror after symbolic links are resolved. Fails if a link in its path leads out of the mirror.
fn inside(mirror: &Path, package: &Path) -> Result<(), PackError> {
    let real = |path: &Path| {
        std::fs::canonicalize(path).map_err(|source| PackError::Read {
            path: path.to_owned(),
            source,
        })
    };
    match real(package)?.starts_with(real(mirror)?) {
        true => Ok(()),
        false => Err(PackError::NotPackable {
            path: package.to_owned(),
            reason: "a link in its path leads out of the directory that is served".to_owned(),
        }),
    }
}

fn readable(path: &Path) -> Result<(), PackError> {
    let opened = File::open(path).map(drop);
    opened.map_err(|source| PackError::Read {
        path: path.to_owned(),
        source,
    })
}

/// Returns the state of a package's files. Links are followed, because a linked program can change while the link stays the same.
fn stamp(place: &PackageLocation) -> io::Result<Stamp> {
    let files: Vec<PathBuf> = match place {
        PackageLocation::Archive(path) => vec![path.clone()],
        PackageLocation::Directory(dir) => {
            let files = files_of(dir).map_err(reason)?;
            files.into_iter().map(|file| file.source).collect()
        }
        PackageLocation::Packed(_) => Vec::new(),
    };
    let of = |path: PathBuf| {
        let meta = std::fs::metadata(&path)?;
        Ok((
            path.clone(),
            Identity::at(&path)?,
            meta.len(),
            (meta.mtime(), meta.mtime_nsec()),
        ))
    };
    files.into_iter().map(of).collect()
}

fn reason(error: PackError) -> io::Error {
    io::Error::other(error)
}

/// Returns the options of an archived file: stored without compression, since clients wait only seconds for the response, and
/// without a time, so that a package always gives the same archive.
fn options(executable: bool, size: u64) -> SimpleFileOptions {
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .large_file(size > u64::from(u32::MAX) / 2)
        .unix_permissions(if executable { 0o755 } else { 0o644 })
}

fn described(path: PathBuf, made: Option<TempPath>) -> io::Result<Archive> {
    let hash = hash::bytes(&path)?;
    Ok(Archive {
        size: std::fs::metadata(&path)?.len(),
        sha256: hash.trim_start_matches("zh:").to_owned(),
        path,
        _made: made.map(Arc::new),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_out_are_not_served() {
        use std::os::unix::fs::symlink;
        let (mirror, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let of = |name: &str| mirror.path().join("example.com/acme").join(name);
        let program = "terraform-provider-a_v1.0.0";
        std::fs::create_dir_all(outside.path().join("1.0.0/linux_amd64")).unwrap();
        std::fs::write(outside.path().join("1.0.0/linux_amd64").join(program), "secret").unwrap();
        std::fs::write(outside.path().join("secret.zip"), "secret").unwrap();
        std::fs::create_dir_all(of("kept/1.0.0/linux_amd64")).unwrap();
        std::fs::write(of("kept/1.0.0/linux_amd64/terraform-provider-kept_v1.0.0"), "x").unwrap();
        // A link inside the mirror does not lead out of it.
        symlink("kept", of("alias")).unwrap();
        symlink(outside.path(), of("type")).unwrap();
        std::fs::create_dir_all(of("version")).unwrap();
        symlink(outside.path().join("1.0.0"), of("version/1.0.0")).unwrap();
        std::fs::create_dir_all(of("platform/1.0.0")).unwrap();
        symlink(
            outside.path().join("1.0.0/linux_amd64"),
            of("platform/1.0.0/linux_amd64"),
        )
        .unwrap();
        std::fs::create_dir_all(of("archive")).unwrap();
        symlink(
            outside.path().join("secret.zip"),
            of("archive/terraform-provider-archive_1.0.0_linux_amd64.zip"),
        )
        .unwrap();
        let shelf = Shelf::new(Contents::Mirror(mirror.path().to_owned())).unwrap();
        let served = |name: &str| {
            !shelf
                .packages(&Provider::parse(&format!("example.com/acme/{name}")).unwrap())
                .is_empty()
        };
        assert!(served("kept"));
        for name in ["type", "version", "platform", "archive"] {
            assert!(!served(name), "{name}");
        }
        let left_out = shelf.survey().left_out;
        assert!(
            left_out
                .iter()
                .any(|error| error.to_string().contains("leads out of the directory that is served")),
            "{left_out:?}"
        );
    }

    #[tokio::test]
    async fn an_archive_is_made_once_and_goes_when_its_package_changes() {
        let dir = tempfile::tempdir().unwrap();
        let package = dir.path().join("example.com/acme/net/1.0.0/linux_amd64");
        std::fs::create_dir_all(&package).unwrap();
        let program = package.join("terraform-provider-net_v1.0.0");
        std::fs::write(&program, "one").unwrap();
        let shelf = Arc::new(Shelf::new(Contents::Mirror(dir.path().to_owned())).unwrap());
        let provider = Provider::parse("example.com/acme/net").unwrap();
        assert_eq!(shelf.survey().providers, [provider.clone()].into());
        let packages = shelf.packages(&provider);
        let place = packages.values().next().unwrap().values().next().unwrap();
        let (first, again) = (shelf.archive(place).await.unwrap(), shelf.archive(place).await.unwrap());
        assert_eq!(first.path, again.path);
        let hash = shelf.hash(place).await.unwrap();
        assert_eq!(hash, hash::directory(&package).unwrap());
        std::fs::write(&program, "another").unwrap();
        let second = shelf.archive(place).await.unwrap();
        assert_ne!(first.sha256, second.sha256);
        assert_ne!(shelf.hash(place).await.unwrap(), hash);
        assert!(first.path.exists(), "it is being read");
        drop((first, again));
        let left: Vec<PathBuf> = std::fs::read_dir(shelf.scratch.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(left, [second.path]);
    }
}
