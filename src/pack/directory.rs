//! Directories as contents of a pack: their files, and the links that are kept or followed.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use system::files::MetadataExt as _;

use crate::contents::{Entry, Source, Tree};
use crate::error::{PackError, read_error};
use crate::index::{PackedLink, stays_inside};

/// Prefix of the name of a provider's program.
const PROGRAM: &str = "terraform-provider-";

/// Limit of the depth of nested directories.
const DEEPEST: usize = 64;

/// Limit of the files and directories of a provider package. Links to directories inside each other could make their number infinite.
const MOST_FILES: usize = 100_000;

/// Returns the files of an unpacked provider package, sorted. A link is replaced by the file that it leads to if that is inside the
/// directory, or if it is the provider's program.
///
/// A link that leads out of the package is followed for the program only: directories that are filled with links (`internal-plugin link`,
/// package managers) refer to programs which are installed once. Any other link may come from an archive that somebody else has made, and
/// could put a secret file of this machine into the pack. For the same reason a program must be a regular file that its owner may execute,
/// which secrets are not.
///
/// # Errors
/// A file cannot be read, is a device or the like, has a name that is no text, or is a link that leads out of the directory and is no
/// program.
pub fn entries(dir: &Path) -> Result<Vec<Entry<'static>>, PackError> {
    let (tree, _) = walk(dir, Links::Followed, &|_, _| false)?;
    Ok(tree.files)
}

/// Returns the files and links below a directory, sorted, without those that `leave` returns true for. `leave` gets the path of
/// each entry, and whether it is a directory. Links that lead out of the directory, or nowhere, are returned beside the tree.
///
/// # Errors
/// A file cannot be read, is a device or the like, or has a name that is no text.
pub fn tree(dir: &Path, leave: &dyn Fn(&str, bool) -> bool) -> Result<(Tree<'static>, Vec<String>), PackError> {
    walk(dir, Links::Kept, leave)
}

/// Treatment of symbolic links in a directory.
#[derive(Clone, Copy)]
enum Links {
    /// Replaced by the file or directory that they lead to, which must be inside the directory, or be the program of a provider.
    Followed,
    Kept,
}

fn walk(
    dir: &Path,
    links: Links,
    leave: &dyn Fn(&str, bool) -> bool,
) -> Result<(Tree<'static>, Vec<String>), PackError> {
    let root = system::files::canonicalize(dir).map_err(read_error(dir))?;
    let mut walk = Walk {
        root: &root,
        links,
        leave,
        visited: 0,
        tree: Tree::default(),
        outside: Vec::new(),
    };
    walk.directory(&root, "", 0)?;
    let Walk { mut tree, outside, .. } = walk;
    // The order of directory entries depends on the file system, and must not change a pack.
    tree.files.sort_by(|a, b| a.path.cmp(&b.path));
    tree.links.sort();
    Ok((tree, outside))
}

fn not_packable(path: &Path, reason: &str) -> PackError {
    PackError::NotPackable {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

struct Walk<'t> {
    root: &'t Path,
    links: Links,
    leave: &'t dyn Fn(&str, bool) -> bool,
    /// Number of files and directories that were visited.
    visited: usize,
    tree: Tree<'static>,
    outside: Vec<String>,
}

impl Walk<'_> {
    fn directory(&mut self, dir: &Path, prefix: &str, depth: usize) -> Result<(), PackError> {
        if depth > DEEPEST {
            return Err(not_packable(dir, "its directories are nested too deep"));
        }
        for entry in fs::read_dir(dir).map_err(read_error(dir))? {
            let path = entry.map_err(read_error(dir))?.path();
            self.visited += 1;
            // A tree whose links are kept cannot grow beyond its size on the disk, so it needs no limit.
            if matches!(self.links, Links::Followed) && self.visited > MOST_FILES {
                return Err(not_packable(self.root, "it has too many files"));
            }
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                return Err(not_packable(&path, "its name is not valid Unicode text"));
            };
            let name = format!("{prefix}{name}");
            let (source, meta) = self.found(&path, &name)?;
            if (self.leave)(&name, meta.is_dir()) {
                continue;
            }
            if meta.is_dir() {
                self.directory(&path, &format!("{name}/"), depth + 1)?;
            } else if meta.is_file() {
                self.tree.files.push(Entry {
                    path: name,
                    executable: meta.mode() & 0o100 != 0,
                    source: Source::File(source),
                });
            } else if meta.is_symlink() {
                self.link(&path, name, dir)?;
            } else {
                return Err(not_packable(&path, "it is neither a file nor a directory"));
            }
        }
        Ok(())
    }

    /// Returns the path and the metadata of an entry's content: those of the target, if links are followed.
    fn found(&self, path: &Path, name: &str) -> Result<(PathBuf, Metadata), PackError> {
        match self.links {
            Links::Kept => Ok((path.to_owned(), fs::symlink_metadata(path).map_err(read_error(path))?)),
            Links::Followed => {
                let target = system::files::canonicalize(path).map_err(read_error(path))?;
                let meta = fs::metadata(&target).map_err(read_error(path))?;
                let executable = meta.is_file() && meta.mode() & 0o100 != 0;
                let is_program = executable && name.starts_with(PROGRAM) && !name.contains('/');
                if !target.starts_with(self.root) && !is_program {
                    let reason = "it is a link that leads out of the package, and not to a program of the provider";
                    return Err(not_packable(path, reason));
                }
                Ok((target, meta))
            }
        }
    }

    /// Adds a link if its target is in the tree; otherwise adds it to the links that lead outside.
    fn link(&mut self, path: &Path, name: String, dir: &Path) -> Result<(), PackError> {
        let target = fs::read_link(path).map_err(read_error(path))?;
        let there = system::files::canonicalize(path).is_ok_and(|found| found.starts_with(self.root));
        let plain = target
            .to_str()
            .map(|text| text.trim_start_matches("./").trim_end_matches('/'));
        // If a target leads through other links, or is an absolute path into the directory, it is replaced by steps up
        // and down.
        let steps = || {
            let found = system::files::canonicalize(path).ok()?;
            let inside = found.strip_prefix(self.root).ok()?.to_str()?.to_owned();
            let up = dir.strip_prefix(self.root).ok()?.components().count();
            Some(format!("{}{inside}", "../".repeat(up)).trim_end_matches('/').to_owned())
        };
        let target = match plain.filter(|text| stays_inside(&name, text)) {
            Some(text) => Some(text.to_owned()),
            None => steps().filter(|text| stays_inside(&name, text)),
        };
        match target.filter(|_| there) {
            Some(target) => self.tree.links.push(PackedLink { path: name, target }),
            None => self.outside.push(name),
        }
        Ok(())
    }
}
