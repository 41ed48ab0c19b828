//! Which plugin stands for which provider.
//!
//! In order: a provider that is running already (`TF_REATTACH_PROVIDERS`), one under development (`dev_overrides`), an executable
//! that somebody put on this machine and that meets the constraints, the built-in, what `init` has installed. The lock
//! file binds what is not built in; a built-in is part of the executable and stands for every listed version.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use addrs::Provider;
use syntax::{Diagnostic, Diagnostics};

use crate::builtin::BuiltinProvider;
use crate::discovery::{self, Flat, Found, Package, SearchDir};
use crate::install::Askers;
use crate::lock_file::{LockFile, Locked};
use crate::settings::Settings;
use addrs::platform::Platform;
use versions::{Constraints, Version};

/// What stands for a provider.
#[derive(Clone, Debug)]
pub enum Selection {
    /// Ourselves.
    Builtin {
        /// The name it is served under.
        name: String,
        /// The version it stands for under the constraints; none for a part of the language.
        version: Option<Version>,
        /// The protocols it speaks.
        protocols: Vec<u32>,
    },
    /// A package found in one of the directories people put plugins in.
    External(Found),
    /// A package that `init` installed for this working directory.
    Installed(Found),
    /// A provider under development.
    DevOverride(PathBuf),
    /// A provider that somebody else started.
    Reattached,
}

impl Selection {
    /// The version, where it is known.
    #[must_use]
    pub fn version(&self) -> Option<&Version> {
        match self {
            Selection::Builtin { version, .. } => version.as_ref(),
            Selection::External(found) | Selection::Installed(found) => Some(&found.version),
            Selection::DevOverride(_) | Selection::Reattached => None,
        }
    }
}

/// What stands for each provider asked for.
#[derive(Clone, Debug, Default)]
pub struct Selections {
    /// By provider.
    pub providers: BTreeMap<Provider, Selection>,
    /// What the user should know: that something stands in for something else.
    pub warnings: Diagnostics,
}

/// All that a choice depends on.
pub(crate) struct Chooser<'r> {
    pub settings: &'r Settings,
    pub reattached: &'r BTreeSet<Provider>,
    pub lock: &'r LockFile,
    /// Who asks, for errors.
    pub askers: Option<&'r Askers>,
    platform: Platform,
    dirs: Vec<SearchDir>,
    flat: Vec<Flat>,
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
            askers: None,
            platform: Platform::current(),
            dirs,
            flat,
        }
    }

    /// Chooses for one provider. `locked` is the version the lock file binds us to, if it is to be heeded.
    pub fn choose(
        &self,
        provider: &Provider,
        constraints: &Constraints,
        heed_lock: bool,
        warnings: &mut Diagnostics,
    ) -> Result<Selection, Diagnostic> {
        match self.among_what_is_here(provider, constraints, heed_lock, warnings)? {
            Some(selection) => Ok(selection),
            None => Err(self.nothing(provider, constraints, heed_lock)),
        }
    }

    /// The same; `None` if there is nothing on this machine.
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
        if provider.is_builtin() {
            return self.part_of_the_language(provider, constraints).map(Some);
        }
        let locked = self.locked(provider, heed_lock);
        let builtin = self.builtin(provider);
        let candidates = self.candidates(provider);
        let usable = |found: &&Found| {
            constraints.allows(&found.version) && locked.is_none_or(|locked| locked.version == found.version)
        };
        // Of equal versions the first counts: `max_by` would take the last.
        let newest = candidates
            .iter()
            .filter(usable)
            .rev()
            .max_by(|a, b| a.version.cmp(&b.version));
        if let Some(found) = newest {
            if builtin.is_some() {
                warnings.push(overridden("provider", &provider.ty, &found.executable));
            }
            return Ok(Some(Selection::External(found.clone())));
        }
        if let Some((builtin, version)) = self.builtin_for(provider, constraints) {
            return Ok(Some(Selection::Builtin {
                name: builtin.name.clone(),
                version: Some(version.clone()),
                protocols: builtin.protocols.clone(),
            }));
        }
        Ok(self.installed(provider, constraints, locked).map(Selection::Installed))
    }

    /// The choice that the lock file records, if it is to be heeded.
    pub fn locked(&self, provider: &Provider, heed_lock: bool) -> Option<&'r Locked> {
        self.lock.providers.get(provider).filter(|_| heed_lock)
    }

    /// The built-in that stands for a provider under these constraints, and the version it stands for.
    pub fn builtin_for(
        &self,
        provider: &Provider,
        constraints: &Constraints,
    ) -> Option<(&'r BuiltinProvider, &'r Version)> {
        let builtin = self.builtin(provider)?;
        Some((builtin, builtin.version_for(|v| constraints.allows(v))?))
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
            "Provider development overrides are in effect",
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

    fn part_of_the_language(&self, provider: &Provider, constraints: &Constraints) -> Result<Selection, Diagnostic> {
        if !constraints.is_any() {
            return Err(Diagnostic::error(
                "Invalid provider version constraint",
                format!(
                    "The provider {provider} is part of this tool and has no versions of its own: remove the constraint."
                ),
            ));
        }
        match self.settings.builtins.providers.iter().find(|b| b.address == *provider) {
            Some(builtin) => Ok(Selection::Builtin {
                name: builtin.name.clone(),
                version: None,
                protocols: builtin.protocols.clone(),
            }),
            None => Err(Diagnostic::error(
                "Provider not available",
                format!(
                    "There is no provider {provider}: no provider of the name \"{}\" is part of this tool. If the one of \
                     the registry is meant, write its source address in required_providers.",
                    provider.ty
                ),
            )),
        }
    }

    fn builtin(&self, provider: &Provider) -> Option<&'r BuiltinProvider> {
        let found = self.settings.builtins.providers.iter().find(|b| b.address == *provider);
        found.filter(|b| self.settings.allows_builtin(&b.name))
    }

    /// Everything on this machine that could be the provider, in order of the directories.
    fn candidates(&self, provider: &Provider) -> Vec<Found> {
        let mut out: Vec<Found> = self
            .dirs
            .iter()
            .flat_map(|dir| dir.in_mirror(provider, &self.platform))
            .collect();
        // Links to ourselves stand in mirrors so that other tools can use our plugins; to us they are the built-in.
        if let Ok(own) = self.settings.builtins.executable.canonicalize() {
            out.retain(|found| found.executable.canonicalize().ok().as_ref() != Some(&own));
        }
        if *provider == Provider::default_for(provider.ty.clone()) {
            let flat = self.flat.iter().filter(|flat| flat.name == *provider.ty);
            out.extend(flat.map(|flat| Found {
                version: flat.version.clone(),
                package: Package::File(flat.path.clone()),
                executable: flat.path.clone(),
            }));
        }
        out
    }

    fn installed(&self, provider: &Provider, constraints: &Constraints, locked: Option<&Locked>) -> Option<Found> {
        let locked = locked.filter(|locked| constraints.allows(&locked.version))?;
        let installed = discovery::versions_below(&self.settings.providers_dir(), provider, &self.platform);
        installed.into_iter().find(|found| found.version == locked.version)
    }

    /// Why there is no choice: what is asked for, where it was looked for, what was found instead.
    pub fn nothing(&self, provider: &Provider, constraints: &Constraints, heed_lock: bool) -> Diagnostic {
        let (locked, builtin) = (self.locked(provider, heed_lock), self.builtin(provider));
        let candidates = self.candidates(provider);
        let name = provider.for_display();
        let mut text = format!("The provider {name} is required");
        match constraints.is_any() {
            true => text.push_str(", in any version"),
            false => {
                let _ = write!(text, " in a version that meets \"{constraints}\"");
            }
        }
        text.push_str(", but it is not available.\n");
        for asker in self.askers.and_then(|a| a.get(provider)).into_iter().flatten() {
            let _ = writeln!(text, "  - {asker}");
        }
        if let Some(locked) = locked {
            if constraints.allows(&locked.version) {
                let _ = write!(
                    text,
                    "\nThe dependency lock file has chosen version {}, and that is not installed: run init to install it, \
                     or init -upgrade to choose another.\n",
                    locked.version
                );
            } else {
                let _ = write!(
                    text,
                    "\nThe dependency lock file has chosen version {}, which does not meet the constraints: run \
                     init -upgrade to choose another.\n",
                    locked.version
                );
            }
        }
        if let Some(version) = builtin.and_then(|b| b.version.as_ref()) {
            let _ = write!(
                text,
                "\nThe built-in provider stands for version {version} and for earlier releases of the same major version; \
                 none of these meets the constraints.\n"
            );
        } else if self.settings.builtins.providers.iter().any(|b| b.address == *provider) {
            let _ = write!(
                text,
                "\nThere is a built-in provider of this name, but it is switched off.\n"
            );
        }
        if !candidates.is_empty() {
            text.push_str("\nThese versions are on this machine, but cannot be used:\n");
            for found in &candidates {
                let _ = writeln!(text, "  - {} ({})", found.version, found.executable.display());
            }
        }
        let others = self
            .flat
            .iter()
            .filter(|f| f.name == *provider.ty && &*provider.namespace != "hashicorp");
        for flat in others {
            let _ = write!(
                text,
                "\nThe file {} does not say which namespace it belongs to and stands for hashicorp/{} only. For {name}, put it \
                 into {}/{}/{}/{} below a plugin directory.\n",
                flat.path.display(),
                flat.name,
                provider,
                flat.version,
                self.platform,
                flat.path.file_name().unwrap_or_default().to_string_lossy()
            );
        }
        let existing: Vec<String> = self
            .dirs
            .iter()
            .filter(|d| d.path.is_dir())
            .map(|d| format!("  - {}\n", d.path.display()))
            .collect();
        text.push_str("\nIt was looked for in these directories:\n");
        match existing.is_empty() {
            true => text.push_str("  (none of the usual plugin directories exists)\n"),
            false => text.extend(existing),
        }
        if locked.is_none() {
            text.push_str("\nRun init to have it installed, if it can be.");
        } else {
            text.truncate(text.trim_end().len());
        }
        Diagnostic::error("Provider not available", text)
    }
}

/// The warning that an executable stands in for a built-in plugin.
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
