//! Reads profile files of cloud command lines, and other files that arguments name.

use std::path::{Path, PathBuf};

use http::json_reason;
use serde_json::Value as Json;

/// Reason why a file cannot be used, as a part of a sentence.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("{}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} is no JSON: {}", path.display(), json_reason(source))]
    NotJson { path: PathBuf, source: serde_json::Error },
}

/// Reads a JSON file; `None` if the file does not exist.
///
/// # Errors
/// The file cannot be read, or is not JSON.
pub fn json(path: &Path) -> Result<Option<Json>, ProfileError> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(ProfileError::Unreadable {
                path: path.to_owned(),
                source,
            });
        }
    };
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|source| ProfileError::NotJson {
            path: path.to_owned(),
            source,
        })
}

#[derive(Debug, thiserror::Error)]
#[error("the file {} cannot be read: {source}", path.display())]
pub struct UnreadableFile {
    pub path: PathBuf,
    pub source: std::io::Error,
}

/// Reads a text file.
///
/// # Errors
/// The file cannot be read.
pub fn text(path: &Path) -> Result<String, UnreadableFile> {
    std::fs::read_to_string(path).map_err(|source| UnreadableFile {
        path: path.to_owned(),
        source,
    })
}
