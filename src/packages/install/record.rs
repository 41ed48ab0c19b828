//! What an installation leaves in the lock file, and what is left alone.

use std::collections::BTreeSet;
use std::path::Path;

use addrs::Provider;
use syntax::{Diagnostic, Diagnostics};
use versions::{Constraints, Version};

use super::{InstallOptions, Work};
use crate::lock_file::{LockFile, Locked};
use crate::not_available::packed_mismatch;
use crate::packed::Packed;

/// What is said of providers that the user has started: they are not installed.
pub(super) fn unmanaged(reattached: &BTreeSet<Provider>) -> Option<Diagnostic> {
    let names: Vec<String> = reattached
        .iter()
        .map(|p| format!("\n  - {}", p.for_display()))
        .collect();
    (!names.is_empty()).then(|| {
        Diagnostic::warning(
            "Unmanaged providers are in effect",
            format!(
                "The environment variable TF_REATTACH_PROVIDERS says that these providers are running already:{}\n\nThey are \
                 used as they are. Nothing is installed for them, and what the dependency lock file has about them stays.",
                names.concat()
            ),
        )
    })
}

/// Writes the lock file if its choices changed. Returns whether it was created, and whether it was written at all.
pub(super) fn record(
    new_lock: &LockFile,
    lock: &LockFile,
    dir: &Path,
    options: InstallOptions<'_>,
    warnings: &mut Diagnostics,
) -> Result<(bool, bool), Diagnostics> {
    // The text of constraints alone is no change: the choices are the same.
    let mut lock_changed = !new_lock.chooses_as(lock);
    if lock_changed && options.read_only_lock {
        let versions = |file: &LockFile| -> Vec<(Provider, Version)> {
            file.providers
                .iter()
                .map(|(p, l)| (p.clone(), l.version.clone()))
                .collect()
        };
        if versions(new_lock) != versions(lock) {
            return Err(Diagnostic::error(
                "Provider dependency changes detected",
                "The providers that are required, or their versions, are not those of the dependency lock file, which \
                 -lockfile=readonly keeps as it is. Run init without that option to record the new choice.",
            )
            .into());
        }
        warnings.push(Diagnostic::warning(
            "Provider lock file not updated",
            format!(
                "Checksums were found that the file {} does not record, and -lockfile=readonly keeps it as it is. Run init \
                 without that option to record them.",
                crate::lock_file::FILE_NAME
            ),
        ));
        lock_changed = false;
    }
    let lock_created = lock_changed && !dir.join(crate::lock_file::FILE_NAME).exists();
    if lock_changed {
        new_lock.save(dir)?;
    }
    Ok((lock_created, lock_changed))
}

impl Work<'_> {
    /// The entry of the lock file for a package that our executable carries.
    pub(super) fn lock_packed(
        &self,
        provider: &Provider,
        constraints: &Constraints,
        packed: &Packed,
        old: Option<&Locked>,
    ) -> Result<Locked, Diagnostic> {
        if self.options.upgrades(provider) {
            self.forget(provider)?;
        }
        let mut hashes = packed.hashes();
        if let Some(same) = old.filter(|old| old.version == packed.version) {
            if !same.hashes.is_empty() && same.hashes.is_disjoint(&hashes) {
                return Err(packed_mismatch(provider, packed));
            }
            hashes.extend(same.hashes.iter().cloned());
        }
        Ok(Locked {
            version: packed.version.clone(),
            constraints: constraints.clone(),
            hashes,
        })
    }
}
