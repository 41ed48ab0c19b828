//! Archives of directories for uploads: tar, compressed with gzip, without the files that `.terraformignore` excludes.
//!
//! Links within the directory are archived as links. Any other link is replaced by its target, which would be missing
//! on the server. Sockets and devices are left out.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write};
use std::path::{Component, Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use crate::ignore::{self, Rules};

/// Limit of nested links to directories outside; more are treated as a cycle.
const DEPTH: usize = 16;

/// An archive that is ready to be uploaded.
#[derive(Debug)]
pub struct Slug {
    pub archive: Vec<u8>,
    /// Lines of `.terraformignore` that are not valid rules, and are ignored.
    pub invalid_rules: Vec<String>,
}

/// Error of packing a directory.
#[derive(Debug)]
pub struct SlugError {
    /// Path that could not be read.
    pub path: PathBuf,
    pub error: io::Error,
}

impl Slug {
    /// Packs a directory. The archive is held in memory.
    ///
    /// # Errors
    /// A file or directory cannot be read.
    pub fn create(root: &Path) -> Result<Slug, SlugError> {
        // The root directory is resolved, because the targets of links are resolved, too, and compared with it.
        let root = system::files::canonicalize(root).map_err(|error| failed(root, error))?;
        let file = root.join(ignore::FILE);
        let text = match fs::read(&file) {
            Ok(text) => String::from_utf8_lossy(&text).into_owned(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(failed(&file, e)),
        };
        let mut rules = Rules::parse(&text);
        let invalid_rules = std::mem::take(&mut rules.invalid);
        let mut packer = SlugWriter {
            // The archive is uploaded only once, so speed is more important than size.
            tar: Builder::new(GzEncoder::new(Vec::new(), Compression::fast())),
            root: &root,
            rules: &rules,
        };
        packer.directory(&root, "", 0)?;
        let packed = packer.tar.into_inner().and_then(GzEncoder::finish);
        Ok(Slug {
            archive: packed.map_err(|error| failed(&root, error))?,
            invalid_rules,
        })
    }
}

fn failed(path: &Path, error: io::Error) -> SlugError {
    SlugError {
        path: path.to_owned(),
        error,
    }
}

struct SlugWriter<'p, W: Write> {
    tar: Builder<W>,
    root: &'p Path,
    rules: &'p Rules,
}

impl<W: Write> SlugWriter<'_, W> {
    /// Packs the contents of a directory, whose name in the archive ends with a slash unless it is the root.
    fn directory(&mut self, dir: &Path, name: &str, depth: usize) -> Result<(), SlugError> {
        let entries = fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = entries.map_err(|error| failed(dir, error))?;
        // A fixed order makes equal directories equal archives.
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let Some(file) = entry.file_name().to_str().map(str::to_owned) else {
                return Err(failed(&path, io::Error::other("its name is not UTF-8")));
            };
            self.entry(&path, &format!("{name}{file}"), depth)?;
        }
        Ok(())
    }

    fn entry(&mut self, path: &Path, name: &str, depth: usize) -> Result<(), SlugError> {
        let metadata = fs::symlink_metadata(path).map_err(|error| failed(path, error))?;
        // `inner` decides whether a directory is excluded: the rule of a directory ends with a slash, and a later rule may include a part
        // of its contents.
        if self.rules.verdict(name).excluded && !metadata.is_dir() {
            return Ok(());
        }
        if metadata.is_dir() {
            return self.inner(path, name, &metadata, depth);
        }
        if metadata.is_symlink() {
            return self.link(path, name, depth);
        }
        if metadata.is_file() {
            return self.file(path, name, &metadata);
        }
        Ok(())
    }

    fn inner(&mut self, path: &Path, name: &str, metadata: &Metadata, depth: usize) -> Result<(), SlugError> {
        let name = format!("{name}/");
        let verdict = self.rules.verdict(&name);
        if verdict.below_too {
            return Ok(());
        }
        // An excluded directory is read nevertheless if a later rule may include a part of it.
        if !verdict.excluded {
            let mut header = header(metadata, EntryType::Directory, 0);
            self.append(&mut header, path, &name, io::empty())?;
        }
        self.directory(path, &name, depth)
    }

    fn file(&mut self, path: &Path, name: &str, metadata: &Metadata) -> Result<(), SlugError> {
        let file = File::open(path).map_err(|error| failed(path, error))?;
        let mut header = header(metadata, EntryType::Regular, metadata.len());
        // The header contains the earlier size. Bytes that were appended since would be read as the next header.
        self.append(&mut header, path, name, file.take(metadata.len()))
    }

    fn link(&mut self, path: &Path, name: &str, depth: usize) -> Result<(), SlugError> {
        let target = fs::read_link(path).map_err(|error| failed(path, error))?;
        let resolved = system::files::canonicalize(path).map_err(|error| failed(path, error))?;
        if resolved.starts_with(self.root) {
            // An absolute path does not exist on the server, and contents of an outside directory have another path
            // in the archive.
            let target = match target.is_absolute() || depth > 0 {
                true => relative(&resolved, self.root.join(name).parent().unwrap_or(self.root)),
                false => target,
            };
            let metadata = fs::symlink_metadata(path).map_err(|error| failed(path, error))?;
            let mut header = header(&metadata, EntryType::Symlink, 0);
            let appended = self.tar.append_link(&mut header, name, &target);
            return appended.map_err(|error| failed(path, error));
        }
        let metadata = fs::metadata(&resolved).map_err(|error| failed(path, error))?;
        if !metadata.is_dir() {
            return self.file(&resolved, name, &metadata);
        }
        // A link to the root or to a directory above it would be packed into itself without end.
        if depth >= DEPTH || self.root.starts_with(&resolved) {
            return Err(failed(path, io::Error::other("the link leads around in a circle")));
        }
        self.inner(&resolved, name, &metadata, depth + 1)
    }

    fn append(&mut self, header: &mut Header, path: &Path, name: &str, body: impl io::Read) -> Result<(), SlugError> {
        let appended = self.tar.append_data(header, name, body);
        appended.map_err(|error| failed(path, error))
    }
}

fn header(metadata: &Metadata, ty: EntryType, size: u64) -> Header {
    use system::files::MetadataExt as _;
    let mut header = Header::new_gnu();
    header.set_entry_type(ty);
    header.set_mode(metadata.mode() & 0o777);
    header.set_mtime(u64::try_from(metadata.mtime()).unwrap_or_default());
    header.set_size(size);
    header
}

/// Returns the relative path to `to` from the directory `from`; both are absolute.
fn relative(to: &Path, from: &Path) -> PathBuf {
    let (to, from): (Vec<_>, Vec<_>) = (to.components().collect(), from.components().collect());
    let shared = to.iter().zip(&from).take_while(|(a, b)| a == b).count();
    let up = from.iter().skip(shared).map(|_| Component::ParentDir);
    up.chain(to.iter().skip(shared).copied()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Reads the names in an archive, with their contents or targets.
    fn content(slug: &Slug) -> BTreeMap<String, String> {
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&*slug.archive));
        let mut out = BTreeMap::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().to_str().unwrap().to_owned();
            let mut text = String::new();
            match entry.link_name().unwrap() {
                Some(target) => text = format!("-> {}", target.display()),
                None => drop(entry.read_to_string(&mut text).unwrap()),
            }
            out.insert(name, text);
        }
        out
    }

    #[test]
    fn files_links_and_rules() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        for path in ["root/.terraform/modules/a", "root/sub", "root/logs", "outside/deep"] {
            fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        let write = |path: &str, text: &str| fs::write(dir.path().join(path), text).unwrap();
        write("root/main.tf", "main");
        write("root/.terraform/environment", "w");
        write("root/.terraform/modules/a/a.tf", "a");
        write("root/sub/x.tf", "x");
        write("root/logs/l", "l");
        write("root/.terraformignore", "logs/\n");
        write("outside/file", "from outside");
        write("outside/deep/file", "deep");
        symlink("../main.tf", root.join("sub/in")).unwrap();
        symlink(
            fs::canonicalize(&root).unwrap().join("main.tf"),
            root.join("sub/absolute"),
        )
        .unwrap();
        symlink(outside.join("file"), root.join("copied")).unwrap();
        symlink(&outside, root.join("dir")).unwrap();
        let content = content(&Slug::create(&root).unwrap());
        let expected = [
            (".terraform/modules/", ""),
            (".terraform/modules/a/", ""),
            (".terraform/modules/a/a.tf", "a"),
            (".terraformignore", "logs/\n"),
            ("copied", "from outside"),
            ("dir/", ""),
            ("dir/deep/", ""),
            ("dir/deep/file", "deep"),
            ("dir/file", "from outside"),
            ("main.tf", "main"),
            ("sub/", ""),
            ("sub/absolute", "-> ../main.tf"),
            ("sub/in", "-> ../main.tf"),
            ("sub/x.tf", "x"),
        ];
        let expected: BTreeMap<String, String> = expected
            .iter()
            .map(|(n, t)| ((*n).to_owned(), (*t).to_owned()))
            .collect();
        assert_eq!(content, expected);
    }

    #[test]
    fn link_back_into_the_root_from_an_outside_directory_leads_to_the_same_file_in_the_archive() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["root/sub", "outside/deep"] {
            fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        fs::write(root.join("main.tf"), "main").unwrap();
        symlink("../../root/main.tf", outside.join("deep/back")).unwrap();
        symlink("../../outside", root.join("sub/dir")).unwrap();
        let content = content(&Slug::create(&root).unwrap());
        assert_eq!(content["sub/dir/deep/back"], "-> ../../../main.tf");
    }

    #[test]
    fn a_link_around_in_a_circle_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir(&root).unwrap();
        symlink(dir.path(), root.join("up")).unwrap();
        assert!(Slug::create(&root).unwrap_err().error.to_string().contains("circle"));
    }
}
