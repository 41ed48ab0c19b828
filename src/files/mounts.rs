//! Directories in memory that have paths in the file system, for this process only: where nothing can be written, a module package is
//! read from them as if it had been unpacked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// How many links a path may lead through, as in Linux.
const MAX_LINKS: usize = 40;

/// A directory with everything below it, in memory.
#[derive(Debug, Default)]
pub struct Directory {
    /// By path, with slashes; the directory itself is not among them.
    nodes: BTreeMap<String, Node>,
}

#[derive(Debug)]
enum Node {
    File(Arc<[u8]>),
    Directory,
    Link(String),
}

impl Directory {
    /// Adds a file, and the directories that it lies in.
    pub fn add_file(&mut self, path: &str, content: impl Into<Arc<[u8]>>) {
        self.add(path, Node::File(content.into()));
    }

    /// Adds a symbolic link, whose target is seen from the directory of the link. One that leads out of this directory leads nowhere.
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

    /// Resolves the links in a path; returns the resolved path, and the file or directory there.
    fn find(&self, path: &str) -> io::Result<(String, Found<'_>)> {
        let mut rest: VecDeque<&str> = path.split('/').collect();
        let mut done: Vec<&str> = Vec::new();
        let mut links = 0;
        let mut found = Found::Directory;
        while let Some(step) = rest.pop_front() {
            match step {
                "" | "." => continue,
                ".." => {
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
                    if links > MAX_LINKS || target.starts_with('/') {
                        return Err(ErrorKind::NotFound.into());
                    }
                    done.pop();
                    for step in target.rsplit('/') {
                        rest.push_front(step);
                    }
                    Found::Directory
                }
            };
        }
        Ok((done.join("/"), found))
    }

    /// The names in a directory, whose path has no links, and whether they are directories.
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

/// A file or directory that a path leads to.
enum Found<'d> {
    File(&'d Arc<[u8]>),
    Directory,
}

/// The directories in memory, by path. Methods that take a path return `None` if it is in none of them.
#[derive(Debug)]
pub struct Mounts {
    base: PathBuf,
    /// By absolute path.
    mounted: RwLock<BTreeMap<PathBuf, Mount>>,
}

#[derive(Clone, Debug)]
struct Mount {
    /// The path as it was given.
    at: String,
    directory: Arc<Directory>,
}

/// The same object: two have never the same directories by chance.
impl PartialEq for Mounts {
    fn eq(&self, other: &Mounts) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Mounts {
    /// No directories yet. Relative paths are relative to `base`, which is absolute.
    #[must_use]
    pub fn new(base: &Path) -> Mounts {
        Mounts {
            base: base.to_owned(),
            mounted: RwLock::default(),
        }
    }

    /// Mounts a directory at a path, over a file or directory of the disk.
    pub fn mount(&self, at: &str, directory: Arc<Directory>) {
        let mount = Mount {
            at: at.to_owned(),
            directory,
        };
        let mut mounted = self.mounted.write().unwrap_or_else(PoisonError::into_inner);
        mounted.insert(self.absolute(Path::new(at)), mount);
    }

    /// The directory that appears at exactly this path.
    #[must_use]
    pub fn mounted_at(&self, at: &str) -> Option<Arc<Directory>> {
        let mounted = self.mounted.read().unwrap_or_else(PoisonError::into_inner);
        Some(mounted.get(&self.absolute(Path::new(at)))?.directory.clone())
    }

    /// The content of a file.
    pub fn read(&self, path: &Path) -> Option<io::Result<Arc<[u8]>>> {
        let (mount, inside) = self.mount_of(path)?;
        let content = match mount.directory.find(&inside) {
            Ok((_, Found::File(content))) => Ok(content.clone()),
            Ok((_, Found::Directory)) => Err(ErrorKind::IsADirectory.into()),
            Err(error) => Err(error),
        };
        Some(content)
    }

    /// Whether a directory is at a path; an error if nothing is.
    pub fn is_dir(&self, path: &Path) -> Option<io::Result<bool>> {
        let (mount, inside) = self.mount_of(path)?;
        let found = mount.directory.find(&inside);
        Some(found.map(|(_, found)| matches!(found, Found::Directory)))
    }

    /// The names in a directory, and whether they are directories. Links count as what they lead to, and broken ones not at all.
    pub fn entries(&self, path: &Path) -> Option<io::Result<Vec<(String, bool)>>> {
        let (mount, inside) = self.mount_of(path)?;
        let names = match mount.directory.find(&inside) {
            Ok((path, Found::Directory)) => Ok(mount.directory.names(&path)),
            Ok((_, Found::File(_))) => Err(ErrorKind::NotADirectory.into()),
            Err(error) => Err(error),
        };
        Some(names)
    }

    /// The names in a directory of the disk that lead to directories in memory.
    #[must_use]
    pub fn names_above(&self, path: &Path) -> BTreeSet<String> {
        let path = self.absolute(path);
        let mounted = self.mounted.read().unwrap_or_else(PoisonError::into_inner);
        // Paths below another one follow it.
        let below = mounted.range(path.clone()..);
        let below = below.map_while(|(at, _)| at.strip_prefix(&path).ok());
        let first = below.filter_map(|rest| rest.components().next());
        first
            .map(|step| step.as_os_str().to_string_lossy().into_owned())
            .collect()
    }

    /// The path that a path leads to by way of links; relative if the directory was mounted at a relative path.
    #[must_use]
    pub fn real(&self, path: &Path) -> Option<String> {
        let (mount, inside) = self.mount_of(path)?;
        let real = mount.directory.find(&inside).map_or(inside, |(real, _)| real);
        Some(match real.is_empty() {
            true => mount.at,
            false => format!("{}/{real}", mount.at),
        })
    }

    /// The directory in memory that a path lies in, and the path in it.
    fn mount_of(&self, path: &Path) -> Option<(Mount, String)> {
        let path = self.absolute(path);
        let mounted = self.mounted.read().unwrap_or_else(PoisonError::into_inner);
        let (at, mount) = path.ancestors().find_map(|at| mounted.get_key_value(at))?;
        let inside = path.strip_prefix(at).ok()?.to_str()?.to_owned();
        Some((mount.clone(), inside))
    }

    /// A path from the root, without `.` and `..`, by its text alone.
    fn absolute(&self, path: &Path) -> PathBuf {
        let mut out = PathBuf::new();
        for step in self.base.join(path).components() {
            match step {
                Component::CurDir => {}
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
