//! The sources of a copy to another machine: text, a file, or a directory tree.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, Result};

/// Number of bytes of a file that are read at once.
pub(crate) const BLOCK: usize = 256 * 1024;

/// Content of a file to write on the other machine.
#[derive(Clone, Debug)]
pub enum Content {
    /// Bytes in memory.
    Bytes(Vec<u8>),
    /// A local file.
    File(PathBuf),
}

/// Counter of the bytes that have been read for copies over a connection.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    /// Returns the number of bytes that have been read from the source for sending.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// An opened [`Content`].
pub(crate) struct Reading {
    source: Source,
    progress: Progress,
}

enum Source {
    Bytes(Cursor<Vec<u8>>),
    File(File),
}

impl Content {
    /// Opens the source. Returns it with its length in bytes. Bytes that are then read count as progress.
    pub(crate) async fn open(self, progress: &Progress) -> Result<(Reading, u64)> {
        let (source, length) = self.source().await?;
        let progress = progress.clone();
        Ok((Reading { source, progress }, length))
    }

    async fn source(self) -> Result<(Source, u64)> {
        let path = match self {
            Content::Bytes(bytes) => {
                let length = bytes.len() as u64;
                return Ok((Source::Bytes(Cursor::new(bytes)), length));
            }
            Content::File(path) => path,
        };
        blocking(move || {
            let open = || {
                let file = File::open(&path)?;
                let length = file.metadata()?.len();
                Ok((Source::File(file), length))
            };
            open().map_err(|error: io::Error| Error::fatal(format!("open {}: {}", path.display(), reason(&error))))
        })
        .await
    }
}

impl Reading {
    /// Reads the next block of up to `wanted` bytes; an empty block at the end of the source.
    pub(crate) async fn block(self, wanted: usize) -> Result<(Reading, Vec<u8>)> {
        let read = move || {
            let mut reading = self;
            let mut block = vec![0; wanted];
            let mut length = 0;
            // A read may return less than requested. Callers would take a short block for the end of the file, so the block is filled.
            while length < wanted {
                let result = match &mut reading.source {
                    Source::Bytes(bytes) => bytes.read(&mut block[length..]),
                    Source::File(file) => file.read(&mut block[length..]),
                };
                match result {
                    Ok(0) => break,
                    Ok(n) => length += n,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error.into()),
                }
            }
            block.truncate(length);
            reading.progress.0.fetch_add(length as u64, Ordering::Relaxed);
            Ok((reading, block))
        };
        blocking(read).await
    }
}

/// Returns the text of an error of the operating system without its error number, beginning with a lower-case letter.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or_default();
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => format!("{}{}", first.to_lowercase(), letters.as_str()),
        None => "unknown error".to_owned(),
    }
}

/// Runs a blocking function on a separate thread, where it does not delay other tasks.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::fatal(error.to_string())),
    }
}

/// An entry of a directory.
pub(crate) struct Entry {
    /// UTF-8 name without line breaks, since not all file systems and protocols support other names.
    pub name: String,
    pub kind: EntryKind,
}

pub(crate) enum EntryKind {
    File(PathBuf),
    Directory(Vec<Entry>),
}

/// Returns the entries of a directory tree, sorted by name. Symbolic links are followed. An entry that is neither a file nor a directory,
/// such as a pipe, is an error, since reading it may never end.
pub(crate) async fn tree(directory: &Path) -> Result<Vec<Entry>> {
    let directory = directory.to_owned();
    blocking(move || read(&directory, &mut Vec::new())).await
}

fn read(directory: &Path, above: &mut Vec<PathBuf>) -> Result<Vec<Entry>> {
    let at = |path: &Path, error: io::Error| match path.read_link() {
        // The link points to a missing file. The error of the system would name the link, which does exist.
        Ok(target) if error.kind() == io::ErrorKind::NotFound => Error::fatal(format!(
            "{} is a link to {}, which does not exist: remove the link, or create what it leads to",
            path.display(),
            target.display()
        )),
        _ => Error::fatal(format!("{}: {}", path.display(), reason(&error))),
    };
    let real = directory.canonicalize().map_err(|e| at(directory, e))?;
    // Since links are followed, a link to an enclosing directory would be copied into itself again and again, until a path is too long.
    if above.contains(&real) {
        return Err(Error::fatal(format!(
            "{} is a link to a directory that it is in: copying it would have no end",
            directory.display()
        )));
    }
    above.push(real);
    let mut found = Vec::new();
    for item in directory.read_dir().map_err(|e| at(directory, e))? {
        let path = item.map_err(|e| at(directory, e))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        // To `scp -t`, a line break in a name would begin another command.
        let Some(name) = name.filter(|name| !name.contains('\n')) else {
            return Err(Error::fatal(format!(
                "{}: the name is not UTF-8 text of one line, so it cannot be copied",
                path.display()
            )));
        };
        // `metadata` follows links, unlike the file type in the directory entry.
        let kind = path.metadata().map_err(|e| at(&path, e))?.file_type();
        let kind = if kind.is_dir() {
            EntryKind::Directory(read(&path, above)?)
        } else if kind.is_file() {
            EntryKind::File(path)
        } else {
            return Err(Error::fatal(format!(
                "{} is neither a file nor a directory, so it cannot be copied",
                path.display()
            )));
        };
        found.push(Entry { name, kind });
    }
    above.pop();
    // Sorted, because the order of a directory depends on its file system.
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Returns the name of a directory: the last part of its path. For a path such as `.` or `..`, the path is resolved first.
pub(crate) fn name_of(directory: &Path) -> Result<String> {
    let name = directory
        .file_name()
        .map(|name| name.to_owned())
        .or_else(|| Some(directory.canonicalize().ok()?.file_name()?.to_owned()));
    match name.map(|name| name.into_string()) {
        Some(Ok(name)) if !name.contains('\n') => Ok(name),
        _ => Err(Error::fatal(format!(
            "{} has no name that the copy could have",
            directory.display()
        ))),
    }
}

/// Splits a path on the other machine into directory and name, as Terraform and OpenTofu do.
pub(crate) fn split(path: &str) -> (String, String) {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() {
        return (if path.is_empty() { "." } else { "/" }.to_owned(), "/".to_owned());
    }
    let name = trimmed.rsplit('/').next().unwrap_or(trimmed).to_owned();
    // A path that ends in a slash names a directory. A file copied there has the name of that directory.
    let directory = if path.ends_with('/') {
        trimmed
    } else {
        trimmed.rsplit_once('/').map_or(".", |(directory, _)| directory)
    };
    let directory = directory.trim_end_matches('/');
    (if directory.is_empty() { "/" } else { directory }.to_owned(), name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(entries: &[Entry]) -> Vec<String> {
        let mut all = Vec::new();
        for entry in entries {
            all.push(entry.name.clone());
            if let EntryKind::Directory(inner) = &entry.kind {
                all.extend(names(inner).into_iter().map(|name| format!("{}/{name}", entry.name)));
            }
        }
        all
    }

    #[tokio::test]
    async fn links_are_followed_and_circles_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        std::fs::create_dir_all(path.join("a/b")).unwrap();
        std::fs::write(path.join("a/b/file"), "x").unwrap();
        symlink("a", path.join("link")).unwrap();
        symlink("a/b/file", path.join("z")).unwrap();
        let found = tree(path).await.unwrap();
        assert_eq!(
            names(&found),
            ["a", "a/b", "a/b/file", "link", "link/b", "link/b/file", "z"]
        );
        symlink("..", path.join("a/up")).unwrap();
        let error = tree(path).await.map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("no end"), "{error}");
        std::fs::remove_file(path.join("a/up")).unwrap();
        symlink("nowhere", path.join("a/lost")).unwrap();
        let error = tree(path).await.map(|_| ()).unwrap_err().to_string();
        assert!(
            error.contains("/lost is a link to nowhere, which does not exist"),
            "{error}"
        );
        assert!(!error.contains("os error"), "{error}");
        let error = tree(&path.join("missing")).await.map(|_| ()).unwrap_err().to_string();
        assert!(error.ends_with("missing: no such file or directory"), "{error}");
    }

    #[test]
    fn paths_are_taken_apart_as_the_peers_do() {
        for (path, directory, name) in [
            ("/tmp/x", "/tmp", "x"),
            ("/tmp/x/", "/tmp/x", "x"),
            ("x", ".", "x"),
            ("/x", "/", "x"),
            ("a/b", "a", "b"),
        ] {
            assert_eq!(split(path), (directory.to_owned(), name.to_owned()), "{path}");
        }
    }
}
