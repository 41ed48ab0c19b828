//! The plugins that are available to one working directory: which executable serves a provider or provisioner address.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use addrs::Provider as Address;
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, Diagnostics};
use versions::Constraints;

use crate::discovery::{self, Flat, Found};
use crate::lock_file::LockFile;
use crate::not_available;
use crate::packed::Packed;
use crate::selection::Origins;
use crate::selection::{self, Chooser, LOCAL_PLUGIN_ADVICE, Selection, Selections};
use crate::settings::Settings;
use crate::sources::{self, PackageSource};

/// Plugins of one working directory, with the selections made so far.
pub struct Catalog {
    settings: Settings,
    reattached: BTreeSet<Address>,
    known: Mutex<Known>,
}

/// Selections, verifications and checksums so far.
#[derive(Default)]
struct Known {
    selections: BTreeMap<Address, Selection>,
    /// Packages whose checksums were verified, or that need no verification, by path.
    verified: BTreeSet<PathBuf>,
    /// `h1:` checksums of the packages that were read, by path.
    checksums: BTreeMap<PathBuf, String>,
}

/// File in the data directory with the checksums of provisioners that come with the configuration. The lock file has no entries
/// for provisioners.
const PROVISIONERS: &str = "provisioners.json";

/// Reads the checksums of provisioners that `init` recorded, by name. A missing or damaged file counts as empty: it allows no
/// provisioner of the configuration to run.
fn recorded_provisioners(settings: &Settings) -> BTreeMap<String, String> {
    let text = std::fs::read(settings.data_dir.join(PROVISIONERS)).ok();
    text.and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default()
}

/// Executable that serves a provisioner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProvisionerSelection {
    /// Built into this executable.
    Builtin,
    /// Executable in a plugin directory.
    External(PathBuf),
}

impl Catalog {
    /// Creates a catalog. `reattached` are the providers that the user has started, which are used as they are.
    #[must_use]
    pub fn new(mut settings: Settings, reattached: BTreeSet<Address>) -> Catalog {
        // Executing a path without a directory would search PATH for it.
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

    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn reattached(&self) -> &BTreeSet<Address> {
        &self.reattached
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        // Every change to the maps is a single call, so a panic elsewhere leaves them consistent.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all selections, verifications and checksums. An installation calls it, because it may have replaced packages.
    pub(crate) fn reset(&self) {
        *self.known() = Known::default();
    }

    /// Selects the plugin for each of these providers, and keeps the selections for [`Catalog::select`].
    ///
    /// # Errors
    /// A provider is not available in a version that meets its constraints.
    pub fn resolve(&self, requirements: &BTreeMap<Address, Constraints>) -> Result<Selections, Diagnostics> {
        self.resolve_for(requirements, &Origins::new())
    }

    /// Selects plugins as [`Catalog::resolve`] does; errors name the requirement origins.
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
        // All errors are reported together, so a user fixes the requirements in one pass.
        warnings.extend(chooser.substituted(&providers));
        self.known().selections.extend(providers.clone());
        Ok(Selections { providers, warnings })
    }

    /// Returns true if packages of a provider may be downloaded: requests are allowed, and one of its package sources is not on
    /// this machine.
    #[must_use]
    pub fn may_download(&self, provider: &Address) -> bool {
        let sources = sources::sources(&self.settings, provider);
        let local = |source: &PackageSource| matches!(source, PackageSource::Packed(_));
        self.settings.client.is_some() && !sources.iter().all(local)
    }

    /// Returns true if the provider is part of the language, or if a built-in provider may be used that meets these constraints or may
    /// replace a version that meets them.
    #[must_use]
    pub fn is_built_in(&self, provider: &Address, constraints: &Constraints) -> bool {
        // An empty lock file is used, because the question is which versions could be used, not which one was
        // selected.
        let nothing = LockFile::default();
        let chooser = Chooser::new(&self.settings, &self.reattached, &nothing);
        provider.is_builtin() || chooser.builtin_for(provider, constraints, false).is_some()
    }

    /// Returns the selected plugin of a provider, with its package verified against the lock file. A provider that was not
    /// resolved before is resolved now, without constraints.
    ///
    /// # Errors
    /// The provider is not available, its package cannot be read or unpacked, or the package is not the one that the lock file records.
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
            // Only a plugin that is about to run is verified: a checksum takes as long as reading the whole package.
            Selection::External(ref found) | Selection::Installed(ref found) => self.verify(provider, found).await?,
            Selection::Packed(packed) if packed.executable.is_none() => return self.ready(provider, packed).await,
            _ => {}
        }
        Ok(selection)
    }

    /// Prepares a package of the pack to be started: unpacked, or to be run from memory. This happens once.
    async fn ready(&self, provider: &Address, mut packed: Packed) -> Result<Selection, Diagnostics> {
        let (lock, _) = LockFile::load(&self.settings.working_dir)?;
        let locked = lock
            .providers
            .get(provider)
            .filter(|locked| locked.version == packed.version);
        let locked = locked.filter(|locked| !locked.hashes.is_empty());
        // A pack's signature proves who made it, not that this package is the locked one.
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

    /// Finds the newest executable in a plugin directory that serves a provisioner. Executables that come with the configuration
    /// count only if `may_run` accepts them.
    fn external_provisioner(&self, name: &str, may_run: impl Fn(&Flat) -> bool) -> Option<Flat> {
        // Users put links to this executable into plugin directories for other tools. Such a link is the built-in
        // provisioner.
        let own = self.settings.builtins.executable.canonicalize().ok();
        let dirs = discovery::search_dirs(&self.settings);
        let all = dirs.iter().flat_map(|dir| dir.in_flat("provisioner", own.as_deref()));
        let mut best: Option<Flat> = None;
        // If versions are equal, the first directory wins, as for providers.
        for flat in all.filter(|flat| flat.name == name && (!flat.of_configuration || may_run(flat))) {
            if best.as_ref().is_none_or(|best| flat.version > best.version) {
                best = Some(flat);
            }
        }
        best
    }

    /// Finds the newest executable for a provisioner in a plugin directory, among those that may run now: installed by the user, recorded
    /// by `init` with this checksum, or allowed by `MONOFORM_LOCAL_PLUGINS`.
    fn recorded_provisioner(&self, name: &str) -> Option<PathBuf> {
        let recorded = OnceCell::new();
        let is_recorded = |flat: &Flat| {
            // The file is read only if a plugin of the configuration was found, which is rare.
            let recorded = recorded.get_or_init(|| recorded_provisioners(&self.settings));
            let hash = recorded.get(name);
            hash.is_some_and(|hash| crate::hash::single_file(&flat.path).is_ok_and(|found| found == *hash))
        };
        let found = self.external_provisioner(name, |flat| self.settings.allows_local_plugins() || is_recorded(flat));
        found.map(|flat| flat.path)
    }

    /// Records the checksums of those of the named provisioners that come with the configuration. They may run from then on. `init` calls
    /// this function.
    ///
    /// # Errors
    /// An executable cannot be read, or the data directory cannot be written.
    pub fn record_provisioners<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<(), Diagnostic> {
        let mut found = BTreeMap::new();
        let failed = |path: &Path, error: std::io::Error| {
            Diagnostic::error(
                "Failed to record provisioners",
                format!("{}: {}.", path.display(), files::io_reason(&error)),
            )
        };
        for name in names {
            let flat = self.external_provisioner(name, |_| true);
            if let Some(flat) = flat.filter(|flat| flat.of_configuration) {
                let hash = crate::hash::single_file(&flat.path).map_err(|error| failed(&flat.path, error))?;
                found.insert(name.to_owned(), hash);
            }
        }
        // The record is up to date. If nothing has to be recorded, the data directory is not created.
        if found == recorded_provisioners(&self.settings) {
            return Ok(());
        }
        let path = self.settings.data_dir.join(PROVISIONERS);
        let text = serde_json::json!(found).to_string();
        std::fs::create_dir_all(&self.settings.data_dir)
            // The record is replaced by a rename, so that a crash leaves the old record, and not half of the
            // new one.
            .and_then(|()| files::replace(&path, text.as_bytes(), files::Policy::SHARED))
            .map_err(|error| failed(&path, error))
    }

    fn has_builtin_provisioner(&self, name: &str) -> bool {
        self.settings.builtins.provisioners.iter().any(|n| n == name) && self.settings.allows_builtin(name)
    }

    /// Selects the plugin for a provisioner.
    ///
    /// # Errors
    /// There is no provisioner of that name.
    pub fn select_provisioner(&self, name: &str) -> Result<ProvisionerSelection, Diagnostics> {
        match self.recorded_provisioner(name) {
            Some(path) => Ok(ProvisionerSelection::External(path)),
            None if self.has_builtin_provisioner(name) => Ok(ProvisionerSelection::Builtin),
            None => Err(self.no_provisioner(name).into()),
        }
    }

    /// Returns an error for each missing provisioner, and a warning for each executable that overrides a built-in one.
    #[must_use]
    pub fn check_provisioners<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Diagnostics {
        let mut out = Diagnostics::new();
        for name in names {
            match self.recorded_provisioner(name) {
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
        let installed: Vec<Flat> = dirs.iter().flat_map(|dir| dir.in_flat("provisioner", None)).collect();
        let known = builtin
            .iter()
            .copied()
            .chain(installed.iter().map(|flat| flat.name.as_str()));
        let hint = did_you_mean(suggest(name, known));
        let built_in = match builtin.is_empty() {
            true => "None is built in.".to_owned(),
            false => format!("Built in are: {}.", builtin.join(", ")),
        };
        // The list is in search order, as in the message about a provider.
        let mut seen: BTreeSet<&Path> = BTreeSet::new();
        let searched: Vec<&Path> = dirs
            .iter()
            .map(|dir| dir.path.as_path())
            .filter(|dir| dir.is_dir() && seen.insert(dir))
            .collect();
        let searched: String = searched.iter().map(|dir| format!("\n  - {}", dir.display())).collect();
        let searched = match searched.is_empty() {
            true => "no plugin directory exists".to_owned(),
            false => format!("these directories were searched:{searched}"),
        };
        let left_out = self.settings.builtins.left_out.iter().find(|(left, _)| *left == name);
        let left_out = left_out.map_or_else(String::new, |(_, feature)| {
            format!(
                " This executable was built without the provisioner. Use a complete build, or one with the feature \"{feature}\"."
            )
        });
        let left_alone = self.external_provisioner(name, |_| true).map_or_else(String::new, |flat| {
            format!(
                "\n\n{} lies in the directory of the configuration, and init has not recorded it, so that it is not run. \
                 {LOCAL_PLUGIN_ADVICE}",
                flat.path.display()
            )
        });
        Diagnostic::error(
            "Missing required provisioner plugin",
            format!(
                "There is no provisioner \"{name}\".{left_out}{hint} {built_in} Others are executables named terraform-provisioner-{name} in a \
                 plugin directory; {searched}{left_alone}"
            ),
        )
    }

    /// Returns the `h1:` checksum of the package of a selected provider, the key under which its schemas are cached. `None` for
    /// providers that may change while they are in use (under development, or started by the user), for built-in ones, and if the
    /// package cannot be read.
    pub async fn checksum(&self, selection: &Selection) -> Option<String> {
        match selection {
            // Most packages were read to be verified. Reading one takes less time than starting it and requesting its
            // schemas.
            Selection::External(found) | Selection::Installed(found) => self.hash(found).await.ok(),
            Selection::Packed(packed) => Some(packed.hash()),
            Selection::Builtin { .. } | Selection::DevOverride(_) | Selection::Reattached => None,
        }
    }

    /// Returns the checksum of a package, which is read only once.
    async fn hash(&self, found: &Found) -> std::io::Result<String> {
        if let Some(hash) = self.known().checksums.get(found.package.path()) {
            return Ok(hash.clone());
        }
        let package = found.package.clone();
        // Packages can have hundreds of megabytes, so the checksum is computed in a thread for blocking work.
        let hash = tokio::task::spawn_blocking(move || package.hash()).await;
        let hash = hash.unwrap_or_else(|error| Err(std::io::Error::other(error)))?;
        let path = found.package.path().to_owned();
        self.known().checksums.insert(path, hash.clone());
        Ok(hash)
    }

    /// Verifies a package against the lock file, once per package.
    async fn verify(&self, provider: &Address, found: &Found) -> Result<(), Diagnostics> {
        if self.known().verified.contains(found.package.path()) {
            return Ok(());
        }
        let (lock, _) = LockFile::load(&self.settings.working_dir)?;
        let locked = lock
            .providers
            .get(provider)
            .filter(|locked| locked.version == found.version);
        // An entry without checksums, as other tools may write it, is not verified.
        if let Some(locked) = locked.filter(|locked| !locked.hashes.is_empty()) {
            let hash = self.hash(found).await.map_err(|error| {
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
