//! Making a pack.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use addrs::Provider;
use addrs::platform::Platform;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use versions::Version;

use crate::error::{PackError, damaged, read_error, write_error};
use crate::executable::Executable;
use crate::format::Trailer;
use crate::index::{Blob, FORMAT, Index, PackedConfiguration, PackedExecutable, PackedFile, PackedProvider};
use crate::read::Pack;
use crate::signature::{self, SigningKey};

/// The level of compression where none is named: that of the `zstd` program.
pub const DEFAULT_LEVEL: i32 = 3;

/// The levels of compression that there are.
pub const LEVELS: std::ops::RangeInclusive<i32> = 1..=22;

/// From this size on, a file is compressed by several threads. The result depends on the size, not on how many there are.
const SIDE_BY_SIDE: u64 = 4 << 20;

/// How deep directories may be nested.
const DEEPEST: usize = 64;

/// What a pack shall carry.
#[derive(Debug, Default)]
pub struct Contents<'p> {
    /// Provider packages. Of two for the same provider, version and platform, the later one counts.
    pub providers: Vec<ProviderContents<'p>>,
    /// Files of a directory that modules are installed from.
    pub modules: Vec<Entry<'p>>,
    /// The CLI configuration.
    pub cli_config: Option<Source<'p>>,
    /// Configurations, by name.
    pub configurations: BTreeMap<String, Vec<Entry<'p>>>,
}

/// A provider package to be packed.
#[derive(Clone, Debug)]
pub struct ProviderContents<'p> {
    /// The address.
    pub address: Provider,
    /// The version.
    pub version: Version,
    /// The platform.
    pub platform: Platform,
    /// Checksums for the lock file.
    pub hashes: BTreeSet<String>,
    /// Its files.
    pub files: Vec<Entry<'p>>,
}

/// A file to be packed.
#[derive(Clone, Debug)]
pub struct Entry<'p> {
    /// Its path, with slashes.
    pub path: String,
    /// Whether it can be executed.
    pub executable: bool,
    /// Its content.
    pub source: Source<'p>,
}

/// Where content comes from.
#[derive(Clone, Debug)]
pub enum Source<'p> {
    /// A file.
    File(PathBuf),
    /// A blob of another pack. Its frame is taken as it is.
    Pack(&'p Pack, usize),
}

/// How a pack is made.
#[derive(Debug)]
pub struct Options<'k> {
    /// The level of compression.
    pub level: i32,
    /// The key it is signed with.
    pub signing: Option<&'k SigningKey>,
}

/// The files below a directory, sorted. What a link inside the directory leads to is packed as a file.
///
/// # Errors
/// A file cannot be read, is a device or the like, has a name that is no text, or is a link that leads out of the directory.
pub fn entries(dir: &Path, wanted: &dyn Fn(&Path) -> bool) -> Result<Vec<Entry<'static>>, PackError> {
    let root = fs::canonicalize(dir).map_err(read_error(dir))?;
    let mut out = Vec::new();
    collect(&root, &root, String::new(), 0, wanted, &mut out)?;
    out.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(out)
}

fn collect(
    root: &Path,
    dir: &Path,
    prefix: String,
    depth: usize,
    wanted: &dyn Fn(&Path) -> bool,
    out: &mut Vec<Entry<'static>>,
) -> Result<(), PackError> {
    let not_packable = |path: &Path, reason: &str| PackError::NotPackable {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    if depth > DEEPEST {
        return Err(not_packable(dir, "its directories are nested too deep"));
    }
    for entry in fs::read_dir(dir).map_err(read_error(dir))? {
        let path = entry.map_err(read_error(dir))?.path();
        let relative = path.strip_prefix(root).unwrap_or(&path);
        if !wanted(relative) {
            continue;
        }
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(not_packable(&path, "its name is not valid Unicode text"));
        };
        let name = format!("{prefix}{name}");
        let target = fs::canonicalize(&path).map_err(read_error(&path))?;
        if !target.starts_with(root) {
            return Err(not_packable(&path, "it is a link that leads out of what is packed"));
        }
        let meta = fs::metadata(&target).map_err(read_error(&path))?;
        if meta.is_dir() {
            collect(root, &path, name + "/", depth + 1, wanted, out)?;
        } else if meta.is_file() {
            out.push(Entry {
                path: name,
                executable: meta.permissions().mode() & 0o100 != 0,
                source: Source::File(target),
            });
        } else {
            return Err(not_packable(&path, "it is neither a file nor a directory"));
        }
    }
    Ok(())
}

impl<'p> Contents<'p> {
    /// What another pack carries.
    #[must_use]
    pub fn of(pack: &'p Pack) -> Contents<'p> {
        let taken = |files: &[PackedFile]| files.iter().map(|file| Entry::of(pack, file)).collect();
        let index = pack.index();
        Contents {
            providers: (index.providers.iter())
                .map(|provider| ProviderContents {
                    address: provider.address.clone(),
                    version: provider.version.clone(),
                    platform: provider.platform.clone(),
                    hashes: provider.hashes.clone(),
                    files: taken(&provider.files),
                })
                .collect(),
            modules: taken(&index.modules),
            cli_config: index.cli_config.map(|blob| Source::Pack(pack, blob)),
            configurations: (index.configurations.iter())
                .map(|configuration| (configuration.name.clone(), taken(&configuration.files)))
                .collect(),
        }
    }
}

impl<'p> Entry<'p> {
    /// A file of another pack.
    fn of(pack: &'p Pack, file: &PackedFile) -> Entry<'p> {
        Entry {
            path: file.path.clone(),
            executable: file.executable,
            source: Source::Pack(pack, file.blob),
        }
    }
}

/// Writes a pack; returns its index. `path` is where it will be, for errors, and `tell` gets the number of bytes read so far.
///
/// # Errors
/// The executable or a content cannot be read, or the pack cannot be written.
pub fn write(
    out: &mut impl Write,
    path: &Path,
    executable: &Executable,
    contents: Contents<'_>,
    options: &Options<'_>,
    tell: &mut dyn FnMut(u64),
) -> Result<Index, PackError> {
    let mut packing = Packing {
        out: Counted {
            out,
            offset: 0,
            sum: Sha256::new(),
        },
        path,
        level: options.level,
        blobs: Vec::new(),
        known: BTreeMap::new(),
        read: 0,
        tell,
    };
    let executable = packing.executable(executable)?;
    let mut providers = BTreeMap::new();
    for provider in contents.providers {
        let key = (
            provider.address.clone(),
            provider.version.clone(),
            provider.platform.clone(),
        );
        providers.insert(key, provider);
    }
    let mut index = Index {
        format: FORMAT,
        executable,
        blobs: Vec::new(),
        providers: Vec::new(),
        modules: Vec::new(),
        cli_config: None,
        configurations: Vec::new(),
    };
    for provider in providers.into_values() {
        index.providers.push(PackedProvider {
            files: packing.files(provider.files)?,
            address: provider.address,
            version: provider.version,
            platform: provider.platform,
            hashes: provider.hashes,
        });
    }
    index.modules = packing.files(contents.modules)?;
    index.cli_config = contents.cli_config.map(|source| packing.blob(&source)).transpose()?;
    for (name, files) in contents.configurations {
        let files = packing.files(files)?;
        index.configurations.push(PackedConfiguration { name, files });
    }
    index.blobs = std::mem::take(&mut packing.blobs);
    let offset = packing.out.offset;
    let text = serde_json::to_vec(&index).map_err(|e| write_error(path)(e.into()))?;
    let signature = options.signing.map(|key| key.sign(&text)).unwrap_or_default();
    debug_assert!(signature.is_empty() || signature.len() == signature::LENGTH);
    let trailer = Trailer::new(offset, &text, signature.len() as u64).to_bytes();
    for part in [&text[..], &signature, &trailer] {
        packing.out.write_all(part).map_err(write_error(path))?;
    }
    match index.problem(offset) {
        Some(problem) => Err(PackError::NotPackable {
            path: path.to_owned(),
            reason: problem,
        }),
        None => Ok(index),
    }
}

/// A pack in the making.
struct Packing<'w, W> {
    out: Counted<'w, W>,
    path: &'w Path,
    level: i32,
    blobs: Vec<Blob>,
    /// By the checksum of the content.
    known: BTreeMap<String, usize>,
    read: u64,
    tell: &'w mut dyn FnMut(u64),
}

impl<W: Write> Packing<'_, W> {
    fn executable(&mut self, executable: &Executable) -> Result<PackedExecutable, PackError> {
        let failed = read_error(&executable.path);
        let file = File::open(&executable.path).map_err(failed)?;
        let mut source = file.take(executable.size);
        self.out.begin();
        let copied = self.copy(&mut source, &executable.path)?;
        if copied != executable.size {
            return Err(failed(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(PackedExecutable {
            size: executable.size,
            sha256: self.out.end(),
            platform: executable.platform.clone(),
            version: executable.version.clone(),
        })
    }

    /// Copies all that is there; returns how many bytes that were.
    fn copy(&mut self, from: &mut impl Read, name: &Path) -> Result<u64, PackError> {
        let mut buffer = vec![0; 1 << 20];
        let mut copied = 0;
        loop {
            let count = from.read(&mut buffer).map_err(read_error(name))?;
            let Some(part) = buffer.get(..count).filter(|part| !part.is_empty()) else {
                return Ok(copied);
            };
            self.out.write_all(part).map_err(write_error(self.path))?;
            copied += part.len() as u64;
            self.read += part.len() as u64;
            (self.tell)(self.read);
        }
    }

    fn files(&mut self, mut entries: Vec<Entry<'_>>) -> Result<Vec<PackedFile>, PackError> {
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let mut out = Vec::with_capacity(entries.len());
        for entry in entries {
            out.push(PackedFile {
                blob: self.blob(&entry.source)?,
                path: entry.path,
                executable: entry.executable,
            });
        }
        Ok(out)
    }

    /// Stores content, unless it is there already; returns its place among the blobs.
    fn blob(&mut self, source: &Source<'_>) -> Result<usize, PackError> {
        let blob = match source {
            Source::File(path) => {
                let failed = read_error(path);
                let mut file = File::open(path).map_err(failed)?;
                let (sha256, size) = digest(&mut file).map_err(failed)?;
                if let Some(known) = self.known.get(&sha256) {
                    return Ok(*known);
                }
                self.compressed(path, sha256, size)?
            }
            Source::Pack(pack, blob) => {
                let missing = || damaged(pack.path())("a content is missing".to_owned());
                let blob = pack.index().blobs.get(*blob).ok_or_else(missing)?;
                if let Some(known) = self.known.get(&blob.sha256) {
                    return Ok(*known);
                }
                let offset = self.out.offset;
                self.out.begin();
                self.copy(&mut pack.section(blob.offset, blob.length), pack.path())?;
                if self.out.end() != blob.stored {
                    return Err(damaged(pack.path())("a content has another checksum".to_owned()));
                }
                Blob { offset, ..blob.clone() }
            }
        };
        let at = self.blobs.len();
        self.known.insert(blob.sha256.clone(), at);
        self.blobs.push(blob);
        Ok(at)
    }

    /// Compresses a file that has this checksum and size.
    fn compressed(&mut self, path: &Path, sha256: String, size: u64) -> Result<Blob, PackError> {
        let offset = self.out.offset;
        self.out.begin();
        let failed = |source: io::Error| PackError::Compress {
            path: path.to_owned(),
            source,
        };
        let mut encoder = zstd::stream::write::Encoder::new(&mut self.out, self.level).map_err(failed)?;
        encoder.set_pledged_src_size(Some(size)).map_err(failed)?;
        if size >= SIDE_BY_SIDE {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            encoder
                .multithread(u32::try_from(threads).unwrap_or(1))
                .map_err(failed)?;
        }
        let mut file = File::open(path).map_err(read_error(path))?;
        let (mut sum, mut left) = (Sha256::new(), size);
        let mut buffer = vec![0; 1 << 20];
        loop {
            let count = file.read(&mut buffer).map_err(read_error(path))?;
            let Some(part) = buffer.get(..count).filter(|part| !part.is_empty()) else {
                break;
            };
            sum.update(part);
            left = left.saturating_sub(part.len() as u64);
            encoder.write_all(part).map_err(failed)?;
            self.read += part.len() as u64;
            (self.tell)(self.read);
        }
        if left != 0 || HEXLOWER.encode(&sum.finalize()) != sha256 {
            return Err(PackError::NotPackable {
                path: path.to_owned(),
                reason: "it was changed while it was packed".to_owned(),
            });
        }
        encoder.finish().map_err(failed)?;
        Ok(Blob {
            offset,
            length: self.out.offset - offset,
            stored: self.out.end(),
            size,
            sha256,
        })
    }
}

/// The SHA-256 and the length of what is left of a reader.
pub(crate) fn digest(from: &mut impl Read) -> io::Result<(String, u64)> {
    let (mut sum, mut size) = (Sha256::new(), 0);
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = from.read(&mut buffer)?;
        let Some(part) = buffer.get(..count).filter(|part| !part.is_empty()) else {
            return Ok((HEXLOWER.encode(&sum.finalize()), size));
        };
        sum.update(part);
        size += part.len() as u64;
    }
}

/// What is written, with the number of bytes so far and the checksum of a part.
struct Counted<'w, W> {
    out: &'w mut W,
    offset: u64,
    sum: Sha256,
}

impl<W> Counted<'_, W> {
    /// A part begins.
    fn begin(&mut self) {
        self.sum = Sha256::new();
    }

    /// The checksum of the part that ends here.
    fn end(&mut self) -> String {
        HEXLOWER.encode(&self.sum.finalize_reset())
    }
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.sum.update(bytes.get(..count).unwrap_or_default());
        self.offset += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
