//! Packages for other platforms: the work of `providers lock` and `providers mirror`.
//!
//! Both commands use the registries of the providers, whatever installation methods the CLI configuration has, or the one
//! mirror that the user names. Packages are fetched concurrently, and reported in a fixed order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use addrs::Provider;
use archive::Limits;
use futures::StreamExt;
use net::Client;

use crate::error::{PackageError, read_error, write_error};
use syntax::{Diagnostic, Diagnostics};

use crate::discovery;
use crate::download::{Overall, Progress, watching};
use crate::fetch::{self, Wanted, blocking};
use crate::hash;
use crate::lock_file::{LockFile, Locked};
use crate::metadata::{Authentication, Location};
use crate::mirror_archives;
use crate::network_mirror::{Archive, Archives, Index};
use crate::newest::newest;
use crate::selection::Origins;
use crate::sources::PackageSource;
use addrs::platform::Platform;
use versions::{Constraints, Version};

/// Providers whose packages are required, with their platforms and source.
#[derive(Debug)]
pub struct Request<'r> {
    /// Client for registries and mirrors.
    pub client: &'r Client,
    pub requirements: &'r BTreeMap<Provider, Constraints>,
    /// Requirement origins, for errors.
    pub origins: &'r Origins,
    pub platforms: &'r [Platform],
    pub source: PackageSource,
    /// Plugin cache. Packages in it are not fetched from the source.
    pub cache: Option<PathBuf>,
}

/// Limit of packages that are fetched concurrently.
pub(crate) const AT_ONCE: usize = 8;

pub(crate) fn named(provider: &Provider, version: &Version, platform: &Platform) -> Progress {
    Progress::named(format!("{} v{version} {platform}", provider.for_display()))
}

/// Event of a fetch, for the user.
#[derive(Debug)]
pub enum Step<'a> {
    /// A version was chosen. The flag is true if the version is the locked one.
    Selected(&'a Provider, &'a Version, &'a Constraints, bool),
    Fetching(&'a Provider, &'a Version, &'a Platform),
    /// Installed files are being compressed to an archive.
    Packing(&'a Platform, &'a Path),
    /// Progress of the running downloads, reported ten times a second.
    Downloading(Overall<'a>),
    /// A package was fetched and verified.
    Retrieved(&'a Provider, &'a Version, &'a Platform, &'a Authentication),
    /// The checksums of a package were compared with those of the lock file.
    Compared(&'a Provider, &'a Platform, Tracked),
}

/// State of the lock file for a package before its checksums are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracked {
    /// The provider was not in the lock file.
    NewProvider,
    /// The lock file had the provider, but not all checksums of the package.
    More,
    /// The lock file had all checksums of the package.
    All,
}

/// Reason why no version of a provider was selected.
struct NotSelected {
    problem: Diagnostic,
    /// True if the source cannot be reached, so that it is not known whether it has a version.
    is_unreachable: bool,
}

struct Got {
    authentication: Authentication,
    hashes: BTreeSet<String>,
}

impl Got {
    /// Returns the checksums to record; `before` are those that the lock file has for the same version.
    fn recorded(self, before: Option<&BTreeSet<String>>) -> Result<(Authentication, BTreeSet<String>), PackageError> {
        let archive = |h: &String| h.starts_with("zh:");
        // Archive checksums are only recorded if a registry signs the list for all platforms, and then the lock file contains
        // the whole list. An archive that is not in it is another package.
        let signed = matches!(self.authentication, Authentication::Signed(_));
        let before = before.filter(|before| before.iter().any(archive) && self.hashes.iter().any(archive));
        if before.is_some_and(|before| before.is_disjoint(&self.hashes)) {
            return Err(PackageError::NotLockedArchive);
        }
        let hashes = self.hashes.into_iter().filter(|h| signed || !archive(h)).collect();
        Ok((self.authentication, hashes))
    }
}

impl Request<'_> {
    async fn version(
        &self,
        provider: &Provider,
        constraints: &Constraints,
        old: Option<&Locked>,
    ) -> Result<Version, NotSelected> {
        if let Some(old) = old {
            return locked_version(provider, constraints, old, self.origins).map_err(|problem| NotSelected {
                problem,
                is_unreachable: false,
            });
        }
        // The cache is ignored here: it contains versions of earlier installations, and none of them should be chosen only because it is
        // cached.
        let mirrored = match &self.source {
            PackageSource::Packed(base) => self
                .platforms
                .iter()
                .flat_map(|p| discovery::versions_below(base, provider, p))
                .collect(),
            PackageSource::Mirror(_) | PackageSource::Oci(_) | PackageSource::Direct => Vec::new(),
        };
        let here = mirrored.into_iter().map(|found| found.version);
        let here = here.filter(|version| constraints.allows(version)).max();
        let sources = std::slice::from_ref(&self.source);
        newest(self.client, provider, constraints, sources, here, Some(self.origins))
            .await
            .map(|newest| newest.version)
            .map_err(|why| NotSelected {
                is_unreachable: why.unreachable,
                problem: why.into(),
            })
    }

    /// Returns the unpacked packages in a filesystem mirror and in the cache.
    fn unpacked(&self, provider: &Provider) -> Vec<(Version, Platform, PathBuf)> {
        let mirror = match &self.source {
            PackageSource::Packed(base) => Some(base),
            PackageSource::Mirror(_) | PackageSource::Oci(_) | PackageSource::Direct => None,
        };
        let mut out = Vec::new();
        for base in mirror.into_iter().chain(&self.cache) {
            for platform in self.platforms {
                for found in discovery::versions_below(base, provider, platform) {
                    out.push((found.version, platform.clone(), found.package.path().to_owned()));
                }
            }
        }
        out
    }

    fn wanted(&self, provider: &Provider, version: &Version) -> Wanted {
        Wanted {
            provider: provider.clone(),
            version: version.clone(),
            locked: BTreeSet::new(),
            sources: vec![self.source.clone()],
        }
    }

    /// Fetches a package and verifies it as far as its source allows. If `keep` is set, the archive is put at that path.
    async fn get(
        &self,
        provider: &Provider,
        version: &Version,
        platform: &Platform,
        keep: Option<&Path>,
        progress: &Progress,
    ) -> Result<Got, PackageError> {
        // A mirror needs the original archive: one made from an unpacked package would have another checksum.
        let unpacked = if keep.is_none() {
            self.unpacked(provider)
        } else {
            Vec::new()
        };
        if let Some((.., dir)) = unpacked.into_iter().find(|(v, p, _)| v == version && p == platform) {
            let hash = blocking(move || hash::directory(&dir).map_err(read_error(&dir)));
            return Ok(Got {
                authentication: Authentication::None,
                hashes: [hash.await?].into(),
            });
        }
        let metadata = fetch::metadata(self.client, &self.wanted(provider, version), platform).await;
        let metadata = metadata.map_err(|why| PackageError::NotFetched(why.text()))?;
        let limits = Limits::from_variables(self.client.settings().environment.all())?;
        let temporary = match keep.and_then(Path::parent) {
            // Created beside the target, so that the archive can be moved there by a rename.
            Some(dir) => {
                fs::create_dir_all(dir).and_then(|()| tempfile::Builder::new().prefix(".staging-").tempdir_in(dir))
            }
            None => tempfile::tempdir(),
        };
        let temporary = temporary.map_err(PackageError::Temporary)?;
        let (path, sum) = fetch::archive(self.client, &metadata, temporary.path(), progress).await?;
        let keep = keep.map(Path::to_owned);
        blocking(move || {
            fetch::verify_package(&metadata, &path, &sum, &limits)?;
            let own = hash::archive(&path, &limits).map_err(|source| PackageError::Archive {
                location: Box::new(metadata.location.clone()),
                source,
            })?;
            let mut hashes = metadata.known;
            hashes.insert(own);
            hashes.insert(format!("zh:{sum}"));
            if let Some(keep) = keep {
                // An archive in a mirror on this machine must not be moved away.
                let ours = path.starts_with(temporary.path());
                let put = if ours {
                    system::rename(&path, &keep)
                } else {
                    fs::copy(&path, &keep).map(drop)
                };
                put.map_err(write_error(&keep))?;
            }
            drop(temporary);
            Ok(Got {
                authentication: metadata.authentication,
                hashes,
            })
        })
        .await
    }

    /// Chooses the versions of the required providers, and adds them to the lock file with their known checksums.
    async fn choose(&self, old_file: &LockFile, file: &mut LockFile) -> Result<(), Diagnostics> {
        let mut errors = Diagnostics::new();
        let chosen = futures::stream::iter(self.requirements.iter().map(async |(provider, constraints)| {
            (
                provider,
                constraints,
                self.version(provider, constraints, old_file.providers.get(provider))
                    .await,
            )
        }));
        // `buffered` keeps the order of the providers, so that errors are in the same order in every run.
        for (provider, constraints, version) in chosen.buffered(AT_ONCE).collect::<Vec<_>>().await {
            match version {
                Ok(version) => {
                    let same = old_file.providers.get(provider).filter(|old| old.version == version);
                    let hashes = same.map(|old| old.hashes.clone()).unwrap_or_default();
                    let constraints = constraints.clone();
                    file.providers.insert(
                        provider.clone(),
                        Locked {
                            version,
                            constraints,
                            hashes,
                        },
                    );
                }
                Err(error) => errors.push(error.problem),
            }
        }
        errors.into_result(())
    }

    /// Adds checksums of packages for these platforms to the lock file in a directory. Returns true if the file was changed.
    pub async fn lock(&self, dir: &Path, emit: &mut dyn FnMut(Step<'_>)) -> Result<bool, Diagnostics> {
        let (old_file, _) = LockFile::load(dir)?;
        let mut file = old_file.clone();
        let mut errors = Diagnostics::new();
        self.choose(&old_file, &mut file).await?;
        let chosen: Vec<(&Provider, Version)> = self
            .requirements
            .keys()
            .filter_map(|p| Some((p, file.providers.get(p)?.version.clone())))
            .collect();
        let jobs = self
            .platforms
            .iter()
            .flat_map(|platform| chosen.iter().map(move |(p, v)| (*p, v, platform)));
        let jobs: Vec<(&Provider, &Version, &Platform)> = jobs.collect();
        let progress: Vec<Progress> = (jobs.iter())
            .map(|(provider, version, platform)| named(provider, version, platform))
            .collect();
        let gets = jobs
            .iter()
            .zip(&progress)
            .map(|((provider, version, platform), progress)| self.get(provider, version, platform, None, progress));
        let mut gets = futures::stream::iter(gets).buffered(AT_ONCE);
        let mut found: BTreeMap<&Provider, Vec<(&Platform, BTreeSet<String>)>> = BTreeMap::new();
        // Fetched concurrently but reported one after the other, so that the output does not depend on the
        // network.
        for (provider, version, platform) in &jobs {
            emit(Step::Fetching(provider, version, platform));
            let got = watching(gets.next(), || emit(Step::Downloading(Overall::sum(&progress)))).await;
            let Some(got) = got else { break };
            let before = file.providers.get(*provider).map(|locked| &locked.hashes);
            match got.and_then(|got| got.recorded(before)) {
                Ok((authentication, hashes)) => {
                    emit(Step::Retrieved(provider, version, platform, &authentication));
                    found.entry(provider).or_default().push((platform, hashes));
                }
                Err(why) => errors.push(could_not(provider, version, platform, &why)),
            }
        }
        drop(gets);
        // A lock file with only some of the platforms would fail on the others later, so nothing is written
        // after an error.
        if errors.has_errors() {
            return Err(errors);
        }
        for (provider, platforms) in found {
            let Some(locked) = file.providers.get_mut(provider) else {
                continue;
            };
            let old = old_file.providers.get(provider);
            for (platform, hashes) in platforms {
                let tracked = match old {
                    None => Tracked::NewProvider,
                    Some(_) if hashes.is_subset(&locked.hashes) => Tracked::All,
                    Some(_) => Tracked::More,
                };
                emit(Step::Compared(provider, platform, tracked));
                locked.hashes.extend(hashes);
            }
        }
        if file != old_file {
            file.save(dir)?;
        }
        Ok(file != old_file)
    }

    /// Fills a directory with archives and with the documents of a network mirror. Providers get the version in `lock`, or else the
    /// newest one that meets the constraints. Returns the providers whose source cannot be reached, with the errors.
    ///
    /// # Errors
    /// Packages cannot be fetched or written.
    pub async fn mirror(
        &self,
        to: &Path,
        lock: &LockFile,
        emit: &mut dyn FnMut(Step<'_>),
    ) -> Result<BTreeMap<Provider, Diagnostic>, Diagnostics> {
        let mut errors = Diagnostics::new();
        let mut unreachable = BTreeMap::new();
        for (provider, constraints) in self.requirements {
            let old = lock.providers.get(provider);
            let version = match self.version(provider, constraints, old).await {
                Ok(version) => version,
                Err(error) => {
                    match error.is_unreachable {
                        true => drop(unreachable.insert(provider.clone(), error.problem)),
                        false => errors.push(error.problem),
                    }
                    continue;
                }
            };
            let from_lock = old.is_some_and(|old| old.version == version);
            emit(Step::Selected(provider, &version, constraints, from_lock));
            let dir = discovery::provider_dir(to, provider);
            let mut complete = true;
            let files: Vec<PathBuf> = self
                .platforms
                .iter()
                .map(|platform| dir.join(format!("terraform-provider-{}_{version}_{platform}.zip", provider.ty)))
                .collect();
            let progress: Vec<Progress> = (self.platforms.iter())
                .map(|platform| named(provider, &version, platform))
                .collect();
            let gets = self.platforms.iter().zip(files.iter().zip(&progress));
            let gets =
                gets.map(|(platform, (file, progress))| self.get(provider, &version, platform, Some(file), progress));
            let mut gets = futures::stream::iter(gets).buffered(AT_ONCE);
            for platform in self.platforms {
                emit(Step::Fetching(provider, &version, platform));
                let got = watching(gets.next(), || emit(Step::Downloading(Overall::sum(&progress)))).await;
                let Some(got) = got else { break };
                match got {
                    Ok(got) => emit(Step::Retrieved(provider, &version, platform, &got.authentication)),
                    Err(why) => {
                        complete = false;
                        errors.push(could_not(provider, &version, platform, &why));
                    }
                }
            }
            drop(gets);
            // A document that lists a failed archive would make every client of the mirror fail.
            if complete {
                let (base, provider) = (to.to_owned(), provider.clone());
                let limits = Limits::from_variables(self.client.settings().environment.all());
                let written = blocking(move || documents(&base, &provider, &version, &limits?)).await;
                if let Err(why) = written {
                    let detail = format!("The documents of the mirror cannot be written: {why}.");
                    errors.push(Diagnostic::error("Failed to update indexes", detail));
                }
            }
        }
        if errors.has_errors() {
            errors.extend(unreachable.into_values());
            return Err(errors);
        }
        Ok(unreachable)
    }
}

/// Returns the locked version of a provider.
///
/// # Errors
/// The locked version does not meet the constraints.
pub(crate) fn locked_version(
    provider: &Provider,
    constraints: &Constraints,
    locked: &Locked,
    origins: &Origins,
) -> Result<Version, Diagnostic> {
    if constraints.allows(&locked.version) {
        return Ok(locked.version.clone());
    }
    let origins = origins.get(provider).into_iter().flatten();
    let origins: String = origins.map(|origin| format!("\n  - {origin}")).collect();
    Err(Diagnostic::error(
        "Failed to query available provider packages",
        format!(
            "The dependency lock file chose the version {} of the provider {}, which does not meet \"{constraints}\".{origins}\n\nRun \
             init -upgrade to choose another version.",
            locked.version,
            provider.for_display(),
        ),
    ))
}

pub(crate) fn could_not(provider: &Provider, version: &Version, platform: &Platform, why: &PackageError) -> Diagnostic {
    Diagnostic::error(
        "Could not retrieve providers",
        format!(
            "Provider {} {version} has no usable package for {platform}: {why}.",
            provider.for_display()
        ),
    )
}

/// Writes `VERSION.json` for the archives of a version, and adds the version to `index.json`.
pub(crate) fn documents(
    base: &Path,
    provider: &Provider,
    version: &Version,
    limits: &Limits,
) -> Result<(), PackageError> {
    let dir = discovery::provider_dir(base, provider);
    let failed = write_error(&dir);
    let mut archives = Archives::default();
    for archive in mirror_archives::packed(base, provider) {
        if archive.version != *version {
            continue;
        }
        let hash = hash::archive(&archive.path, limits).map_err(|source| PackageError::Archive {
            location: Box::new(Location::File(archive.path.clone())),
            source,
        })?;
        let url = archive
            .path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        archives.archives.insert(
            archive.platform.to_string(),
            Archive {
                hashes: vec![hash],
                url,
            },
        );
    }
    let index = dir.join("index.json");
    // Versions that earlier runs have mirrored stay in the index.
    let mut all: Index = match fs::read(&index) {
        Ok(text) => serde_json::from_slice(&text).map_err(|source| PackageError::Index {
            path: index.clone(),
            source,
        })?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => Index::default(),
        Err(e) => return Err(read_error(&index)(e)),
    };
    all.versions.entry(version.to_string()).or_default();
    // The index is written last, so that a client that reads it in between does not find a version without a
    // document.
    write(&dir.join(format!("{version}.json")), &archives).map_err(failed)?;
    write(&index, &all).map_err(failed)
}

/// Replaces a document by a rename. It is readable for everybody, because a web server must be able to read it.
fn write(path: &Path, document: &impl serde::Serialize) -> io::Result<()> {
    files::replace(path, &serde_json::to_vec_pretty(document)?, files::Policy::SHARED)
}
