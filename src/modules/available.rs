//! Versions of a registry module.

use config::version::Version;

/// A version that a registry has, as it writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Available {
    pub version: Version,
    pub text: String,
}
