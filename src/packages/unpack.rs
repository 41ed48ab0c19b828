//! Unpacking provider packages: zip archives from anybody.
//!
//! A package has files and directories, all below its top; anything else is refused, links too, because no package needs
//! them. What it may grow to is bounded.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use files::io_reason;
use net::UnpackLimits;

/// Unpacks a package into a directory that is there and empty. The error is a sentence without its full stop.
pub fn unpack(archive: &Path, to: &Path, limits: &UnpackLimits) -> Result<(), String> {
    let file = File::open(archive).map_err(|e| format!("the package cannot be read: {}", io_reason(&e)))?;
    let mut zip = zip::ZipArchive::new(BufReader::new(file))
        .map_err(|e| format!("the package is not a zip archive that can be read: {}", zip_reason(e)))?;
    let refused = |why: String| format!("the package is refused: {why}");
    if zip.len() > limits.entries {
        return Err(refused(limits.too_many()));
    }
    // What an archive says of itself is enough to refuse it, not to accept it.
    let announced = zip.decompressed_size().unwrap_or(0);
    if announced > u128::from(limits.bytes) {
        return Err(refused(limits.too_large()));
    }
    let mut left = limits.bytes;
    for index in 0..zip.len() {
        let mut entry = zip
            .by_index(index)
            .map_err(|e| format!("the package is damaged: {}", zip_reason(e)))?;
        let name = entry
            .name()
            .map_err(|e| format!("the package is damaged: {}", zip_reason(e)))?
            .into_owned();
        let failed = |e: io::Error| format!("\"{name}\" of the package cannot be unpacked: {}", io_reason(&e));
        let path = to.join(inside(&name)?);
        if entry.is_dir() {
            fs::create_dir_all(&path).map_err(failed)?;
            continue;
        }
        let mode = entry.unix_mode().unwrap_or(0);
        if !matches!(mode & 0o170_000, 0 | 0o100_000) {
            return Err(format!(
                "the package is refused: its entry \"{name}\" is a link or a special file"
            ));
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            // An archive made elsewhere may say nothing about modes; the plugin itself must be one that can be run.
            let plugin = name.starts_with("terraform-provider-");
            options.mode(if plugin || mode & 0o111 != 0 { 0o777 } else { 0o666 });
        }
        let mut out = options.open(&path).map_err(failed)?;
        let written = io::copy(&mut (&mut entry).take(left.saturating_add(1)), &mut out).map_err(failed)?;
        left = left.checked_sub(written).ok_or_else(|| refused(limits.too_large()))?;
    }
    Ok(())
}

/// What is wrong with an archive, in words.
pub(crate) fn zip_reason(error: zip::result::ZipError) -> String {
    match error {
        zip::result::ZipError::Io(error) => io_reason(&error),
        zip::result::ZipError::InvalidArchive(why) => why.to_lowercase(),
        zip::result::ZipError::UnsupportedArchive(why) => format!("it needs what is not supported here ({why})"),
        zip::result::ZipError::FileNotFound => "an entry is missing".to_owned(),
        other => other.to_string(),
    }
}

/// The path of an entry below the top.
fn inside(name: &str) -> Result<PathBuf, String> {
    let refused = || format!("the package is refused: its entry \"{name}\" would be written outside of its directory");
    // What is a separator on any system is one.
    if name.contains(['\\', '\0', ':']) || name.starts_with('/') {
        return Err(refused());
    }
    let mut path = PathBuf::new();
    for component in Path::new(name).components() {
        match component {
            Component::Normal(step) => path.push(step),
            Component::CurDir => {}
            _ => return Err(refused()),
        }
    }
    if path.as_os_str().is_empty() {
        Err(refused())
    } else {
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

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
    fn files_and_directories() {
        let dir = tempfile::tempdir().unwrap();
        let zip = package(&[("terraform-provider-x", "run", 0o644), ("docs/a.txt", "text", 0o644)]);
        unpack(zip.path(), dir.path(), &UnpackLimits::default()).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("docs/a.txt")).unwrap(), "text");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |name: &str| fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o100;
            assert_eq!((mode("terraform-provider-x"), mode("docs/a.txt")), (0o100, 0));
        }
    }

    #[test]
    fn nothing_outside_and_no_links() {
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
            fs::create_dir(&to).unwrap();
            let error = unpack(package(&[(name, text, 0o644)]).path(), &to, &UnpackLimits::default()).unwrap_err();
            assert!(error.contains(expected), "{name}: {error}");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "{name}");
        }
    }

    #[test]
    fn a_package_that_unpacks_beyond_a_limit_is_refused_with_the_limit_and_the_variable() {
        let limits = |bytes, entries| UnpackLimits {
            bytes,
            entries,
            ..UnpackLimits::default()
        };
        let dir = tempfile::tempdir().unwrap();
        let zip = package(&[("a", "12345", 0o644), ("b", "67890", 0o644)]);
        let error = unpack(zip.path(), dir.path(), &limits(9, 10)).unwrap_err();
        assert!(
            error.contains("larger than the 9 bytes") && error.contains("MONOFORM_MAX_UNPACKED_SIZE"),
            "{error}"
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is written");
        let error = unpack(zip.path(), dir.path(), &limits(99, 1)).unwrap_err();
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
        assert!(unpack(zip.path(), dir.path(), &limits(6, 10)).is_err());
        let mut text = tempfile::NamedTempFile::new().unwrap();
        text.write_all(b"not an archive").unwrap();
        let error = unpack(text.path(), dir.path(), &UnpackLimits::default()).unwrap_err();
        assert!(error.contains("not a zip archive"), "{error}");
    }
}
