//! Lock file of an installation: its entries, and warnings about it.

use std::collections::BTreeSet;
use std::path::Path;

use addrs::Provider;
use syntax::{Diagnostic, Diagnostics};
use versions::{Constraints, Version};

use super::{InstallOptions, Work};
use crate::lock_file::{LockFile, Locked};
use crate::not_available::packed_mismatch;
use crate::packed::Packed;

/// Returns the warning about providers that the user has started, which are not installed; `None` if there are
/// none.
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

/// Writes the lock file if its versions or checksums changed. If it is read-only, other versions are an error, and new checksums a
/// warning. Returns whether the file was created, and whether it was written at all.
pub(super) fn record(
    new_lock: &LockFile,
    lock: &LockFile,
    dir: &Path,
    options: InstallOptions<'_>,
    warnings: &mut Diagnostics,
) -> Result<(bool, bool), Diagnostics> {
    // Different constraints alone are no change, because writing the file for them would cause needless diffs.
    let mut lock_changed = !new_lock.chooses_as(lock);
    if lock_changed && options.read_only_lock {
        let versions = |file: &LockFile| -> Vec<(Provider, Version)> {
            file.providers
                .iter()
                .map(|(p, l)| (p.clone(), l.version.clone()))
                .collect()
        };
        // New checksums of the same versions are harmless, so they are only a warning.
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
    /// Returns the lock file's entry for a package in the pack.
    pub(super) fn lock_packed(
        &self,
        provider: &Provider,
        constraints: &Constraints,
        packed: &Packed,
        old: Option<&Locked>,
    ) -> Result<Locked, Diagnostic> {
        // After an upgrade to the pack's version, an older installed package must not be selected again.
        if self.options.upgrades(provider) {
            self.forget(provider)?;
        }
        let mut hashes = packed.hashes();
        if let Some(same) = old.filter(|old| old.version == packed.version) {
            if !same.hashes.is_empty() && same.hashes.is_disjoint(&hashes) {
                return Err(packed_mismatch(provider, packed));
            }
            // Checksums for other platforms stay.
            hashes.extend(same.hashes.iter().cloned());
        }
        Ok(Locked {
            version: packed.version.clone(),
            constraints: constraints.clone(),
            hashes,
        })
    }
}
