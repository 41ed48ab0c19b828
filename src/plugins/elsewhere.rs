//! Packages for other machines: what `providers lock` and `providers mirror` do.
//!
//! Both ask the providers' own registries, whatever the CLI configuration says about installation, or the one mirror that a
//! person names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use addrs::Provider;
use net::Client;
use syntax::{Diagnostic, Diagnostics};

use crate::discovery;
use crate::download::Progress;
use crate::fetch::{self, Wanted, blocking};
use crate::hash;
use crate::install::{self, Askers};
use crate::lock_file::{LockFile, Locked};
use crate::network_mirror::{Archive, Archives, Index};
use crate::places::{self, Authentication, Place};
use crate::platform::Platform;
use crate::version::{Constraints, Version};

/// What is wanted of which providers.
#[derive(Debug)]
pub struct Request<'r> {
    /// What asks registries.
    pub client: &'r Client,
    /// The providers, and which of their versions will do.
    pub requirements: &'r BTreeMap<Provider, Constraints>,
    /// Who asks, for errors.
    pub askers: &'r Askers,
    /// The platforms.
    pub platforms: &'r [Platform],
    /// Where the packages come from.
    pub place: Place,
}

/// What goes on.
#[derive(Debug)]
pub enum Step<'a> {
    /// A version was chosen: the lock file's, if the last part says so.
    Selected(&'a Provider, &'a Version, &'a Constraints, bool),
    /// A package is fetched.
    Fetching(&'a Provider, &'a Version, &'a Platform),
    /// It is here.
    Retrieved(&'a Provider, &'a Version, &'a Platform, &'a Authentication),
    /// Its checksums are compared with those of the lock file.
    Compared(&'a Provider, &'a Platform, Tracked),
}

/// What the lock file knew about a package before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracked {
    /// Nothing about the provider.
    NewProvider,
    /// Not all its checksums.
    More,
    /// Everything.
    All,
}

/// A package that was got.
struct Got {
    authentication: Authentication,
    hashes: BTreeSet<String>,
}

impl Request<'_> {
    async fn version(
        &self,
        provider: &Provider,
        constraints: &Constraints,
        old: Option<&Locked>,
    ) -> Result<Version, Diagnostic> {
        if let Some(old) = old.filter(|old| constraints.allows(&old.version)) {
            return Ok(old.version.clone());
        }
        let unpacked = self.unpacked(provider);
        let here = unpacked.into_iter().map(|(version, ..)| version);
        let here = here.filter(|version| constraints.allows(version)).max();
        let places = std::slice::from_ref(&self.place);
        install::newest(self.client, provider, constraints, places, here, Some(self.askers))
            .await
            .map_err(|(summary, why)| Diagnostic::error(summary, why))
    }

    /// The unpacked packages in a filesystem mirror.
    fn unpacked(&self, provider: &Provider) -> Vec<(Version, Platform, PathBuf)> {
        let Place::Packed(base) = &self.place else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for platform in self.platforms {
            for found in discovery::versions_below(base, provider, platform) {
                out.push((found.version, platform.clone(), found.package.path().to_owned()));
            }
        }
        out
    }

    fn wanted(&self, provider: &Provider, version: &Version) -> Wanted {
        Wanted {
            provider: provider.clone(),
            version: version.clone(),
            locked: BTreeSet::new(),
            places: vec![self.place.clone()],
        }
    }

    /// Gets a package, verified as far as its place allows. `keep` is a file where its archive shall be.
    async fn get(
        &self,
        provider: &Provider,
        version: &Version,
        platform: &Platform,
        keep: Option<&Path>,
    ) -> Result<Got, String> {
        let dir = self
            .unpacked(provider)
            .into_iter()
            .find(|(v, p, _)| v == version && p == platform);
        if let Some((.., dir)) = dir {
            let hash =
                blocking(move || hash::directory(&dir).map_err(|e| format!("{} cannot be read: {e}", dir.display())));
            return Ok(Got {
                authentication: Authentication::None,
                hashes: [hash.await?].into(),
            });
        }
        let offer = fetch::offer(self.client, &self.wanted(provider, version), platform).await?;
        let temporary = match keep.and_then(Path::parent) {
            Some(dir) => {
                fs::create_dir_all(dir).and_then(|()| tempfile::Builder::new().prefix(".staging-").tempdir_in(dir))
            }
            None => tempfile::tempdir(),
        };
        let temporary = temporary.map_err(|e| format!("there is no place for the package: {e}"))?;
        let (path, sum) = fetch::archive(self.client, &offer, temporary.path(), &Progress::default()).await?;
        let keep = keep.map(Path::to_owned);
        blocking(move || {
            fetch::verify_offer(&offer, &path, &sum)?;
            let own = hash::archive(&path).map_err(|e| format!("the package cannot be read: {e}"))?;
            let mut hashes = offer.known;
            hashes.insert(own);
            hashes.insert(format!("zh:{sum}"));
            if let Some(keep) = keep {
                fs::rename(&path, &keep).map_err(|e| format!("{} cannot be written: {e}", keep.display()))?;
            }
            drop(temporary);
            Ok(Got {
                authentication: offer.authentication,
                hashes,
            })
        })
        .await
    }

    /// Adds checksums of packages for these platforms to the lock file in a directory. Says whether it was changed.
    pub async fn lock(&self, dir: &Path, tell: &mut dyn FnMut(Step<'_>)) -> Result<bool, Diagnostics> {
        let (old_file, _) = LockFile::load(dir)?;
        let mut file = old_file.clone();
        let mut errors = Diagnostics::new();
        for (provider, constraints) in self.requirements {
            let old = old_file.providers.get(provider);
            let version = match self.version(provider, constraints, old).await {
                Ok(version) => version,
                Err(diagnostic) => {
                    errors.push(diagnostic);
                    continue;
                }
            };
            let same = old.filter(|old| old.version == version);
            let before = same.map(|old| old.hashes.clone()).unwrap_or_default();
            let mut hashes = before.clone();
            for platform in self.platforms {
                tell(Step::Fetching(provider, &version, platform));
                let got = match self.get(provider, &version, platform, None).await {
                    Ok(got) => got,
                    Err(why) => {
                        errors.push(could_not(provider, &version, platform, &why));
                        continue;
                    }
                };
                // A registry's signed list is of all platforms; a mirror's sums of archives are not recorded.
                let signed = matches!(got.authentication, Authentication::Signed(_));
                let more: BTreeSet<String> = got
                    .hashes
                    .iter()
                    .filter(|h| signed || h.starts_with("h1:"))
                    .cloned()
                    .collect();
                let archives = |set: &BTreeSet<String>| set.iter().any(|h| h.starts_with("zh:"));
                if archives(&before) && archives(&got.hashes) && before.is_disjoint(&got.hashes) {
                    let why = "the lock file has checksums of this version's archives, and none of them is that of this package: \
                               it is not what was locked";
                    errors.push(could_not(provider, &version, platform, why));
                    continue;
                }
                tell(Step::Retrieved(provider, &version, platform, &got.authentication));
                let tracked = match old {
                    None => Tracked::NewProvider,
                    Some(_) if more.is_subset(&before) => Tracked::All,
                    Some(_) => Tracked::More,
                };
                tell(Step::Compared(provider, platform, tracked));
                hashes.extend(more);
            }
            let entry = Locked {
                version,
                constraints: constraints.clone(),
                hashes,
            };
            file.providers.insert(provider.clone(), entry);
        }
        if errors.has_errors() {
            return Err(errors);
        }
        if file != old_file {
            file.save(dir)?;
        }
        Ok(file != old_file)
    }

    /// Fills a directory with archives and with the documents of a network mirror. `lock` says which versions are chosen
    /// already.
    pub async fn mirror(&self, to: &Path, lock: &LockFile, tell: &mut dyn FnMut(Step<'_>)) -> Result<(), Diagnostics> {
        let mut errors = Diagnostics::new();
        for (provider, constraints) in self.requirements {
            let old = lock.providers.get(provider);
            let version = match self.version(provider, constraints, old).await {
                Ok(version) => version,
                Err(diagnostic) => {
                    errors.push(diagnostic);
                    continue;
                }
            };
            let from_lock = old.is_some_and(|old| old.version == version);
            tell(Step::Selected(provider, &version, constraints, from_lock));
            let dir = discovery::provider_dir(to, provider);
            let mut complete = true;
            for platform in self.platforms {
                tell(Step::Fetching(provider, &version, platform));
                let file = dir.join(format!("terraform-provider-{}_{version}_{platform}.zip", provider.ty));
                match self.get(provider, &version, platform, Some(&file)).await {
                    Ok(got) => tell(Step::Retrieved(provider, &version, platform, &got.authentication)),
                    Err(why) => {
                        complete = false;
                        errors.push(could_not(provider, &version, platform, &why));
                    }
                }
            }
            if complete {
                let (base, provider) = (to.to_owned(), provider.clone());
                let written = blocking(move || documents(&base, &provider, &version)).await;
                if let Err(why) = written {
                    let detail = format!("The documents of the mirror cannot be written: {why}.");
                    errors.push(Diagnostic::error("Failed to update indexes", detail));
                }
            }
        }
        errors.into_result(())
    }
}

fn could_not(provider: &Provider, version: &Version, platform: &Platform, why: &str) -> Diagnostic {
    Diagnostic::error(
        "Could not retrieve providers",
        format!(
            "The package of the provider {} {version} for {platform} cannot be had: {why}.",
            provider.for_display()
        ),
    )
}

/// Writes `VERSION.json` for the archives that are there, and adds the version to `index.json`.
fn documents(base: &Path, provider: &Provider, version: &Version) -> Result<(), String> {
    let dir = discovery::provider_dir(base, provider);
    let failed = |e: io::Error| format!("{}: {e}", dir.display());
    let mut archives = Archives::default();
    for archive in places::packed(base, provider) {
        if archive.version != *version {
            continue;
        }
        let hash = hash::archive(&archive.path).map_err(failed)?;
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
    let mut all: Index = match fs::read(&index) {
        Ok(text) => {
            serde_json::from_slice(&text).map_err(|e| format!("{} is not what it should be: {e}", index.display()))?
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Index::default(),
        Err(e) => return Err(failed(e)),
    };
    all.versions.entry(version.to_string()).or_default();
    write(&dir.join(format!("{version}.json")), &archives).map_err(failed)?;
    write(&index, &all).map_err(failed)
}

/// Writes a document as a whole, for everybody to read.
fn write(path: &Path, document: &impl serde::Serialize) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".staging-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = builder.tempfile_in(path.parent().unwrap_or(Path::new(".")))?;
    serde_json::to_writer_pretty(&file, document)?;
    file.persist(path).map(drop).map_err(|e| e.error)
}
