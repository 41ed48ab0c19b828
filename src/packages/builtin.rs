//! The plugins that are part of the executable, as the executable describes them.

use std::path::PathBuf;

use addrs::Provider;

use crate::packed::Carried;
use versions::Version;

/// All built-in plugins.
#[derive(Clone, Debug, Default)]
pub struct Builtins {
    /// The executable that serves them when called with `internal-plugin provider NAME`, `internal-plugin provisioner NAME`
    /// or `internal-plugin state NAME`.
    pub executable: PathBuf,
    pub providers: Vec<BuiltinProvider>,
    /// The names of the provisioners.
    pub provisioners: Vec<String>,
    /// The names of the state stores: the NAME of `internal-plugin state NAME`, and of the backend.
    pub state_stores: Vec<String>,
    /// The plugins that this build leaves out: the name, and the feature of the package that brings it.
    pub left_out: Vec<(&'static str, &'static str)>,
    /// What the executable carries beside them.
    pub carried: Carried,
}

/// A built-in provider.
#[derive(Clone, Debug)]
pub struct BuiltinProvider {
    pub address: Provider,
    /// The name it is served under: the NAME of `internal-plugin provider NAME`.
    pub name: String,
    /// The version of the official provider whose schema and behaviour it implements; none for a provider that is part of the
    /// language, which has no versions.
    pub version: Option<Version>,
    /// Earlier released versions that it may be used in place of: those of the same major.
    pub earlier: Vec<Version>,
    /// Which releases raised the schema version of a resource type.
    pub schema_changes: Vec<SchemaChange>,
    /// The protocols it can speak.
    pub protocols: Vec<u32>,
}

/// A release that raised the schema version of a resource type: earlier ones refuse states with the new version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// The resource type.
    pub resource: String,
    /// The first release with the new schema version.
    pub since: Version,
    /// The schema version.
    pub version: u64,
}

impl BuiltinProvider {
    /// Whether its own version meets a constraint.
    #[must_use]
    pub fn meets(&self, allowed: impl Fn(&Version) -> bool) -> bool {
        self.version.as_ref().is_some_and(allowed)
    }

    /// The newest earlier release that meets a constraint.
    #[must_use]
    pub fn newest_earlier(&self, allowed: impl Fn(&Version) -> bool) -> Option<&Version> {
        self.earlier.iter().filter(|v| allowed(v)).max()
    }

    /// The resource types whose objects, as this provider writes them, a release refuses to read.
    #[must_use]
    pub fn unreadable_by(&self, release: &Version) -> Vec<&str> {
        let newer = self.schema_changes.iter().filter(|change| change.since > *release);
        let mut types: Vec<&str> = newer.map(|change| change.resource.as_str()).collect();
        types.sort_unstable();
        types.dedup();
        types
    }
}
