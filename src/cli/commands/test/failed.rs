//! Record of the test files that failed in the last run, in the data directory, for `-rerun-failed`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use syntax::Diagnostic;
use testing::Status;

use crate::session::Session;

#[derive(Default, Serialize, Deserialize)]
struct Record {
    format_version: String,
    /// Names of the failed files.
    files: BTreeSet<String>,
}

fn path(session: &Session) -> PathBuf {
    Path::new(session.env.data_dir()).join("failed_tests.json")
}

/// Returns the names of the test files in the record; none if there is no record.
///
/// # Errors
/// The record cannot be read.
pub(super) fn read(session: &Session) -> Result<BTreeSet<String>, Diagnostic> {
    let path = path(session);
    let failed = |why: String| {
        Diagnostic::error(
            "Failed to read which tests have failed",
            format!(
                "The record {} cannot be used: {why}. Run the tests without -rerun-failed.",
                path.display()
            ),
        )
    };
    match std::fs::read(&path) {
        Ok(text) => {
            let record: Record = serde_json::from_slice(&text).map_err(|e| failed(files::json_reason(e)))?;
            Ok(record.files)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(failed(files::io_reason(&error))),
    }
}

/// Records which of these files failed; the entries of other files stay. If no file has failed and
/// there is no record, nothing is written.
pub(super) fn note(session: &Session, done: &[(Arc<str>, Status)]) {
    let path = path(session);
    let there = path.exists();
    // A record that cannot be read is replaced.
    let mut files = read(session).unwrap_or_default();
    for (name, status) in done {
        if *status == Status::Pass {
            files.remove(&**name);
        } else {
            files.insert(name.to_string());
        }
    }
    if files.is_empty() && !there {
        return;
    }
    let record = Record {
        format_version: "1.0".to_owned(),
        files,
    };
    let written = serde_json::to_vec(&record)
        .map_err(std::io::Error::other)
        .and_then(|text| {
            std::fs::create_dir_all(session.env.data_dir())?;
            files::replace(&path, &text, files::Policy::SHARED)
        });
    if let Err(error) = written {
        tracing::warn!(path = %path.display(), %error, "which tests have failed cannot be recorded");
    }
}
