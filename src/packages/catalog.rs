//! The plugins that are available to one working directory: which executable serves a provider or provisioner address.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use addrs::Provider as Address;
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, Diagnostics};
use versions::Constraints;

use crate::discovery::{self, Found};
use crate::lock_file::LockFile;
use crate::not_available;
use crate::packed::Packed;
use crate::selection::Origins;
use crate::selection::{self, Chooser, Selection, Selections};
use crate::settings::Settings;
use crate::sources::{self, PackageSource};

/// Selects plugins for one working directory, and remembers the selections.
pub struct Catalog {
    settings: Settings,
    reattached: BTreeSet<Address>,
    known: Mutex<Known>,
}

/// What was found out so far.
#[derive(Default)]
struct Known {
    selections: BTreeMap<Address, Selection>,
    /// Packages whose checksums were found good.
    verified: BTreeSet<PathBuf>,
}

/// Which executable serves a provisioner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProvisionerSelection {
    /// The one in our own executable.
    Builtin,
    /// An executable in a plugin directory.
    External(PathBuf),
}

impl Catalog {
    /// A catalog. `reattached` are the providers that the user started and that are used as they are.
    #[must_use]
    pub fn new(mut settings: Settings, reattached: BTreeSet<Address>) -> Catalog {
        // A program's path without a directory would be looked for in PATH.
        for path in [&mut settings.working_dir, &mut settings.data_dir]
            .into_iter()
            .chain(&mut settings.plugin_dirs)
        {
            if let Ok(absolute) = std::path::absolute(&*path) {
                *path = absolute;
            }
        }
        Catalog {
            settings,
            reattached,
            known: Mutex::default(),
        }
    }

    /// The settings it was made with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn reattached(&self) -> &BTreeSet<Address> {
        &self.reattached
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        // Nothing in there can be left half done by a panic.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets earlier selections: something was installed.
    pub(crate) fn reset(&self) {
        *self.known() = Known::default();
    }

    /// Selects what serves each of these providers, and keeps the selections for [`Catalog::select`].
    ///
    /// # Errors
    /// A provider is not available in a version that meets its constraints.
    pub fn resolve(&self, requirements: &BTreeMap<Address, Constraints>) -> Result<Selections, Diagnostics> {
        self.resolve_for(requirements, &Origins::new())
    }

    /// The same; errors name the requirement origins.
    ///
    /// # Errors
    /// A provider is not available in a version that meets its constraints.
    pub fn resolve_for(
        &self,
        requirements: &BTreeMap<Address, Constraints>,
        origins: &Origins,
    ) -> Result<Selections, Diagnostics> {
        let (lock, mut warnings) = LockFile::load(&self.settings.working_dir)?;
        let mut chooser = Chooser::new(&self.settings, &self.reattached, &lock);
        chooser.origins = Some(origins);
        let mut providers = BTreeMap::new();
        let mut errors = Diagnostics::new();
        for (provider, constraints) in requirements {
            match chooser.choose(provider, constraints, true, &mut warnings) {
                Ok(selection) => {
                    providers.insert(provider.clone(), selection);
                }
                Err(diagnostic) => errors.push(diagnostic),
            }
        }
        if errors.has_errors() {
            return Err(errors);
        }
        warnings.extend(chooser.substituted(&providers));
        self.known().selections.extend(providers.clone());
        Ok(Selections { providers, warnings })
    }

    /// Whether a package of a provider may come over the network.
    #[must_use]
    pub fn may_download(&self, provider: &Address) -> bool {
        let sources = sources::sources(&self.settings, provider);
        let local = |source: &PackageSource| matches!(source, PackageSource::Packed(_));
        self.settings.client.is_some() && !sources.iter().all(local)
    }

    /// Whether a provider is built in, may be used, and meets these constraints or may be used in place of a version that does.
    #[must_use]
    pub fn is_built_in(&self, provider: &Address, constraints: &Constraints) -> bool {
        let nothing = LockFile::default();
        let chooser = Chooser::new(&self.settings, &self.reattached, &nothing);
        provider.is_builtin() || chooser.builtin_for(provider, constraints, false).is_some()
    }

    /// What serves a provider, its package verified against the lock file. What was not resolved before is resolved now,
    /// without constraints.
    ///
    /// # Errors
    /// The provider is not available, or its package is not the one that the lock file records.
    pub async fn select(&self, provider: &Address) -> Result<Selection, Diagnostics> {
        let known = self.known().selections.get(provider).cloned();
        let selection = match known {
            Some(selection) => selection,
            None => {
                let mut selections = self.resolve(&[(provider.clone(), Constraints::any())].into())?;
                match selections.providers.remove(provider) {
                    Some(selection) => selection,
                    None => return Err(Diagnostic::error("Provider not available", provider.to_string()).into()),
                }
            }
        };
        match selection {
            Selection::External(ref found) | Selection::Installed(ref found) => self.verify(provider, found).await?,
            Selection::Packed(packed) if packed.executable.is_none() => return self.ready(provider, packed).await,
            _ => {}
        }
        Ok(selection)
    }

    /// Makes a package that our executable carries ready to be started, once.
    async fn ready(&self, provider: &Address, mut packed: Packed) -> Result<Selection, Diagnostics> {
        let (lock, _) = LockFile::load(&self.settings.working_dir)?;
        let locked = lock
            .providers
            .get(provider)
            .filter(|locked| locked.version == packed.version);
        let locked = locked.filter(|locked| !locked.hashes.is_empty());
        if locked.is_some_and(|locked| locked.hashes.is_disjoint(&packed.hashes())) {
            return Err(not_available::packed_mismatch(provider, &packed).into());
        }
        let environment = self.settings.environment.clone();
        let ready = tokio::task::spawn_blocking(move || packed.ready(&environment).map(|()| packed));
        let packed = ready.await.unwrap_or_else(|_| {
            let detail = "The work was interrupted.";
            Err(Diagnostic::error("Failed to unpack provider", detail))
        })?;
        let selection = Selection::Packed(packed);
        self.known().selections.insert(provider.clone(), selection.clone());
        Ok(selection)
    }

    /// The executable in a plugin directory that serves a provisioner; none if the built-in does.
    fn external_provisioner(&self, name: &str) -> Option<PathBuf> {
        let own = self.settings.builtins.executable.canonicalize().ok();
        let dirs = discovery::search_dirs(&self.settings);
        let all = dirs.iter().flat_map(|dir| dir.in_flat("provisioner", own.as_deref()));
        let mut best: Option<discovery::Flat> = None;
        for flat in all.filter(|flat| flat.name == name) {
            if best.as_ref().is_none_or(|best| flat.version > best.version) {
                best = Some(flat);
            }
        }
        best.map(|flat| flat.path)
    }

    fn has_builtin_provisioner(&self, name: &str) -> bool {
        self.settings.builtins.provisioners.iter().any(|n| n == name) && self.settings.allows_builtin(name)
    }

    /// What serves a provisioner.
    ///
    /// # Errors
    /// There is no provisioner of that name.
    pub fn select_provisioner(&self, name: &str) -> Result<ProvisionerSelection, Diagnostics> {
        match self.external_provisioner(name) {
            Some(path) => Ok(ProvisionerSelection::External(path)),
            None if self.has_builtin_provisioner(name) => Ok(ProvisionerSelection::Builtin),
            None => Err(self.no_provisioner(name).into()),
        }
    }

    /// Says which of these provisioners are missing, and warns of executables that override a built-in one.
    #[must_use]
    pub fn check_provisioners<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Diagnostics {
        let mut out = Diagnostics::new();
        for name in names {
            match self.external_provisioner(name) {
                Some(path) if self.has_builtin_provisioner(name) => {
                    out.push(selection::overridden("provisioner", name, &path));
                }
                None if !self.has_builtin_provisioner(name) => out.push(self.no_provisioner(name)),
                _ => {}
            }
        }
        out
    }

    fn no_provisioner(&self, name: &str) -> Diagnostic {
        let builtin = self.settings.builtins.provisioners.iter();
        let builtin: Vec<&str> = builtin
            .map(String::as_str)
            .filter(|n| self.settings.allows_builtin(n))
            .collect();
        let dirs = discovery::search_dirs(&self.settings);
        let installed: Vec<discovery::Flat> = dirs.iter().flat_map(|dir| dir.in_flat("provisioner", None)).collect();
        let known = builtin
            .iter()
            .copied()
            .chain(installed.iter().map(|flat| flat.name.as_str()));
        let hint = did_you_mean(suggest(name, known));
        let built_in = match builtin.is_empty() {
            true => "None is built in.".to_owned(),
            false => format!("Built in are: {}.", builtin.join(", ")),
        };
        // In the order of the search, as in the message about a provider.
        let mut seen: BTreeSet<&std::path::Path> = BTreeSet::new();
        let searched: Vec<&std::path::Path> = dirs
            .iter()
            .map(|dir| dir.path.as_path())
            .filter(|dir| dir.is_dir() && seen.insert(dir))
            .collect();
        let searched: String = searched.iter().map(|dir| format!("\n  - {}", dir.display())).collect();
        let searched = match searched.is_empty() {
            true => "no plugin directory exists".to_owned(),
            false => format!("these directories were searched:{searched}"),
        };
        Diagnostic::error(
            "Missing required provisioner plugin",
            format!(
                "There is no provisioner \"{name}\".{hint} {built_in} Others are executables named terraform-provisioner-{name} in a \
                 plugin directory; {searched}"
            ),
        )
    }

    /// Checks a package against the lock file, once.
    async fn verify(&self, provider: &Address, found: &Found) -> Result<(), Diagnostics> {
        if self.known().verified.contains(found.package.path()) {
            return Ok(());
        }
        let (lock, _) = LockFile::load(&self.settings.working_dir)?;
        let locked = lock
            .providers
            .get(provider)
            .filter(|locked| locked.version == found.version);
        if let Some(locked) = locked.filter(|locked| !locked.hashes.is_empty()) {
            let package = found.package.clone();
            // Packages can have hundreds of megabytes.
            let hash = tokio::task::spawn_blocking(move || package.hash()).await;
            let hash = hash
                .unwrap_or_else(|error| Err(std::io::Error::other(error)))
                .map_err(|error| {
                    let path = found.package.path().display();
                    Diagnostic::error(
                        "Failed to verify provider",
                        format!("The package {path} cannot be read: {}.", files::io_reason(&error)),
                    )
                })?;
            if !locked.hashes.contains(&hash) {
                return Err(not_available::mismatch(provider, found).into());
            }
        }
        self.known().verified.insert(found.package.path().to_owned());
        Ok(())
    }
}
