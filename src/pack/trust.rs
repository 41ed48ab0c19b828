//! Conditions under which a pack is opened: the key that must have signed it, and the limits of its contents.

use std::path::{Path, PathBuf};

use archive::{InvalidLimit, Limits};
use files::Environment;

use crate::error::PackError;
use crate::signature::PublicKey;

/// Environment variable with the path of a key file. Packs are opened only if they are signed with this key.
pub const TRUST: &str = "MONOFORM_PACK_TRUST";

/// Conditions for opening a pack. A pack cannot be opened without them.
#[derive(Clone, Debug)]
pub struct Conditions {
    pub trust: Trust,
    /// Limits of unpacked contents. An invalid one is an error of each pack that is opened.
    pub limits: Result<Limits, InvalidLimit>,
}

/// Key that must have signed a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Any key, or none.
    Anyone,
    /// Key in the file that [`TRUST`] names.
    Environment(PathBuf),
    /// Key in the file that an option names.
    Option(PathBuf),
}

impl Conditions {
    #[must_use]
    pub fn from_environment(environment: &Environment) -> Conditions {
        let named = environment.get(TRUST).map(PathBuf::from);
        Conditions {
            trust: named.map_or(Trust::Anyone, Trust::Environment),
            limits: Limits::from_variables(environment.all()),
        }
    }

    /// Replaces the key by that of an option, which has precedence over the environment.
    #[must_use]
    pub fn with_key(self, file: Option<&Path>) -> Conditions {
        match file {
            Some(file) => Conditions {
                trust: Trust::Option(file.to_owned()),
                ..self
            },
            None => self,
        }
    }

    /// Accepts any pack, for displaying its contents only. Nothing in it may be used.
    #[must_use]
    pub fn to_inspect(self) -> Conditions {
        Conditions {
            trust: Trust::Anyone,
            ..self
        }
    }
}

impl Trust {
    /// Reads the key; `None` if any pack is trusted.
    ///
    /// # Errors
    /// The file cannot be read, or has no key.
    pub fn key(&self) -> Result<Option<PublicKey>, PackError> {
        match self {
            Trust::Anyone => Ok(None),
            Trust::Environment(file) | Trust::Option(file) => {
                PublicKey::read(file).map(Some).map_err(|error| self.explain(error))
            }
        }
    }

    /// If the environment variable names the key, adds this to an error about the key or the signature.
    pub(crate) fn explain(&self, error: PackError) -> PackError {
        let because = |reason: String| match self {
            Trust::Environment(_) => format!("{reason} (the environment variable {TRUST} names the key)"),
            Trust::Anyone | Trust::Option(_) => reason,
        };
        match error {
            PackError::NotTrusted { path, reason } => PackError::NotTrusted {
                path,
                reason: because(reason),
            },
            PackError::Key { path, reason } => PackError::Key {
                path,
                reason: because(reason),
            },
            other => other,
        }
    }
}
