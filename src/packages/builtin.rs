//! The built-in plugins of the executable, as its table describes them to this crate.

use std::path::PathBuf;

use addrs::Provider;

use crate::packed::Carried;
use versions::Version;

#[derive(Clone, Debug, Default)]
pub struct Builtins {
    /// Path of the executable, which serves the plugins when called with `internal-plugin provider NAME`, `internal-plugin
    /// provisioner NAME` or `internal-plugin state NAME`.
    pub executable: PathBuf,
    pub providers: Vec<BuiltinProvider>,
    /// Names of the provisioners.
    pub provisioners: Vec<String>,
    /// Names of the state stores, which are also the names of their backends: the NAME of `internal-plugin state NAME`.
    pub state_stores: Vec<String>,
    /// Plugins that this build does not contain, each with the Cargo feature that adds it.
    pub left_out: Vec<(&'static str, &'static str)>,
    /// Packages in the pack, if the executable is a pack.
    pub carried: Carried,
}

#[derive(Clone, Debug)]
pub struct BuiltinProvider {
    pub address: Provider,
    /// Name in `internal-plugin provider NAME`.
    pub name: String,
    /// Version of the official provider whose schema and behaviour it implements; `None` for a provider that is part of the
    /// language, which has no versions.
    pub version: Option<Version>,
    /// Earlier releases of the same major version that it may replace.
    pub earlier: Vec<Version>,
    /// Releases that raised the schema version of a resource type.
    pub schema_changes: Vec<SchemaChange>,
    /// Plugin protocols that the provider speaks.
    pub protocols: Vec<u32>,
}

/// A release that raised the schema version of a resource type: earlier releases refuse states with the new version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    pub resource: String,
    /// First release with the new schema version.
    pub since: Version,
    pub version: u64,
}

impl BuiltinProvider {
    #[must_use]
    pub fn meets(&self, allowed: impl Fn(&Version) -> bool) -> bool {
        self.version.as_ref().is_some_and(allowed)
    }

    /// Returns the newest earlier release that a constraint allows; `None` if it allows none.
    #[must_use]
    pub fn newest_earlier(&self, allowed: impl Fn(&Version) -> bool) -> Option<&Version> {
        self.earlier.iter().filter(|v| allowed(v)).max()
    }

    /// Returns the resource types whose objects a release refuses to read after this provider has written them.
    #[must_use]
    pub fn unreadable_by(&self, release: &Version) -> Vec<&str> {
        let newer = self.schema_changes.iter().filter(|change| change.since > *release);
        let mut types: Vec<&str> = newer.map(|change| change.resource.as_str()).collect();
        types.sort_unstable();
        types.dedup();
        types
    }
}
