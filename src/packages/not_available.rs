//! Errors for providers that are not available: the requirement origins, every searched directory, other versions and platforms,
//! similar names, and the command that packs the provider for a machine without a network.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use addrs::Provider;
use syntax::Diagnostic;
use syntax::content::suggest;

use crate::discovery::{self, Found};
use crate::mirror_archives::{listed, mirrored};
use crate::packed::{Carried, Packed};
use crate::selection::Origins;
use crate::selection::{Chooser, LOCAL_PLUGIN_ADVICE, Selection};
use crate::settings::{DISABLE_BUILTINS, EXACT_BUILTINS};
use addrs::platform::Platform;
use versions::{Constraints, Version};

/// Limit of the requirement origins that are named.
const ORIGINS: usize = 8;

impl Chooser<'_> {
    /// Returns the error for a provider for which no plugin can be selected.
    pub fn nothing(&self, provider: &Provider, constraints: &Constraints, heed_lock: bool) -> Diagnostic {
        let name = provider.for_display();
        let mut text = format!("The provider {name} is required");
        match constraints.is_any() {
            true => text.push_str(", in any version"),
            false => {
                let _ = write!(text, " in a version that meets \"{constraints}\"");
            }
        }
        text.push_str(", but it is not available.\n");
        let required = self.required_by(provider);
        if !required.is_empty() {
            let _ = writeln!(text, "{required}");
        }
        let locked = self.locked(provider, heed_lock);
        let (candidates, left_alone): (Vec<Found>, Vec<Found>) = self
            .candidates(provider)
            .into_iter()
            .partition(|found| self.may_run(provider, found) || !constraints.allows(&found.version));
        // With a client, this command is `init` itself, so running `init` would not help.
        if locked.is_none() && self.settings.client.is_none() && left_alone.is_empty() {
            let _ = writeln!(text, "\nRun \"{} init\" to install it.", self.settings.program.command);
        }
        if let Some(locked) = locked {
            let advice = match constraints.allows(&locked.version) {
                true => "and that is not installed: run init to install it, or init -upgrade to choose another",
                false => "which does not meet the constraints: run init -upgrade to choose another",
            };
            let _ = writeln!(
                text,
                "\nThe dependency lock file has chosen version {}, {advice}.",
                locked.version
            );
        }
        text.push_str(&self.about_the_builtin(provider, constraints));
        if !left_alone.is_empty() {
            text.push_str(
                "\nThese are in the directory of the configuration. They do not run, because init has not recorded them in the \
                 dependency lock file:\n",
            );
            for found in &left_alone {
                let _ = writeln!(text, "  - {} ({})", found.version, found.executable.display());
            }
            let _ = writeln!(text, "\n{LOCAL_PLUGIN_ADVICE}");
        }
        if !candidates.is_empty() {
            text.push_str("\nThese versions are on this machine, but cannot be used:\n");
            for found in &candidates {
                let _ = writeln!(text, "  - {} ({})", found.version, found.executable.display());
            }
        }
        self.for_other_platforms(provider, &mut text);
        text.push_str(&self.about_the_pack(provider));
        self.name_flat_executables(provider, &mut text);
        text.push_str(&self.searched(provider));
        if let Some(hint) = self.near_name(provider) {
            let _ = writeln!(text, "\n{hint}");
        }
        // The plugin is installed already, so packing another one does not help.
        if !left_alone.is_empty() {
            text.truncate(text.trim_end().len());
            return Diagnostic::error("Provider not available", text);
        }
        let exact = locked.filter(|locked| constraints.allows(&locked.version));
        let _ = write!(
            text,
            "\n{}",
            pack_command(
                self.settings.program,
                provider,
                constraints,
                exact.map(|locked| &locked.version)
            )
        );
        text.truncate(text.trim_end().len());
        Diagnostic::error("Provider not available", text)
    }

    /// Mentions executables in flat layout whose names contain the provider's type but no namespace, so that they count for
    /// another provider.
    fn name_flat_executables(&self, provider: &Provider, text: &mut String) {
        let name = provider.for_display();
        for flat in self.flat_of_another(provider) {
            let mirrors = || {
                self.dirs
                    .iter()
                    .filter(|dir| dir.is_mirror() && dir.applies_to(provider))
            };
            let base = mirrors()
                .find(|dir| flat.path.starts_with(&dir.path))
                .or_else(|| mirrors().next())
                .map_or_else(|| Path::new("a plugin directory"), |dir| &dir.path);
            let place = base
                .join(provider.to_string())
                .join(flat.version.to_string())
                .join(self.platform.to_string());
            let _ = write!(
                text,
                "\nThe name of {} has no namespace, so that the file counts for hashicorp/{} only. For {name}, move it into this \
                 directory:\n  {}\n",
                flat.path.display(),
                flat.name,
                place.display()
            );
        }
    }

    /// Returns the executables in flat layout whose names contain the provider's type but that count for `hashicorp/TYPE` only.
    fn flat_of_another(&self, provider: &Provider) -> impl Iterator<Item = &discovery::Flat> {
        let is_default = *provider == Provider::default_for(provider.ty.clone());
        self.flat
            .iter()
            .filter(move |flat| !is_default && flat.name == *provider.ty)
    }

    /// Returns the error for an address in `terraform.io/builtin` that has no provider.
    pub(crate) fn no_part_of_the_language(&self, provider: &Provider) -> Diagnostic {
        let mut text = format!(
            "There is no provider {provider}: no provider of the name \"{}\" is part of this tool. If the one of the registry is \
             meant, write its source address in required_providers.\n{}",
            provider.ty,
            self.required_by(provider)
        );
        text.truncate(text.trim_end().len());
        Diagnostic::error("Provider not available", text)
    }

    /// Lists the requirement origins of a provider, one a line.
    pub(crate) fn required_by(&self, provider: &Provider) -> String {
        required_by(provider, self.origins)
    }

    fn about_the_builtin(&self, provider: &Provider, constraints: &Constraints) -> String {
        let Some(builtin) = self
            .settings
            .builtins
            .providers
            .iter()
            .find(|b| b.address.is_same_package(provider))
        else {
            return String::new();
        };
        let Some(version) = &builtin.version else {
            return String::new();
        };
        if !self.settings.allows_builtin(&builtin.name) {
            return format!(
                "\nThe provider is built in as version {version}, but switched off ({DISABLE_BUILTINS} in the environment, or \
                 disable_internal_plugins in the CLI configuration).\n"
            );
        }
        let earlier = builtin.newest_earlier(|v| constraints.allows(v)).is_some();
        if self.settings.exact_builtin(&builtin.name) && (earlier || builtin.meets(|v| constraints.allows(v))) {
            return format!(
                "\nThe provider is built in as version {version}, but exactly the required version must be used \
                 ({EXACT_BUILTINS} in the environment, or exact_internal_plugins in the CLI configuration).\n"
            );
        }
        format!(
            "\nThe built-in provider is version {version}, and can be used in place of earlier releases of the same major version; \
             none of these meets the constraints.\n"
        )
    }

    /// Describes the packages of the provider in the pack.
    fn about_the_pack(&self, provider: &Provider) -> String {
        let carried = match &self.settings.builtins.carried {
            Carried::Nothing => return String::new(),
            Carried::Damaged(why) => return format!("\nNothing that this executable carries can be used: {why}.\n"),
            Carried::Pack(pack) => pack,
        };
        let mut lines = String::new();
        for packed in carried
            .index()
            .providers
            .iter()
            .filter(|packed| packed.address == *provider)
        {
            let _ = writeln!(lines, "  - {} for {}", packed.version, packed.platform);
        }
        match lines.is_empty() {
            true => format!(
                "\nThis executable carries other providers, but not {}.\n",
                provider.for_display()
            ),
            false => format!("\nThis executable carries packages of it that cannot be used:\n{lines}"),
        }
    }

    fn for_other_platforms(&self, provider: &Provider, text: &mut String) {
        let mut lines = String::new();
        for dir in self.dirs.iter().filter(|d| d.is_mirror() && d.applies_to(provider)) {
            for (version, platforms) in mirrored(&dir.path, provider) {
                if !platforms.contains(&self.platform) {
                    let _ = writeln!(
                        lines,
                        "  - {version} for {} ({})",
                        listed(&platforms),
                        dir.path.display()
                    );
                }
            }
        }
        if !lines.is_empty() {
            let _ = write!(
                text,
                "\nThese packages are for other platforms than {}:\n{lines}",
                self.platform
            );
        }
    }

    /// Describes the searched directories. A missing directory is listed unless it is the platform directory inside another one.
    fn searched(&self, provider: &Provider) -> String {
        let mut out = String::from("\nThese directories were searched:\n");
        let mut seen: BTreeSet<&Path> = BTreeSet::new();
        let mut all = self.dirs.iter().filter(|dir| dir.applies_to(provider)).peekable();
        if all.peek().is_none() {
            out.push_str("  (none: the CLI configuration names no directory for this provider)\n");
        }
        for dir in all {
            let exists = dir.path.is_dir();
            // Some search directories have subdirectories for platforms, which usually do not exist.
            let for_platform = dir
                .path
                .file_name()
                .is_some_and(|name| *name == *self.platform.to_string());
            if !seen.insert(&dir.path) || (!exists && for_platform) {
                continue;
            }
            let note = if exists { "" } else { " (does not exist)" };
            let _ = writeln!(out, "  - {}{note}", dir.path.display());
        }
        let packages = self.settings.providers_dir();
        if packages.is_dir() && self.lock.providers.contains_key(provider) {
            let _ = writeln!(out, "  - {}", packages.display());
        }
        out
    }

    /// Suggests the provider that was probably meant: one of the same type in another namespace, or one with a similar name.
    pub(crate) fn near_name(&self, provider: &Provider) -> Option<String> {
        let mut known: BTreeSet<Provider> = BTreeSet::new();
        let builtins = self.settings.builtins.providers.iter();
        known.extend(
            builtins
                .filter(|b| self.settings.allows_builtin(&b.name))
                .map(|b| b.address.clone()),
        );
        known.extend(self.origins.into_iter().flat_map(|o| o.keys().cloned()));
        known.extend(self.lock.providers.keys().cloned());
        // The name of a file in flat layout does not contain the namespace. Another part of the error names the file, and the
        // directory that it belongs in.
        let others: Vec<&str> = self.flat_of_another(provider).map(|flat| &*flat.name).collect();
        let flat = self.flat.iter().filter(|flat| !others.contains(&&*flat.name));
        known.extend(flat.map(|flat| Provider::default_for(flat.name.clone())));
        for dir in self.dirs.iter().filter(|d| d.is_mirror()) {
            known.extend(discovery::providers_below(&dir.path));
        }
        known.remove(provider);
        let hint = |found: &Provider| {
            let source = if found.is_builtin() {
                found.to_string()
            } else {
                found.for_display()
            };
            format!(
                "Did you mean {source}? Its source in required_providers is \"{source}\", and the types of its resources begin with \
                 \"{}_\".",
                found.ty
            )
        };
        if let Some(same_type) = known.iter().find(|known| known.ty == provider.ty) {
            return Some(hint(same_type));
        }
        let beside = |known: &&Provider| known.namespace == provider.namespace && known.host == provider.host;
        let types: Vec<&str> = known.iter().filter(beside).map(|known| &*known.ty).collect();
        let near = suggest(&provider.ty, types)?;
        known.iter().filter(beside).find(|known| *known.ty == *near).map(hint)
    }

    /// Returns an error if a newer version than the selected one meets the constraints, but is available for other platforms
    /// only. Those platforms would select it, so an older one is not selected silently here.
    pub(crate) fn newer_for_others(
        &self,
        provider: &Provider,
        constraints: &Constraints,
        heed_lock: bool,
        selection: &Selection,
    ) -> Option<Diagnostic> {
        let Selection::External(found) = selection else {
            return None;
        };
        // The user has chosen the locked version, so newer ones do not matter.
        if self.locked(provider, heed_lock).is_some() {
            return None;
        }
        let mirrors = self.dirs.iter().filter(|d| d.is_mirror() && d.applies_to(provider));
        let mut newest: Option<(Version, String)> = None;
        let mut here: BTreeSet<Version> = BTreeSet::new();
        for dir in mirrors {
            for (version, platforms) in mirrored(&dir.path, provider) {
                if platforms.contains(&self.platform) {
                    here.insert(version);
                } else if version > found.version
                    && constraints.allows(&version)
                    && newest.as_ref().is_none_or(|(newest, _)| version > *newest)
                {
                    let has = format!(
                        "the directory {} has it for {} only",
                        dir.path.display(),
                        listed(&platforms)
                    );
                    newest = Some((version, has));
                }
            }
        }
        let (version, has) = newest.filter(|(version, _)| !here.contains(version))?;
        let required = self.required_by(provider);
        Some(incompatible(
            provider,
            &version,
            &self.platform,
            &[has],
            Some(&found.version),
            &required,
        ))
    }
}

/// Lists the requirement origins of a provider, one a line.
pub(crate) fn required_by(provider: &Provider, origins: Option<&Origins>) -> String {
    let origins = origins.and_then(|o| o.get(provider)).map_or(&[][..], Vec::as_slice);
    let mut lines: Vec<String> = origins
        .iter()
        .take(ORIGINS)
        .map(|origin| format!("  - {origin}"))
        .collect();
    if origins.len() > ORIGINS {
        lines.push("  - and more".to_owned());
    }
    lines.join("\n")
}

/// Returns advice for a machine without a network: the command that packs the provider elsewhere, in the locked version or in one
/// that meets the constraints.
pub(crate) fn pack_command(
    program: addrs::Program,
    provider: &Provider,
    constraints: &Constraints,
    locked: Option<&Version>,
) -> String {
    let version = match locked {
        Some(version) => format!("@{version}"),
        None if constraints.is_any() => String::new(),
        None => format!("@{constraints}"),
    };
    format!(
        "For a machine without a network, make an executable that carries it where there is one (\"help air-gapped\"):\n  \
         {} pack -out=FILE \"-provider={}{version}\"",
        program.command,
        provider.for_display()
    )
}

/// Returns the error that the selected version has no package for this platform. `sources` has a line from each source; `older`
/// is the newest version that has a package.
pub(crate) fn incompatible(
    provider: &Provider,
    version: &Version,
    platform: &Platform,
    sources: &[String],
    older: Option<&Version>,
    required_by: &str,
) -> Diagnostic {
    let name = provider.for_display();
    let mut text =
        format!("Provider {name} v{version} does not have a package available for your current platform, {platform}.");
    if !required_by.is_empty() {
        let _ = write!(text, "\n{required_by}");
    }
    if !sources.is_empty() {
        text.push_str("\n\nThese were asked:");
    }
    for source in sources {
        let _ = write!(text, "\n  - {source}");
    }
    match older {
        Some(older) => {
            let _ = write!(
                text,
                "\n\nThe newest version with a package for {platform} is {older}. Add the missing package, or choose that version in \
                 required_providers: version = \"{older}\"."
            );
        }
        None => text.push_str("\n\nOther versions of this provider may have packages for other platforms."),
    }
    Diagnostic::error("Incompatible provider version", text)
}

/// Returns the error that a package in the pack is not the one that was locked.
pub(crate) fn packed_mismatch(provider: &Provider, packed: &Packed) -> Diagnostic {
    Diagnostic::error(
        "Provider checksum mismatch",
        format!(
            "The package of the provider {} {} that the pack {} carries has none of the checksums that the dependency lock file \
             records for it. If the package is the right one, remove the provider's block from the lock file and run init; \
             otherwise make the pack anew with this lock file.",
            provider.for_display(),
            packed.version,
            packed.pack().display()
        ),
    )
}

/// Returns the error that an installed package is not the one that was locked.
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
