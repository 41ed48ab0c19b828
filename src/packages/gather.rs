//! Unpacked packages to be carried elsewhere: from this machine where they are there, from package sources otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use addrs::Provider;
use addrs::platform::Platform;
use archive::{Entries, Format, Limits};
use files::io_reason;
use syntax::{Diagnostic, Diagnostics};
use versions::{Constraints, Version};

use crate::catalog::Catalog;
use crate::discovery::{self, Package};
use crate::download::Progress;
use crate::error::{PackageError, read_error};
use crate::fetch::{self, Wanted, blocking};
use crate::hash;
use crate::lock_file::{LockFile, Locked};
use crate::newest::newest;
use crate::selection::{Chooser, Origins};
use crate::sources;

/// An unpacked package.
#[derive(Clone, Debug)]
pub struct Gathered {
    /// The provider.
    pub provider: Provider,
    /// The version.
    pub version: Version,
    /// The platform.
    pub platform: Platform,
    /// Its files: a directory, or the one file.
    pub package: PathBuf,
    /// Its checksums, and those that are known for other platforms.
    pub hashes: BTreeSet<String>,
}

/// What is to be gathered.
#[derive(Debug)]
pub struct Wish<'r> {
    /// The providers, and which of their versions will do.
    pub requirements: &'r BTreeMap<Provider, Constraints>,
    /// The choices that were made already.
    pub lock: &'r LockFile,
    /// What requires each provider, for errors.
    pub origins: &'r Origins,
    /// The platforms.
    pub platforms: &'r [Platform],
    /// A directory for packages that must be fetched.
    pub staging: &'r Path,
}

impl Catalog {
    /// Gathers the packages of these providers for these platforms. `tell` gets each before it is looked for.
    ///
    /// # Errors
    /// A package is not available, or is not the one that the lock file records.
    pub async fn gather(
        &self,
        client: &net::Client,
        wish: &Wish<'_>,
        tell: &mut dyn FnMut(&Provider, &Version, &Platform),
    ) -> Result<Vec<Gathered>, Diagnostics> {
        let (mut out, mut errors) = (Vec::new(), Diagnostics::new());
        for (provider, constraints) in wish.requirements {
            let version = match self.version_of(client, wish, provider, constraints).await {
                Ok(version) => version,
                Err(diagnostic) => {
                    errors.push(diagnostic);
                    continue;
                }
            };
            for platform in wish.platforms {
                tell(provider, &version, platform);
                match self.package_of(client, wish, provider, &version, platform).await {
                    Ok(gathered) => out.push(gathered),
                    Err(why) => errors.push(Diagnostic::error(
                        "Could not retrieve providers",
                        format!(
                            "The package of the provider {} {version} for {platform} cannot be had: {why}.",
                            provider.for_display()
                        ),
                    )),
                }
            }
        }
        errors.into_result(out)
    }

    /// The locked version, else the newest that meets the constraints.
    async fn version_of(
        &self,
        client: &net::Client,
        wish: &Wish<'_>,
        provider: &Provider,
        constraints: &Constraints,
    ) -> Result<Version, Diagnostic> {
        if let Some(locked) = wish.lock.providers.get(provider) {
            if constraints.allows(&locked.version) {
                return Ok(locked.version.clone());
            }
            return Err(Diagnostic::error(
                "Failed to query available provider packages",
                format!(
                    "The dependency lock file chose the version {} of the provider {}, which does not meet \"{constraints}\". Run \
                     init -upgrade to choose another version.",
                    locked.version,
                    provider.for_display()
                ),
            ));
        }
        let nothing = LockFile::default();
        let chooser = Chooser::new(self.settings(), self.reattached(), &nothing);
        let mut here: Vec<Version> = chooser
            .candidates(provider)
            .into_iter()
            .map(|found| found.version)
            .collect();
        for dir in chooser.dirs.iter().filter(|dir| dir.is_mirror()) {
            let found = wish
                .platforms
                .iter()
                .flat_map(|platform| dir.in_mirror(provider, platform));
            here.extend(found.map(|found| found.version));
        }
        let here = here.into_iter().filter(|version| constraints.allows(version)).max();
        let sources = sources::sources(self.settings(), provider);
        // As for an installation, the registry is not asked about what is on this machine.
        if let Some(here) = &here
            && self.settings().config.provider_installation.is_none()
        {
            return Ok(here.clone());
        }
        let found = newest(client, provider, constraints, &sources, here, Some(wish.origins)).await;
        found
            .map(|newest| newest.version)
            .map_err(|(summary, why)| Diagnostic::error(summary, why))
    }

    async fn package_of(
        &self,
        client: &net::Client,
        wish: &Wish<'_>,
        provider: &Provider,
        version: &Version,
        platform: &Platform,
    ) -> Result<Gathered, PackageError> {
        let locked = wish
            .lock
            .providers
            .get(provider)
            .filter(|locked| locked.version == *version);
        let gathered = |package: PathBuf, hashes: BTreeSet<String>| Gathered {
            provider: provider.clone(),
            version: version.clone(),
            platform: platform.clone(),
            package,
            hashes,
        };
        if let Some((package, hash)) = self.on_this_machine(provider, version, platform, locked).await? {
            let mut hashes = locked.map(|locked| locked.hashes.clone()).unwrap_or_default();
            hashes.insert(hash);
            return Ok(gathered(package, hashes));
        }
        let wanted = Wanted {
            provider: provider.clone(),
            version: version.clone(),
            locked: locked.map(|locked| locked.hashes.clone()).unwrap_or_default(),
            sources: sources::sources(self.settings(), provider),
        };
        let metadata = fetch::metadata(client, &wanted, platform).await;
        let metadata = metadata.map_err(|why| PackageError::NotFetched(why.text()))?;
        let staging = tempfile::Builder::new().prefix("package-").tempdir_in(wish.staging);
        // Its files are read later; the staging directory is removed as a whole.
        let staging = staging.map_err(PackageError::Temporary)?.keep();
        let limits = Limits::from_variables(client.settings().environment.all())?;
        let (path, sum) = fetch::archive(client, &metadata, &staging, &Progress::default()).await?;
        let unpacked = staging.join("package");
        let (target, type_name) = (unpacked.clone(), provider.ty.to_string());
        let hashes = blocking(move || {
            fetch::verify_package(&metadata, &path, &sum, &limits)?;
            let entries = Entries::Files {
                executable: "terraform-provider-",
            };
            archive::unpack(Format::Zip, &path, &target, entries, &limits)?;
            if discovery::executable_in(&target, &type_name).is_none() {
                return Err(PackageError::NoExecutable(type_name));
            }
            let hash = hash::directory(&target).map_err(PackageError::Hash)?;
            let archive = format!("zh:{sum}");
            if !wanted.locked.is_empty() && !wanted.locked.contains(&hash) && !wanted.locked.contains(&archive) {
                return Err(PackageError::NotLocked(metadata.location));
            }
            let mut hashes = metadata.known;
            hashes.extend(wanted.locked);
            hashes.insert(hash);
            Ok(hashes)
        });
        Ok(gathered(unpacked, hashes.await?))
    }

    /// A package that a person or `init` has installed, with its checksum. Of a locked version, one that was locked.
    async fn on_this_machine(
        &self,
        provider: &Provider,
        version: &Version,
        platform: &Platform,
        locked: Option<&Locked>,
    ) -> Result<Option<(PathBuf, String)>, PackageError> {
        let nothing = LockFile::default();
        let chooser = Chooser::new(self.settings(), self.reattached(), &nothing);
        let mut found: Vec<Package> = Vec::new();
        if *platform == chooser.platform {
            let here = chooser.candidates(provider).into_iter();
            found.extend(
                here.filter(|found| found.version == *version)
                    .map(|found| found.package),
            );
        }
        let cache = self.settings().config.plugin_cache_dir.clone();
        for base in [Some(self.settings().providers_dir()), cache].into_iter().flatten() {
            let below = discovery::versions_below(&base, provider, platform).into_iter();
            found.extend(
                below
                    .filter(|found| found.version == *version)
                    .map(|found| found.package),
            );
        }
        for dir in chooser.dirs.iter().filter(|dir| dir.is_mirror()) {
            let mirrored = dir.in_mirror(provider, platform).into_iter();
            found.extend(
                mirrored
                    .filter(|found| found.version == *version)
                    .map(|found| found.package),
            );
        }
        let own = self.settings().builtins.executable.canonicalize().ok();
        for package in found {
            // Links to this executable stand for what is built in.
            if own.is_some() && executable_of(&package, provider).and_then(|path| path.canonicalize().ok()) == own {
                continue;
            }
            let path = package.path().to_owned();
            let hash = blocking(move || package.hash().map_err(read_error(package.path()))).await?;
            if locked.is_none_or(|locked| locked.hashes.is_empty() || locked.hashes.contains(&hash)) {
                return Ok(Some((path, hash)));
            }
            tracing::debug!(path = %path.display(), "not the package that was locked");
        }
        Ok(None)
    }
}

fn executable_of(package: &Package, provider: &Provider) -> Option<PathBuf> {
    match package {
        Package::Directory(dir) => discovery::executable_in(dir, &provider.ty),
        Package::File(file) => Some(file.clone()),
    }
}

/// The error of a directory for fetched packages that cannot be made.
#[must_use]
pub fn no_staging(error: &std::io::Error) -> Diagnostic {
    let detail = format!(
        "A directory for fetched packages cannot be created: {}.",
        io_reason(error)
    );
    Diagnostic::error("Could not retrieve providers", detail)
}
