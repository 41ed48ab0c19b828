//! Reading of the files with acceptance tests in a directory.

use std::fs;
use std::path::Path;

use files::io_reason;
use syntax::{Diagnostic, Diagnostics, SourceMap};

use super::decode::decode;
use super::file::{AcceptanceFile, SUFFIX};

/// Reads all files of a directory, in the order of their names. `shown` is the directory in messages.
#[must_use]
pub fn read_all(dir: &Path, shown: &str) -> (Vec<AcceptanceFile>, SourceMap, Diagnostics) {
    let (mut found, mut sources, mut problems) = (Vec::new(), SourceMap::default(), Diagnostics::new());
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => {
            problems.push(Diagnostic::error(
                "No acceptance tests",
                format!(
                    "The directory {} with files {SUFFIX} cannot be read: {}.",
                    dir.display(),
                    io_reason(&error)
                ),
            ));
            return (found, sources, problems);
        }
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(SUFFIX))
        .collect();
    names.sort();
    for file in names {
        let name = format!("{shown}/{file}");
        match fs::read(dir.join(&file)) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                sources.insert(&*name, text);
                let (read, more) = decode(&name, dir, &bytes, &mut sources);
                found.extend(read);
                problems.extend(more);
            }
            Err(error) => problems.push(Diagnostic::error(
                "Failed to read acceptance test",
                format!("The file {name} cannot be read: {}.", io_reason(&error)),
            )),
        }
    }
    (found, sources, problems)
}
