//! Releases of a provider: archives and checksums as registries expect them, mirrors and an OCI image layout.
//!
//! The same executables give the same bytes: archives have no times, and files are in the order of their names.

mod build;
mod platform;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use addrs::Provider;
use addrs::platform::Platform;
use data_encoding::HEXLOWER;
use files::{Environment, Policy, io_reason};
use packages::local_mirror;
use sha2::{Digest, Sha256};
use syntax::Diagnostic;
use versions::Version;

pub use build::{Build, BuildError};

/// Beginning of the names of provider executables.
const PREFIX: &str = "terraform-provider-";

/// Reason why the release cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    #[error("the file {} cannot be read: {}", path.display(), io_reason(source))]
    Read { path: PathBuf, source: io::Error },
    #[error("the file {} cannot be written: {}", path.display(), io_reason(source))]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "{} is not an executable of a known system. In a directory named OS_ARCH, such as linux_amd64, any file is accepted", .0.display()
    )]
    UnknownPlatform(PathBuf),
    #[error("{} and {} are both for {platform}: remove one of them", first.display(), second.display())]
    Twice {
        platform: Platform,
        first: PathBuf,
        second: PathBuf,
    },
    #[error("there are executables of several providers: {0} and {1}. Name one by the option -name")]
    SeveralProviders(String, String),
    #[error("there is no executable {PREFIX}NAME in {} or in a directory below it: build the provider first", .0.display())]
    Nothing(PathBuf),
    /// An archive cannot be made. The text is a sentence.
    #[error("{0}")]
    Archive(String),
}

/// Executables of one provider by their platforms.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Executables {
    pub name: String,
    pub files: BTreeMap<Platform, PathBuf>,
}

impl Executables {
    /// Finds the executables in a directory and in the directories directly below it. The platform is that of the directory's name, such as
    /// `linux_amd64`, or else that of the file's header.
    ///
    /// # Errors
    /// There is no executable, there are two for one platform, or they belong to several providers.
    pub fn find(dir: &Path, name: Option<&str>) -> Result<Executables, ReleaseError> {
        let mut found = Executables::default();
        let mut dirs = vec![(dir.to_owned(), None)];
        for path in sorted(dir)?.into_iter().filter(|path| path.is_dir()) {
            let named = path
                .file_name()
                .and_then(|name| name.to_str()?.parse::<Platform>().ok());
            dirs.push((path, named));
        }
        for (dir, named) in dirs {
            for path in sorted(&dir)?.into_iter().filter(|path| path.is_file()) {
                let Some(of) = path.file_name().and_then(|file| provider_of(file.to_str()?)) else {
                    continue;
                };
                if name.is_some_and(|name| name != of) {
                    continue;
                }
                if found.name.is_empty() {
                    found.name = of.to_owned();
                } else if found.name != of {
                    return Err(ReleaseError::SeveralProviders(found.name, of.to_owned()));
                }
                found.add(&path, named.clone())?;
            }
        }
        match found.files.is_empty() {
            true => Err(ReleaseError::Nothing(dir.to_owned())),
            false => Ok(found),
        }
    }

    fn add(&mut self, path: &Path, named: Option<Platform>) -> Result<(), ReleaseError> {
        let platform = match named {
            Some(platform) => Some(platform),
            None => platform::of(path).map_err(read(path))?,
        };
        let platform = platform.ok_or_else(|| ReleaseError::UnknownPlatform(path.to_owned()))?;
        if let Some(first) = self.files.insert(platform.clone(), path.to_owned()) {
            return Err(ReleaseError::Twice {
                platform,
                first,
                second: path.to_owned(),
            });
        }
        Ok(())
    }
}

/// Returns the name of the provider from that of an executable; `None` for other files, such as those that builds leave beside it.
fn provider_of(file: &str) -> Option<&str> {
    let rest = file.strip_prefix(PREFIX)?;
    let rest = rest.strip_suffix(".exe").unwrap_or(rest);
    let name = rest.split('_').next().filter(|name| !name.is_empty())?;
    let is_versioned = rest.split('_').any(|part| part.starts_with('v'));
    (!name.contains('.') && (is_versioned || !rest.contains('.'))).then_some(name)
}

fn sorted(dir: &Path) -> Result<Vec<PathBuf>, ReleaseError> {
    let entries = fs::read_dir(dir).map_err(read(dir))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> impl FnOnce(io::Error) -> ReleaseError {
    let path = path.to_owned();
    move |source| ReleaseError::Read { path, source }
}

fn write(path: &Path) -> impl FnOnce(io::Error) -> ReleaseError {
    let path = path.to_owned();
    move |source| ReleaseError::Write { path, source }
}

/// Contents of a release.
#[derive(Debug)]
pub struct Release<'a> {
    pub executables: &'a Executables,
    pub version: &'a Version,
    /// Protocols that the provider serves.
    pub protocols: &'a [u32],
    /// Files that are in each archive beside the executable, such as a licence.
    pub included: &'a [PathBuf],
}

/// Files of a release, after they were written.
#[derive(Debug, PartialEq, Eq)]
pub struct Written {
    pub archives: BTreeMap<Platform, PathBuf>,
    pub manifest: PathBuf,
    pub checksums: PathBuf,
}

impl Release<'_> {
    fn file(&self, end: &str) -> String {
        format!("{PREFIX}{}_{}_{end}", self.executables.name, self.version)
    }

    /// Writes archives, manifest and checksums into a directory.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn write(&self, dir: &Path) -> Result<Written, ReleaseError> {
        fs::create_dir_all(dir).map_err(write(dir))?;
        let mut sums: BTreeMap<String, String> = BTreeMap::new();
        let mut archives = BTreeMap::new();
        for (platform, path) in &self.executables.files {
            let name = self.file(&format!("{platform}.zip"));
            let target = dir.join(&name);
            self.archive(platform, path, &target)?;
            sums.insert(name, sum(&target)?);
            archives.insert(platform.clone(), target);
        }
        let name = self.file("manifest.json");
        let manifest = dir.join(&name);
        let text = manifest_text(self.protocols);
        files::replace(&manifest, text.as_bytes(), Policy::SHARED).map_err(write(&manifest))?;
        sums.insert(name, HEXLOWER.encode(&Sha256::digest(text.as_bytes())));
        let checksums = dir.join(self.file("SHA256SUMS"));
        let text: String = sums.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect();
        files::replace(&checksums, text.as_bytes(), Policy::SHARED).map_err(write(&checksums))?;
        Ok(Written {
            archives,
            manifest,
            checksums,
        })
    }

    fn archive(&self, platform: &Platform, executable: &Path, target: &Path) -> Result<(), ReleaseError> {
        let extension = if platform.os == "windows" { ".exe" } else { "" };
        let name = format!("{PREFIX}{}_v{}{extension}", self.executables.name, self.version);
        let mut files = vec![(name, executable.to_owned(), true)];
        for path in self.included {
            let name = path
                .file_name()
                .unwrap_or(path.as_os_str())
                .to_string_lossy()
                .into_owned();
            files.push((name, path.clone(), false));
        }
        files.sort();
        local_mirror::archive_files(&files, target)
            .map_err(|why| ReleaseError::Archive(why.detail.trim_end_matches('.').to_owned()))
    }
}

/// Returns the manifest, from which a registry learns the protocols.
fn manifest_text(protocols: &[u32]) -> String {
    let versions: Vec<String> = protocols.iter().map(|protocol| format!("\"{protocol}.0\"")).collect();
    format!(
        "{{\n  \"version\": 1,\n  \"metadata\": {{\n    \"protocol_versions\": [{}]\n  }}\n}}\n",
        versions.join(", ")
    )
}

fn sum(path: &Path) -> Result<String, ReleaseError> {
    let mut file = fs::File::open(path).map_err(read(path))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match io::Read::read(&mut file, &mut buffer).map_err(read(path))? {
            0 => return Ok(HEXLOWER.encode(&hash.finalize())),
            n => hash.update(buffer.get(..n).unwrap_or_default()),
        }
    }
}

/// Adds a release to a mirror directory, which can be both a filesystem mirror and the content of a network mirror.
///
/// # Errors
/// The mirror cannot be written.
pub fn mirror(
    to: &Path,
    provider: &Provider,
    version: &Version,
    written: &Written,
    environment: &Environment,
) -> Result<(), Diagnostic> {
    let archives: Vec<PathBuf> = written.archives.values().cloned().collect();
    local_mirror::add_archives(to, provider, version, &archives, environment)
}

/// Writes a release as an OCI image layout, in the form in which OpenTofu installs providers from an OCI registry.
///
/// # Errors
/// A file cannot be read or written.
pub fn oci_layout(to: &Path, version: &Version, written: &Written) -> Result<(), ReleaseError> {
    let archives: Vec<(&str, &str, &Path)> = written
        .archives
        .iter()
        .map(|(platform, path)| (platform.os.as_str(), platform.arch.as_str(), path.as_path()))
        .collect();
    oci::provider_layout(to, &version.to_string(), &archives).map_err(write(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_executables_say_the_provider() {
        for (file, name) in [
            ("terraform-provider-zoo", Some("zoo")),
            ("terraform-provider-zoo.exe", Some("zoo")),
            ("terraform-provider-zoo_v1.2.3", Some("zoo")),
            ("terraform-provider-zoo_linux_amd64", Some("zoo")),
            ("terraform-provider-zoo_1.2.3_linux_amd64.zip", None),
            ("terraform-provider-zoo.d", None),
            ("zoo", None),
        ] {
            assert_eq!(provider_of(file), name, "{file}");
        }
    }

    #[test]
    fn directories_named_by_platforms_decide() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["linux_amd64", "darwin_arm64"] {
            fs::create_dir(dir.path().join(path)).unwrap();
            fs::write(dir.path().join(path).join("terraform-provider-zoo"), path).unwrap();
        }
        let found = Executables::find(dir.path(), None).unwrap();
        assert_eq!(found.name, "zoo");
        let platforms: Vec<String> = found.files.keys().map(ToString::to_string).collect();
        assert_eq!(platforms, ["darwin_arm64", "linux_amd64"]);
        fs::write(dir.path().join("terraform-provider-zoo"), "text").unwrap();
        let error = Executables::find(dir.path(), None).unwrap_err();
        assert!(matches!(error, ReleaseError::UnknownPlatform(_)), "{error}");
        fs::rename(
            dir.path().join("terraform-provider-zoo"),
            dir.path().join("linux_amd64/terraform-provider-zoo_v1"),
        )
        .unwrap();
        let error = Executables::find(dir.path(), None).unwrap_err();
        assert!(matches!(error, ReleaseError::Twice { .. }), "{error}");
        fs::rename(
            dir.path().join("linux_amd64/terraform-provider-zoo_v1"),
            dir.path().join("linux_amd64/terraform-provider-farm"),
        )
        .unwrap();
        let error = Executables::find(dir.path(), None).unwrap_err();
        assert!(matches!(error, ReleaseError::SeveralProviders(..)), "{error}");
        assert_eq!(Executables::find(dir.path(), Some("zoo")).unwrap().files.len(), 2);
        assert!(Executables::find(dir.path(), Some("none")).is_err());
    }

    #[test]
    fn the_same_executables_give_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("terraform-provider-zoo");
        let licence = dir.path().join("LICENSE");
        fs::write(&licence, "free").unwrap();
        let executables = Executables {
            name: "zoo".to_owned(),
            files: BTreeMap::from([("windows_amd64".parse().unwrap(), path.clone())]),
        };
        let version = Version::parse("1.2.3").unwrap();
        let mut all = Vec::new();
        for to in ["one", "two"] {
            // Writing the file again changes its modification time.
            fs::write(&path, "program").unwrap();
            let release = Release {
                executables: &executables,
                version: &version,
                protocols: &[5, 6],
                included: std::slice::from_ref(&licence),
            };
            let written = release.write(&dir.path().join(to)).unwrap();
            oci_layout(&dir.path().join(to).join("oci"), &version, &written).unwrap();
            let mut files = BTreeMap::new();
            for path in sorted(&dir.path().join(to))
                .unwrap()
                .into_iter()
                .filter(|path| path.is_file())
            {
                files.insert(path.file_name().unwrap().to_owned(), fs::read(&path).unwrap());
            }
            let index = fs::read(dir.path().join(to).join("oci/index.json")).unwrap();
            all.push((files, index));
        }
        assert_eq!(all[0], all[1]);
        let names: Vec<String> = all[0]
            .0
            .keys()
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        assert_eq!(
            names,
            [
                "terraform-provider-zoo_1.2.3_SHA256SUMS",
                "terraform-provider-zoo_1.2.3_manifest.json",
                "terraform-provider-zoo_1.2.3_windows_amd64.zip"
            ]
        );
        assert!(String::from_utf8_lossy(&all[0].0.values().nth(1).unwrap().clone()).contains("[\"5.0\", \"6.0\"]"));
    }
}
