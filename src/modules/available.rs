//! Versions of a registry module.

use config::version::Version;

/// A version that a registry has, as it writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Available {
    /// The version.
    pub version: Version,
    /// The text of it.
    pub text: String,
}
