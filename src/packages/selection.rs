//! Provider selection: which plugin serves a provider address.
//!
//! The first of these that is available is selected:
//!
//! 1. a provider process that the user has started (`TF_REATTACH_PROVIDERS`)
//! 2. a provider under development (`dev_overrides`)
//! 3. an executable that the user installed and that meets the constraints
//! 4. the built-in provider, if its own version is the required or locked one
//! 5. the package that `init` has installed
//! 6. the package in the pack
//! 7. the built-in provider in place of an earlier or the locked version, with a warning
//!
//! A locked version is binding in 3, 5 and 6, and decides between 4 and 7. The lock file has no effect on 1 and 2.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use addrs::Provider;
use syntax::{Diagnostic, Diagnostics};

use crate::builtin::BuiltinProvider;
use crate::discovery::{self, Flat, Found, Package, SearchDir};
use crate::lock_file::{LockFile, Locked};
use crate::packed::Packed;
use crate::settings::Settings;
use addrs::platform::Platform;
use versions::{Constraints, Version};

/// Descriptions of the blocks and objects that require each provider, such as `required_providers of the root module: "~> 1.0"
/// (main.tf line 3)`.
pub type Origins = BTreeMap<Provider, Vec<String>>;

pub const DEVELOPMENT: &str = "Provider development overrides are in effect";

/// Advice for using a plugin that comes with the configuration.
pub(crate) const LOCAL_PLUGIN_ADVICE: &str =
    "If it is meant to be used, run init, or set MONOFORM_LOCAL_PLUGINS=1 in the environment.";

/// Selected plugin of a provider.
#[derive(Clone, Debug)]
pub enum Selection {
    /// Built-in provider, served by this executable.
    Builtin {
        /// Name in `internal-plugin provider NAME`.
        name: String,
        /// Version of the official provider that it implements; `None` for a part of the language.
        version: Option<Version>,
        /// Required or locked version that it replaces, if it differs.
        in_place_of: Option<Version>,
        /// Plugin protocols that the provider speaks.
        protocols: Vec<u32>,
    },
    /// Package in a search directory.
    External(Found),
    /// Package that `init` installed for this working directory.
    Installed(Found),
    /// Package in the pack.
    Packed(Packed),
    /// Executable of a provider under development.
    DevOverride(PathBuf),
    /// Provider process that the user has started.
    Reattached,
}

impl Selection {
    /// Returns the version, if it is known.
    #[must_use]
    pub fn version(&self) -> Option<&Version> {
        match self {
            Selection::Builtin { version, .. } => version.as_ref(),
            Selection::External(found) | Selection::Installed(found) => Some(&found.version),
            Selection::Packed(packed) => Some(&packed.version),
            Selection::DevOverride(_) | Selection::Reattached => None,
        }
    }
}

/// Selected plugins of the required providers.
#[derive(Clone, Debug, Default)]
pub struct Selections {
    pub providers: BTreeMap<Provider, Selection>,
    /// Warnings, such as that a built-in provider is used in place of another version.
    pub warnings: Diagnostics,
}

/// Inputs of provider selection.
pub(crate) struct Chooser<'r> {
    pub settings: &'r Settings,
    pub reattached: &'r BTreeSet<Provider>,
    pub lock: &'r LockFile,
    /// Requirement origins, for errors.
    pub origins: Option<&'r Origins>,
    /// True for an installation, which records the selection in the lock file and starts no plugin.
    pub installing: bool,
    pub(crate) platform: Platform,
    pub(crate) dirs: Vec<SearchDir>,
    pub(crate) flat: Vec<Flat>,
    /// Path of this executable, without links.
    own: Option<PathBuf>,
}

impl<'r> Chooser<'r> {
    pub fn new(settings: &'r Settings, reattached: &'r BTreeSet<Provider>, lock: &'r LockFile) -> Chooser<'r> {
        let dirs = discovery::search_dirs(settings);
        let own = settings.builtins.executable.canonicalize().ok();
        let flat = dirs
            .iter()
            .flat_map(|dir| dir.in_flat("provider", own.as_deref()))
            .collect();
        Chooser {
            settings,
            reattached,
            lock,
            origins: None,
            installing: false,
            platform: Platform::current(),
            dirs,
            flat,
            own,
        }
    }

    /// Selects the plugin of a provider. The version in the lock file is binding if `heed_lock` is set. It is an error if there is no
    /// such plugin, or if a newer version is here for other platforms only.
    pub fn choose(
        &self,
        provider: &Provider,
        constraints: &Constraints,
        heed_lock: bool,
        warnings: &mut Diagnostics,
    ) -> Result<Selection, Diagnostic> {
        match self.among_what_is_here(provider, constraints, heed_lock, warnings)? {
            Some(selection) => match self.newer_for_others(provider, constraints, heed_lock, &selection) {
                Some(incompatible) => Err(incompatible),
                None => Ok(selection),
            },
            None => Err(self.nothing(provider, constraints, heed_lock)),
        }
    }

    /// Selects from the plugins on this machine; `None` if none of them may run and meets the constraints and the locked version.
    pub fn among_what_is_here(
        &self,
        provider: &Provider,
        constraints: &Constraints,
        heed_lock: bool,
        warnings: &mut Diagnostics,
    ) -> Result<Option<Selection>, Diagnostic> {
        if self.reattached.contains(provider) {
            return Ok(Some(Selection::Reattached));
        }
        if let Some(dir) = self.settings.config.dev_overrides.get(provider) {
            return self.dev_override(provider, dir, warnings).map(Some);
        }
        // Constraints are ignored, because the language's own providers have no versions.
        if provider.is_builtin() {
            return self.part_of_the_language(provider).map(Some);
        }
        let locked = self.locked(provider, heed_lock);
        let builtin = self.builtin_for(provider, constraints, heed_lock);
        let candidates = self.candidates(provider);
        let usable = |found: &&Found| {
            constraints.allows(&found.version) && locked.is_none_or(|locked| locked.version == found.version)
        };
        // If versions are equal, the first directory wins; `max_by` alone would return the last.
        let (usable, left_alone): (Vec<&Found>, Vec<&Found>) = candidates
            .iter()
            .filter(usable)
            .partition(|found| self.may_run(provider, found));
        let newest = usable.into_iter().rev().max_by(|a, b| a.version.cmp(&b.version));
        if let Some(found) = newest {
            if self.builtin(provider).is_some() {
                warnings.push(overridden("provider", &provider.ty, &found.executable));
            }
            return Ok(Some(Selection::External(found.clone())));
        }
        let own_version = matches!(&builtin, Some(Selection::Builtin { in_place_of: None, .. }));
        let installed = || self.installed(provider, constraints, locked).map(Selection::Installed);
        let packed = || self.packed(provider, constraints, locked).map(Selection::Packed);
        let selection = match own_version {
            true => builtin,
            false => installed().or_else(packed).or(builtin),
        };
        // The ignored plugin is reported only if another plugin is selected. If none is, the error names this
        // plugin.
        if let (Some(_), Some(found)) = (&selection, left_alone.first()) {
            warnings.push(Diagnostic::warning(
                "Plugin of the configuration not used",
                format!(
                    "{} lies in the directory of the configuration, and init has not recorded it in the dependency lock file, so that \
                     it is not run. {LOCAL_PLUGIN_ADVICE}",
                    found.executable.display()
                ),
            ));
        }
        Ok(selection)
    }

    /// Returns true if a provider on this machine may run. One that comes with the configuration must be recorded in the lock
    /// file, unless this is an installation or `MONOFORM_LOCAL_PLUGINS` is set: a configuration from elsewhere must not run a program
    /// that comes with it.
    pub(crate) fn may_run(&self, provider: &Provider, found: &Found) -> bool {
        let recorded = || {
            let locked = self.lock.providers.get(provider);
            locked.is_some_and(|locked| locked.version == found.version && !locked.hashes.is_empty())
        };
        !found.of_configuration || self.installing || self.settings.allows_local_plugins() || recorded()
    }

    /// Finds the newest package in the pack that meets the constraints and, if a version is locked, has that version.
    fn packed(&self, provider: &Provider, constraints: &Constraints, locked: Option<&Locked>) -> Option<Packed> {
        let carried = self.settings.builtins.carried.packages_for(provider, &self.platform);
        carried.into_iter().find(|packed| {
            constraints.allows(&packed.version) && locked.is_none_or(|locked| locked.version == packed.version)
        })
    }

    /// Returns the lock file's entry for a provider; `None` without `heed_lock`, because the entry is not binding then.
    pub fn locked(&self, provider: &Provider, heed_lock: bool) -> Option<&'r Locked> {
        self.lock.providers.get(provider).filter(|_| heed_lock)
    }

    /// Returns the built-in provider, if it can be used under these constraints and with the entry of the lock file.
    pub fn builtin_for(&self, provider: &Provider, constraints: &Constraints, heed_lock: bool) -> Option<Selection> {
        let builtin = self.builtin(provider)?;
        let version = builtin.version.clone()?;
        let locked = self.locked(provider, heed_lock).map(|locked| &locked.version);
        // A locked version that no longer meets the constraints is ignored.
        let locked = locked.filter(|locked| constraints.allows(locked));
        let in_place_of = if builtin.meets(|v| constraints.allows(v)) {
            locked.filter(|locked| **locked != version)
        } else {
            let earlier = builtin.newest_earlier(|v| constraints.allows(v))?;
            Some(locked.unwrap_or(earlier))
        };
        if in_place_of.is_some() && self.settings.exact_builtin(&builtin.name) {
            return None;
        }
        Some(Selection::Builtin {
            name: builtin.name.clone(),
            version: Some(version),
            in_place_of: in_place_of.cloned(),
            protocols: builtin.protocols.clone(),
        })
    }

    /// Returns the warning about built-in providers that are used in place of other versions, if there are any.
    pub fn substituted<'s>(
        &self,
        selections: impl IntoIterator<Item = (&'s Provider, &'s Selection)>,
    ) -> Option<Diagnostic> {
        let (mut lines, mut unreadable, mut names) = (String::new(), String::new(), Vec::new());
        for (provider, selection) in selections {
            let Selection::Builtin {
                name,
                version: Some(version),
                in_place_of: Some(other),
                ..
            } = selection
            else {
                continue;
            };
            let display = provider.for_display();
            let locked = self
                .lock
                .providers
                .get(provider)
                .is_some_and(|locked| locked.version == *other);
            let by = if locked { " of the dependency lock file" } else { "" };
            let _ = write!(lines, "\n  - {display} {version}, built in, in place of {other}{by}");
            let types = self
                .builtin(provider)
                .map(|b| b.unreadable_by(other))
                // Returning to the other release would fail because of the state, so the user is warned before the first apply.
                .unwrap_or_default();
            if !types.is_empty() {
                let _ = write!(
                    unreadable,
                    "\n\nThe schema versions that {display} {version} records for {} are newer than {display} {other} accepts: once \
                     such objects are in the state, that release refuses it.",
                    types.join(" and ")
                );
            }
            names.push(name.as_str());
        }
        if names.is_empty() {
            return None;
        }
        Some(Diagnostic::warning(
            "Built-in provider version differs",
            format!(
                "Versions of providers that are required or locked are not installed. Used instead:{lines}{unreadable}\n\nTo insist on \
                 the exact versions, set {}={} in the environment, or exact_internal_plugins in the CLI configuration, and run init.",
                crate::settings::EXACT_BUILTINS,
                names.join(",")
            ),
        ))
    }

    fn dev_override(
        &self,
        provider: &Provider,
        dir: &std::path::Path,
        warnings: &mut Diagnostics,
    ) -> Result<Selection, Diagnostic> {
        let Some(executable) = discovery::executable_in(dir, &provider.ty) else {
            return Err(Diagnostic::error(
                "Invalid provider development override",
                format!(
                    "The CLI configuration says that the provider {} is under development in {}, but there is no file \
                     terraform-provider-{} in that directory.",
                    provider.for_display(),
                    dir.display(),
                    provider.ty
                ),
            ));
        };
        warnings.push(Diagnostic::warning(
            DEVELOPMENT,
            format!(
                "The CLI configuration says that the provider {} is under development in {}. It is used whatever its \
                 version, and its checksum is not verified. What it does may be incompatible with releases of the \
                 provider, and so may be the state it leaves.",
                provider.for_display(),
                dir.display()
            ),
        ));
        Ok(Selection::DevOverride(executable))
    }

    /// Selects a provider that is part of the language. Version constraints are ignored; only `init` refuses them.
    fn part_of_the_language(&self, provider: &Provider) -> Result<Selection, Diagnostic> {
        match self
            .settings
            .builtins
            .providers
            .iter()
            .find(|b| b.address.is_same_package(provider))
        {
            Some(builtin) => Ok(Selection::Builtin {
                name: builtin.name.clone(),
                version: None,
                in_place_of: None,
                protocols: builtin.protocols.clone(),
            }),
            None => Err(self.no_part_of_the_language(provider)),
        }
    }

    pub(crate) fn builtin(&self, provider: &Provider) -> Option<&'r BuiltinProvider> {
        let found = self
            .settings
            .builtins
            .providers
            .iter()
            .find(|b| b.address.is_same_package(provider));
        found.filter(|b| self.settings.allows_builtin(&b.name))
    }

    /// Returns true if an executable is this one. Users put links to it into mirrors for other tools; such a link is the built-in
    /// plugin.
    fn is_own(&self, executable: &std::path::Path) -> bool {
        let own = self.own.as_deref();
        own.is_some() && executable.canonicalize().ok().as_deref() == own
    }

    /// Returns all plugins on this machine that could serve the provider, in the order of the search directories.
    pub(crate) fn candidates(&self, provider: &Provider) -> Vec<Found> {
        let mut out: Vec<Found> = self
            .dirs
            .iter()
            .flat_map(|dir| dir.in_mirror(provider, &self.platform))
            .collect();
        out.retain(|found| !self.is_own(&found.executable));
        // A name in flat layout contains no namespace, so it is used for the default namespace only.
        if *provider == Provider::default_for(provider.ty.clone()) {
            let flat = self.flat.iter().filter(|flat| flat.name == *provider.ty);
            out.extend(flat.map(|flat| Found {
                version: flat.version.clone(),
                package: Package::File(flat.path.clone()),
                executable: flat.path.clone(),
                of_configuration: flat.of_configuration,
            }));
        }
        out
    }

    fn installed(&self, provider: &Provider, constraints: &Constraints, locked: Option<&Locked>) -> Option<Found> {
        let locked = locked.filter(|locked| constraints.allows(&locked.version))?;
        let mut installed = discovery::versions_below(&self.settings.providers_dir(), provider, &self.platform);
        installed.retain(|found| !self.is_own(&found.executable));
        installed.into_iter().find(|found| found.version == locked.version)
    }
}

/// Returns the warning that an executable overrides a built-in plugin.
pub(crate) fn overridden(kind: &str, name: &str, executable: &std::path::Path) -> Diagnostic {
    Diagnostic::warning(
        "Internal plugin overridden",
        format!(
            "{} overrides an internal plugin for {name}-{kind}.\n\nIf this is not intended, remove the file: without it the \
             plugin inside this executable is used.",
            executable.display()
        ),
    )
}
