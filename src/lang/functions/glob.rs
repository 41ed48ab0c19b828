//! Search for files whose paths match a pattern.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use files::mounts::Mounts;
use gotext::glob::{Part, Pattern, PatternError};

/// Depth limit of the search, because links can make an infinite tree.
const MAX_DEPTH: usize = 256;

/// Returns the paths of the files (not directories) below `root` that match the pattern. The paths are relative to
/// `root`, with slashes.
pub(super) fn files(root: &Path, pattern: &str, mounts: Option<&Mounts>) -> Result<BTreeSet<String>, PatternError> {
    let pattern = Pattern::parse(pattern)?;
    let mut search = Search {
        mounts,
        out: BTreeSet::new(),
    };
    for parts in pattern.alternatives() {
        let is_step = |part: &&Part| !matches!(part, Part::Name(name) if name.is("") || name.is("."));
        let parts: Vec<&Part> = parts.iter().filter(is_step).collect();
        search.descend(root, "", &parts, 0);
    }
    Ok(search.out)
}

/// Search in a directory tree, with the paths found so far.
struct Search<'m> {
    mounts: Option<&'m Mounts>,
    out: BTreeSet<String>,
}

impl Search<'_> {
    fn descend(&mut self, dir: &Path, prefix: &str, parts: &[&Part], depth: usize) {
        let Some((part, rest)) = parts.split_first() else {
            return;
        };
        if depth > MAX_DEPTH {
            return;
        }
        let Part::Name(pattern) = part else {
            if rest.is_empty() {
                self.everything(dir, prefix, depth);
                return;
            }
            // `**` matches no directory, or one directory and then `**` again.
            self.descend(dir, prefix, rest, depth);
            for (name, is_dir) in self.entries(dir) {
                if is_dir {
                    self.descend(&dir.join(&name), &format!("{prefix}{name}/"), parts, depth + 1);
                }
            }
            return;
        };
        // Directory listings do not contain `..`.
        if pattern.is("..") {
            self.descend(&dir.join(".."), &format!("{prefix}../"), rest, depth + 1);
            return;
        }
        for (name, is_dir) in self.entries(dir) {
            if !pattern.matches(&name) {
                continue;
            }
            let path = format!("{prefix}{name}");
            if rest.is_empty() {
                if !is_dir {
                    self.out.insert(path);
                }
            } else if is_dir {
                self.descend(&dir.join(&name), &format!("{path}/"), rest, depth + 1);
            }
        }
    }

    fn everything(&mut self, dir: &Path, prefix: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        for (name, is_dir) in self.entries(dir) {
            let path = format!("{prefix}{name}");
            if is_dir {
                self.everything(&dir.join(&name), &format!("{path}/"), depth + 1);
            } else {
                self.out.insert(path);
            }
        }
    }

    /// Lists the names in a directory, with true for directories; links are followed. An unreadable directory is empty.
    fn entries(&self, dir: &Path) -> Vec<(String, bool)> {
        let Some(mounts) = self.mounts else {
            return on_disk(dir);
        };
        if let Some(entries) = mounts.entries(dir) {
            return entries.unwrap_or_default();
        }
        // A mounted directory below this one has no entry on the disk.
        let above = mounts.names_above(dir);
        let mut entries = on_disk(dir);
        entries.retain(|(name, _)| !above.contains(name));
        entries.extend(above.into_iter().map(|name| (name, true)));
        entries
    }
}

fn on_disk(dir: &Path) -> Vec<(String, bool)> {
    let Ok(read) = fs::read_dir(dir) else { return Vec::new() };
    read.flatten()
        .filter_map(|entry| {
            let found = fs::metadata(entry.path()).ok()?;
            Some((entry.file_name().into_string().ok()?, found.is_dir()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_pattern() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["a.tf", "b.txt", "sub/c.tf", "sub/deep/d.tf"] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        for (pattern, expected) in [
            ("*.tf", vec!["a.tf"]),
            ("**", vec!["a.tf", "b.txt", "sub/c.tf", "sub/deep/d.tf"]),
            ("**/*.tf", vec!["a.tf", "sub/c.tf", "sub/deep/d.tf"]),
            ("*.{tf,txt}", vec!["a.tf", "b.txt"]),
            ("sub/*", vec!["sub/c.tf"]),
            ("[!a]*", vec!["b.txt"]),
            ("?.tf", vec!["a.tf"]),
            ("nothing/*", vec![]),
            ("./sub//{c,x}.tf", vec!["sub/c.tf"]),
            ("sub/../*.tf", vec!["sub/../a.tf"]),
            ("{a.tf,sub/**}", vec!["a.tf", "sub/c.tf", "sub/deep/d.tf"]),
        ] {
            let found = files(dir.path(), pattern, None).unwrap();
            assert!(found.iter().eq(&expected), "{pattern}: {found:?}");
        }
        assert!(files(dir.path(), "{a", None).is_err());
    }
}
