//! The index of a pack, which lists its contents.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use addrs::Provider;
use addrs::platform::Platform;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use versions::Version;

use crate::counted::digest;
use crate::error::{PackError, read_error};
use crate::text;

/// Format of packs that carry providers only.
pub const FORMAT: u32 = 1;

/// Format of packs that carry modules, configurations or a CLI configuration.
pub const FORMAT_WITH_MODULES: u32 = 2;

/// Contents of a pack. Checksums are SHA-256 in hexadecimal digits. Lists are sorted: files and links by path, providers by
/// address, version and platform, modules by address, configurations by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// [`FORMAT`] or [`FORMAT_WITH_MODULES`].
    pub format: u32,
    /// Executable that the pack begins with.
    pub executable: PackedExecutable,
    /// Contents of files, in the order in which they are stored.
    pub blobs: Vec<Blob>,
    pub providers: Vec<PackedProvider>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<PackedModule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<PackedConfiguration>,
    /// CLI configuration, as an index into `blobs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cli_config: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedExecutable {
    pub size: u64,
    pub sha256: String,
    #[serde(with = "text")]
    pub platform: Platform,
    pub version: String,
}

/// Stored content of one or more files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blob {
    /// Offset of the Zstandard frame in the pack.
    pub offset: u64,
    /// Length of the frame.
    pub length: u64,
    /// Checksum of the frame.
    pub stored: String,
    pub size: u64,
    /// Checksum of the content, which is the same at every level of compression.
    pub sha256: String,
}

impl Blob {
    /// Returns true if a file has this content.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn is_content_of(&self, path: &Path) -> Result<bool, PackError> {
        let failed = read_error(path);
        let file = File::open(path).map_err(failed)?;
        // If the size differs, the file need not be read.
        if file.metadata().map_err(failed)?.len() != self.size {
            return Ok(false);
        }
        let (sha256, size) = digest(file).map_err(failed)?;
        Ok((sha256, size) == (self.sha256.clone(), self.size))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedFile {
    /// Path in the package or configuration, with slashes.
    pub path: String,
    /// Content, as an index into [`Index::blobs`].
    pub blob: usize,
    #[serde(default, skip_serializing_if = "is_false")]
    pub executable: bool,
}

/// Symbolic link inside a directory tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedLink {
    /// Path in the package or configuration, with slashes.
    pub path: String,
    /// Target, relative to the directory of the link: steps up, then steps down.
    pub target: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Package of a provider for one platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedProvider {
    #[serde(with = "text")]
    pub address: Provider,
    #[serde(with = "text")]
    pub version: Version,
    #[serde(with = "text")]
    pub platform: Platform,
    /// Checksums for the lock file: that of this package, and those of packages of the same version for other platforms that were
    /// known when it was packed.
    pub hashes: BTreeSet<String>,
    pub files: Vec<PackedFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedModule {
    /// Address, as in the index of a module mirror.
    pub address: String,
    /// Subdirectory of the module in the package, as the registry gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subdir: Option<String>,
    pub files: Vec<PackedFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<PackedLink>,
}

/// A packed configuration: the files and links in its directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedConfiguration {
    pub name: String,
    /// Directory of the root module inside the tree; empty if that is the tree itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub root: String,
    pub files: Vec<PackedFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<PackedLink>,
}

impl PackedProvider {
    /// Returns the program of the package: the first file at the top whose name is that of the provider, possibly followed by `_` or a dot
    /// and more. `None` if there is no such file.
    #[must_use]
    pub fn executable(&self) -> Option<&PackedFile> {
        let wanted = format!("terraform-provider-{}", self.address.ty);
        self.files.iter().find(|file| {
            let rest = file.path.strip_prefix(&wanted);
            rest.is_some_and(|rest| !rest.contains('/') && (rest.is_empty() || rest.starts_with(['_', '.'])))
        })
    }
}

impl Index {
    /// Returns the reason why the index is invalid, as a clause; `None` if it is valid. The blobs must fill the file from the
    /// executable to `index_offset`. An index can come from an untrusted file.
    pub(crate) fn problem(&self, index_offset: u64) -> Option<String> {
        let sum = |text: &str| HEXLOWER.decode(text.as_bytes()).is_ok_and(|bytes| bytes.len() == 32);
        let mut end = self.executable.size;
        if !sum(&self.executable.sha256) {
            return Some("the checksum of its executable is not valid".to_owned());
        }
        for (at, blob) in self.blobs.iter().enumerate() {
            if !sum(&blob.sha256) || !sum(&blob.stored) {
                return Some(format!("a checksum of its content number {at} is not valid"));
            }
            // Contents without gaps and overlaps ensure that every byte of the file has a checksum.
            if blob.offset != end {
                return Some(format!("its content number {at} is not where it must be"));
            }
            match end.checked_add(blob.length) {
                Some(next) => end = next,
                None => return Some(format!("the size of its content number {at} is not valid")),
            }
        }
        if end != index_offset {
            return Some("its contents do not reach to its index".to_owned());
        }
        // The format number makes an earlier release refuse these contents, which it cannot read.
        let more = !self.modules.is_empty() || !self.configurations.is_empty() || self.cli_config.is_some();
        if more && self.format == FORMAT {
            return Some("its format is not that of its contents".to_owned());
        }
        if self.cli_config.is_some_and(|blob| blob >= self.blobs.len()) {
            return Some("the content of its CLI configuration is missing".to_owned());
        }
        let providers = self.providers.iter().map(|provider| (&provider.files[..], &[][..]));
        let modules = self.modules.iter().map(|module| (&module.files[..], &module.links[..]));
        let configurations = self.configurations.iter().map(|one| (&one.files[..], &one.links[..]));
        let invalid_root = self
            .configurations
            .iter()
            .find(|one| !one.root.is_empty() && !is_plain(&one.root));
        if let Some(one) = invalid_root {
            return Some(format!("the path \"{}\" leads out of the pack", one.root));
        }
        (providers.chain(modules).chain(configurations)).find_map(|(files, links)| self.problem_of_files(files, links))
    }

    fn problem_of_files(&self, files: &[PackedFile], links: &[PackedLink]) -> Option<String> {
        for link in links {
            if !is_plain(&link.path) || !stays_inside(&link.path, &link.target) {
                return Some(format!("the link \"{}\" leads out of the pack", link.path));
            }
        }
        for file in files {
            if !is_plain(&file.path) {
                return Some(format!("the path \"{}\" leads out of the pack", file.path));
            }
            if file.blob >= self.blobs.len() {
                return Some(format!("the content of {} is missing", file.path));
            }
        }
        let links = links.iter().map(|link| link.path.as_str());
        let mut paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).chain(links).collect();
        // The slash sorts before all other bytes, so a path comes right before the paths below it. Every command checks the
        // index, and writers sort the paths, so this sort has little to do.
        let byte = |byte: u8| if byte == b'/' { 0 } else { byte };
        paths.sort_by(|a, b| a.bytes().map(byte).cmp(b.bytes().map(byte)));
        paths.windows(2).find_map(|pair| {
            let [first, second] = pair else { return None };
            match second.strip_prefix(first)? {
                "" => Some(format!("there are two files {first}")),
                rest if rest.starts_with('/') => Some(format!("{second} lies below a file")),
                _ => None,
            }
        })
    }

    /// Returns the content of a file; `None` if the index is invalid.
    #[must_use]
    pub fn blob_of(&self, file: &PackedFile) -> Option<&Blob> {
        self.blobs.get(file.blob)
    }
}

/// Returns true if the target of a link is in the directory tree that the link is in: steps up come first, and their number does
/// not exceed the depth of the link. A step up after a step down could leave a directory that is itself a link.
pub(crate) fn stays_inside(path: &str, target: &str) -> bool {
    let depth = path.split('/').count() - 1;
    let up = target.split('/').take_while(|step| *step == "..").count();
    let mut down = target.split('/').skip(up).peekable();
    up <= depth && (up > 0 || down.peek().is_some()) && down.all(|step| !matches!(step, "" | "." | ".."))
}

/// Returns true if a path is relative, normalized, and inside its directory.
fn is_plain(path: &str) -> bool {
    archive::entry_path(path).is_ok_and(|plain| !path.is_empty() && plain.to_str() == Some(path))
}
