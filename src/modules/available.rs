//! Available versions of a registry module.

use config::version::Version;

/// Version of a module, with its text as messages and addresses have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Available {
    pub version: Version,
    pub text: String,
}
