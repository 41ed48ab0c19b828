//! Unpacking of archives into a directory.
//!
//! Symbolic links are created last, so that no file is written through a link. No link leads outside of the directory:
//! the target may contain `..` only at its beginning, at most once for each directory between the root and the link,
//! and every parent directory of a link is a real directory.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek};
use std::path::{Component, Path, PathBuf};

use files::io_reason;
use system::Os;
use system::files::OpenOptionsExt as _;

use crate::limits::Budget;
use crate::{Error, Format, Limits};

/// The maximum length of a symbolic link's target.
const MAX_TARGET: usize = 4096;

/// The kinds of entries that an archive may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries<'a> {
    /// Files and directories with portable names (no backslash, no colon), each name once. Files whose name begins with
    /// `executable` become executable.
    Files {
        /// Prefix of the names of executable files. Archives from systems without file modes need it.
        executable: &'a str,
    },
    /// Also symbolic and hard links with targets inside the directory. A later entry replaces an earlier one at the
    /// same path.
    Links,
}

/// Unpacks an archive into a new directory.
///
/// # Errors
///
/// Returns an error if the archive cannot be read or exceeds the limits, if an entry is not accepted, or if a file
/// cannot be written. Files written before the error remain.
pub fn unpack(format: Format, file: &Path, to: &Path, entries: Entries<'_>, limits: &Limits) -> Result<(), Error> {
    let source = File::open(file).map_err(Error::Read)?;
    // Creating the directory fails if it exists, so no link can be in it.
    fs::create_dir(to).map_err(|source| Error::Target {
        path: to.to_owned(),
        source,
    })?;
    let mut target = Target {
        root: to.to_owned(),
        entries,
        links: BTreeMap::new(),
        limits: *limits,
        entries_left: limits.entries,
        bytes_left: limits.bytes,
        empty: true,
    };
    let source = BufReader::new(source);
    // Each decoder accepts several concatenated streams, as the usual programs do.
    match format {
        Format::Zip => zip(source, &mut target)?,
        Format::TarGz => tar(flate2::bufread::MultiGzDecoder::new(source), &mut target)?,
        Format::TarBz2 => tar(bzip2::bufread::MultiBzDecoder::new(source), &mut target)?,
        Format::TarXz => tar(lzma_rust2::XzReader::new(source, true), &mut target)?,
    }
    target.finish()
}

/// Returns the relative path of an entry by its name in an archive or bucket; empty for the top directory.
///
/// # Errors
///
/// Returns an error if the name is outside the directory: it is absolute or has a step `..`.
pub fn entry_path(name: &str) -> Result<PathBuf, Error> {
    let mut path = PathBuf::new();
    let bad = || Error::Outside(name.to_owned());
    // Both separators are recognized on every operating system.
    for part in name.replace('\\', "/").split('/') {
        let mut components = Path::new(part).components();
        match (components.next(), components.next()) {
            (None, _) | (Some(Component::CurDir), None) => {}
            (Some(Component::Normal(_)), None) if Os::CURRENT.is_reserved_name(part) => {
                return Err(Error::Reserved(name.to_owned()));
            }
            (Some(Component::Normal(step)), None) if !part.contains('\0') => path.push(step),
            _ => return Err(bad()),
        }
    }
    if name.starts_with(['/', '\\']) {
        return Err(bad());
    }
    Ok(path)
}

struct Target<'a> {
    root: PathBuf,
    entries: Entries<'a>,
    /// Targets of symbolic links by path.
    links: BTreeMap<PathBuf, String>,
    limits: Limits,
    entries_left: usize,
    bytes_left: u64,
    empty: bool,
}

fn entry_error(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    |source| Error::Entry {
        name: path.display().to_string(),
        source,
    }
}

impl Target<'_> {
    fn count(&mut self) -> Result<(), Error> {
        let left = self.entries_left.checked_sub(1);
        self.entries_left = left.ok_or(Error::TooMany(self.limits))?;
        Ok(())
    }

    fn path(&self, name: &str) -> Result<PathBuf, Error> {
        let path = entry_path(name)?;
        match self.entries {
            Entries::Files { .. } if name.contains(['\\', ':']) || path.as_os_str().is_empty() => {
                Err(Error::Outside(name.to_owned()))
            }
            _ => Ok(path),
        }
    }

    fn dir(&mut self, path: &Path) -> Result<(), Error> {
        let mut so_far = PathBuf::new();
        for step in path {
            so_far.push(step);
            if self.links.contains_key(&so_far) {
                return Err(Error::LinkAndDirectory(so_far.display().to_string()));
            }
        }
        fs::create_dir_all(self.root.join(path)).map_err(entry_error(path))
    }

    /// Writes a file. Of its mode, only the execute permission is used.
    fn file(&mut self, path: &Path, mode: u32, content: &mut dyn Read) -> Result<(), Error> {
        let failed = entry_error(path);
        if let Some(parent) = path.parent() {
            self.dir(parent)?;
        }
        // A later entry replaces an earlier one.
        self.links.remove(path);
        let mut options = OpenOptions::new();
        options.write(true);
        let executable = match self.entries {
            Entries::Files { executable } => {
                // Fails for a second entry of the same name, even if the file system ignores case.
                options.create_new(true);
                path.to_string_lossy().starts_with(executable)
            }
            Entries::Links => {
                options.create(true).truncate(true);
                false
            }
        };
        // Other bits of a mode could make files unreadable, or writable for everyone.
        options.mode(if executable || mode & 0o111 != 0 { 0o777 } else { 0o666 });
        let mut file = options.open(self.root.join(path)).map_err(&failed)?;
        // One byte more than allowed shows that the limit is exceeded. Declared sizes are not trusted.
        let written = io::copy(&mut content.take(self.bytes_left.saturating_add(1)), &mut file).map_err(failed)?;
        let left = self.bytes_left.checked_sub(written);
        self.bytes_left = left.ok_or(Error::TooLarge(self.limits))?;
        self.empty = false;
        Ok(())
    }

    fn link(&mut self, path: PathBuf, target: &str) -> Result<(), Error> {
        if self.entries != Entries::Links {
            return Err(Error::Special(path.display().to_string()));
        }
        if target.len() > MAX_TARGET {
            return Err(Error::LinkTooLong(path.display().to_string()));
        }
        let depth = path.components().count().saturating_sub(1);
        let bad = || Error::LinkOutside {
            name: path.display().to_string(),
            target: target.to_owned(),
        };
        let unix = target.replace('\\', "/");
        if unix.starts_with('/') || unix.contains([':', '\0']) || unix.is_empty() {
            return Err(bad());
        }
        let mut steps = unix.split('/').filter(|s| !s.is_empty() && *s != ".").peekable();
        let mut up = 0;
        // A `..` after a name could leave the directory through another link.
        while steps.next_if_eq(&"..").is_some() {
            up += 1;
        }
        if up > depth || steps.any(|s| s == "..") {
            return Err(bad());
        }
        // A later entry replaces an earlier one.
        let place = self.root.join(&path);
        match fs::symlink_metadata(&place) {
            Ok(found) if found.is_dir() => return Err(Error::LinkAndDirectory(path.display().to_string())),
            Ok(_) => fs::remove_file(place).map_err(entry_error(&path))?,
            // Nothing exists at the path, or a parent is not a directory, which `finish` reports.
            Err(_) => {}
        }
        self.empty = false;
        self.links.insert(path, unix);
        Ok(())
    }

    /// Copies an earlier file to the path of a hard link. Symbolic links are created later, so neither path can lead
    /// outside.
    fn hard_link(&mut self, path: &Path, original: &Path) -> Result<(), Error> {
        let failed = entry_error(path);
        let from = self.root.join(original);
        let found = fs::symlink_metadata(&from).map_err(&failed)?;
        if !found.is_file() {
            return Err(Error::LinkToNoFile {
                name: path.display().to_string(),
                target: original.display().to_string(),
            });
        }
        // Copying a file to itself would empty it.
        if path == original {
            return Ok(());
        }
        // Copies count towards the limit as well.
        let left = self.bytes_left.checked_sub(found.len());
        self.bytes_left = left.ok_or(Error::TooLarge(self.limits))?;
        if let Some(parent) = path.parent() {
            self.dir(parent)?;
        }
        self.links.remove(path);
        fs::copy(&from, self.root.join(path)).map(drop).map_err(failed)
    }

    /// Creates the symbolic links, after all files.
    fn finish(self) -> Result<(), Error> {
        if self.empty {
            return Err(Error::Empty);
        }
        for (path, target) in &self.links {
            let failed = entry_error(path);
            if let Some(parent) = path.parent() {
                // A parent may be a link that was created in an earlier iteration. Every parent must be a directory.
                let mut so_far = self.root.clone();
                for step in parent {
                    so_far.push(step);
                    match fs::symlink_metadata(&so_far) {
                        Ok(found) if found.is_dir() => {}
                        Ok(_) => return Err(Error::LinkBelowNoDirectory(path.display().to_string())),
                        Err(_) => fs::create_dir(&so_far).map_err(&failed)?,
                    }
                }
            }
            match system::files::symlink(target, self.root.join(path)) {
                // Windows requires a privilege for links.
                Err(_) if Os::CURRENT == Os::Windows => {
                    return Err(Error::LinkNotSupported(path.display().to_string()));
                }
                linked => linked.map_err(failed)?,
            }
        }
        Ok(())
    }
}

/// Returns the reason of an error of the `zip` crate.
fn zip_reason(error: zip::result::ZipError) -> String {
    use zip::result::ZipError;
    match error {
        ZipError::Io(error) => io_reason(&error),
        ZipError::InvalidArchive(why) => why.to_lowercase(),
        ZipError::UnsupportedArchive(why) => format!("it needs a feature that is not supported ({why})"),
        ZipError::FileNotFound => "an entry is missing".to_owned(),
        other => other.to_string(),
    }
}

fn damaged(error: zip::result::ZipError) -> Error {
    Error::Damaged(zip_reason(error))
}

/// Opens a zip archive if its declared number of entries and size are within the limits.
fn open_zip<R: Read + Seek>(source: R, limits: &Limits) -> Result<zip::ZipArchive<R>, Error> {
    let archive = zip::ZipArchive::new(source).map_err(|e| Error::NotZip(zip_reason(e)))?;
    if archive.len() > limits.entries {
        return Err(Error::TooMany(*limits));
    }
    match archive.decompressed_size() {
        Some(size) if size > u128::from(limits.bytes) => Err(Error::TooLarge(*limits)),
        _ => Ok(archive),
    }
}

/// Calls `visit` with the name and content of each entry of a zip archive, including directories. Names are not
/// checked.
///
/// # Errors
///
/// Returns an error if the archive cannot be read or exceeds the limits, or if `visit` fails.
pub fn read_zip(
    file: &Path,
    limits: &Limits,
    mut visit: impl FnMut(&str, &mut dyn Read) -> io::Result<()>,
) -> Result<(), Error> {
    let source = File::open(file).map_err(Error::Read)?;
    let mut archive = open_zip(BufReader::new(source), limits)?;
    let budget = Budget::new(limits.bytes);
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(damaged)?;
        let name = entry.name().map_err(damaged)?.into_owned();
        visit(&name, &mut budget.bound(entry)).map_err(|source| match budget.exceeded() {
            true => Error::TooLarge(*limits),
            false => Error::Entry { name, source },
        })?;
    }
    Ok(())
}

fn zip(source: impl Read + Seek, target: &mut Target<'_>) -> Result<(), Error> {
    let mut archive = open_zip(source, &target.limits)?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(damaged)?;
        target.count()?;
        let name = entry.name().map_err(damaged)?.into_owned();
        let path = target.path(&name)?;
        if entry.is_dir() {
            target.dir(&path)?;
        } else if path.as_os_str().is_empty() {
            return Err(Error::NoName(name));
        } else if entry.is_symlink() {
            let mut to = Vec::new();
            // One byte more than allowed shows that the target is too long.
            let read = (&mut entry).take(MAX_TARGET as u64 + 1).read_to_end(&mut to);
            read.map_err(|source| Error::Entry { name, source })?;
            if to.len() > MAX_TARGET {
                return Err(Error::LinkTooLong(path.display().to_string()));
            }
            let to = String::from_utf8(to).map_err(|source| Error::Entry {
                name: path.display().to_string(),
                source: io::Error::new(io::ErrorKind::InvalidData, source),
            })?;
            target.link(path, &to)?;
        } else {
            let mode = entry.unix_mode().unwrap_or(0o644);
            // Only regular files are accepted. Archives from other systems may have modes without a file type; these
            // count as regular files.
            if !matches!(mode & 0o170_000, 0 | 0o100_000) {
                return Err(Error::Special(name));
            }
            target.file(&path, mode, &mut entry)?;
        }
    }
    Ok(())
}

fn tar(source: impl Read, target: &mut Target<'_>) -> Result<(), Error> {
    // Headers and padding count as well, so that an endless stream is rejected. 2048 bytes are allowed for those of
    // each entry.
    let budget = Budget::new(
        target
            .bytes_left
            .saturating_add((target.entries_left as u64).saturating_mul(2048)),
    );
    let too_large = Error::TooLarge(target.limits);
    match tar_entries(budget.bound(source), target) {
        Err(_) if budget.exceeded() => Err(too_large),
        result => result,
    }
}

fn tar_entries(source: impl Read, target: &mut Target<'_>) -> Result<(), Error> {
    use tar::EntryType;
    let mut archive = tar::Archive::new(source);
    for entry in archive.entries().map_err(Error::Read)? {
        let mut entry = entry.map_err(Error::Read)?;
        target.count()?;
        let kind = entry.header().entry_type();
        // Extended headers, such as the global one of `git archive`, are not files.
        if matches!(kind, EntryType::XGlobalHeader | EntryType::XHeader) {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let path = target.path(&name)?;
        if kind == EntryType::Directory {
            target.dir(&path)?;
            continue;
        }
        if path.as_os_str().is_empty() {
            return Err(Error::NoName(name));
        }
        let link = entry
            .link_name_bytes()
            .map(|l| String::from_utf8_lossy(&l).into_owned());
        match (kind, link) {
            (EntryType::Symlink, Some(to)) => target.link(path, &to)?,
            (EntryType::Link, Some(to)) if target.entries == Entries::Links => {
                target.hard_link(&path, &entry_path(&to)?)?;
            }
            (EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse, _) => {
                let mode = entry.header().mode().unwrap_or(0o644);
                target.file(&path, mode, &mut entry)?;
            }
            _ => return Err(Error::Special(name)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
