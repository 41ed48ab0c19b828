//! Writing the entries of an archive below a directory.
//!
//! Symbolic links are created last, so that no file is written through one, and lead nowhere outside: `..` may only be at the
//! beginning of their target, no more often than their depth, in a directory that is a real one.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek};
use std::path::{Component, Path, PathBuf};

use files::io_reason;

use crate::limits::Budget;
use crate::{Error, Format, Limits};

/// The maximum length of the target of a symbolic link.
const MAX_TARGET: u64 = 4096;

/// Which entries an archive may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries<'a> {
    /// Files and directories. Names must be portable (no backslash, no colon) and distinct. A file whose name begins with this
    /// prefix becomes executable, because archives that were made on other systems may have no modes.
    Files {
        /// The prefix.
        executable: &'a str,
    },
    /// Symbolic and hard links as well, if their targets are inside the directory. A later entry replaces an earlier one.
    Links,
}

/// Unpacks an archive into a new directory.
///
/// # Errors
///
/// The archive cannot be read or exceeds the limits, an entry is not one of those that are accepted, or a file cannot be
/// written. What was written before the error remains.
pub fn unpack(format: Format, file: &Path, to: &Path, entries: Entries<'_>, limits: &Limits) -> Result<(), Error> {
    let source = File::open(file).map_err(Error::Read)?;
    fs::create_dir(to).map_err(|source| Error::Target {
        path: to.to_owned(),
        source,
    })?;
    let mut target = Target {
        root: to.to_owned(),
        entries,
        links: BTreeMap::new(),
        copies: Vec::new(),
        limits: *limits,
        entries_left: limits.entries,
        bytes_left: limits.bytes,
        empty: true,
    };
    let source = BufReader::new(source);
    match format {
        Format::Zip => zip(source, &mut target)?,
        Format::TarGz => tar(flate2::bufread::MultiGzDecoder::new(source), &mut target)?,
        Format::TarBz2 => tar(bzip2::bufread::MultiBzDecoder::new(source), &mut target)?,
        Format::TarXz => tar(lzma_rust2::XzReader::new(source, true), &mut target)?,
    }
    target.finish()
}

/// The relative path of an entry by its name in an archive or bucket; empty for the top directory.
///
/// # Errors
///
/// The name leads out of the directory: it is absolute or has a step `..`.
pub fn entry_path(name: &str) -> Result<PathBuf, Error> {
    let mut path = PathBuf::new();
    let bad = || Error::Outside(name.to_owned());
    // The separators of all operating systems.
    for part in name.replace('\\', "/").split('/') {
        let mut components = Path::new(part).components();
        match (components.next(), components.next()) {
            (None, _) | (Some(Component::CurDir), None) => {}
            (Some(Component::Normal(step)), None) if !part.contains('\0') => path.push(step),
            _ => return Err(bad()),
        }
    }
    if name.starts_with(['/', '\\']) {
        return Err(bad());
    }
    Ok(path)
}

/// The directory that an archive is unpacked into.
struct Target<'a> {
    root: PathBuf,
    entries: Entries<'a>,
    /// The paths of symbolic links, with their targets.
    links: BTreeMap<PathBuf, String>,
    /// The paths of hard links, with the paths of their targets.
    copies: Vec<(PathBuf, PathBuf)>,
    limits: Limits,
    entries_left: usize,
    bytes_left: u64,
    empty: bool,
}

/// An error at an entry.
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

    /// The path of an entry.
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
        self.links.remove(path);
        let mut options = OpenOptions::new();
        options.write(true);
        let executable = match self.entries {
            Entries::Files { executable } => {
                options.create_new(true);
                path.to_string_lossy().starts_with(executable)
            }
            Entries::Links => {
                options.create(true).truncate(true);
                false
            }
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(if executable || mode & 0o111 != 0 { 0o777 } else { 0o666 });
        }
        #[cfg(not(unix))]
        let _ = (mode, executable);
        let mut file = options.open(self.root.join(path)).map_err(&failed)?;
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
        while steps.next_if_eq(&"..").is_some() {
            up += 1;
        }
        if up > depth || steps.any(|s| s == "..") {
            return Err(bad());
        }
        self.empty = false;
        self.links.insert(path, unix);
        Ok(())
    }

    /// Creates the links.
    fn finish(self) -> Result<(), Error> {
        if self.empty {
            return Err(Error::Empty);
        }
        let mut bytes_left = self.bytes_left;
        for (path, original) in &self.copies {
            let failed = entry_error(path);
            let from = self.root.join(original);
            let found = fs::symlink_metadata(&from).map_err(&failed)?;
            if !found.is_file() {
                return Err(Error::LinkToNoFile {
                    name: path.display().to_string(),
                    target: original.display().to_string(),
                });
            }
            let left = bytes_left.checked_sub(found.len());
            bytes_left = left.ok_or(Error::TooLarge(self.limits))?;
            if let Some(parent) = path.parent() {
                fs::create_dir_all(self.root.join(parent)).map_err(&failed)?;
            }
            fs::copy(&from, self.root.join(path)).map_err(failed)?;
        }
        for (path, target) in &self.links {
            let failed = entry_error(path);
            if let Some(parent) = path.parent() {
                // Each step must be a directory, not another link.
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
            #[cfg(unix)]
            std::os::unix::fs::symlink(target, self.root.join(path)).map_err(failed)?;
            #[cfg(not(unix))]
            {
                let _ = (target, failed);
                return Err(Error::LinkNotSupported(path.display().to_string()));
            }
        }
        Ok(())
    }
}

/// The reason of an error of the zip library.
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

/// Opens a zip archive whose declared number of entries and size are within the limits.
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

/// Passes the name and the content of each entry of a zip archive to a function, directories included. Names are unchecked.
///
/// # Errors
///
/// The archive cannot be read or exceeds the limits, or the function returns an error.
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
            let mut to = String::new();
            let read = (&mut entry).take(MAX_TARGET).read_to_string(&mut to);
            read.map_err(|source| Error::Entry { name, source })?;
            target.link(path, &to)?;
        } else {
            let mode = entry.unix_mode().unwrap_or(0o644);
            if !matches!(mode & 0o170_000, 0 | 0o100_000) {
                return Err(Error::Special(name));
            }
            target.file(&path, mode, &mut entry)?;
        }
    }
    Ok(())
}

fn tar(source: impl Read, target: &mut Target<'_>) -> Result<(), Error> {
    // Headers and padding count as well, so that a stream without an end is rejected.
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
                let original = entry_path(&to)?;
                target.links.remove(&path);
                target.copies.push((path, original));
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
mod tests {
    use super::*;
    use std::io::Write;

    /// An entry of a tar archive, written without the checks of a library.
    fn entry(kind: tar::EntryType, name: &str, link: &str, content: &[u8]) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        let bytes = header.as_mut_bytes();
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        bytes[157..157 + link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o755);
        header.set_size(content.len() as u64);
        header.set_cksum();
        let mut out = header.as_bytes().to_vec();
        out.extend_from_slice(content);
        out.resize(out.len().div_ceil(512) * 512, 0);
        out
    }

    fn limits(entries: usize, bytes: u64) -> Limits {
        Limits {
            bytes,
            entries,
            ..Limits::default()
        }
    }

    fn try_tar(entries: &[Vec<u8>]) -> Result<tempfile::TempDir, Error> {
        let dir = tempfile::tempdir().unwrap();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&entries.concat()).unwrap();
        gz.write_all(&[0; 1024]).unwrap();
        let file = dir.path().join("a.tgz");
        fs::write(&file, gz.finish().unwrap()).unwrap();
        unpack(
            Format::TarGz,
            &file,
            &dir.path().join("out"),
            Entries::Links,
            &limits(10, 10_000),
        )?;
        Ok(dir)
    }

    use tar::EntryType as T;

    #[test]
    fn tar_with_links_inside_is_unpacked() {
        let dir = try_tar(&[
            entry(T::XGlobalHeader, "pax_global_header", "", b"20 comment=0123456\n"),
            entry(T::Directory, "./m/", "", b""),
            entry(T::Symlink, "m/l/up.tf", "../main.tf", b""),
            entry(T::Regular, "m/main.tf", "", b"text"),
            entry(T::Link, "m/same.tf", "m/main.tf", b""),
        ])
        .unwrap();
        for name in ["main.tf", "same.tf", "l/up.tf"] {
            assert_eq!(
                fs::read(dir.path().join("out/m").join(name)).unwrap(),
                b"text",
                "{name}"
            );
        }
    }

    #[test]
    fn tar_with_entry_outside_or_special_or_too_large_is_rejected() {
        let file = |name: &str| entry(T::Regular, name, "", b"x");
        let link = |name: &str, to: &str| entry(T::Symlink, name, to, b"");
        for (what, entries) in [
            ("parent", vec![file("../x")]),
            ("parent inside", vec![file("a/../../x")]),
            ("absolute", vec![file("/tmp/monoform-x")]),
            ("other separator", vec![file("..\\x")]),
            ("link out", vec![link("l", "../..")]),
            ("link absolute", vec![link("l", "/etc")]),
            ("link with a detour", vec![link("b", "."), link("a", "b/..")]),
            ("through a link", vec![link("l", "d"), file("l/x")]),
            ("through a link, later", vec![file("l/x"), link("l", "d"), file("l/y")]),
            ("link below a link", vec![link("l", "."), link("l/m", "..")]),
            ("hard link out", vec![entry(T::Link, "h", "../a.tgz", b"")]),
            (
                "hard link to a link",
                vec![link("l", "x"), entry(T::Link, "h", "l", b"")],
            ),
            ("device", vec![entry(T::Block, "d", "", b"")]),
            ("pipe", vec![entry(T::Fifo, "d", "", b"")]),
            ("nothing", vec![]),
            ("too large", vec![entry(T::Regular, "x", "", &[0; 10_001])]),
            ("too many", (0..11).map(|i| file(&format!("f{i}"))).collect()),
        ] {
            let result = try_tar(&entries);
            assert!(result.is_err(), "{what}");
        }
    }

    #[test]
    fn zip_with_entry_outside_or_too_large_is_rejected() {
        let make = |entries: &[(&str, &str, u32)]| {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("a.zip");
            let mut writer = zip::ZipWriter::new(File::create(&file).unwrap());
            for (name, content, mode) in entries {
                let options = zip::write::SimpleFileOptions::default().unix_permissions(*mode & 0o777);
                if mode & 0o170_000 == 0o120_000 {
                    writer.add_symlink(*name, *content, options).unwrap();
                } else {
                    writer.start_file(*name, options).unwrap();
                    writer.write_all(content.as_bytes()).unwrap();
                }
            }
            writer.finish().unwrap();
            let done = unpack(
                Format::Zip,
                &file,
                &dir.path().join("out"),
                Entries::Links,
                &limits(10, 1000),
            );
            done.map(|()| dir)
        };
        let dir = make(&[
            ("m/main.tf", "text", 0o644),
            ("m/run", "x", 0o755),
            ("m/l", "main.tf", 0o120_777),
        ])
        .unwrap();
        assert_eq!(fs::read(dir.path().join("out/m/l")).unwrap(), b"text");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |name: &str| {
                fs::metadata(dir.path().join("out/m").join(name))
                    .unwrap()
                    .permissions()
                    .mode()
            };
            assert_eq!((mode("run") & 0o100, mode("main.tf") & 0o100), (0o100, 0));
        }
        assert!(make(&[("../x", "x", 0o644)]).is_err());
        assert!(make(&[("/x", "x", 0o644)]).is_err());
        assert!(make(&[("l", "../x", 0o120_777)]).is_err());
        let bomb = "0".repeat(2000);
        assert!(make(&[("x", &bomb, 0o644)]).unwrap_err().to_string().contains("larger"));
    }

    #[test]
    fn archive_of_every_format_beyond_limit_is_rejected_with_variable_name() {
        let dir = tempfile::tempdir().unwrap();
        let mut tar: Vec<u8> = (0..5)
            .flat_map(|i| entry(T::Regular, &format!("f{i}"), "", &[b'0'; 1000]))
            .collect();
        tar.resize(tar.len() + 1024, 0);
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&tar).unwrap();
        let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        bz2.write_all(&tar).unwrap();
        let mut xz = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(0)).unwrap();
        xz.write_all(&tar).unwrap();
        let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        for i in 0..5 {
            zip.start_file(format!("f{i}"), zip::write::SimpleFileOptions::default())
                .unwrap();
            zip.write_all(&[b'0'; 1000]).unwrap();
        }
        for (kind, bytes) in [
            (Format::TarGz, gz.finish().unwrap()),
            (Format::TarBz2, bz2.finish().unwrap()),
            (Format::TarXz, xz.finish().unwrap()),
            (Format::Zip, zip.finish().unwrap().into_inner()),
        ] {
            let file = dir.path().join("archive");
            fs::write(&file, bytes).unwrap();
            let mut count = 0;
            let mut refused = |entries, bytes, variable: &str| {
                count += 1;
                let error = unpack(
                    kind,
                    &file,
                    &dir.path().join(format!("{kind:?}{count}")),
                    Entries::Links,
                    &limits(entries, bytes),
                );
                assert!(
                    error.as_ref().is_err_and(|e| e.to_string().contains(variable)),
                    "{kind:?}: {error:?}"
                );
            };
            refused(10, 4999, "MONOFORM_MAX_UNPACKED_SIZE");
            refused(4, 10_000, "MONOFORM_MAX_UNPACKED_FILES");
            let to = dir.path().join(format!("{kind:?}"));
            unpack(kind, &file, &to, Entries::Links, &limits(5, 5000)).unwrap();
        }
        // Padding without an end, in a stream of no entries.
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&entry(T::XGlobalHeader, "h", "", &[b' '; 60_000]))
            .unwrap();
        let file = dir.path().join("archive");
        fs::write(&file, gz.finish().unwrap()).unwrap();
        let error = unpack(
            Format::TarGz,
            &file,
            &dir.path().join("padding"),
            Entries::Links,
            &limits(2, 1000),
        )
        .unwrap_err();
        assert!(error.to_string().contains("1000 bytes"), "{error}");
    }

    fn unpack_files(file: &Path, to: &Path, limits: &Limits) -> Result<(), Error> {
        let entries = Entries::Files {
            executable: "terraform-provider-",
        };
        unpack(Format::Zip, file, to, entries, limits)
    }

    fn package(entries: &[(&str, &str, u32)]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        for (name, text, mode) in entries {
            let options = zip::write::SimpleFileOptions::default().unix_permissions(*mode);
            match text.strip_prefix("-> ") {
                Some(target) => zip.add_symlink(*name, target, options).unwrap(),
                None => {
                    zip.start_file(*name, options).unwrap();
                    zip.write_all(text.as_bytes()).unwrap();
                }
            }
        }
        file.write_all(&zip.finish().unwrap().into_inner()).unwrap();
        file
    }

    #[test]
    fn files_only_archive_is_unpacked_and_named_files_become_executable() {
        let dir = tempfile::tempdir().unwrap();
        let zip = package(&[("terraform-provider-x", "run", 0o644), ("docs/a.txt", "text", 0o644)]);
        let dir = dir.path().join("to");
        unpack_files(zip.path(), &dir, &Limits::default()).unwrap();
        assert_eq!(fs::read_to_string(dir.join("docs/a.txt")).unwrap(), "text");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |name: &str| fs::metadata(dir.join(name)).unwrap().permissions().mode() & 0o100;
            assert_eq!((mode("terraform-provider-x"), mode("docs/a.txt")), (0o100, 0));
        }
    }

    #[test]
    fn files_only_archive_with_link_or_path_outside_is_rejected() {
        for (name, text, expected) in [
            ("../out", "x", "outside"),
            ("a/../../out", "x", "outside"),
            ("/out", "x", "outside"),
            ("..\\out", "x", "outside"),
            ("C:out", "x", "outside"),
            ("link", "-> /etc", "is a link"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let to = dir.path().join("to");
            let error = unpack_files(package(&[(name, text, 0o644)]).path(), &to, &Limits::default())
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{name}: {error}");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "{name}");
        }
    }

    #[test]
    fn files_only_archive_beyond_limit_is_rejected_with_limit_and_variable() {
        let limits = |bytes, entries| limits(entries, bytes);
        let dir = tempfile::tempdir().unwrap();
        let zip = package(&[("a", "12345", 0o644), ("b", "67890", 0o644)]);
        let error = unpack_files(zip.path(), &dir.path().join("a"), &limits(9, 10))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("larger than the 9 bytes") && error.contains("MONOFORM_MAX_UNPACKED_SIZE"),
            "{error}"
        );
        assert_eq!(
            fs::read_dir(dir.path().join("a")).unwrap().count(),
            0,
            "nothing is written"
        );
        let error = unpack_files(zip.path(), &dir.path().join("b"), &limits(99, 1))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("more than the 1 entries") && error.contains("MONOFORM_MAX_UNPACKED_FILES"),
            "{error}"
        );
        // One that says it is small.
        let mut bytes = fs::read(zip.path()).unwrap();
        let size = 5_u32.to_le_bytes();
        while let Some(at) = bytes.windows(8).position(|w| w[4..] == size && w[..4] == size) {
            bytes[at + 4..at + 8].copy_from_slice(&1_u32.to_le_bytes());
        }
        fs::write(zip.path(), bytes).unwrap();
        assert!(unpack_files(zip.path(), &dir.path().join("c"), &limits(6, 10)).is_err());
        let mut text = tempfile::NamedTempFile::new().unwrap();
        text.write_all(b"not an archive").unwrap();
        let error = unpack_files(text.path(), &dir.path().join("d"), &Limits::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains("not a zip archive"), "{error}");
    }
}
