//! Copying, removing and searching of directory trees.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use files::mounts::Mounts;
use system::Os;

/// Names that belong to a working copy and not to a module.
const WORKING_COPY_ENTRIES: [&str; 2] = [".git", ".terraform"];

/// Returns true if a file or directory of this path belongs to a working copy and not to a module.
pub(crate) fn is_working_copy_entry(path: &str) -> bool {
    path.rsplit('/')
        .next()
        .is_some_and(|name| WORKING_COPY_ENTRIES.contains(&name))
}

/// Copies a directory to a path that does not exist, or to an empty directory. A target below the directory is left out of the
/// copy.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !to.is_dir() {
        fs::create_dir(to)?;
    }
    // Links below `from` are not followed, so comparing resolved paths is enough to find the target among its
    // directories.
    let (from, target) = (from.canonicalize()?, to.canonicalize()?);
    if from == target {
        return Ok(());
    }
    copy_without(&from, to, &target)
}

/// Copies a directory without the directory `except` below it.
fn copy_without(from: &Path, to: &Path, except: &Path) -> io::Result<()> {
    if !to.is_dir() {
        fs::create_dir(to)?;
    }
    let entries: Vec<fs::DirEntry> = fs::read_dir(from)?.collect::<io::Result<_>>()?;
    for entry in entries {
        if WORKING_COPY_ENTRIES.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            // If the target were copied, too, it would be copied into itself until its path is too long.
            if entry.path() != except {
                copy_without(&entry.path(), &target, except)?;
            }
        // Links are copied as links: a relative one keeps its target inside the copy.
        } else if kind.is_symlink() {
            match system::files::symlink(fs::read_link(entry.path())?, &target) {
                // Links need a privilege on Windows.
                Err(_) if Os::CURRENT == Os::Windows && entry.path().is_file() => {
                    fs::copy(entry.path(), &target).map(drop)?;
                }
                linked => linked?,
            }
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Removes a file, directory or link, but never the target of a link.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    }
}

/// Reason why a subdirectory of a package cannot be used. The text is a clause without a full stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubdirectoryError {
    #[error("the subdirectory \"{0}\" leads out of the package")]
    Outside(String),
    #[error("the package has no directory \"{subdir}\"{present}")]
    Missing {
        subdir: String,
        /// Directories at the top of the package, as the end of the sentence.
        present: String,
    },
    /// The pattern matches several directories.
    #[error("\"{subdir}\" fits {count} directories of the package, and must fit exactly one")]
    Ambiguous { subdir: String, count: usize },
}

/// Returns the path of a subdirectory of a package. Its steps may be patterns (`*`, `?`), which must match exactly one directory.
pub(crate) fn subdirectory(
    package: &Path,
    subdir: &str,
    mounts: Option<&Mounts>,
) -> Result<PathBuf, SubdirectoryError> {
    let mut found = vec![package.to_owned()];
    for step in subdir.split('/').filter(|s| !s.is_empty() && *s != ".") {
        if step == ".." {
            return Err(SubdirectoryError::Outside(subdir.to_owned()));
        }
        let mut next = Vec::new();
        for dir in &found {
            if step.contains(['*', '?']) {
                let names = directories_of(dir, mounts).into_iter();
                next.extend(names.filter(|name| fits(step, name)).map(|name| dir.join(name)));
            } else if is_dir(&dir.join(step), mounts) {
                next.push(dir.join(step));
            }
        }
        found = next;
    }
    match found.as_slice() {
        [one] => {
            let inside = || match mounts {
                // Links in a directory in memory cannot lead out of it.
                Some(mounts) if mounts.is_dir(one).is_some() => Ok::<_, io::Error>(true),
                // A link in the package may lead anywhere, so the resolved path is checked.
                _ => Ok(one.canonicalize()?.starts_with(package.canonicalize()?)),
            };
            if inside().unwrap_or(false) {
                Ok(one.clone())
            } else {
                Err(SubdirectoryError::Outside(subdir.to_owned()))
            }
        }
        [] => Err(SubdirectoryError::Missing {
            subdir: subdir.to_owned(),
            present: present(directories_of(package, mounts)),
        }),
        many => Err(SubdirectoryError::Ambiguous {
            subdir: subdir.to_owned(),
            count: many.len(),
        }),
    }
}

fn is_dir(path: &Path, mounts: Option<&Mounts>) -> bool {
    let in_memory = mounts.and_then(|mounts| mounts.is_dir(path));
    in_memory.map_or_else(|| path.is_dir(), |found| found.unwrap_or(false))
}

/// Returns the sorted names of the directories in a directory.
fn directories_of(dir: &Path, mounts: Option<&Mounts>) -> Vec<String> {
    let in_memory = mounts.and_then(|mounts| mounts.entries(dir));
    let mut names: Vec<String> = match in_memory {
        Some(entries) => {
            let entries = entries.unwrap_or_default().into_iter();
            entries.filter(|(_, is_dir)| *is_dir).map(|(name, _)| name).collect()
        }
        None => {
            let entries = fs::read_dir(dir).into_iter().flatten().flatten();
            let entries = entries.filter(|entry| entry.path().is_dir());
            entries
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect()
        }
    };
    names.sort();
    names
}

/// Returns the directories at the top of a package, for the error about a missing one.
fn present(mut names: Vec<String>) -> String {
    names.retain(|name| !name.starts_with('.'));
    // A repository may have hundreds of directories.
    names.truncate(10);
    if names.is_empty() {
        String::new()
    } else {
        format!("; at its top there are {}", names.join(", "))
    }
}

/// Returns true if a pattern of `*` and `?` matches a name.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // `reached` marks the beginnings of the name that match the pattern so far. Unlike backtracking, this takes at most
    // quadratic time.
    let mut reached = vec![false; name.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    for p in pattern {
        let mut next = vec![false; name.len() + 1];
        let mut any_before = false;
        for (i, slot) in next.iter_mut().enumerate() {
            let here = reached.get(i).copied().unwrap_or(false);
            any_before |= here;
            let before = i.checked_sub(1);
            *slot = match p {
                '*' => any_before,
                p => before
                    .is_some_and(|b| reached.get(b).copied().unwrap_or(false) && (p == '?' || name.get(b) == Some(&p))),
            };
        }
        reached = next;
    }
    reached.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_into_a_directory_below_the_source_leaves_that_directory_out() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        let to = from.join("a/work");
        fs::create_dir_all(&to).unwrap();
        fs::create_dir_all(to.join("data")).unwrap();
        fs::create_dir_all(from.join("b")).unwrap();
        for name in ["main.tf", "a/main.tf", "b/main.tf"] {
            fs::write(from.join(name), name).unwrap();
        }
        copy(&from, &to).unwrap();
        for name in ["main.tf", "a/main.tf", "b/main.tf"] {
            assert_eq!(fs::read_to_string(to.join(name)).unwrap(), name);
        }
        assert!(!to.join("a/work").exists());
        // A target that does not exist yet is left out of the copy, too.
        let new = from.join("b/new");
        copy(&from, &new).unwrap();
        assert!(new.join("b/main.tf").exists() && !new.join("b/new").exists());
    }

    #[test]
    fn copy_of_a_directory_to_itself_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("main.tf"), "content").unwrap();
        copy(dir.path(), dir.path()).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("main.tf")).unwrap(), "content");
    }

    #[test]
    fn subdirectories_are_found() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["repo-1.2/modules/a", "repo-1.2/modules/b"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("/", dir.path().join("out")).unwrap();
        let find = |subdir: &str| subdirectory(dir.path(), subdir, None);
        assert_eq!(find("*-1.?/modules/a").unwrap(), dir.path().join("repo-1.2/modules/a"));
        assert!(
            find("repo-1.2/modules/*")
                .unwrap_err()
                .to_string()
                .contains("2 directories")
        );
        assert!(find("none").unwrap_err().to_string().contains("repo-1.2"));
        assert!(find("repo-1.2/../..").is_err());
        #[cfg(unix)]
        assert!(find("out/etc").unwrap_err().to_string().contains("leads out"));
    }
}
