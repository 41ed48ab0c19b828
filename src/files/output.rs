//! Output files: regular files are replaced by a rename, other kinds are written in place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Cursor, Read as _, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use system::files::MetadataExt as _;
use system::{Os, WhileInUse};
use tempfile::NamedTempFile;

use crate::temporary;

/// The maximum number of symbolic links in a chain to a file that does not exist yet.
const MAX_LINKS: usize = 40;

/// The mode and durability of an output file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The mode of a new file, before the umask.
    pub mode: u32,
    /// True if a replaced file keeps its mode.
    pub keep_mode: bool,
    /// True if the contents must be on the disk before the name is.
    pub durable: bool,
}

impl Policy {
    /// States: a new file is private to its owner, and a replaced file keeps its mode.
    pub const STATE: Policy = Policy {
        mode: 0o600,
        keep_mode: true,
        durable: true,
    };
    /// Plans: private to the owner, even if the replaced file was not.
    pub const SECRET: Policy = Policy {
        mode: 0o600,
        keep_mode: false,
        durable: true,
    };
    /// Configuration, lock files and indexes: readable by others, as far as the umask allows.
    pub const SHARED: Policy = Policy {
        mode: 0o666,
        keep_mode: true,
        durable: true,
    };
}

/// A file that is being written. Nothing is visible before [`Output::commit`]; dropping it before has no effect.
///
/// - A regular file is created or replaced by a rename. A replaced file keeps its owner, if that is permitted. Symbolic links are followed,
///   so that a link stays a link.
/// - Pipes, sockets, devices, and everything below `/dev` or `/proc` are written in place.
/// - A regular file is written in place, too, if it cannot be replaced because the directory cannot be written or the file is a mount point.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    policy: Policy,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Replaced { new: NamedTempFile, place: PathBuf },
    Into(Cursor<Vec<u8>>),
}

impl Output {
    /// Begins to write the file at a path. Its directory must exist.
    ///
    /// # Errors
    /// Returns an error if the path leads to a directory, or to a place where no file can be created.
    pub fn create(path: &Path, policy: Policy) -> io::Result<Output> {
        let target = match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(_) if !is_replaceable(path) => Target::Into(Cursor::default()),
            Ok(old) => {
                // The rename replaces the target of a link, so the link itself is kept.
                let place = system::files::canonicalize(path)?;
                match begin(&place, policy, Some(&old)) {
                    Ok(new) => Target::Replaced { new, place },
                    Err(e) if keeps_names(&e) => Target::Into(Cursor::default()),
                    Err(e) => return Err(e),
                }
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let place = followed(path);
                let new = begin(&place, policy, None)?;
                Target::Replaced { new, place }
            }
            Err(e) => return Err(e),
        };
        Ok(Output {
            path: path.to_owned(),
            policy,
            target,
        })
    }

    /// Moves the file to its path. If the path is a pipe, this blocks until there is a reader.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written. A file that is replaced by rename is then unchanged.
    pub fn commit(self) -> io::Result<()> {
        match self.target {
            Target::Into(contents) => write_into(&self.path, &contents.into_inner()),
            Target::Replaced { new, place } => {
                // Without this sync, a power failure after the rename could leave an empty file instead of the old one.
                if self.policy.durable {
                    new.as_file().sync_all()?;
                }
                match persist(new, &place) {
                    Ok(_) => {
                        // The rename itself is durable only when the directory is synced.
                        if self.policy.durable {
                            sync_directory(directory(&place));
                        }
                        Ok(())
                    }
                    // A mount point, as in containers, cannot be replaced by a rename, so it is written in place.
                    Err(e) if keeps_names(&e.error) && place.exists() => {
                        let mut contents = Vec::new();
                        let mut new = e.file;
                        new.seek(SeekFrom::Start(0))?;
                        new.read_to_end(&mut contents)?;
                        write_into(&place, &contents)
                    }
                    Err(e) => Err(e.error),
                }
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.target {
            Target::Replaced { new, .. } => new.write(bytes),
            Target::Into(contents) => contents.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::Replaced { new, .. } => new.flush(),
            Target::Into(contents) => contents.flush(),
        }
    }
}

impl Seek for Output {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match &mut self.target {
            Target::Replaced { new, .. } => new.seek(to),
            Target::Into(contents) => contents.seek(to),
        }
    }
}

/// Writes a whole file.
///
/// # Errors
/// Those of [`Output::create`] and [`Output::commit`].
pub fn replace(path: &Path, contents: &[u8], policy: Policy) -> io::Result<()> {
    let mut output = Output::create(path, policy)?;
    output.write_all(contents)?;
    output.commit()
}

/// Writes a whole file in place of an existing file or link of that name. Links are not followed.
///
/// # Errors
/// Returns an error if the file cannot be written. A link that cannot be replaced is then unchanged.
pub fn replace_here(path: &Path, contents: &[u8], policy: Policy) -> io::Result<()> {
    let old = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file);
    let written = begin(path, policy, old.as_ref()).and_then(|mut new| {
        new.write_all(contents)?;
        if policy.durable {
            new.as_file().sync_all()?;
        }
        persist(new, path).map(drop).map_err(|e| e.error)
    });
    match written {
        Ok(()) => {
            if policy.durable {
                sync_directory(directory(path));
            }
            Ok(())
        }
        Err(e) if keeps_names(&e) && old.is_some() => {
            // Another program may have put a link there meanwhile, which must not be followed.
            let file = system::files::no_follow(OpenOptions::new().write(true)).open(path)?;
            write_into_file(file, contents)
        }
        Err(e) => Err(e),
    }
}

/// Returns true if a rename can put a file at this path: there is no file or a regular file, and the path is outside of `/dev` and `/proc`.
#[must_use]
pub fn is_replaceable(path: &Path) -> bool {
    // Paths below these directories are open files of processes, which a rename would not change.
    if ["/dev", "/proc"].iter().any(|dir| path.starts_with(dir)) {
        return false;
    }
    match fs::metadata(path) {
        Ok(found) => found.is_file(),
        Err(e) => e.kind() == io::ErrorKind::NotFound,
    }
}

/// Returns true if an error of a rename is about the entry in the directory, so that writing in place can succeed.
fn keeps_names(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::ResourceBusy
            | io::ErrorKind::CrossesDevices
    )
}

/// Moves a file to its path by a rename. On Windows, the rename is repeated while another program has the old file open.
fn persist(mut new: NamedTempFile, place: &Path) -> Result<File, tempfile::PersistError> {
    let mut again = WhileInUse::new(Os::CURRENT);
    loop {
        match new.persist(place) {
            Err(failed) if again.passes(&failed.error) => new = failed.file,
            result => return result,
        }
    }
}

fn begin(place: &Path, policy: Policy, old: Option<&fs::Metadata>) -> io::Result<NamedTempFile> {
    let new = temporary::file(directory(place), policy.mode)?;
    if let Some(old) = old {
        // Only root may change the owner. For other users, the new file belongs to the writer.
        let _ = system::files::take_owner(new.as_file(), old);
        // The mode is set after the owner, because changing the owner clears the setuid and setgid bits.
        if policy.keep_mode {
            system::files::set_mode_of(new.as_file(), old.mode() & 0o7777)?;
        }
    }
    Ok(new)
}

/// Follows a chain of links to a file that does not exist yet; returns the path of that file.
fn followed(path: &Path) -> PathBuf {
    let mut place = path.to_owned();
    // The limit ends the search if links form a cycle.
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&place) else { break };
        place = directory(&place).join(target);
    }
    place
}

fn write_into(path: &Path, contents: &[u8]) -> io::Result<()> {
    write_into_file(OpenOptions::new().write(true).open(path)?, contents)
}

fn write_into_file(mut file: File, contents: &[u8]) -> io::Result<()> {
    let regular = file.metadata()?.is_file();
    // Only a regular file can be truncated and synced.
    if regular {
        file.set_len(0)?;
    }
    file.write_all(contents)?;
    if regular {
        file.sync_all()?;
    }
    Ok(())
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// Syncs the directory of a file, so that the file's name is on the disk; see [`sync_directory`].
pub fn sync_directory_of(file: &Path) {
    sync_directory(directory(file));
}

/// Syncs the names in a directory to the disk. Errors are ignored, because some file systems do not support this, and only the latest write
/// could be lost.
fn sync_directory(dir: &Path) {
    if let Err(e) = system::files::sync_directory(dir) {
        tracing::debug!("cannot sync {}: {e}", dir.display());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn regular_file_is_replaced_with_the_mode_of_the_policy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        replace(&path, b"one", Policy::STATE).unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        replace(&path, b"two", Policy::STATE).unwrap();
        assert_ne!(fs::metadata(&path).unwrap().ino(), inode);
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"two".to_vec(), 0o640));
        replace(&path, b"three", Policy::SECRET).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(names(dir.path()), ["f"]);
    }

    #[test]
    fn an_output_that_is_dropped_leaves_everything_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let mut output = Output::create(&path, Policy::STATE).unwrap();
        output.write_all(b"x").unwrap();
        drop(output);
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn links_stay_links_whether_or_not_they_lead_to_a_file() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        symlink("sub/second", dir.path().join("first")).unwrap();
        symlink("real", dir.path().join("sub/second")).unwrap();
        for text in ["new", "replaced"] {
            replace(&dir.path().join("first"), text.as_bytes(), Policy::STATE).unwrap();
            assert_eq!(fs::read_to_string(dir.path().join("sub/real")).unwrap(), text);
            for link in ["first", "sub/second"] {
                let found = fs::symlink_metadata(dir.path().join(link)).unwrap();
                assert!(found.is_symlink(), "{link}");
            }
        }
        assert_eq!(names(&dir.path().join("sub")), ["real", "second"]);
    }

    #[test]
    fn a_link_can_be_replaced_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        fs::write(&target, "kept").unwrap();
        symlink("target", &link).unwrap();
        for text in ["one", "two"] {
            replace_here(&link, text.as_bytes(), Policy::STATE).unwrap();
            assert_eq!(fs::read_to_string(&link).unwrap(), text);
            assert!(fs::symlink_metadata(&link).unwrap().is_file());
        }
        assert_eq!(fs::read_to_string(&target).unwrap(), "kept");
        assert_eq!(names(dir.path()), ["link", "target"]);
    }

    #[test]
    fn pipes_and_devices_are_written_into() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let reader = std::thread::spawn({
            let fifo = fifo.clone();
            move || fs::read(fifo).unwrap()
        });
        replace(&fifo, b"through", Policy::STATE).unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
        assert_eq!(names(dir.path()), ["fifo"]);
        let null = Path::new("/dev/null");
        replace(null, b"gone", Policy::STATE).unwrap();
        assert!(fs::metadata(null).unwrap().file_type().is_char_device());
        let full = replace(Path::new("/dev/full"), b"x", Policy::STATE).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let refused = replace(dir.path(), b"x", Policy::STATE).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::IsADirectory);
    }
}
