//! Settings of logins to OCI registries in the CLI configuration: `oci_credentials` and `oci_default_credentials`.
//!
//! Like tokens, they are settings of hosts, so every client has them; the crate `oci` interprets them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::Token;

#[derive(Clone, Debug)]
pub struct OciSettings {
    /// Logins by the beginning of repository addresses, `HOST[:PORT][/PATH]`.
    pub logins: BTreeMap<String, OciLogin>,
    /// True if the credentials of other container tools are used, too.
    pub ambient: bool,
    /// Credentials files of container tools, in place of the usual ones.
    pub files: Option<Vec<PathBuf>>,
    /// The credentials helper for hosts without other credentials: `NAME` of `docker-credential-NAME`.
    pub helper: Option<String>,
}

#[derive(Clone, Debug)]
pub enum OciLogin {
    Password {
        username: String,
        password: Token,
    },
    Tokens {
        /// The token that is sent with requests.
        access: Token,
        /// The token with which new access tokens are requested.
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
