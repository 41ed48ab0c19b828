//! The directory of the notes, in the place of a service.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use monoform_sdk::{Diagnostic, Diagnostics, Result};

pub struct Directory(PathBuf);

impl Directory {
    pub fn open(path: &str) -> Result<Directory> {
        std::fs::create_dir_all(path).map_err(|error| failed(Path::new(path), &error))?;
        Ok(Directory(path.into()))
    }

    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.0.join(name);
        std::fs::write(&path, text).map_err(|error| failed(&path, &error))
    }

    /// Returns the text of a note; `None` if there is no such note.
    pub fn read(&self, name: &str) -> Result<Option<String>> {
        let path = self.0.join(name);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&path, &error)),
        }
    }

    pub fn remove(&self, name: &str) -> Result<()> {
        let path = self.0.join(name);
        match std::fs::remove_file(&path) {
            // A note that is gone already needs no removal.
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(&path, &error)),
            _ => Ok(()),
        }
    }
}

fn failed(path: &Path, error: &Error) -> Diagnostics {
    Diagnostic::error("Failed to use file", format!("{}: {error}", path.display())).into()
}
