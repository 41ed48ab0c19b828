//! Selection of the content of an archive, and its order.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gotext::glob::Pattern;
use system::files::{Identity, bytes_of};

use crate::error::ArchiveError;

/// A file of the archive.
#[derive(Debug, PartialEq)]
pub(crate) struct Entry {
    /// Name in the archive, with `/` between its parts.
    pub name: Vec<u8>,
    /// Source of the content.
    pub content: Content,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Content {
    /// A file on this machine, from which the entry also gets its mode.
    File(PathBuf),
    Text(String),
}

/// Sources of an archive's content in a configuration.
pub(crate) enum Selection {
    File(PathBuf),
    /// Every file below a directory.
    Directory {
        root: PathBuf,
        excludes: Vec<String>,
        /// True if symbolic links to directories are followed.
        follow: bool,
        /// Path of the archive. An earlier archive at this path is not an input.
        output: PathBuf,
    },
    Texts(Vec<(String, String)>),
}

/// Returns the entries of the archive.
pub(crate) fn entries(selection: Selection) -> Result<Vec<Entry>, ArchiveError> {
    match selection {
        Selection::Texts(texts) => {
            // If several texts have the same name, the last one is used.
            let texts: BTreeMap<String, String> = texts.into_iter().collect();
            let entry = |(name, text): (String, String)| Entry {
                name: name.into_bytes(),
                content: Content::Text(text),
            };
            Ok(texts.into_iter().map(entry).collect())
        }
        Selection::File(path) => {
            if !path.exists() {
                return Err(ArchiveError::MissingFile(path));
            }
            if path.is_dir() {
                return Err(ArchiveError::FileIsDirectory(path));
            }
            let name = path.file_name().map(|name| bytes_of(name).to_vec()).unwrap_or_default();
            let content = Content::File(path);
            Ok(vec![Entry { name, content }])
        }
        Selection::Directory {
            root,
            excludes,
            follow,
            output,
        } => {
            if !root.exists() {
                return Err(ArchiveError::MissingDirectory(root));
            }
            if !root.is_dir() {
                return Err(ArchiveError::DirectoryIsFile(root));
            }
            let patterns = excludes.iter().filter(|pattern| !pattern.is_empty()).map(|pattern| {
                Pattern::parse(pattern).map_err(|reason| ArchiveError::Pattern {
                    pattern: pattern.clone(),
                    reason,
                })
            });
            let mut walk = Walk {
                excludes: patterns.collect::<Result<_, _>>()?,
                follow,
                // The output is compared by inode, since a link may give it another path.
                output: Identity::at(&output).ok(),
                above: Vec::new(),
                found: Vec::new(),
            };
            let linked = fs::symlink_metadata(&root).is_ok_and(|found| found.is_symlink());
            if !walk.is_excluded(b".") && (follow || !linked) {
                walk.directory(&root, b"")?;
            }
            if walk.found.is_empty() {
                return Err(ArchiveError::Empty(root));
            }
            Ok(walk.found)
        }
    }
}

fn identity(path: &Path) -> Result<Identity, ArchiveError> {
    Identity::at(path).map_err(|e| unreadable(path, e))
}

fn unreadable(path: &Path, source: std::io::Error) -> ArchiveError {
    ArchiveError::Walk {
        path: path.to_owned(),
        source,
    }
}

struct Walk {
    excludes: Vec<Pattern>,
    follow: bool,
    output: Option<Identity>,
    /// Directories that are being walked, outermost first. Following a link to one of them would never end.
    above: Vec<Identity>,
    found: Vec<Entry>,
}

impl Walk {
    fn is_excluded(&self, name: &[u8]) -> bool {
        let name = String::from_utf8_lossy(name);
        self.excludes.iter().any(|pattern| pattern.matches(&name))
    }

    fn directory(&mut self, dir: &Path, name: &[u8]) -> Result<(), ArchiveError> {
        let own = identity(dir)?;
        if self.above.contains(&own) {
            return Err(ArchiveError::LinkCycle(dir.to_owned()));
        }
        self.above.push(own);
        let listed = fs::read_dir(dir).and_then(|entries| entries.map(|e| e.map(|e| e.file_name())).collect());
        let mut names: Vec<_> = listed.map_err(|e| unreadable(dir, e))?;
        // Sorted, because the order of a directory depends on the file system, and the archive must not depend on it.
        names.sort();
        for base in names {
            let path = dir.join(&base);
            let mut name = name.to_vec();
            if !name.is_empty() {
                name.push(b'/');
            }
            name.extend(bytes_of(&base));
            if self.is_excluded(&name) {
                continue;
            }
            let is_link = fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink());
            let found = fs::metadata(&path).map_err(|e| unreadable(&path, e))?;
            if found.is_dir() {
                if self.follow || !is_link {
                    self.directory(&path, &name)?;
                }
            } else if self.output.is_none() || self.output != Some(identity(&path)?) {
                let content = Content::File(path);
                self.found.push(Entry { name, content });
            }
        }
        self.above.pop();
        Ok(())
    }
}
