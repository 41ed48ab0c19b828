//! The plugins that are part of the executable, as the room above describes them.

use std::path::PathBuf;

use addrs::Provider;

use versions::Version;

/// All built-in plugins.
#[derive(Clone, Debug, Default)]
pub struct Builtins {
    /// The executable that serves them when called with `internal-plugin provider NAME` or `internal-plugin provisioner NAME`.
    pub executable: PathBuf,
    /// The providers.
    pub providers: Vec<BuiltinProvider>,
    /// The names of the provisioners.
    pub provisioners: Vec<String>,
}

/// A built-in provider.
#[derive(Clone, Debug)]
pub struct BuiltinProvider {
    /// Its address.
    pub address: Provider,
    /// The name it is served under: the NAME of `internal-plugin provider NAME`.
    pub name: String,
    /// The version of the official provider that it stands for; none for a provider that is part of the language, which has no
    /// versions.
    pub version: Option<Version>,
    /// Earlier released versions that it stands for, too: those of the same major.
    pub earlier: Vec<Version>,
    /// The protocols it can speak.
    pub protocols: Vec<u32>,
}

impl BuiltinProvider {
    /// The version it stands for under this constraint: its own if that is allowed, else the newest earlier one that is.
    #[must_use]
    pub fn version_for(&self, allowed: impl Fn(&Version) -> bool) -> Option<&Version> {
        let own = self.version.iter().filter(|v| allowed(v)).max();
        own.or_else(|| self.earlier.iter().filter(|v| allowed(v)).max())
    }
}
