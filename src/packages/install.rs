//! Installation of providers for a working directory: the work of `init`.
//!
//! Providers that are built in, in the pack, under development, or started by the user are not installed. A package in a search directory
//! stays there, and the working directory gets a link to it. All other packages come from a [`PackageSource`]. In both cases the lock file
//! gets an entry.

mod record;
mod remote;

use std::collections::BTreeMap;
use std::io;

use addrs::Provider;
use addrs::program::Mode;
use files::io_reason;
use syntax::{Diagnostic, Diagnostics};

use crate::catalog::Catalog;
use crate::discovery::{self, Found};
use crate::download::Overall;
pub use crate::fetch::Provenance;
use crate::lock_file::{LockFile, Locked};
use crate::not_available::{mismatch, pack_command};
use crate::place::place;
pub use crate::selection::Origins;
use crate::selection::{Chooser, Selection};
use crate::sources::{self, PackageSource};
use addrs::platform::Platform;
use record::{record, unmanaged};
use versions::{Constraints, Version};

/// Limit of packages that are fetched concurrently.
const AT_ONCE: usize = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstallOptions<'a> {
    /// Chooses the newest versions, and ignores those in the lock file.
    pub upgrade: bool,
    /// Keeps the lock file as it is: another version is then an error, and a new checksum is a warning.
    pub read_only_lock: bool,
    /// Requirement origins, for errors.
    pub origins: Option<&'a Origins>,
    /// The requirements are not complete: entries of the lock file for other providers stay.
    pub partial: bool,
    /// Provider that is not upgraded.
    pub keep: Option<&'a Provider>,
}

impl InstallOptions<'_> {
    /// Returns true if the newest version of a provider is chosen, and that in the lock file ignored.
    fn upgrades(&self, provider: &Provider) -> bool {
        self.upgrade && self.keep != Some(provider)
    }
}

/// Result of an installation.
#[derive(Clone, Debug, Default)]
pub struct Installation {
    pub providers: BTreeMap<Provider, Outcome>,
    /// True if the lock file did not exist before.
    pub lock_created: bool,
    /// True if the lock file was changed or created.
    pub lock_changed: bool,
    pub warnings: Diagnostics,
}

/// Result for one provider.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub selection: Selection,
    /// Version in the lock file before the installation.
    pub locked: Option<Version>,
    /// True if this version was not installed before.
    pub new: bool,
    /// Origin of the package, if it was fetched.
    pub how: Option<Provenance>,
}

/// Callback that may reject the selections before they are recorded.
pub type Agree<'a> = dyn FnMut(&BTreeMap<Provider, Outcome>) -> Result<(), Diagnostics> + 'a;

/// Event of an installation, for the user. The order depends on the providers only.
#[derive(Debug)]
pub enum Step<'a> {
    /// The sources are queried for versions of a provider.
    Finding(&'a Provider, &'a Constraints),
    /// The version is that of the lock file.
    Reusing(&'a Provider),
    /// A package is fetched, or is installed already.
    Installing(&'a Provider, &'a Version),
    /// Progress of the running downloads, reported ten times a second.
    Downloading(Overall<'a>),
    /// A provider is selected and, if necessary, installed.
    Done(&'a Provider, &'a Outcome),
}

/// Provider for which package sources must be queried.
struct Needed<'r> {
    program: addrs::Program,
    provider: &'r Provider,
    constraints: &'r Constraints,
    old: Option<&'r Locked>,
    /// Newest version on this machine, if one meets the constraints.
    here: Option<Found>,
    /// Selection if no source has the package: the built-in provider in place of the required or locked version.
    fallback: Option<Selection>,
    sources: Vec<PackageSource>,
}

/// Returns the warning about entries of Terraform's lock file that were taken over; `None` if there were none.
fn taken_over(pairs: &[(Provider, Provider)]) -> Option<Diagnostic> {
    if pairs.is_empty() {
        return None;
    }
    let lines: String = pairs.iter().map(|(old, new)| format!("\n  - {old} => {new}")).collect();
    Some(Diagnostic::warning(
        "Dependency lock file entries automatically updated",
        format!(
            "The lock file has been written by Terraform. These entries are taken over for the registry of OpenTofu:{lines}\n\nThe \
             versions stay the same. The checksums do not, because the packages are not the same bytes: those that are \
             installed now are recorded."
        ),
    ))
}

impl Needed<'_> {
    /// Returns the entry of the lock file, unless the provider is upgraded.
    fn locked<'n>(&'n self, options: &InstallOptions<'_>) -> Option<&'n Locked> {
        self.old.filter(|_| !options.upgrades(self.provider))
    }

    /// Returns advice for machines without a network, as the end of an error. It is empty unless a source cannot be reached, or no source
    /// is a registry.
    fn without_network(&self, unreachable: bool, locked: Option<&Version>) -> String {
        match unreachable || !self.sources.contains(&PackageSource::Direct) {
            true => format!(
                "\n\n{}",
                pack_command(self.program, self.provider, self.constraints, locked)
            ),
            false => String::new(),
        }
    }
}

impl Catalog {
    /// Installs the providers that meet these requirements, and writes the lock file.
    pub fn install(
        &self,
        requirements: &BTreeMap<Provider, Constraints>,
        options: InstallOptions<'_>,
        emit: &mut dyn FnMut(Step<'_>),
    ) -> Result<Installation, Diagnostics> {
        self.install_if(requirements, options, emit, &mut |_| Ok(()))
    }

    /// Installs as [`Catalog::install`] does, but writes the lock file only if `agree` accepts the selections.
    ///
    /// # Errors
    /// A provider cannot be installed, or `agree` rejects the selections.
    pub fn install_if(
        &self,
        requirements: &BTreeMap<Provider, Constraints>,
        options: InstallOptions<'_>,
        emit: &mut dyn FnMut(Step<'_>),
        agree: &mut Agree<'_>,
    ) -> Result<Installation, Diagnostics> {
        let (written, mut warnings) = LockFile::load(&self.settings().working_dir)?;
        let mut lock = written.clone();
        if Mode::current().is_opentofu() {
            warnings.extend(taken_over(&lock.take_over_from_terraform()));
        }
        warnings.extend(unmanaged(self.reattached()));
        let mut chooser = Chooser::new(self.settings(), self.reattached(), &lock);
        chooser.origins = options.origins;
        // Plugins in the configuration's directories are accepted here, because the installation records them.
        chooser.installing = true;
        let mut work = Work {
            catalog: self,
            options,
            errors: Diagnostics::new(),
            lock: LockFile::default(),
            providers: BTreeMap::new(),
        };
        let mut needed = Vec::new();
        for (provider, constraints) in requirements {
            let old = lock.providers.get(provider);
            needed.extend(work.take_local(provider, constraints, old, &chooser, &mut warnings, emit));
        }
        if let Some(client) = self.settings().client.as_ref().filter(|_| !needed.is_empty()) {
            // `init` is not asynchronous and often needs no network, so a runtime is started only if packages must be fetched.
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            let runtime = runtime.map_err(|e| {
                let detail = format!("The system does not let us start threads: {}.", io_reason(&e));
                Diagnostics::from(Diagnostic::error("Cannot start", detail))
            })?;
            runtime.block_on(work.fetch(client, needed, &chooser, emit));
        }
        if work.errors.has_errors() {
            return Err(work.errors);
        }
        let (mut new_lock, providers) = (work.lock, work.providers);
        // The caller is asked before the lock file is written, because a refused selection must not be locked.
        agree(&providers)?;
        if options.partial {
            for (provider, locked) in &written.providers {
                new_lock
                    .providers
                    .entry(provider.clone())
                    .or_insert_with(|| locked.clone());
            }
        }
        let selected = providers
            .iter()
            .map(|(provider, outcome)| (provider, &outcome.selection));
        warnings.extend(chooser.substituted(selected));
        let (lock_created, lock_changed) = record(
            &new_lock,
            &written,
            &self.settings().working_dir,
            options,
            &mut warnings,
        )?;
        warnings.extend(incomplete(self.settings().program, &written, &new_lock, lock_changed));
        // Earlier selections may refer to packages that the installation has replaced.
        self.reset();
        Ok(Installation {
            providers,
            lock_created,
            lock_changed,
            warnings,
        })
    }
}

/// Returns the warning that the lock file fits one platform only, for the providers with new entries that have no signed
/// checksums for other platforms.
fn incomplete(program: addrs::Program, before: &LockFile, after: &LockFile, changed: bool) -> Option<Diagnostic> {
    let is_new = |provider: &Provider, locked: &Locked| {
        let old = before.providers.get(provider);
        old.is_none_or(|old| old.version != locked.version || old.hashes != locked.hashes)
    };
    // A single `h1:` checksum is that of the installed package. A signed list would add `zh:` checksums for all
    // platforms.
    let of_one_package =
        |locked: &Locked| locked.hashes.len() == 1 && locked.hashes.iter().all(|h| h.starts_with("h1:"));
    let names: Vec<String> = (after.providers.iter())
        .filter(|(provider, locked)| changed && is_new(provider, locked) && of_one_package(locked))
        .map(|(provider, _)| format!("\n  - {}", provider.for_display()))
        .collect();
    if names.is_empty() {
        return None;
    }
    let platform = Platform::current();
    Some(Diagnostic::warning(
        "Incomplete lock file information for providers",
        format!(
            "The dependency lock file has a checksum for {platform} only of these providers, because the place that they come from \
             has no signed list of checksums:{}\n\nOn other platforms init will refuse their packages. To record those as well, run: \
             {} providers lock -platform={platform} -platform=OTHER",
            names.concat(),
            program.command
        ),
    ))
}

fn constrained_builtin(provider: &Provider, chooser: &Chooser<'_>) -> Diagnostic {
    Diagnostic::error(
        "Invalid dependency on built-in provider",
        format!(
            "Cannot use {provider}: built-in providers do not support explicit version constraints. Remove the \"version\" \
             argument.\n{}",
            chooser.required_by(provider)
        )
        .trim_end(),
    )
}

struct Work<'r> {
    catalog: &'r Catalog,
    options: InstallOptions<'r>,
    errors: Diagnostics,
    lock: LockFile,
    providers: BTreeMap<Provider, Outcome>,
}

impl Work<'_> {
    /// Selects a plugin from those on this machine, or reports why none can be used. Returns the provider if a package source must be
    /// queried.
    fn take_local<'r>(
        &mut self,
        provider: &'r Provider,
        constraints: &'r Constraints,
        old: Option<&'r Locked>,
        chooser: &Chooser<'_>,
        warnings: &mut Diagnostics,
        emit: &mut dyn FnMut(Step<'_>),
    ) -> Option<Needed<'r>> {
        let settings = self.catalog.settings();
        // As in Terraform, the language's own providers have no versions, so a constraint on one is an error.
        if provider.is_builtin() && !constraints.is_any() {
            self.errors.push(constrained_builtin(provider, chooser));
            return None;
        }
        let here = match chooser.among_what_is_here(provider, constraints, !self.options.upgrades(provider), warnings) {
            Ok(selection) => selection,
            Err(diagnostic) => {
                self.errors.push(diagnostic);
                return None;
            }
        };
        let from_sources = |here: Option<Found>| Needed {
            program: self.catalog.settings().program,
            provider,
            constraints,
            old,
            here,
            fallback: None,
            sources: sources::sources(settings, provider),
        };
        match here {
            Some(Selection::External(found))
                if settings.client.is_some()
                    && old.filter(|_| !self.options.upgrades(provider)).is_none()
                    && chooser
                        .builtin_for(provider, constraints, !self.options.upgrades(provider))
                        .is_none() =>
            {
                // An installed package is sufficient, but a source in the CLI configuration or an archive beside the package may
                // have a newer version. For providers that the user installed, no other source is queried, not even for an
                // upgrade.
                let more = from_sources(Some(found.clone()));
                let implied = settings.config.provider_installation.is_none();
                let registry_only = implied && more.sources.contains(&PackageSource::Direct);
                if !more.sources.is_empty() && !registry_only {
                    return Some(more);
                }
                self.take_newest(provider, constraints, Selection::External(found), old, chooser, emit);
            }
            Some(
                selection @ Selection::Builtin {
                    in_place_of: Some(_), ..
                },
            ) if settings.client.is_some() => {
                // A mirror or the plugin cache may have the required version. No registry is queried, since a built-in provider
                // needs no network.
                let mut more = from_sources(None);
                more.sources.retain(|source| *source != PackageSource::Direct);
                let cached =
                    old.is_some() && !self.options.upgrades(provider) && settings.config.plugin_cache_dir.is_some();
                if more.sources.is_empty() && !cached {
                    self.take(provider, constraints, selection, old, emit);
                } else {
                    more.fallback = Some(selection);
                    return Some(more);
                }
            }
            Some(selection) => self.take_newest(provider, constraints, selection, old, chooser, emit),
            None => {
                let lock_allows = old.is_none_or(|l| self.options.upgrades(provider) || constraints.allows(&l.version));
                if settings.client.is_some() && lock_allows {
                    return Some(from_sources(None));
                }
                let nothing = chooser.nothing(provider, constraints, !self.options.upgrades(provider));
                self.errors.push(nothing);
            }
        }
        None
    }

    /// Selects the newest version on this machine, unless a newer one exists for other platforms only.
    fn take_newest(
        &mut self,
        provider: &Provider,
        constraints: &Constraints,
        selection: Selection,
        old: Option<&Locked>,
        chooser: &Chooser<'_>,
        emit: &mut dyn FnMut(Step<'_>),
    ) {
        match chooser.newer_for_others(provider, constraints, !self.options.upgrades(provider), &selection) {
            Some(incompatible) => self.errors.push(incompatible),
            None => self.take(provider, constraints, selection, old, emit),
        }
    }

    /// Installs the selection from this machine if necessary, and adds it to the new lock file.
    fn take(
        &mut self,
        provider: &Provider,
        constraints: &Constraints,
        selection: Selection,
        old: Option<&Locked>,
        emit: &mut dyn FnMut(Step<'_>),
    ) {
        let mut new = false;
        let entry = match &selection {
            Selection::External(found) | Selection::Installed(found) => {
                let linked = matches!(selection, Selection::Installed(_));
                match self.install_one(provider, constraints, found, old, linked) {
                    Ok((locked, fresh)) => {
                        new = fresh;
                        Some(locked)
                    }
                    Err(diagnostic) => return self.errors.push(diagnostic),
                }
            }
            // A packed provider is used from the pack, so only the lock file is written.
            Selection::Packed(packed) => match self.lock_packed(provider, constraints, packed, old) {
                Ok(locked) => Some(locked),
                Err(diagnostic) => return self.errors.push(diagnostic),
            },
            // The lock file is shared with Terraform: entries for providers that are not installed here are left as they are.
            Selection::Builtin { .. } | Selection::DevOverride(_) | Selection::Reattached => {
                if self.options.upgrades(provider)
                    && let Err(diagnostic) = self.forget(provider)
                {
                    return self.errors.push(diagnostic);
                }
                old.cloned()
            }
        };
        let outcome = Outcome {
            selection,
            locked: old.map(|l| l.version.clone()),
            new,
            how: None,
        };
        self.finish(provider, entry, outcome, emit);
    }

    /// Removes the installed package of a provider that an upgrade replaces by the built-in one. As long as the package and its entry in
    /// the lock file exist, the package would be selected again.
    fn forget(&self, provider: &Provider) -> Result<(), Diagnostic> {
        let dir = discovery::provider_dir(&self.catalog.settings().providers_dir(), provider);
        match std::fs::remove_dir_all(&dir) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Diagnostic::error(
                "Failed to upgrade provider",
                format!("The directory {} cannot be removed: {}.", dir.display(), io_reason(&e)),
            )),
            _ => Ok(()),
        }
    }

    fn finish(&mut self, provider: &Provider, entry: Option<Locked>, outcome: Outcome, emit: &mut dyn FnMut(Step<'_>)) {
        emit(Step::Done(provider, &outcome));
        if let Some(entry) = entry {
            self.lock.providers.insert(provider.clone(), entry);
        }
        self.providers.insert(provider.clone(), outcome);
    }

    fn install_one(
        &self,
        provider: &Provider,
        constraints: &Constraints,
        found: &Found,
        old: Option<&Locked>,
        linked: bool,
    ) -> Result<(Locked, bool), Diagnostic> {
        let failed = |error: io::Error| {
            Diagnostic::error(
                "Failed to install provider",
                format!(
                    "The provider {} {} from {} could not be installed: {}.",
                    provider.for_display(),
                    found.version,
                    found.package.path().display(),
                    io_reason(&error)
                ),
            )
        };
        let hash = found.package.hash().map_err(failed)?;
        let same = old.filter(|old| old.version == found.version);
        if let Some(old) = same
            && !old.hashes.is_empty()
            && !old.hashes.contains(&hash)
        {
            return Err(mismatch(provider, found));
        }
        // Checksums for other platforms stay, because they are for the same version.
        let mut hashes = same.map(|old| old.hashes.clone()).unwrap_or_default();
        hashes.insert(hash);
        let mut fresh = false;
        if !linked {
            let target = self
                .catalog
                .settings()
                .providers_dir()
                .join(provider.to_string())
                .join(found.version.to_string())
                .join(Platform::current().to_string());
            fresh = place(&found.package, &target).map_err(failed)?;
        }
        Ok((
            Locked {
                version: found.version.clone(),
                constraints: constraints.clone(),
                hashes,
            },
            fresh,
        ))
    }
}
