//! Installing providers for a working directory: what `init` does.
//!
//! Installed is only what is neither built in nor otherwise provided for. A package stays where it is; the working
//! directory gets a link to it, and the lock file an entry.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use addrs::Provider;
use syntax::{Diagnostic, Diagnostics};

use crate::discovery::{Found, Package};
use crate::lock_file::{LockFile, Locked};
use crate::platform::Platform;
use crate::registry::Registry;
use crate::selection::{Chooser, Selection};
use crate::version::{Constraints, Version};

/// How to install.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstallOptions {
    /// Choose the newest versions, whatever the lock file says.
    pub upgrade: bool,
    /// Fail rather than change the lock file.
    pub read_only_lock: bool,
}

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct Installation {
    /// For each provider.
    pub providers: BTreeMap<Provider, Outcome>,
    /// The lock file did not exist before.
    pub lock_created: bool,
    /// The lock file was changed or created.
    pub lock_changed: bool,
    /// What the user should know.
    pub warnings: Diagnostics,
}

/// What was done for one provider.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What stands for it now.
    pub selection: Selection,
    /// The lock file had chosen this version before.
    pub locked: Option<Version>,
    /// It was not installed in this version before.
    pub new: bool,
}

impl Registry {
    /// Installs what these requirements need, and writes the lock file.
    pub fn install(
        &self,
        requirements: &BTreeMap<Provider, Constraints>,
        options: InstallOptions,
    ) -> Result<Installation, Diagnostics> {
        let (lock, mut warnings) = LockFile::load(&self.settings().working_dir)?;
        let chooser = Chooser::new(self.settings(), self.reattached(), &lock);
        let mut errors = Diagnostics::new();
        let mut new_lock = LockFile::default();
        let mut providers = BTreeMap::new();
        for (provider, constraints) in requirements {
            let old = lock.providers.get(provider);
            let selection = match chooser.choose(provider, constraints, !options.upgrade, &mut warnings) {
                Ok(selection) => selection,
                Err(diagnostic) => {
                    errors.push(diagnostic);
                    continue;
                }
            };
            let mut new = false;
            let entry = match &selection {
                Selection::External(found) | Selection::Installed(found) => {
                    let linked = matches!(selection, Selection::Installed(_));
                    match self.install_one(provider, constraints, found, old, linked) {
                        Ok((locked, fresh)) => {
                            new = fresh;
                            Some(locked)
                        }
                        Err(diagnostic) => {
                            errors.push(diagnostic);
                            continue;
                        }
                    }
                }
                // Not ours to pin: what others wrote stays.
                Selection::Builtin { .. } | Selection::DevOverride(_) | Selection::Reattached(_) => old.cloned(),
            };
            if let Some(entry) = entry {
                new_lock.providers.insert(provider.clone(), entry);
            }
            providers.insert(
                provider.clone(),
                Outcome {
                    selection,
                    locked: old.map(|l| l.version.clone()),
                    new,
                },
            );
        }
        if errors.has_errors() {
            return Err(errors);
        }
        let lock_changed = new_lock != lock;
        if lock_changed && options.read_only_lock {
            return Err(Diagnostic::error(
                "Provider dependency changes detected",
                "The choice of providers has changed, so the dependency lock file must be changed, too, but it was asked \
                 to leave it as it is. Run init without -lockfile=readonly.",
            )
            .into());
        }
        let lock_created = lock_changed && !self.settings().working_dir.join(crate::lock_file::FILE_NAME).exists();
        if lock_changed {
            new_lock.save(&self.settings().working_dir)?;
        }
        self.reset();
        Ok(Installation {
            providers,
            lock_created,
            lock_changed,
            warnings,
        })
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
                    "The provider {} {} from {} could not be installed: {error}.",
                    provider.for_display(),
                    found.version,
                    found.package.path().display()
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
        let mut hashes = same.map(|old| old.hashes.clone()).unwrap_or_default();
        hashes.insert(hash);
        let mut fresh = false;
        if !linked {
            let target = self
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

/// A package that is not the one that was locked.
pub(crate) fn mismatch(provider: &Provider, found: &Found) -> Diagnostic {
    Diagnostic::error(
        "Provider checksum mismatch",
        format!(
            "The package of the provider {} {} in {} has none of the checksums that the dependency lock file records for \
             it. It was changed since, is damaged, or is built for another platform than those the checksums are of. If \
             the package is the right one, remove the provider's block from the lock file and run init.",
            provider.for_display(),
            found.version,
            found.package.path().display()
        ),
    )
}

/// Makes a package available at `target`; says whether it was not there before.
fn place(package: &Package, target: &Path) -> io::Result<bool> {
    let source = std::path::absolute(package.path())?;
    if let Package::Directory(_) = package
        && std::fs::read_link(target).is_ok_and(|link| link == source)
    {
        return Ok(false);
    }
    // Whatever was there, a link or a copy, is replaced.
    match std::fs::symlink_metadata(target) {
        Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(target)?,
        Ok(_) => std::fs::remove_file(target)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if let Some(parent) = target.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match package {
        Package::Directory(_) => link(&source, target).or_else(|_| copy(&source, target))?,
        Package::File(_) => {
            std::fs::create_dir(target)?;
            let file = target.join(source.file_name().unwrap_or_default());
            link(&source, &file).or_else(|_| std::fs::copy(&source, &file).map(drop))?;
        }
    }
    Ok(true)
}

#[cfg(unix)]
fn link(source: &Path, target: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(source, target)
}

#[cfg(not(unix))]
fn link(_source: &Path, _target: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn copy(source: &Path, target: &Path) -> io::Result<()> {
    std::fs::create_dir(target)?;
    for entry in std::fs::read_dir(source)? {
        let entry = entry?;
        let to = target.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            std::fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
