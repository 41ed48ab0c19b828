//! Directories in memory that look like directories of the file system to this process. If no directory can be written, module packages are
//! read from them as if they were unpacked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// The maximum number of links in the resolution of a path, as in Linux.
const MAX_LINKS: usize = 40;

/// A directory in memory with all its descendants.
#[derive(Debug, Default)]
pub struct Directory {
    /// Files, links and directories, by their paths with slashes relative to this directory.
    nodes: BTreeMap<String, Node>,
}

#[derive(Debug)]
enum Node {
    File(Arc<[u8]>),
    Directory,
    Link(String),
}

impl Directory {
    /// Adds a file and its parent directories.
    pub fn add_file(&mut self, path: &str, content: impl Into<Arc<[u8]>>) {
        self.add(path, Node::File(content.into()));
    }

    /// Adds a symbolic link, whose target is relative to the link's directory. A link that leads out of this directory counts as broken.
    pub fn add_link(&mut self, path: &str, target: &str) {
        self.add(path, Node::Link(target.to_owned()));
    }

    fn add(&mut self, path: &str, node: Node) {
        let mut end = 0;
        while let Some(at) = path.get(end..).and_then(|rest| rest.find('/')) {
            let parent = path.get(..end + at).unwrap_or_default();
            self.nodes.entry(parent.to_owned()).or_insert(Node::Directory);
            end += at + 1;
        }
        self.nodes.insert(path.to_owned(), node);
    }

    /// Resolves the links of a path. Returns the resolved path, and the file or directory there.
    fn find(&self, path: &str) -> io::Result<(String, Found<'_>)> {
        let mut rest: VecDeque<&str> = path.split('/').collect();
        let mut done: Vec<&str> = Vec::new();
        let mut links = 0;
        let mut found = Found::Directory;
        while let Some(step) = rest.pop_front() {
            match step {
                "" | "." => continue,
                ".." => {
                    // `..` at the root would leave the directory.
                    done.pop().ok_or(ErrorKind::NotFound)?;
                    found = Found::Directory;
                    continue;
                }
                _ if matches!(found, Found::File(_)) => return Err(ErrorKind::NotADirectory.into()),
                _ => done.push(step),
            }
            found = match self.nodes.get(&done.join("/")).ok_or(ErrorKind::NotFound)? {
                Node::Directory => Found::Directory,
                Node::File(content) => Found::File(content),
                Node::Link(target) => {
                    links += 1;
                    // An absolute target would leave the directory.
                    if links > MAX_LINKS || target.starts_with('/') {
                        return Err(ErrorKind::NotFound.into());
                    }
                    done.pop();
                    // The steps are put in front in reverse order, so that the first step of the target comes next.
                    for step in target.rsplit('/') {
                        rest.push_front(step);
                    }
                    Found::Directory
                }
            };
        }
        Ok((done.join("/"), found))
    }

    /// Returns the names in a directory, each with true if it is a directory. The path must not contain links.
    fn names(&self, path: &str) -> Vec<(String, bool)> {
        let prefix = match path {
            "" => String::new(),
            path => format!("{path}/"),
        };
        let below = self.nodes.range(prefix.clone()..);
        let below = below.take_while(|(path, _)| path.starts_with(&prefix));
        let name = |(path, _): (&String, &Node)| {
            let name = path.strip_prefix(&prefix).filter(|name| !name.contains('/'))?;
            let (_, found) = self.find(path).ok()?;
            Some((name.to_owned(), matches!(found, Found::Directory)))
        };
        below.filter_map(name).collect()
    }
}

/// The file or directory at a path.
enum Found<'d> {
    File(&'d Arc<[u8]>),
    Directory,
}

/// Mounted directories by path. Methods with a path return `None` if the path is not in a mounted directory.
#[derive(Debug)]
pub struct Mounts {
    base: PathBuf,
    /// Mounts by absolute path.
    mounted: RwLock<BTreeMap<PathBuf, Mount>>,
}

#[derive(Clone, Debug)]
struct Mount {
    /// Path of the mount, as the caller wrote it.
    at: String,
    directory: Arc<Directory>,
}

/// Compares by identity: different tables are never equal.
impl PartialEq for Mounts {
    fn eq(&self, other: &Mounts) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Mounts {
    /// Creates an empty table. Relative paths are relative to `base`, an absolute path.
    #[must_use]
    pub fn new(base: &Path) -> Mounts {
        Mounts {
            base: base.to_owned(),
            mounted: RwLock::default(),
        }
    }

    /// Mounts a directory at a path, and hides what the disk has there.
    pub fn mount(&self, at: &str, directory: Arc<Directory>) {
        let mount = Mount {
            at: at.to_owned(),
            directory,
        };
        // The lock can be used after a panic, because the only change is a single insertion.
        let mut mounted = self.mounted.write().unwrap_or_else(PoisonError::into_inner);
        mounted.insert(self.absolute(Path::new(at)), mount);
    }

    /// Returns the directory mounted at exactly this path; `None` if there is none.
    #[must_use]
    pub fn mounted_at(&self, at: &str) -> Option<Arc<Directory>> {
        let mounted = self.mounted.read().unwrap_or_else(PoisonError::into_inner);
        Some(mounted.get(&self.absolute(Path::new(at)))?.directory.clone())
    }

    /// Returns the content of a file.
    pub fn read(&self, path: &Path) -> Option<io::Result<Arc<[u8]>>> {
        let (mount, inside) = self.mount_of(path)?;
        let content = match mount.directory.find(&inside) {
            Ok((_, Found::File(content))) => Ok(content.clone()),
            Ok((_, Found::Directory)) => Err(ErrorKind::IsADirectory.into()),
            Err(error) => Err(error),
        };
        Some(content)
    }

    /// Returns true if the path is a directory, and false if it is a file. It is an error if nothing exists there.
    pub fn is_dir(&self, path: &Path) -> Option<io::Result<bool>> {
        let (mount, inside) = self.mount_of(path)?;
        let found = mount.directory.find(&inside);
        Some(found.map(|(_, found)| matches!(found, Found::Directory)))
    }

    /// Returns the names in a directory, each with true if it is a directory. Links count as their targets, and broken links are left out.
    pub fn entries(&self, path: &Path) -> Option<io::Result<Vec<(String, bool)>>> {
        let (mount, inside) = self.mount_of(path)?;
        let names = match mount.directory.find(&inside) {
            Ok((path, Found::Directory)) => Ok(mount.directory.names(&path)),
            Ok((_, Found::File(_))) => Err(ErrorKind::NotADirectory.into()),
            Err(error) => Err(error),
        };
        Some(names)
    }

    /// Returns the names that mounts add to a directory of the disk: the first steps of the paths of mounts below it.
    #[must_use]
    pub fn names_above(&self, path: &Path) -> BTreeSet<String> {
        let path = self.absolute(path);
        let mounted = self.mounted.read().unwrap_or_else(PoisonError::into_inner);
        // Paths are sorted by components, so descendants follow their ancestor.
        let below = mounted.range(path.clone()..);
        let below = below.map_while(|(at, _)| at.strip_prefix(&path).ok());
        let first = below.filter_map(|rest| rest.components().next());
        first
            .map(|step| step.as_os_str().to_string_lossy().into_owned())
            .collect()
    }

    /// Resolves the links of a path. The result is relative if the directory is mounted at a relative path.
    #[must_use]
    pub fn real(&self, path: &Path) -> Option<String> {
        let (mount, inside) = self.mount_of(path)?;
        let real = mount.directory.find(&inside).map_or(inside, |(real, _)| real);
        Some(match real.is_empty() {
            true => mount.at,
            false => format!("{}/{real}", mount.at),
        })
    }

    /// Returns the mount that contains this path, and the path relative to it; `None` if no mount does.
    fn mount_of(&self, path: &Path) -> Option<(Mount, String)> {
        let path = self.absolute(path);
        let mounted = self.mounted.read().unwrap_or_else(PoisonError::into_inner);
        let (at, mount) = path.ancestors().find_map(|at| mounted.get_key_value(at))?;
        let inside = path.strip_prefix(at).ok()?.to_str()?.to_owned();
        Some((mount.clone(), inside))
    }

    /// Makes a path absolute, and removes `.` and `..` by text, without accessing the disk.
    fn absolute(&self, path: &Path) -> PathBuf {
        let mut out = PathBuf::new();
        for step in self.base.join(path).components() {
            match step {
                Component::CurDir => {}
                // Removed from the text only, because the path may not exist on the disk.
                Component::ParentDir => drop(out.pop()),
                step => out.push(step),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts() -> Mounts {
        let mut directory = Directory::default();
        directory.add_file("main.tf", *b"main");
        directory.add_file("files/deep/a.txt", *b"a");
        directory.add_link("files/main", "../main.tf");
        directory.add_link("linked", "files/deep");
        directory.add_link("out", "../../etc");
        directory.add_link("round", "round");
        let mounts = Mounts::new(Path::new("/site"));
        mounts.mount(".terraform/modules/m", Arc::new(directory));
        mounts
    }

    #[test]
    fn files_are_read_by_every_path_that_leads_to_them() {
        let mounts = mounts();
        let read = |path: &str| {
            mounts
                .read(Path::new(path))
                .map(|read| read.map(|content| content.to_vec()))
        };
        for (path, content) in [
            (".terraform/modules/m/main.tf", "main"),
            ("./x/../.terraform/modules/m/files/main", "main"),
            ("/site/.terraform/modules/m/linked/a.txt", "a"),
            (".terraform/modules/m/files/deep/../main", "main"),
        ] {
            assert_eq!(read(path).unwrap().unwrap(), content.as_bytes(), "{path}");
        }
        for (path, kind) in [
            (".terraform/modules/m", ErrorKind::IsADirectory),
            (".terraform/modules/m/none", ErrorKind::NotFound),
            (".terraform/modules/m/main.tf/x", ErrorKind::NotADirectory),
            (".terraform/modules/m/out/passwd", ErrorKind::NotFound),
            (".terraform/modules/m/round", ErrorKind::NotFound),
        ] {
            assert_eq!(read(path).unwrap().unwrap_err().kind(), kind, "{path}");
        }
        assert!(read(".terraform/modules/other/main.tf").is_none());
        assert!(read(".terraform/modules/m/../n/main.tf").is_none());
    }

    #[test]
    fn directories_are_listed() {
        let mounts = mounts();
        let list = |path: &str| mounts.entries(Path::new(path)).map(|entries| entries.unwrap());
        let is = |name: &str, is_dir: bool| (name.to_owned(), is_dir);
        let top = [is("files", true), is("linked", true), is("main.tf", false)];
        assert_eq!(list(".terraform/modules/m").unwrap(), top);
        let files = [is("deep", true), is("main", false)];
        assert_eq!(list(".terraform/modules/m/files").unwrap(), files);
        assert!(list(".").is_none());
        let above = |path: &str| Vec::from_iter(mounts.names_above(Path::new(path)));
        assert_eq!(above("."), [".terraform"]);
        assert_eq!(above(".terraform/modules"), ["m"]);
        assert!(above("elsewhere").is_empty());
    }

    #[test]
    fn links_are_followed_in_the_path_as_it_was_given() {
        let mounts = mounts();
        let real = |path: &str| mounts.real(Path::new(path));
        assert_eq!(
            real(".terraform/modules/m/linked").as_deref(),
            Some(".terraform/modules/m/files/deep")
        );
        assert_eq!(real("./.terraform/modules/m/").as_deref(), Some(".terraform/modules/m"));
        assert_eq!(real("other"), None);
    }
}
