//! Directories as what goes into a pack: their files, and the links that are kept or followed.

use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::contents::{Entry, Source, Tree};
use crate::error::{PackError, read_error};
use crate::index::{PackedLink, stays_inside};

/// What the name of a provider's program begins with.
const PROGRAM: &str = "terraform-provider-";

/// How deep directories may be nested.
const DEEPEST: usize = 64;

/// How many files and directories a provider package may have: links to directories inside each other can make them endless.
const MOST_FILES: usize = 100_000;

/// The files of an unpacked provider package, sorted. What a link leads to is a file of the package if it is inside the directory,
/// or if it is the provider's program.
///
/// A link that leads out of the package is followed for its program only: so do directories that are filled with links refer to
/// programs which are installed once (`internal-plugin link`, package managers). Any other link may have come out of an archive,
/// which its author has filled, and would give away a file of this machine. For the same reason a program must be a regular file
/// that its owner may execute, which secrets are not.
///
/// # Errors
/// A file cannot be read, is a device or the like, has a name that is no text, or is a link that leads out of the directory and is no
/// program.
pub fn entries(dir: &Path) -> Result<Vec<Entry<'static>>, PackError> {
    let (tree, _) = walk(dir, Links::Followed, &|_, _| false)?;
    Ok(tree.files)
}

/// The files and links below a directory, sorted, without what is left out: `leave` gets the path of each, and whether it is a
/// directory. Links that lead out of the directory, or nowhere, are not among them; they are returned beside it.
///
/// # Errors
/// A file cannot be read, is a device or the like, or has a name that is no text.
pub fn tree(dir: &Path, leave: &dyn Fn(&str, bool) -> bool) -> Result<(Tree<'static>, Vec<String>), PackError> {
    walk(dir, Links::Kept, leave)
}

/// What becomes of links.
#[derive(Clone, Copy)]
enum Links {
    /// What they lead to is packed in their place; it must be inside the directory, or the program of a provider.
    Followed,
    /// They are packed as links.
    Kept,
}

fn walk(
    dir: &Path,
    links: Links,
    leave: &dyn Fn(&str, bool) -> bool,
) -> Result<(Tree<'static>, Vec<String>), PackError> {
    let root = fs::canonicalize(dir).map_err(read_error(dir))?;
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
    /// How many files and directories were visited.
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
                    executable: meta.permissions().mode() & 0o100 != 0,
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

    /// Where an entry's content is, and what it is: of a link that is followed, what it leads to.
    fn found(&self, path: &Path, name: &str) -> Result<(PathBuf, Metadata), PackError> {
        match self.links {
            Links::Kept => Ok((path.to_owned(), fs::symlink_metadata(path).map_err(read_error(path))?)),
            Links::Followed => {
                let target = fs::canonicalize(path).map_err(read_error(path))?;
                let meta = fs::metadata(&target).map_err(read_error(path))?;
                let executable = meta.is_file() && meta.permissions().mode() & 0o100 != 0;
                let is_program = executable && name.starts_with(PROGRAM) && !name.contains('/');
                if !target.starts_with(self.root) && !is_program {
                    let reason = "it is a link that leads out of the package, and not to a program of the provider";
                    return Err(not_packable(path, reason));
                }
                Ok((target, meta))
            }
        }
    }

    /// A link is carried if what it leads to is.
    fn link(&mut self, path: &Path, name: String, dir: &Path) -> Result<(), PackError> {
        let target = fs::read_link(path).map_err(read_error(path))?;
        let there = fs::canonicalize(path).is_ok_and(|found| found.starts_with(self.root));
        let plain = target
            .to_str()
            .map(|text| text.trim_start_matches("./").trim_end_matches('/'));
        // What leads through other links, or names the directory by its whole path, is written as steps up and down.
        let steps = || {
            let found = fs::canonicalize(path).ok()?;
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
