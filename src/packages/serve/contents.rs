//! What is served: the packages of a mirror directory or of a pack, as archives.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use addrs::Provider;
use addrs::platform::Platform;
use pack::{CopyError, Pack, PackError};
use tokio::sync::{OnceCell, Semaphore};
use versions::Version;
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

use crate::openpgp::SigningKey;
use crate::{discovery, hash, packed, sources};

/// How many archives are made, and how many packages are read for their checksums, at the same time.
const AT_ONCE: usize = 2;

/// Where packages are.
#[derive(Clone, Debug)]
pub enum Contents {
    /// In a directory in mirror layout: archives or unpacked packages.
    Mirror(PathBuf),
    /// In a pack.
    Pack(Arc<Pack>),
}

/// Packages that are served.
#[derive(Debug)]
pub struct Shelf {
    contents: Contents,
    /// For archives that are made.
    scratch: tempfile::TempDir,
    permits: Semaphore,
    /// What was found out about a package, by where it is and when it was changed.
    archives: Mutex<HashMap<Key, Arc<OnceCell<Archive>>>>,
    hashes: Mutex<HashMap<Key, Arc<OnceCell<String>>>>,
    /// Signs the checksums of a registry.
    pub(super) key: SigningKey,
}

type Key = (Place, Option<SystemTime>);

/// Where a package is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Archive(PathBuf),
    Directory(PathBuf),
    /// By its place in the index of the pack.
    Packed(usize),
}

/// An archive on the disk.
#[derive(Clone, Debug)]
pub(super) struct Archive {
    pub path: PathBuf,
    pub size: u64,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: String,
}

impl Contents {
    /// The addresses that there are packages of.
    #[must_use]
    pub fn providers(&self) -> BTreeSet<Provider> {
        match self {
            Contents::Mirror(dir) => discovery::providers_below(dir).into_iter().collect(),
            Contents::Pack(pack) => pack.index().providers.iter().map(|one| one.address.clone()).collect(),
        }
    }
}

impl Shelf {
    /// A shelf with these contents.
    ///
    /// # Errors
    /// There is no place for temporary files, or no key can be made.
    pub fn new(contents: Contents) -> io::Result<Shelf> {
        Ok(Shelf {
            contents,
            scratch: tempfile::Builder::new().prefix("monoform-serve-").tempdir()?,
            permits: Semaphore::new(AT_ONCE),
            archives: Mutex::default(),
            hashes: Mutex::default(),
            key: SigningKey::generate()?,
        })
    }

    /// What there is of a provider.
    pub(super) fn packages(&self, provider: &Provider) -> BTreeMap<Version, BTreeMap<Platform, Place>> {
        let mut out: BTreeMap<Version, BTreeMap<Platform, Place>> = BTreeMap::new();
        match &self.contents {
            Contents::Mirror(dir) => {
                for (version, platforms) in discovery::platforms_below(dir, provider) {
                    let base = discovery::provider_dir(dir, provider).join(version.to_string());
                    let place = |platform: Platform| {
                        let dir = base.join(platform.to_string());
                        (platform, Place::Directory(dir))
                    };
                    out.entry(version).or_default().extend(platforms.into_iter().map(place));
                }
                // An archive is what its provider's author has made.
                for archive in sources::packed(dir, provider) {
                    let platforms = out.entry(archive.version).or_default();
                    platforms.insert(archive.platform, Place::Archive(archive.path));
                }
            }
            Contents::Pack(pack) => {
                let all = pack.index().providers.iter().enumerate();
                for (at, one) in all.filter(|(_, one)| one.address == *provider) {
                    let platforms = out.entry(one.version.clone()).or_default();
                    platforms.insert(one.platform.clone(), Place::Packed(at));
                }
            }
        }
        out
    }

    /// The checksum of a package, for the documents of a mirror.
    pub(super) async fn hash(self: &Arc<Shelf>, place: &Place) -> io::Result<String> {
        let (shelf, place) = (self.clone(), place.clone());
        detached(async move {
            let cell = cell(&shelf.hashes, &place);
            cell.get_or_try_init(|| shelf.new_hash(&place)).await.cloned()
        })
        .await
    }

    async fn new_hash(self: &Arc<Shelf>, place: &Place) -> io::Result<String> {
        match (place, &self.contents) {
            (Place::Archive(path), _) => {
                let path = path.clone();
                self.blocking(move |_| hash::bytes(&path)).await
            }
            (Place::Directory(dir), _) => {
                let dir = dir.clone();
                self.blocking(move |_| hash::directory(&dir)).await
            }
            (Place::Packed(at), Contents::Pack(pack)) => {
                let index = pack.index();
                let one = index.providers.get(*at).ok_or(io::ErrorKind::NotFound)?;
                Ok(packed::package_hash(index, one))
            }
            (Place::Packed(_), Contents::Mirror(_)) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// A package as an archive, which is made if there is none.
    pub(super) async fn archive(self: &Arc<Shelf>, place: &Place) -> io::Result<Archive> {
        let (shelf, place) = (self.clone(), place.clone());
        detached(async move {
            let cell = cell(&shelf.archives, &place);
            let archive = cell.get_or_try_init(|| {
                let place = place.clone();
                shelf.blocking(move |shelf| match place {
                    Place::Archive(path) => described(path),
                    place => shelf.make(&place),
                })
            });
            archive.await.cloned()
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        self: &Arc<Shelf>,
        work: impl FnOnce(&Shelf) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let _permit = self.permits.acquire().await.map_err(io::Error::other)?;
        let shelf = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&shelf)).await;
        done.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    /// Makes an archive of a package.
    fn make(&self, place: &Place) -> io::Result<Archive> {
        let file = tempfile::Builder::new()
            .suffix(".zip")
            .tempfile_in(self.scratch.path())?;
        let (file, path) = file.keep().map_err(|error| error.error)?;
        let mut zip = zip::ZipWriter::new(io::BufWriter::new(file));
        match (place, &self.contents) {
            (Place::Directory(dir), _) => {
                let entries = pack::write::entries(dir).map_err(reason)?;
                for entry in entries {
                    let pack::write::Source::File(source) = entry.source else {
                        continue;
                    };
                    let meta = std::fs::metadata(&source)?;
                    let executable = meta.permissions().mode() & 0o100 != 0;
                    zip.start_file(entry.path, options(executable, meta.len()))?;
                    io::copy(&mut File::open(&source)?, &mut zip)?;
                }
            }
            (Place::Packed(at), Contents::Pack(pack)) => {
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
        zip.finish()?.flush()?;
        described(path)
    }
}

/// Does something to its end, even if the client that has asked for it goes away: the next one finds the result.
async fn detached<T: Send + 'static>(work: impl Future<Output = io::Result<T>> + Send + 'static) -> io::Result<T> {
    let done = tokio::spawn(work).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn reason(error: PackError) -> io::Error {
    io::Error::other(error)
}

/// How a file is archived: not compressed, since clients wait for the answer, and wait for seconds only; and without a time, so that
/// the same package gives the same archive.
fn options(executable: bool, size: u64) -> SimpleFileOptions {
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .large_file(size > u64::from(u32::MAX) / 2)
        .unix_permissions(if executable { 0o755 } else { 0o644 })
}

fn described(path: PathBuf) -> io::Result<Archive> {
    let hash = hash::bytes(&path)?;
    Ok(Archive {
        size: std::fs::metadata(&path)?.len(),
        sha256: hash.trim_start_matches("zh:").to_owned(),
        path,
    })
}

/// What is known about a package as it is now.
fn cell<T>(all: &Mutex<HashMap<Key, Arc<OnceCell<T>>>>, place: &Place) -> Arc<OnceCell<T>> {
    let changed = |path: &Path| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let changed = match place {
        Place::Archive(path) | Place::Directory(path) => changed(path),
        Place::Packed(_) => None,
    };
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    all.entry((place.clone(), changed)).or_default().clone()
}
