//! What the CLI configuration says about logins to OCI registries: `oci_credentials` and `oci_default_credentials`.
//!
//! These are settings of hosts like tokens, so every client carries them; what they mean is the matter of the crate `oci`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::Token;

/// Logins to OCI registries.
#[derive(Clone, Debug)]
pub struct OciSettings {
    /// By the beginning of repository addresses, `HOST[:PORT][/PATH]`.
    pub logins: BTreeMap<String, OciLogin>,
    /// Whether the credentials that other container tools have stored are used, too.
    pub ambient: bool,
    /// The files of such credentials, instead of those in the usual places.
    pub files: Option<Vec<PathBuf>>,
    /// The credentials helper for hosts of which nothing else is known: `NAME` of `docker-credential-NAME`.
    pub helper: Option<String>,
}

#[derive(Clone, Debug)]
pub enum OciLogin {
    /// A name and a password.
    Password {
        /// The name.
        username: String,
        password: Token,
    },
    /// Tokens of OAuth.
    Tokens {
        /// What is sent with requests.
        access: Token,
        /// What a new one is had with.
        refresh: Option<Token>,
    },
    /// A credentials helper: `NAME` of `docker-credential-NAME`.
    Helper(String),
}

impl Default for OciSettings {
    fn default() -> OciSettings {
        OciSettings {
            logins: BTreeMap::new(),
            ambient: true,
            files: None,
            helper: None,
        }
    }
}
