//! Unpacking provider packages: zip archives from anybody.
//!
//! A package has files and directories, all below its top; anything else is refused, links too, because no package needs
//! them. What it may grow to is bounded.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::path::{Component, Path, PathBuf};

/// How many entries a package may have.
const MAX_ENTRIES: usize = 100_000;
/// How many bytes its files may have together.
const MAX_BYTES: u64 = 8 << 30;

/// Unpacks a package into a directory that is there and empty. The error is a sentence without its full stop.
pub fn unpack(archive: &Path, to: &Path) -> Result<(), String> {
    within(archive, to, MAX_ENTRIES, MAX_BYTES)
}

fn within(archive: &Path, to: &Path, entries: usize, mut bytes: u64) -> Result<(), String> {
    let limit = bytes;
    let file = File::open(archive).map_err(|e| format!("the package cannot be read: {e}"))?;
    let mut zip =
        zip::ZipArchive::new(BufReader::new(file)).map_err(|e| format!("the package is not a zip archive: {e}"))?;
    if zip.len() > entries {
        return Err(format!("the package has more than {entries} entries"));
    }
    for index in 0..zip.len() {
        let mut entry = zip
            .by_index(index)
            .map_err(|e| format!("the package is damaged: {e}"))?;
        let name = entry
            .name()
            .map_err(|e| format!("the package is damaged: {e}"))?
            .into_owned();
        let failed = |e: io::Error| format!("\"{name}\" of the package cannot be unpacked: {e}");
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
        let written = io::copy(&mut (&mut entry).take(bytes.saturating_add(1)), &mut out).map_err(failed)?;
        bytes = bytes
            .checked_sub(written)
            .ok_or_else(|| format!("the package is refused: its files are larger than {limit} bytes"))?;
    }
    Ok(())
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
        unpack(zip.path(), dir.path()).unwrap();
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
            let error = unpack(package(&[(name, text, 0o644)]).path(), &to).unwrap_err();
            assert!(error.contains(expected), "{name}: {error}");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "{name}");
        }
    }

    #[test]
    fn no_more_than_is_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let zip = package(&[("a", "12345", 0o644), ("b", "67890", 0o644)]);
        let error = within(zip.path(), dir.path(), 10, 9).unwrap_err();
        assert!(error.contains("larger than 9 bytes"), "{error}");
        let dir = tempfile::tempdir().unwrap();
        assert!(within(zip.path(), dir.path(), 1, 99).unwrap_err().contains("entries"));
        let mut text = tempfile::NamedTempFile::new().unwrap();
        text.write_all(b"not an archive").unwrap();
        assert!(
            unpack(text.path(), dir.path())
                .unwrap_err()
                .contains("not a zip archive")
        );
    }
}
