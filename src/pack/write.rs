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

use crate::counted::{Counted, copy, digest};
use crate::error::{PackError, damaged, read_error, write_error};
use crate::executable::Executable;
use crate::format::Trailer;
use crate::index::{
    Blob, FORMAT, FORMAT_WITH_MODULES, Index, PackedConfiguration, PackedExecutable, PackedFile, PackedLink,
    PackedModule, PackedProvider, stays_inside,
};
use crate::read::Pack;
use crate::signature::{self, SigningKey};

/// The level of compression where none is named: that of the `zstd` program.
pub const DEFAULT_LEVEL: i32 = 3;

/// The levels of compression that there are.
pub const LEVELS: std::ops::RangeInclusive<i32> = 1..=22;

/// From this size on, a file is compressed by several threads. The result depends on the size, not on how many there are.
const SIDE_BY_SIDE: u64 = 4 << 20;

/// What the name of a provider's program begins with.
const PROGRAM: &str = "terraform-provider-";

/// How deep directories may be nested.
const DEEPEST: usize = 64;

/// How many files and directories a provider package may have.
const MOST_FILES: usize = 100_000;

/// The contents of a pack.
#[derive(Debug, Default)]
pub struct Contents<'p> {
    /// Provider packages. Of two for the same provider, version and platform, the later one counts.
    pub providers: Vec<ProviderContents<'p>>,
    /// Module packages. Of two with the same address, the later one counts.
    pub modules: Vec<ModuleContents<'p>>,
    /// Configurations. Of two with the same name, the later one counts.
    pub configurations: Vec<ConfigurationContents<'p>>,
    /// The CLI configuration.
    pub cli_config: Option<Source<'p>>,
}

/// A directory tree to add.
#[derive(Clone, Debug, Default)]
pub struct Tree<'p> {
    /// Its files.
    pub files: Vec<Entry<'p>>,
    /// Its links.
    pub links: Vec<PackedLink>,
}

/// A module package to add.
#[derive(Clone, Debug)]
pub struct ModuleContents<'p> {
    /// Its address, as the index of a mirror of modules has it.
    pub address: String,
    /// Where in it the registry says that the module is.
    pub subdir: Option<String>,
    /// Its files and links.
    pub tree: Tree<'p>,
}

/// A configuration to add.
#[derive(Clone, Debug)]
pub struct ConfigurationContents<'p> {
    /// Its name.
    pub name: String,
    /// The directory of the root module inside it; empty if that is the directory itself.
    pub root: String,
    /// Its files and links.
    pub tree: Tree<'p>,
}

/// A provider package to add.
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

/// A file to add.
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

/// The files of an unpacked provider package, sorted. What a link leads to is a file of the package if it is inside the directory,
/// or if it is the provider's program.
///
/// A link that leads out of the package is followed for its program only: so do directories that are filled with links refer to
/// programs which are installed once (`internal-plugin link`, package managers). Any other link may have come out of an archive,
/// which its author has filled, and would give away a file of this machine. For the same reason a program must be a regular file
/// that its owner may execute, which secrets are not.
///
/// # Errors
/// A file cannot be read, is a device or the like, has a name that is no text, or is a link that leads out of the directory and is no
/// program.
pub fn entries(dir: &Path) -> Result<Vec<Entry<'static>>, PackError> {
    let root = fs::canonicalize(dir).map_err(read_error(dir))?;
    let mut walk = PackageWalk {
        root: &root,
        found: Vec::new(),
        visited: 0,
    };
    walk.directory(&root, "", 0)?;
    let mut out = walk.found;
    out.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(out)
}

struct PackageWalk<'t> {
    root: &'t Path,
    found: Vec<Entry<'static>>,
    /// How many files and directories were visited: links to directories inside each other can make them endless.
    visited: usize,
}

impl PackageWalk<'_> {
    fn directory(&mut self, dir: &Path, prefix: &str, depth: usize) -> Result<(), PackError> {
        if depth > DEEPEST {
            return Err(not_packable(dir, "its directories are nested too deep"));
        }
        for entry in fs::read_dir(dir).map_err(read_error(dir))? {
            let path = entry.map_err(read_error(dir))?.path();
            self.visited += 1;
            if self.visited > MOST_FILES {
                return Err(not_packable(self.root, "it has too many files"));
            }
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                return Err(not_packable(&path, NO_TEXT));
            };
            let name = format!("{prefix}{name}");
            let target = fs::canonicalize(&path).map_err(read_error(&path))?;
            let meta = fs::metadata(&target).map_err(read_error(&path))?;
            let executable = meta.permissions().mode() & 0o100 != 0;
            let is_program = || meta.is_file() && executable && depth == 0 && name.starts_with(PROGRAM);
            if !target.starts_with(self.root) && !is_program() {
                let reason = "it is a link that leads out of the package, and not to a program of the provider";
                return Err(not_packable(&path, reason));
            }
            if meta.is_dir() {
                self.directory(&path, &format!("{name}/"), depth + 1)?;
            } else if meta.is_file() {
                self.found.push(Entry {
                    path: name,
                    executable,
                    source: Source::File(target),
                });
            } else {
                return Err(not_packable(&path, NO_FILE));
            }
        }
        Ok(())
    }
}

const NO_TEXT: &str = "its name is not valid Unicode text";
const NO_FILE: &str = "it is neither a file nor a directory";

fn not_packable(path: &Path, reason: &str) -> PackError {
    PackError::NotPackable {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

/// The files and links below a directory, sorted, without what is left out: `leave` gets the path of each, and whether it is a
/// directory. Links that lead out of the directory, or nowhere, are not among them; they are returned beside it.
///
/// # Errors
/// A file cannot be read, is a device or the like, or has a name that is no text.
pub fn tree(dir: &Path, leave: &dyn Fn(&str, bool) -> bool) -> Result<(Tree<'static>, Vec<String>), PackError> {
    let root = fs::canonicalize(dir).map_err(read_error(dir))?;
    let mut walk = TreeWalk {
        root: &root,
        leave,
        tree: Tree::default(),
        outside: Vec::new(),
    };
    walk.directory(&root, "", 0)?;
    let TreeWalk { mut tree, outside, .. } = walk;
    tree.files.sort_by(|a, b| a.path.cmp(&b.path));
    tree.links.sort();
    Ok((tree, outside))
}

struct TreeWalk<'t> {
    root: &'t Path,
    leave: &'t dyn Fn(&str, bool) -> bool,
    tree: Tree<'static>,
    outside: Vec<String>,
}

impl TreeWalk<'_> {
    fn directory(&mut self, dir: &Path, prefix: &str, depth: usize) -> Result<(), PackError> {
        if depth > DEEPEST {
            return Err(not_packable(dir, "its directories are nested too deep"));
        }
        for entry in fs::read_dir(dir).map_err(read_error(dir))? {
            let path = entry.map_err(read_error(dir))?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                return Err(not_packable(&path, NO_TEXT));
            };
            let name = format!("{prefix}{name}");
            let meta = fs::symlink_metadata(&path).map_err(read_error(&path))?;
            if (self.leave)(&name, meta.is_dir()) {
                continue;
            }
            if meta.is_dir() {
                self.directory(&path, &format!("{name}/"), depth + 1)?;
            } else if meta.is_file() {
                self.tree.files.push(Entry {
                    path: name,
                    executable: meta.permissions().mode() & 0o100 != 0,
                    source: Source::File(path),
                });
            } else if meta.is_symlink() {
                self.link(&path, name, dir)?;
            } else {
                return Err(not_packable(&path, NO_FILE));
            }
        }
        Ok(())
    }

    /// A link is carried if what it leads to is.
    fn link(&mut self, path: &Path, name: String, dir: &Path) -> Result<(), PackError> {
        let target = fs::read_link(path).map_err(read_error(path))?;
        let there = fs::canonicalize(path).is_ok_and(|found| found.starts_with(self.root));
        let plain = target
            .to_str()
            .map(|text| text.trim_start_matches("./").trim_end_matches('/'));
        // What leads through other links, or names the directory by its whole path, is written as steps up and down.
        let steps = || {
            let found = fs::canonicalize(path).ok()?;
            let inside = found.strip_prefix(self.root).ok()?.to_str()?.to_owned();
            let up = dir.strip_prefix(self.root).ok()?.components().count();
            Some(format!("{}{inside}", "../".repeat(up)).trim_end_matches('/').to_owned())
        };
        let target = match plain.filter(|text| stays_inside(&name, text)) {
            Some(text) => Some(text.to_owned()),
            None => steps().filter(|text| stays_inside(&name, text)),
        };
        match target.filter(|_| there) {
            Some(target) => self.tree.links.push(PackedLink { path: name, target }),
            None => self.outside.push(name),
        }
        Ok(())
    }
}

impl<'p> Contents<'p> {
    /// The contents of another pack.
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
            modules: (index.modules.iter())
                .map(|module| ModuleContents {
                    address: module.address.clone(),
                    subdir: module.subdir.clone(),
                    tree: Tree {
                        files: taken(&module.files),
                        links: module.links.clone(),
                    },
                })
                .collect(),
            configurations: (index.configurations.iter())
                .map(|configuration| ConfigurationContents {
                    name: configuration.name.clone(),
                    root: configuration.root.clone(),
                    tree: Tree {
                        files: taken(&configuration.files),
                        links: configuration.links.clone(),
                    },
                })
                .collect(),
            cli_config: index.cli_config.map(|blob| Source::Pack(pack, blob)),
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

/// Writes a pack; returns its index. `path` is where it will be, for errors.
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
    let modules: BTreeMap<_, _> = (contents.modules.into_iter())
        .map(|module| (module.address.clone(), module))
        .collect();
    let configurations: BTreeMap<_, _> = (contents.configurations.into_iter())
        .map(|configuration| (configuration.name.clone(), configuration))
        .collect();
    let more = !modules.is_empty() || !configurations.is_empty() || contents.cli_config.is_some();
    let mut index = Index {
        // Earlier releases know packs of providers only.
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
            files: packing.files(provider.files)?,
            address: provider.address,
            version: provider.version,
            platform: provider.platform,
            hashes: provider.hashes,
        });
    }
    for module in modules.into_values() {
        index.modules.push(PackedModule {
            files: packing.files(module.tree.files)?,
            links: module.tree.links,
            address: module.address,
            subdir: module.subdir,
        });
    }
    for configuration in configurations.into_values() {
        index.configurations.push(PackedConfiguration {
            files: packing.files(configuration.tree.files)?,
            links: configuration.tree.links,
            name: configuration.name,
            root: configuration.root,
        });
    }
    if let Some(source) = &contents.cli_config {
        index.cli_config = Some(packing.blob(source)?);
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

/// The state of a pack that is being written.
struct Packing<'w, W> {
    out: Counted<W>,
    path: &'w Path,
    level: i32,
    blobs: Vec<Blob>,
    /// By the checksum of the content.
    known: BTreeMap<String, usize>,
}

impl<W: Write> Packing<'_, W> {
    fn executable(&mut self, executable: &Executable) -> Result<PackedExecutable, PackError> {
        let failed = read_error(&executable.path);
        let file = File::open(&executable.path).map_err(failed)?;
        self.out.begin();
        let copied = copy(file.take(executable.size), &executable.path, &mut self.out, self.path)?;
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
                let file = File::open(path).map_err(failed)?;
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
