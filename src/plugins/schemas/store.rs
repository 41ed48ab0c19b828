//! The user's directory with the schemas of provider packages: one file for each package, named by its checksum.
//!
//! It is a directory of the user, and not of the working directory, for these reasons:
//!
//! - A data directory can be distributed together with a configuration. Its packages are verified before they run. Schemas in it could not
//!   be verified, although they determine which values are hidden as sensitive.
//! - All working directories, workspaces and data directories of a user share a package's schemas, just as they share the package if there
//!   is a plugin cache. The plugin cache itself may be read-only, or belong to several users.
//!
//! A file that cannot be used is ignored, and written again after the provider has sent its schemas. If nothing can be written, the schemas
//! are requested each time. Both cases appear only in the log, because they cost time but never change results.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use aws_lc_rs::digest::{Context, SHA256, digest};
use files::{Environment, Output, Policy};

use super::Answer;
use super::file::{self, FORMAT, Key, SchemaFile, Unusable};

/// Environment variable with the directory for schemas of providers; `none` to store none.
const SCHEMA_DIR: &str = "MONOFORM_SCHEMA_DIR";

const EXTENSION: &str = "schemas";

/// Maximum number of files in the directory. If there are more, the files that were not used for the longest time are removed.
const MAX_FILES: usize = 100;
/// Maximum size of all files in bytes, with the same effect as [`MAX_FILES`].
const MAX_BYTES: u64 = 1 << 30;

/// Not durable: schemas that are lost in a crash are requested from the provider again.
const POLICY: Policy = Policy {
    mode: 0o600,
    keep_mode: false,
    durable: false,
};

/// The directory with the schemas of provider packages.
#[derive(Clone, Debug)]
pub struct SchemaStore {
    dir: PathBuf,
    environment: Vec<u8>,
}

impl SchemaStore {
    /// Opens the directory that the environment names, or the default; `None` if schemas are not to be stored, or no directory can
    /// be used.
    #[must_use]
    pub fn from_environment(environment: &Environment) -> Option<SchemaStore> {
        let absolute = |dir: &str| Path::new(dir).is_absolute().then(|| PathBuf::from(dir));
        let dir = match environment.get(SCHEMA_DIR) {
            Some("none") => return None,
            Some(dir) => std::path::absolute(dir).ok()?,
            None => {
                // The XDG specification requires that relative paths are ignored.
                let cache = environment.get("XDG_CACHE_HOME").and_then(absolute);
                cache
                    .or_else(|| Some(environment.home()?.join(".cache")))?
                    .join("monoform/schemas")
            }
        };
        Some(SchemaStore {
            dir,
            environment: switches(environment),
        })
    }

    fn key(&self, package: &str) -> Key {
        Key {
            package: package.to_owned(),
            environment: self.environment.clone(),
        }
    }

    fn path(&self, package: &str) -> PathBuf {
        let name: String = digest(&SHA256, package.as_bytes())
            .as_ref()
            .iter()
            .take(16)
            .map(|b| format!("{b:02x}"))
            .collect();
        self.dir.join(format!("{name}-{FORMAT}.{EXTENSION}"))
    }

    pub(crate) fn open(&self, package: &str) -> Option<SchemaFile<File>> {
        let path = self.path(package);
        let opened = files::open_private(&path).map_err(Unusable::from);
        match opened.and_then(|file| SchemaFile::open(file, &self.key(package))) {
            Ok(schemas) => Some(schemas),
            Err(error) => {
                tracing::debug!(path = %path.display(), %error, "no stored schemas");
                None
            }
        }
    }

    /// Stores the schemas of the package with this checksum.
    pub(crate) fn write(&self, package: &str, answer: &Answer) {
        let path = self.path(package);
        match self.try_write(&path, package, answer) {
            Ok(()) => self.remove_old(&path),
            Err(error) => tracing::debug!(path = %path.display(), %error, "schemas cannot be stored"),
        }
    }

    fn try_write(&self, path: &Path, package: &str, answer: &Answer) -> Result<(), Unusable> {
        files::private_directory(&self.dir)?;
        // An existing file, link or directory of this name is replaced, never followed or written into.
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            fs::remove_file(path)?;
        }
        let mut out = BufWriter::new(Output::create(path, POLICY)?);
        file::write(&mut out, &self.key(package), answer)?;
        let out = out.into_inner().map_err(|error| Unusable::Io(error.into_error()))?;
        Ok(out.commit()?)
    }

    /// Keeps the directory within its limits.
    fn remove_old(&self, written: &Path) {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().filter_map(Result::ok);
        let mut found: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter(|entry| {
                Path::new(&entry.file_name())
                    .extension()
                    .is_some_and(|e| e == EXTENSION)
            })
            .filter_map(|entry| {
                let meta = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                // Most file systems update the time of the last access at least once a day (`relatime`), which is precise enough.
                let used = meta.accessed().or_else(|_| meta.modified()).ok()?;
                Some((used, meta.len(), entry.path()))
            })
            .filter(|(_, _, path)| path != written)
            .collect();
        found.sort();
        let mut bytes: u64 = found.iter().map(|(_, size, _)| size).sum();
        let mut count = found.len();
        for (_, size, path) in found {
            if count < MAX_FILES && bytes <= MAX_BYTES {
                break;
            }
            tracing::debug!(path = %path.display(), "old schemas removed");
            // Another process may have removed the file already.
            let _ = fs::remove_file(path);
            count -= 1;
            bytes -= size;
        }
    }
}

/// A digest of the environment variables that are switches, because they enable types and arguments in some providers:
/// `ARM_FIVEPOINTZERO_BETA=true`. Nothing else in the environment is known to change schemas, and most of it differs from
/// terminal to terminal.
fn switches(environment: &Environment) -> Vec<u8> {
    const SWITCHES: [&str; 12] = [
        "0", "1", "true", "false", "yes", "no", "on", "off", "t", "f", "enabled", "disabled",
    ];
    // Settings of this program, and the depth of nested shells, do not change schemas.
    let is_ours = |name: &str| {
        let prefixes = [
            "TF_VAR_",
            "TF_CLI_ARGS",
            "TF_LOG",
            "TF_IN_AUTOMATION",
            "TF_INPUT",
            "MONOFORM_",
            "SHLVL",
            "CHECKPOINT_",
        ];
        prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    let mut context = Context::new(&SHA256);
    for (name, value) in environment.all() {
        if SWITCHES.contains(&value.to_lowercase().as_str()) && !is_ours(name) {
            context.update(format!("{name}={value}\n").as_bytes());
        }
    }
    context.finish().as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::sync::Arc;

    use super::super::{Encoded as _, Kind};
    use super::*;

    fn store(dir: &Path, more: &[(&str, &str)]) -> SchemaStore {
        let all = more.iter().copied().chain([(SCHEMA_DIR, dir.to_str().unwrap())]);
        let all: std::collections::BTreeMap<_, _> = all.map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        SchemaStore::from_environment(&Environment::from(all)).unwrap()
    }

    fn answer() -> Answer {
        let resources = [(Arc::from("a_thing"), b"schema"[..].into())];
        Answer {
            properties: super::super::Properties::default(),
            schemas: [(Kind::Resource, resources.into())].into(),
        }
    }

    fn files(dir: &Path) -> Vec<PathBuf> {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn schemas_are_stored_for_one_package_and_one_user() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("a/b");
        let store = store(&dir, &[]);
        assert!(store.open("h1:one").is_none());
        store.write("h1:one", &answer());
        let found = store.open("h1:one").unwrap();
        assert_eq!(found.schema(Kind::Resource, "a_thing").as_deref(), Some(&b"schema"[..]));
        assert!(store.open("h1:two").is_none());
        let [file] = files(&dir).try_into().unwrap();
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        // Under another name, the file still belongs to the first package.
        fs::copy(&file, store.path("h1:two")).unwrap();
        assert!(store.open("h1:two").is_none());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(store.open("h1:one").is_none(), "anybody could have written it");
        store.write("h1:one", &answer());
        assert!(store.open("h1:one").is_some());
    }

    #[test]
    fn switch_in_the_environment_makes_schemas_stale() {
        let dir = tempfile::tempdir().unwrap();
        store(dir.path(), &[("A", "text"), ("SHLVL", "1")]).write("h1:x", &answer());
        assert!(
            store(dir.path(), &[("B", "other"), ("SHLVL", "0"), ("TF_VAR_b", "true")])
                .open("h1:x")
                .is_some()
        );
        assert!(store(dir.path(), &[("ACME_BETA", "True")]).open("h1:x").is_none());
    }

    #[test]
    fn place_that_cannot_be_written_or_that_others_can_write_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        store(&file.join("below"), &[]).write("h1:x", &answer());
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        store(dir.path(), &[]).write("h1:x", &answer());
        assert_eq!(files(dir.path()), [file]);
    }

    #[test]
    fn link_in_the_place_of_a_file_is_replaced_and_its_target_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (place, other) = (dir.path().join("place"), dir.path().join("other"));
        let store = store(&place, &[]);
        store.write("h1:x", &answer());
        fs::rename(store.path("h1:x"), &other).unwrap();
        std::os::unix::fs::symlink(&other, store.path("h1:x")).unwrap();
        assert!(store.open("h1:x").is_none());
        let before = fs::read(&other).unwrap();
        store.write(
            "h1:x",
            &Answer {
                schemas: Default::default(),
                ..answer()
            },
        );
        assert_eq!(fs::read(&other).unwrap(), before);
        assert!(store.open("h1:x").is_some());
    }

    #[test]
    fn number_of_files_is_bounded_and_the_new_one_stays() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path(), &[]);
        for package in 0..MAX_FILES + 5 {
            store.write(&format!("h1:{package}"), &answer());
            assert!(store.open(&format!("h1:{package}")).is_some());
        }
        assert_eq!(files(dir.path()).len(), MAX_FILES);
    }
}
