//! Sources of configuration files: the disk, or a map in memory (a plan file's snapshot, tests).

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use files::mounts::Mounts;
use system::{Os, paths};

/// File system operations that loading needs. Paths are relative to the working directory, with `/` as separator.
pub trait FileSource: Sync {
    /// Lists the names of the files (not directories) in a directory.
    fn list(&self, dir: &str) -> io::Result<Vec<String>>;
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;
    /// Resolves the symbolic links in a path; returns the path unchanged if there are none.
    fn real(&self, path: &str) -> String {
        path.to_owned()
    }
    /// Directories in memory that functions see when modules from this source are evaluated.
    fn mounts(&self) -> Option<&Arc<Mounts>> {
        None
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl FileSource for Disk {
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            // A link counts as the file or directory that it leads to. A broken link is listed, so that reading it
            // reports the error.
            let is_dir = std::fs::metadata(entry.path()).is_ok_and(|m| m.is_dir());
            if !is_dir {
                // The lossy form of a name that is not UTF-8 cannot be opened. If the file matters, reading it reports
                // the error.
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        Ok(names)
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn real(&self, path: &str) -> String {
        follow(path).unwrap_or_else(|| path.to_owned())
    }
}

/// Resolves the symbolic links in a path. The result is relative if the path and its links are. `None` if the links
/// form a loop, or if one is not UTF-8.
fn follow(path: &str) -> Option<String> {
    // This is the limit of Go's filepath.EvalSymlinks: after more links, they are taken for a loop.
    const MAX_LINKS: usize = 255;
    let mut links = 0;
    let mut done = String::new();
    let mut rest = steps(path, &mut done);
    while let Some(step) = rest.pop() {
        if step.is_empty() || step == "." {
            continue;
        }
        // `done` contains no symbolic links, so `..` can remove its last step as text.
        let next = if done.is_empty() { step } else { join(&done, &step) };
        match std::fs::read_link(&next) {
            Ok(target) => {
                links += 1;
                let target = target.to_str()?;
                if links > MAX_LINKS {
                    return None;
                }
                rest.extend(steps(target, &mut done));
            }
            Err(_) => done = next,
        }
    }
    Some(if done.is_empty() { ".".to_owned() } else { done })
}

/// Returns the steps of a path in reverse order. For an absolute path, `begin` is set to its root.
fn steps(path: &str, begin: &mut String) -> Vec<String> {
    let path = paths::to_slash(Os::CURRENT, path);
    let (volume, rest) = paths::split_volume(Os::CURRENT, &path);
    if paths::is_absolute(Os::CURRENT, &path) {
        *begin = format!("{volume}/");
    }
    rest.split('/').rev().map(str::to_owned).collect()
}

/// A file source with directories in memory mounted over it.
#[derive(Clone)]
pub struct Mounted<'f> {
    pub mounts: Option<Arc<Mounts>>,
    /// Source of the files outside of the mounted directories.
    pub files: &'f dyn FileSource,
}

impl FileSource for Mounted<'_> {
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let entries = self.mounts.as_ref().and_then(|mounts| mounts.entries(Path::new(dir)));
        match entries {
            Some(entries) => {
                let files = entries?.into_iter().filter(|(_, is_dir)| !is_dir);
                Ok(files.map(|(name, _)| name).collect())
            }
            None => self.files.list(dir),
        }
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let content = self.mounts.as_ref().and_then(|mounts| mounts.read(Path::new(path)));
        match content {
            Some(content) => content.map(|bytes| bytes.to_vec()),
            None => self.files.read(path),
        }
    }

    fn real(&self, path: &str) -> String {
        let real = self.mounts.as_ref().and_then(|mounts| mounts.real(Path::new(path)));
        real.unwrap_or_else(|| self.files.real(path))
    }

    fn mounts(&self) -> Option<&Arc<Mounts>> {
        self.mounts.as_ref().or_else(|| self.files.mounts())
    }
}

/// Files and links in memory, by path.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles {
    files: BTreeMap<String, Arc<[u8]>>,
    links: BTreeMap<String, String>,
    /// Directories in memory that only functions see: loading reads none of them.
    pub mounts: Option<Arc<Mounts>>,
}

impl MemoryFiles {
    pub fn insert(&mut self, path: &str, content: impl Into<Arc<[u8]>>) {
        self.files.insert(clean(path), content.into());
    }

    /// Records that a path leads to a directory through symbolic links.
    pub fn link(&mut self, path: &str, directory: &str) {
        self.links.insert(clean(path), clean(directory));
    }
}

impl<P: AsRef<str>, C: AsRef<str>> FromIterator<(P, C)> for MemoryFiles {
    fn from_iter<I: IntoIterator<Item = (P, C)>>(iter: I) -> MemoryFiles {
        let mut files = MemoryFiles::default();
        for (path, content) in iter {
            files.insert(path.as_ref(), content.as_ref().as_bytes());
        }
        files
    }
}

impl FileSource for MemoryFiles {
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let dir = clean(dir);
        let prefix = if dir == "." { String::new() } else { format!("{dir}/") };
        let mut below = false;
        let mut names = Vec::new();
        for path in self.files.keys() {
            if let Some(rest) = path.strip_prefix(&prefix) {
                below = true;
                if !rest.contains('/') {
                    names.push(rest.to_owned());
                }
            }
        }
        // Directories exist only as prefixes of files; the working directory always exists.
        if below || dir == "." {
            Ok(names)
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.files
            .get(&clean(path))
            .map(|c| c.to_vec())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn real(&self, path: &str) -> String {
        self.links
            .get(&clean(path))
            .map_or_else(|| path.to_owned(), String::clone)
    }

    fn mounts(&self) -> Option<&Arc<Mounts>> {
        self.mounts.as_ref()
    }
}

/// Returns the shortest equivalent path, without access to the disk: no `.` steps, and `..` steps only at the
/// beginning.
#[must_use]
pub fn clean(path: &str) -> String {
    paths::clean(Os::CURRENT, path)
}

/// Returns true if a file or directory name is ignored: hidden ones, and backup files of editors.
#[must_use]
pub fn is_ignored(name: &str) -> bool {
    name.starts_with('.') || name.ends_with('~') || (name.starts_with('#') && name.ends_with('#'))
}

/// Joins a directory and a path, and cleans the result.
#[must_use]
pub fn join(dir: &str, path: &str) -> String {
    paths::join(Os::CURRENT, dir, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_by_text() {
        for (path, expected) in [
            ("", "."),
            ("./", "."),
            ("a/./b//c/", "a/b/c"),
            ("a/../../b", "../b"),
            ("/../a", "/a"),
            ("./../x", "../x"),
        ] {
            assert_eq!(clean(path), expected, "{path}");
        }
        assert_eq!(join(".", "main.tf"), "main.tf");
        assert_eq!(join("modules/a", "../b"), "modules/b");
    }

    #[test]
    fn files_in_memory_are_listed_by_directory() {
        let files: MemoryFiles = [("main.tf", ""), ("a/x.tf", ""), ("a/b/y.tf", "")]
            .into_iter()
            .collect();
        assert_eq!(files.list(".").unwrap(), ["main.tf"]);
        assert_eq!(files.list("./a").unwrap(), ["x.tf"]);
        assert!(files.list("c").is_err());
    }
}
