//! Packages for a mirror directory from the plugin directories of this machine, for providers that no registry has.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use addrs::Provider;
use addrs::platform::Platform;
use archive::Limits;
use files::Environment;
use pack::write::{Entry, Source, entries};
use syntax::Diagnostic;
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

use crate::catalog::Catalog;
use crate::cross_platform::documents;
use crate::discovery;
use crate::error::{PackageError, write_error};
use crate::gather::UnpackedPackage;
use crate::lock_file::LockFile;
use crate::mirror_archives::packed;
use crate::selection::Chooser;
use versions::Version;

impl Catalog {
    /// Returns true if a provider is in a plugin directory of the user, from which `init` would install it without its registry.
    #[must_use]
    pub fn is_in_plugin_directory(&self, provider: &Provider, platforms: &[Platform]) -> bool {
        let settings = self.settings();
        if !settings.plugin_dirs.is_empty() || settings.config.provider_installation.is_some() {
            return false;
        }
        let nothing = LockFile::default();
        let chooser = Chooser::new(settings, self.reattached(), &nothing);
        // Executables that come with the configuration were not installed by the user.
        if chooser.candidates(provider).iter().any(|found| !found.of_configuration) {
            return true;
        }
        let own = settings.builtins.executable.canonicalize().ok();
        let dirs = chooser.dirs.iter().filter(|dir| dir.is_mirror());
        dirs.into_iter().any(|dir| {
            let of_platforms = platforms.iter().flat_map(|platform| dir.in_mirror(provider, platform));
            let mut unpacked =
                of_platforms.filter(|found| own.is_none() || found.executable.canonicalize().ok() != own);
            unpacked.any(|found| !found.of_configuration) || !packed(&dir.path, provider).is_empty()
        })
    }
}

/// Writes packages of one provider and version into a mirror directory as archives, with the documents of a network mirror.
///
/// # Errors
/// A package cannot be read, or the mirror cannot be written.
pub fn write(to: &Path, packages: &[UnpackedPackage], environment: &Environment) -> Result<(), Diagnostic> {
    let Some(first) = packages.first() else { return Ok(()) };
    write_all(to, first, packages, environment).map_err(|why| {
        let name = first.provider.for_display();
        Diagnostic::error(
            "Could not retrieve providers",
            format!("The package of {name} cannot be mirrored: {why}."),
        )
    })
}

fn write_all(
    to: &Path,
    first: &UnpackedPackage,
    packages: &[UnpackedPackage],
    environment: &Environment,
) -> Result<(), PackageError> {
    let dir = discovery::provider_dir(to, &first.provider);
    fs::create_dir_all(&dir).map_err(write_error(&dir))?;
    for package in packages {
        let name = format!(
            "terraform-provider-{}_{}_{}.zip",
            package.provider.ty, package.version, package.platform
        );
        archive_of(&files_of(&package.path)?, &dir.join(name))?;
    }
    let limits = Limits::from_variables(environment.all())?;
    documents(to, &first.provider, &first.version, &limits)
}

/// Adds archives of one provider and version to a mirror directory, with the documents of a network mirror.
///
/// # Errors
/// An archive cannot be read, or the mirror cannot be written.
pub fn add_archives(
    to: &Path,
    provider: &Provider,
    version: &Version,
    archives: &[PathBuf],
    environment: &Environment,
) -> Result<(), Diagnostic> {
    let add = || -> Result<(), PackageError> {
        let dir = discovery::provider_dir(to, provider);
        fs::create_dir_all(&dir).map_err(write_error(&dir))?;
        for archive in archives {
            let target = dir.join(archive.file_name().unwrap_or_default());
            let content = fs::read(archive).map_err(crate::error::read_error(archive))?;
            files::replace(&target, &content, files::Policy::SHARED).map_err(write_error(&target))?;
        }
        documents(to, provider, version, &Limits::from_variables(environment.all())?)
    };
    add().map_err(|why| {
        let name = provider.for_display();
        Diagnostic::error(
            "Failed to write mirror",
            format!("The packages of {name} cannot be added to the mirror: {why}."),
        )
    })
}

/// Makes an archive of files: name in the archive, path, and whether it is executable. The same files give the same bytes.
///
/// # Errors
/// A file cannot be read, or the archive cannot be written.
pub fn archive_files(files: &[(String, PathBuf, bool)], target: &Path) -> Result<(), Diagnostic> {
    archive_of(files, target).map_err(|why| Diagnostic::error("Failed to write archive", format!("{why}.")))
}

fn archive_of(files: &[(String, PathBuf, bool)], target: &Path) -> Result<(), PackageError> {
    let failed = |e: io::Error| write_error(target)(e);
    // The archive is readable for everybody, because a web server must be able to read it.
    let output = files::Output::create(target, files::Policy::SHARED).map_err(failed)?;
    let mut zip = zip::ZipWriter::new(output);
    for (path, source, executable) in files {
        let read = |e: io::Error| crate::error::read_error(source)(e);
        let mut file = File::open(source).map_err(read)?;
        let size = file.metadata().map_err(read)?.len();
        zip.start_file(path.as_str(), options(*executable, size))
            .map_err(|e| failed(e.into()))?;
        io::copy(&mut file, &mut zip).map_err(failed)?;
    }
    let written = zip.finish().map_err(|e| failed(e.into()))?;
    written.commit().map_err(failed)
}

/// Lists the files of a package: name in the archive, path, and whether it is executable. The plugin is made executable,
/// whatever its mode is here.
fn files_of(package: &Path) -> Result<Vec<(String, PathBuf, bool)>, PackageError> {
    let is_plugin = |path: &str| path.starts_with("terraform-provider-");
    if !package.is_dir() {
        let name = package.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        return Ok(vec![(name.to_owned(), package.to_owned(), true)]);
    }
    let all = entries(package).map_err(|e| PackageError::NotFetched(e.to_string()))?;
    let files = all.into_iter().filter_map(
        |Entry {
             path,
             executable,
             source,
         }| match source {
            Source::File(source) => {
                let executable = executable || is_plugin(&path);
                Some((path, source, executable))
            }
            _ => None,
        },
    );
    Ok(files.collect())
}

/// Returns the options of an archived file. Without a time, a package always gives the same archive.
fn options(executable: bool, size: u64) -> SimpleFileOptions {
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .large_file(size > u64::from(u32::MAX) / 2)
        .unix_permissions(if executable { 0o755 } else { 0o644 })
}
