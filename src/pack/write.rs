//! Writing of packs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::counted::{Counted, copy, digest};
use crate::error::{PackError, damaged, read_error, write_error};
use crate::executable::Executable;
use crate::format::Trailer;
use crate::index::{
    Blob, FORMAT, FORMAT_WITH_MODULES, Index, PackedConfiguration, PackedExecutable, PackedFile, PackedModule,
    PackedProvider,
};
use crate::read::index_fits;
use crate::signature::{self, SigningKey};

pub use crate::contents::{ConfigurationContents, Contents, Entry, ModuleContents, ProviderContents, Source, Tree};
pub use crate::directory::{entries, tree};

/// Default level of compression: that of the `zstd` program.
pub const DEFAULT_LEVEL: i32 = 3;

pub const LEVELS: std::ops::RangeInclusive<i32> = 1..=22;

/// Size in bytes from which a file is compressed by several threads. The result depends on the size, not on the number of threads.
const SIDE_BY_SIDE: u64 = 4 << 20;

#[derive(Debug)]
pub struct Options<'k> {
    pub level: i32,
    /// Key that the pack is signed with, if it is to be signed.
    pub signing: Option<&'k SigningKey>,
}

/// Writes a pack; returns its index. `path` is the file's final path, for errors.
///
/// # Errors
/// The executable or a content cannot be read, or the pack cannot be written.
pub fn write(
    out: &mut impl Write,
    path: &Path,
    executable: &Executable,
    contents: Contents<'_>,
    options: &Options<'_>,
) -> Result<Index, PackError> {
    let mut packing = Packing {
        out: Counted::new(out),
        path,
        level: options.level,
        blobs: Vec::new(),
        known: BTreeMap::new(),
    };
    let mut index = packing.contents(executable, contents)?;
    index.blobs = std::mem::take(&mut packing.blobs);
    packing.finish(index, options)
}

impl<W: Write> Packing<'_, W> {
    /// Writes the executable and the blobs of the contents.
    fn contents(&mut self, executable: &Executable, contents: Contents<'_>) -> Result<Index, PackError> {
        let executable = self.executable(executable)?;
        // The maps remove duplicates, and have the order that the index must have.
        let mut providers = BTreeMap::new();
        for provider in contents.providers {
            let key = (
                provider.address.clone(),
                provider.version.clone(),
                provider.platform.clone(),
            );
            providers.insert(key, provider);
        }
        let modules: BTreeMap<_, _> = (contents.modules.into_iter())
            .map(|module| (module.address.clone(), module))
            .collect();
        let configurations: BTreeMap<_, _> = (contents.configurations.into_iter())
            .map(|configuration| (configuration.name.clone(), configuration))
            .collect();
        let more = !modules.is_empty() || !configurations.is_empty() || contents.cli_config.is_some();
        let mut index = Index {
            // Packs that contain only providers keep the format that earlier releases read.
            format: if more { FORMAT_WITH_MODULES } else { FORMAT },
            executable,
            blobs: Vec::new(),
            providers: Vec::new(),
            modules: Vec::new(),
            configurations: Vec::new(),
            cli_config: None,
        };
        for provider in providers.into_values() {
            index.providers.push(PackedProvider {
                files: self.files(provider.files)?,
                address: provider.address,
                version: provider.version,
                platform: provider.platform,
                hashes: provider.hashes,
            });
        }
        for module in modules.into_values() {
            index.modules.push(PackedModule {
                files: self.files(module.tree.files)?,
                links: module.tree.links,
                address: module.address,
                subdir: module.subdir,
            });
        }
        for configuration in configurations.into_values() {
            index.configurations.push(PackedConfiguration {
                files: self.files(configuration.tree.files)?,
                links: configuration.tree.links,
                name: configuration.name,
                root: configuration.root,
            });
        }
        if let Some(source) = &contents.cli_config {
            index.cli_config = Some(self.blob(source)?);
        }
        Ok(index)
    }

    /// Writes the index, its signature and the trailer.
    fn finish(mut self, index: Index, options: &Options<'_>) -> Result<Index, PackError> {
        let path = self.path;
        let offset = self.out.offset;
        let text = serde_json::to_vec(&index).map_err(|e| write_error(path)(e.into()))?;
        // A pack with a longer index could be written, but not read.
        index_fits(path, text.len() as u64)?;
        let signature = options.signing.map(|key| key.sign(&text)).unwrap_or_default();
        debug_assert!(signature.is_empty() || signature.len() == signature::LENGTH);
        let trailer = Trailer::new(offset, &text, signature.len() as u64).to_bytes();
        for part in [&text[..], &signature, &trailer] {
            self.out.write_all(part).map_err(write_error(path))?;
        }
        // Readers would refuse an invalid index, for example because of names of files that come from
        // directories.
        match index.problem(offset) {
            Some(problem) => Err(PackError::NotPackable {
                path: path.to_owned(),
                reason: problem,
            }),
            None => Ok(index),
        }
    }
}

/// State of a pack that is being written.
struct Packing<'w, W> {
    out: Counted<W>,
    path: &'w Path,
    level: i32,
    blobs: Vec<Blob>,
    /// Positions of blobs by the checksum of their content.
    known: BTreeMap<String, usize>,
}

impl<W: Write> Packing<'_, W> {
    fn executable(&mut self, executable: &Executable) -> Result<PackedExecutable, PackError> {
        let failed = read_error(&executable.path);
        let file = File::open(&executable.path).map_err(failed)?;
        self.out.begin();
        let copied = copy(file.take(executable.size), &executable.path, &mut self.out, self.path)?;
        // The file was replaced or shortened while it was read.
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

    fn files(&mut self, mut entries: Vec<Entry<'_>>) -> Result<Vec<PackedFile>, PackError> {
        // The entries are sorted, so that equal contents make equal packs.
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

    /// Stores content, unless it is stored already; returns its position among the blobs.
    fn blob(&mut self, source: &Source<'_>) -> Result<usize, PackError> {
        let blob = match source {
            Source::File(path) => {
                let failed = read_error(path);
                let file = File::open(path).map_err(failed)?;
                // The file is read twice: first for its checksum, then for the compression, which is skipped if the same content is stored
                // already.
                let (sha256, size) = digest(file).map_err(failed)?;
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
                copy(
                    pack.section(blob.offset, blob.length),
                    pack.path(),
                    &mut self.out,
                    self.path,
                )?;
                // A damaged blob of the other pack must not get a valid checksum in this one.
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
        // The encoder fits its window to the size, and refuses content of another size.
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
        }
        // The file may have been written to between the two readings.
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
