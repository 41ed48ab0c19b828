//! Unpacking archives from anybody.
//!
//! Every entry becomes a file, a directory or a symbolic link below the given directory, or the archive is refused. Links are
//! made last, so that nothing is written through one, and lead nowhere outside: they may climb (`..`) at their beginning
//! only, no higher than the top, from a directory that is a real one. What an archive may grow to is bounded.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek};
use std::path::{Component, Path, PathBuf};

use files::io_reason;
use net::UnpackLimits;

/// How long the target of a symbolic link may be.
const MAX_TARGET: u64 = 4096;

/// The kinds of archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `zip`.
    Zip,
    /// `tar`, compressed by gzip.
    TarGz,
    /// `tar`, compressed by bzip2.
    TarBz2,
    /// `tar`, compressed by xz.
    TarXz,
}

/// The endings of names, the longer ones first.
const ENDINGS: [(&str, Kind); 8] = [
    ("tar.tbz2", Kind::TarBz2),
    ("tar.bz2", Kind::TarBz2),
    ("tar.gz", Kind::TarGz),
    ("tar.xz", Kind::TarXz),
    ("tbz2", Kind::TarBz2),
    ("tgz", Kind::TarGz),
    ("txz", Kind::TarXz),
    ("zip", Kind::Zip),
];

/// Endings of things that are not archives of many files, or of a kind that nobody reads here.
const REFUSED: [&str; 6] = ["tar.zst", "tzst", "tar", "gz", "bz2", "xz"];

impl Kind {
    /// The kind that the argument `archive` names.
    pub fn named(name: &str) -> Result<Kind, String> {
        let found = ENDINGS.iter().find(|(ending, _)| *ending == name);
        found.map(|(_, kind)| *kind).ok_or_else(|| {
            let known: Vec<&str> = ENDINGS.iter().rev().map(|(ending, _)| *ending).collect();
            format!(
                "\"{name}\" is not a kind of archive that holds a module; there are {}",
                known.join(", ")
            )
        })
    }

    /// The kind that the end of a path tells; `None` if it does not look like an archive.
    pub fn of_path(path: &str) -> Result<Option<Kind>, String> {
        let ends = |ending: &str| path.strip_suffix(ending).is_some_and(|rest| rest.ends_with('.'));
        if let Some((_, kind)) = ENDINGS.iter().find(|(ending, _)| ends(ending)) {
            return Ok(Some(*kind));
        }
        match REFUSED.iter().find(|ending| ends(ending)) {
            Some(ending) => Kind::named(ending).map(Some),
            None => Ok(None),
        }
    }
}

/// Unpacks an archive to a path where nothing is yet. One that grows beyond the limits is refused.
pub fn unpack(kind: Kind, file: &Path, to: &Path, limits: &UnpackLimits) -> Result<(), String> {
    let source = File::open(file).map_err(|e| io_reason(&e))?;
    fs::create_dir(to).map_err(|e| format!("{} cannot be made: {}", to.display(), io_reason(&e)))?;
    let mut target = Target {
        root: to.to_owned(),
        links: BTreeMap::new(),
        copies: Vec::new(),
        limits: *limits,
        entries_left: limits.entries,
        bytes_left: limits.bytes,
        empty: true,
    };
    let source = BufReader::new(source);
    match kind {
        Kind::Zip => zip(source, &mut target)?,
        Kind::TarGz => tar(flate2::bufread::MultiGzDecoder::new(source), &mut target)?,
        Kind::TarBz2 => tar(bzip2::bufread::MultiBzDecoder::new(source), &mut target)?,
        Kind::TarXz => tar(lzma_rust2::XzReader::new(source, true), &mut target)?,
    }
    target.finish()
}

/// The path of an entry below the top of what it is part of; empty for the top itself.
pub(super) fn inside(name: &str) -> Result<PathBuf, String> {
    let mut path = PathBuf::new();
    let bad = || format!("the entry \"{name}\" would be outside of it");
    // What is a separator on any system is one.
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

struct Target {
    root: PathBuf,
    /// Symbolic links by their path inside, with what they lead to.
    links: BTreeMap<PathBuf, String>,
    /// Hard links, and the entries they are the same as.
    copies: Vec<(PathBuf, PathBuf)>,
    limits: UnpackLimits,
    entries_left: usize,
    bytes_left: u64,
    empty: bool,
}

impl Target {
    /// Why the stream of an archive cannot be read on; one without an end is too large.
    fn stream_reason(&self, error: &io::Error) -> String {
        let text = io_reason(error);
        match text.contains(net::MAX_UNPACKED_SIZE) {
            true => self.limits.too_large(),
            false => text,
        }
    }

    fn count(&mut self) -> Result<(), String> {
        self.entries_left = self.entries_left.checked_sub(1).ok_or_else(|| self.limits.too_many())?;
        Ok(())
    }

    fn dir(&mut self, path: &Path) -> Result<(), String> {
        let mut so_far = PathBuf::new();
        for step in path {
            so_far.push(step);
            if self.links.contains_key(&so_far) {
                return Err(format!("\"{}\" is both a link and a directory in it", so_far.display()));
            }
        }
        fs::create_dir_all(self.root.join(path)).map_err(|e| format!("\"{}\": {}", path.display(), io_reason(&e)))
    }

    /// Writes a file; of its mode, only whether it can be run counts.
    fn file(&mut self, path: &Path, mode: u32, content: &mut dyn Read) -> Result<(), String> {
        let failed = |e: io::Error| format!("\"{}\": {}", path.display(), io_reason(&e));
        if let Some(parent) = path.parent() {
            self.dir(parent)?;
        }
        self.links.remove(path);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(if mode & 0o111 == 0 { 0o666 } else { 0o777 });
        }
        #[cfg(not(unix))]
        let _ = mode;
        let mut file = options.open(self.root.join(path)).map_err(failed)?;
        let written = io::copy(&mut content.take(self.bytes_left.saturating_add(1)), &mut file).map_err(failed)?;
        self.bytes_left = self
            .bytes_left
            .checked_sub(written)
            .ok_or_else(|| self.limits.too_large())?;
        self.empty = false;
        Ok(())
    }

    fn link(&mut self, path: PathBuf, target: &str) -> Result<(), String> {
        let depth = path.components().count().saturating_sub(1);
        let bad = || format!("the link \"{}\" leads out of it, to \"{target}\"", path.display());
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

    /// Makes the links.
    fn finish(self) -> Result<(), String> {
        if self.empty {
            return Err("it is empty".to_owned());
        }
        let mut bytes_left = self.bytes_left;
        for (path, original) in &self.copies {
            let failed = |e: io::Error| format!("\"{}\": {}", path.display(), io_reason(&e));
            let from = self.root.join(original);
            let found = fs::symlink_metadata(&from).map_err(failed)?;
            if !found.is_file() {
                return Err(format!(
                    "\"{}\" is a link to \"{}\", which is no file",
                    path.display(),
                    original.display()
                ));
            }
            bytes_left = bytes_left.checked_sub(found.len()).ok_or("its files are too large")?;
            if let Some(parent) = path.parent() {
                fs::create_dir_all(self.root.join(parent)).map_err(failed)?;
            }
            fs::copy(&from, self.root.join(path)).map_err(failed)?;
        }
        for (path, target) in &self.links {
            let failed = |e: io::Error| format!("the link \"{}\" cannot be made: {}", path.display(), io_reason(&e));
            if let Some(parent) = path.parent() {
                // Each step must be a directory, not another link.
                let mut so_far = self.root.clone();
                for step in parent {
                    so_far.push(step);
                    match fs::symlink_metadata(&so_far) {
                        Ok(found) if found.is_dir() => {}
                        Ok(_) => {
                            return Err(format!(
                                "the link \"{}\" is below something that is no directory",
                                path.display()
                            ));
                        }
                        Err(_) => fs::create_dir(&so_far).map_err(failed)?,
                    }
                }
            }
            #[cfg(unix)]
            std::os::unix::fs::symlink(target, self.root.join(path)).map_err(failed)?;
            #[cfg(not(unix))]
            {
                let _ = (target, failed);
                return Err(format!("the link \"{}\" cannot be made on this system", path.display()));
            }
        }
        Ok(())
    }
}

/// What is wrong with an archive, in words.
fn zip_reason(error: zip::result::ZipError) -> String {
    match error {
        zip::result::ZipError::Io(error) => io_reason(&error),
        zip::result::ZipError::InvalidArchive(why) => why.to_lowercase(),
        other => other.to_string(),
    }
}

fn zip(source: impl Read + Seek, target: &mut Target) -> Result<(), String> {
    let mut archive = zip::ZipArchive::new(source).map_err(zip_reason)?;
    // What an archive says of itself is enough to refuse it, not to accept it.
    if archive.len() > target.limits.entries {
        return Err(target.limits.too_many());
    }
    if archive
        .decompressed_size()
        .is_some_and(|size| size > u128::from(target.limits.bytes))
    {
        return Err(target.limits.too_large());
    }
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(zip_reason)?;
        target.count()?;
        let name = entry.name().map_err(zip_reason)?.into_owned();
        let path = inside(&name)?;
        if entry.is_dir() {
            target.dir(&path)?;
        } else if path.as_os_str().is_empty() {
            return Err(format!("the entry \"{name}\" has no name"));
        } else if entry.is_symlink() {
            let mut to = String::new();
            let read = (&mut entry).take(MAX_TARGET).read_to_string(&mut to);
            read.map_err(|e| format!("\"{name}\": {}", io_reason(&e)))?;
            target.link(path, &to)?;
        } else {
            let mode = entry.unix_mode().unwrap_or(0o644);
            if !matches!(mode & 0o170_000, 0 | 0o100_000) {
                return Err(format!("\"{name}\" is neither a file nor a directory nor a link"));
            }
            target.file(&path, mode, &mut entry)?;
        }
    }
    Ok(())
}

fn tar(source: impl Read, target: &mut Target) -> Result<(), String> {
    use tar::EntryType;
    // Headers and padding count as well: a stream that only grows has an end here.
    let bound = target
        .bytes_left
        .saturating_add((target.entries_left as u64).saturating_mul(2048));
    let limits = UnpackLimits {
        bytes: bound,
        ..target.limits
    };
    let mut archive = tar::Archive::new(limits.bound(source));
    for entry in archive.entries().map_err(|e| io_reason(&e))? {
        let mut entry = entry.map_err(|e| target.stream_reason(&e))?;
        target.count()?;
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::XGlobalHeader | EntryType::XHeader) {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let path = inside(&name)?;
        if kind == EntryType::Directory {
            target.dir(&path)?;
            continue;
        }
        if path.as_os_str().is_empty() {
            return Err(format!("the entry \"{name}\" has no name"));
        }
        let link = entry
            .link_name_bytes()
            .map(|l| String::from_utf8_lossy(&l).into_owned());
        match (kind, link) {
            (EntryType::Symlink, Some(to)) => target.link(path, &to)?,
            (EntryType::Link, Some(to)) => {
                let original = inside(&to)?;
                target.links.remove(&path);
                target.copies.push((path, original));
            }
            (EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse, _) => {
                let mode = entry.header().mode().unwrap_or(0o644);
                target.file(&path, mode, &mut entry)?;
            }
            _ => return Err(format!("\"{name}\" is neither a file nor a directory nor a link")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// An entry of a tar archive as anybody could write it, without the checks of a library.
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

    fn limits(entries: usize, bytes: u64) -> UnpackLimits {
        UnpackLimits {
            bytes,
            entries,
            ..UnpackLimits::default()
        }
    }

    fn try_tar(entries: &[Vec<u8>]) -> Result<tempfile::TempDir, String> {
        let dir = tempfile::tempdir().unwrap();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&entries.concat()).unwrap();
        gz.write_all(&[0; 1024]).unwrap();
        let file = dir.path().join("a.tgz");
        fs::write(&file, gz.finish().unwrap()).unwrap();
        unpack(Kind::TarGz, &file, &dir.path().join("out"), &limits(10, 10_000))?;
        Ok(dir)
    }

    use tar::EntryType as T;

    #[test]
    fn good_archives() {
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
    fn nothing_gets_out() {
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
    fn zips_are_bounded_too() {
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
            let done = unpack(Kind::Zip, &file, &dir.path().join("out"), &limits(10, 1000));
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
        assert!(make(&[("x", &bomb, 0o644)]).unwrap_err().contains("larger"));
    }

    #[test]
    fn every_kind_of_archive_is_refused_beyond_the_limits_with_the_variable_that_changes_them() {
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
            (Kind::TarGz, gz.finish().unwrap()),
            (Kind::TarBz2, bz2.finish().unwrap()),
            (Kind::TarXz, xz.finish().unwrap()),
            (Kind::Zip, zip.finish().unwrap().into_inner()),
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
                    &limits(entries, bytes),
                );
                assert!(
                    error.as_ref().is_err_and(|e| e.contains(variable)),
                    "{kind:?}: {error:?}"
                );
            };
            refused(10, 4999, "MONOFORM_MAX_UNPACKED_SIZE");
            refused(4, 10_000, "MONOFORM_MAX_UNPACKED_FILES");
            unpack(kind, &file, &dir.path().join(format!("{kind:?}")), &limits(5, 5000)).unwrap();
        }
        // Padding without an end, in a stream of no entries.
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&entry(T::XGlobalHeader, "h", "", &[b' '; 60_000]))
            .unwrap();
        let file = dir.path().join("archive");
        fs::write(&file, gz.finish().unwrap()).unwrap();
        let error = unpack(Kind::TarGz, &file, &dir.path().join("padding"), &limits(2, 1000)).unwrap_err();
        assert!(error.contains("1000 bytes"), "{error}");
    }

    #[test]
    fn endings_tell_the_kind() {
        assert_eq!(Kind::of_path("/x/a.tar.gz"), Ok(Some(Kind::TarGz)));
        assert_eq!(Kind::of_path("/x/a.tbz2"), Ok(Some(Kind::TarBz2)));
        assert_eq!(Kind::of_path("/x/zip"), Ok(None));
        assert!(Kind::of_path("/x/a.tar").unwrap_err().contains("tar.gz"));
        assert!(Kind::named("-").is_err());
    }
}
