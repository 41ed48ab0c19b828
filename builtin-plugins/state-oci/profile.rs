//! Configuration file of the OCI CLI and SDKs: profiles in brackets, with one name and value in each line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use monoform_sdk::env;

/// Reason why a profile cannot be read, as a part of a sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProfileError {
    #[error("{} cannot be read: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("the file {} did not contain profile: {name}", path.display())]
    Missing { path: PathBuf, name: String },
}

#[derive(Default)]
pub(crate) struct Profile(BTreeMap<String, String>);

/// Expands a path that may begin with the home directory.
pub(crate) fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), env::var("OCI_HOME_OVERRIDE")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => env::expand_home(path),
    }
}

/// Returns the path of the OCI configuration file.
pub(crate) fn usual_file() -> PathBuf {
    let usual = expanded("~/.oci/config");
    match env::var("OCI_CONFIG_FILE") {
        // As in Oracle's libraries, the variable is used only if the default file does not exist.
        Some(other) if !usual.exists() => expanded(&other),
        _ => usual,
    }
}

impl Profile {
    /// Reads a profile. It is an error if it does not exist.
    pub fn read(path: &Path, name: &str) -> Result<Profile, ProfileError> {
        let text = std::fs::read_to_string(path).map_err(|source| ProfileError::File {
            path: path.to_owned(),
            source,
        })?;
        Profile::find(&text, name).ok_or_else(|| ProfileError::Missing {
            path: path.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Reads a profile. The result is empty if it does not exist.
    pub fn read_if_any(path: &Path, name: &str) -> Profile {
        let text = std::fs::read_to_string(path).ok();
        text.and_then(|text| Profile::find(&text, name)).unwrap_or_default()
    }

    fn find(text: &str, name: &str) -> Option<Profile> {
        let mut found: Option<BTreeMap<String, String>> = None;
        let mut inside = false;
        for line in text.lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                inside = section.trim() == name;
                if inside {
                    // A profile without entries counts as found, so that the error names the missing entry.
                    found.get_or_insert_default();
                }
            } else if let (true, Some((key, value))) = (inside, line.split_once('=')) {
                let (key, value) = (key.trim(), value.trim());
                if !key.starts_with(['#', ';']) {
                    found
                        .get_or_insert_default()
                        .insert(key.to_lowercase(), value.to_owned());
                }
            }
        }
        found.map(Profile)
    }

    /// Returns a value; `None` if it is missing or empty.
    pub fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).filter(|value| !value.is_empty()).cloned()
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn profiles_are_found_by_their_names() {
        let text = "[DEFAULT]\nuser=u\n# user=x\n\n[ other ]\nregion = r\nuser=\n";
        let other = Profile::find(text, "other").unwrap();
        assert_eq!((other.get("region").as_deref(), other.get("user")), (Some("r"), None));
        assert_eq!(
            Profile::find(text, "DEFAULT").unwrap().get("user").as_deref(),
            Some("u")
        );
        assert!(Profile::find(text, "none").is_none());
    }
}
