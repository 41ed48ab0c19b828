//! Available versions of a registry module.

use config::version::Version;

/// Version of a module, with the text that messages and addresses contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Available {
    pub version: Version,
    pub text: String,
}
