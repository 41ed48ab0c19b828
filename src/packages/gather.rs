//! Unpacked packages for a pack: those that are installed on this machine, the others from package sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use addrs::Provider;
use addrs::platform::Platform;
use archive::Limits;
use futures::StreamExt;
use syntax::{Diagnostic, Diagnostics};
use versions::{Constraints, Version};

use crate::catalog::Catalog;
use crate::cross_platform::{AT_ONCE, Step, could_not, locked_version, named};
use crate::discovery::{self, Package};
use crate::download::{Overall, Progress, watching};
use crate::error::{PackageError, read_error};
use crate::fetch::{self, Wanted, blocking};
use crate::lock_file::{LockFile, Locked};
use crate::newest::newest;
use crate::selection::{Chooser, Origins};
use crate::sources;

#[derive(Clone, Debug)]
pub struct UnpackedPackage {
    pub provider: Provider,
    pub version: Version,
    pub platform: Platform,
    /// Directory of the unpacked package, or the only file of the package.
    pub path: PathBuf,
    /// Checksums of this package, and the known checksums of the same version for other platforms.
    pub hashes: BTreeSet<String>,
}

/// Required packages of a pack.
#[derive(Debug)]
pub struct Request<'r> {
    pub client: &'r net::Client,
    pub requirements: &'r BTreeMap<Provider, Constraints>,
    /// Lock file that decides versions.
    pub lock: &'r LockFile,
    /// Requirement origins, for errors.
    pub origins: &'r Origins,
    pub platforms: &'r [Platform],
    /// Directory for fetched packages, which the caller removes.
    pub staging: &'r Path,
}

impl Catalog {
    /// Returns the packages of the required providers for the required platforms.
    ///
    /// # Errors
    /// A package is not available, or is not the one that the lock file records.
    pub async fn gather(
        &self,
        request: &Request<'_>,
        emit: &mut dyn FnMut(Step<'_>),
    ) -> Result<Vec<UnpackedPackage>, Diagnostics> {
        // The chooser gets an empty lock file: with the real one, it would hide packages on this machine that are not locked. `version`
        // applies the lock file of the request.
        let nothing = LockFile::default();
        let gathering = Gathering {
            request,
            chooser: Chooser::new(self.settings(), self.reattached(), &nothing),
            own: self.settings().builtins.executable.canonicalize().ok(),
        };
        let versions = request.requirements.iter().map(async |(provider, constraints)| {
            let version = gathering.version(provider, constraints).await;
            version.map(|version| (provider, version))
        });
        let (mut jobs, mut errors) = (Vec::new(), Diagnostics::new());
        for found in futures::stream::iter(versions)
            .buffered(AT_ONCE)
            .collect::<Vec<_>>()
            .await
        {
            match found {
                Ok((provider, version)) => {
                    let platforms = request.platforms.iter();
                    jobs.extend(platforms.map(|platform| (provider, version.clone(), platform)));
                }
                Err(diagnostic) => errors.push(diagnostic),
            }
        }
        if errors.has_errors() {
            return Err(errors);
        }
        let progress: Vec<Progress> = (jobs.iter())
            .map(|(provider, version, platform)| named(provider, version, platform))
            .collect();
        let packages = (jobs.iter().zip(&progress))
            .map(|((provider, version, platform), progress)| gathering.package(provider, version, platform, progress));
        let mut packages = futures::stream::iter(packages).buffered(AT_ONCE);
        let mut out = Vec::new();
        // The packages are reported in the order of the request, not in the order of completion.
        for (provider, version, platform) in &jobs {
            emit(Step::Fetching(provider, version, platform));
            let package = watching(packages.next(), || emit(Step::Downloading(Overall::sum(&progress)))).await;
            match package {
                Some(Ok(package)) => out.push(package),
                Some(Err(why)) => errors.push(could_not(provider, version, platform, &why)),
                None => break,
            }
        }
        drop(packages);
        errors.into_result(out)
    }
}

/// State that all packages of a request share.
struct Gathering<'r> {
    request: &'r Request<'r>,
    /// Chooser for packages on this machine, with an empty lock file.
    chooser: Chooser<'r>,
    /// Path of this executable, without links.
    own: Option<PathBuf>,
}

impl Gathering<'_> {
    /// Chooses the locked version, else the newest one on this machine. The package sources are queried for the newest version if there is
    /// none on this machine, or if the CLI configuration has installation methods.
    async fn version(&self, provider: &Provider, constraints: &Constraints) -> Result<Version, Diagnostic> {
        let (request, settings) = (self.request, self.chooser.settings);
        if let Some(locked) = request.lock.providers.get(provider) {
            return locked_version(provider, constraints, locked, request.origins);
        }
        let mut here: Vec<Version> = self
            .chooser
            .candidates(provider)
            .into_iter()
            .map(|f| f.version)
            .collect();
        for platform in request.platforms {
            for dir in self.chooser.dirs.iter().filter(|dir| dir.is_mirror()) {
                here.extend(dir.in_mirror(provider, platform).into_iter().map(|found| found.version));
            }
        }
        let here = here.into_iter().filter(|version| constraints.allows(version)).max();
        if let Some(here) = here.clone().filter(|_| settings.config.provider_installation.is_none()) {
            return Ok(here);
        }
        let sources = sources::sources(settings, provider);
        let found = newest(
            request.client,
            provider,
            constraints,
            &sources,
            here,
            Some(request.origins),
        )
        .await;
        found.map(|newest| newest.version).map_err(Diagnostic::from)
    }

    async fn package(
        &self,
        provider: &Provider,
        version: &Version,
        platform: &Platform,
        progress: &Progress,
    ) -> Result<UnpackedPackage, PackageError> {
        let locked = self.request.lock.providers.get(provider);
        let locked = locked.filter(|locked| locked.version == *version);
        let mut hashes = locked.map(|locked| locked.hashes.clone()).unwrap_or_default();
        let path = match self.installed(provider, version, platform, locked).await? {
            Some((path, hash)) => {
                hashes.insert(hash);
                path
            }
            None => {
                let wanted = Wanted {
                    provider: provider.clone(),
                    version: version.clone(),
                    locked: hashes.clone(),
                    sources: sources::sources(self.chooser.settings, provider),
                };
                let (path, more) = self.fetched(wanted, platform, progress).await?;
                hashes.extend(more);
                path
            }
        };
        Ok(UnpackedPackage {
            provider: provider.clone(),
            version: version.clone(),
            platform: platform.clone(),
            path,
            hashes,
        })
    }

    /// Fetches, verifies and unpacks a package. Returns the directory with its files, and its checksums.
    async fn fetched(
        &self,
        wanted: Wanted,
        platform: &Platform,
        progress: &Progress,
    ) -> Result<(PathBuf, BTreeSet<String>), PackageError> {
        let client = self.request.client;
        let metadata = fetch::metadata(client, &wanted, platform).await;
        let metadata = metadata.map_err(|why| PackageError::NotFetched(why.text()))?;
        let staging = tempfile::Builder::new()
            .prefix("package-")
            .tempdir_in(self.request.staging);
        // The directory stays after this function: its files are read later, and the owner of the staging
        // directory removes them.
        let staging = staging.map_err(PackageError::Temporary)?.keep();
        let limits = Limits::from_variables(client.settings().environment.all())?;
        let archive = fetch::archive(client, &metadata, &staging, progress).await?;
        blocking(move || {
            let unpacked = staging.join("package");
            let hash = fetch::unpack(&wanted, &metadata, &archive, &unpacked, &limits)?;
            let mut hashes = metadata.known;
            hashes.insert(hash);
            Ok((unpacked, hashes))
        })
        .await
    }

    /// Finds an installed package with its checksum. If the version is locked with checksums, only a package with one of those
    /// counts.
    async fn installed(
        &self,
        provider: &Provider,
        version: &Version,
        platform: &Platform,
        locked: Option<&Locked>,
    ) -> Result<Option<(PathBuf, String)>, PackageError> {
        let (chooser, settings) = (&self.chooser, self.chooser.settings);
        let mut found = Vec::new();
        // `candidates` are for the current platform, because names in flat layout contain none.
        if *platform == chooser.platform {
            found.extend(chooser.candidates(provider));
        }
        let cache = settings.config.plugin_cache_dir.clone();
        for base in [Some(settings.providers_dir()), cache].into_iter().flatten() {
            found.extend(discovery::versions_below(&base, provider, platform));
        }
        for dir in chooser.dirs.iter().filter(|dir| dir.is_mirror()) {
            found.extend(dir.in_mirror(provider, platform));
        }
        // A link to this executable is a built-in provider, which every pack has anyway.
        found.retain(|found| self.own.is_none() || found.executable.canonicalize().ok() != self.own);
        for package in found
            .into_iter()
            .filter(|found| found.version == *version)
            .map(|found| found.package)
        {
            let path = package.path().to_owned();
            let hash = hash_of(package).await?;
            if locked.is_none_or(|locked| locked.hashes.is_empty() || locked.hashes.contains(&hash)) {
                return Ok(Some((path, hash)));
            }
            // Another directory may contain the right package, and otherwise the sources do.
            tracing::debug!(path = %path.display(), "not the package that is locked");
        }
        Ok(None)
    }
}

async fn hash_of(package: Package) -> Result<String, PackageError> {
    blocking(move || package.hash().map_err(read_error(package.path()))).await
}
