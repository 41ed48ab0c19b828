//! Bookmark: the file that `plan -out` writes for a plan on the server. It names the run and its host.

use std::path::Path;

use serde_json::{Value as Json, json};
use syntax::Diagnostic;
use tfe::{Run, RunStatus};

/// Maximum size of a bookmark in bytes.
const LIMIT: u64 = 64 * 1024;

/// Contents of a bookmark file. The format is Terraform's, so that each program can apply a plan that the other one has saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bookmark {
    pub run_id: String,
    pub hostname: String,
}

impl Bookmark {
    #[must_use]
    pub fn new(run: &str, hostname: &str) -> Bookmark {
        Bookmark {
            run_id: run.to_owned(),
            hostname: hostname.to_owned(),
        }
    }

    /// Returns true if a file is a small JSON document with the field `remote_plan_format`. The other fields may be invalid.
    #[must_use]
    pub fn is(path: &Path) -> bool {
        document(path).is_some_and(|document| document.get("remote_plan_format").is_some())
    }

    /// Reads a bookmark.
    ///
    /// # Errors
    /// The file is damaged, or of another version.
    pub fn read(path: &Path) -> Result<Bookmark, Diagnostic> {
        let failed = |why: &str| {
            Diagnostic::error(
                format!("Failed to load \"{}\" as a plan file", path.display()),
                format!("The file does not lead to a plan on a server: {why}."),
            )
        };
        let document = document(path).ok_or_else(|| failed("it is no JSON document"))?;
        if document.get("remote_plan_format").and_then(Json::as_u64) != Some(1) {
            return Err(failed("its format is not 1"));
        }
        let text = |name: &str| document.get(name).and_then(Json::as_str).unwrap_or_default();
        let (run, hostname) = (text("run_id"), text("hostname"));
        if hostname.is_empty() {
            return Err(failed("it names no host"));
        }
        // The ID becomes part of a URL, and the file may come from another person.
        if !run.starts_with("run-") {
            return Err(failed("it names no run"));
        }
        Ok(Bookmark::new(run, hostname))
    }

    /// Writes the bookmark to a file.
    pub fn write(&self, path: &Path) -> Result<(), Diagnostic> {
        let document = json!({"remote_plan_format": 1, "run_id": self.run_id, "hostname": self.hostname});
        // The file contains no secrets: applying the plan requires a token for the host.
        files::replace(path, document.to_string().as_bytes(), files::Policy::SHARED).map_err(|e| {
            Diagnostic::error(
                "Failed to write the plan file",
                format!(
                    "The plan is kept on the server, but the file {} that leads to it cannot be written: {}.",
                    path.display(),
                    files::io_reason(&e)
                ),
            )
        })
    }
}

fn document(path: &Path) -> Option<Json> {
    // Large files, such as saved plans of this program, are not bookmarks, so they are not read.
    let is_small = std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() <= LIMIT);
    serde_json::from_slice(&is_small.then(|| std::fs::read(path).ok())??).ok()
}

/// Creates the error for a run whose plan cannot be applied any more.
#[must_use]
pub fn unusable(run: &Run, url: &str) -> Diagnostic {
    let (summary, why) = match &run.status {
        RunStatus::Applied => (
            "Saved plan is already applied",
            "It was applied, and a plan is applied once.",
        ),
        RunStatus::Applying | RunStatus::ApplyQueued | RunStatus::Confirmed => {
            ("Saved plan is already confirmed", "It is being applied already.")
        }
        RunStatus::Canceled => ("Saved plan is canceled", "Its run was canceled."),
        RunStatus::Discarded => (
            "Saved plan is discarded",
            "Its run was discarded, or another run was applied since then.",
        ),
        RunStatus::Errored => ("Saved plan is errored", "Planning ended with errors."),
        RunStatus::PlannedAndFinished => ("Saved plan has no changes", "There is nothing to apply."),
        RunStatus::PolicyOverride => (
            "Saved plan requires policy override",
            "A policy has failed, and must be overridden by a user with the permission.",
        ),
        _ => (
            "Saved plan cannot be applied",
            "The server does not take it: its plan or its checks may not have ended yet.",
        ),
    };
    Diagnostic::error(summary, format!("{why} The page of the run has more:\n{url}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p");
        let bookmark = Bookmark::new("run-1", "h");
        bookmark.write(&path).unwrap();
        assert!(Bookmark::is(&path));
        assert_eq!(Bookmark::read(&path).unwrap(), bookmark);
    }

    #[test]
    fn damaged_files_are_errors_and_others_are_not_bookmarks() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p");
        for (text, why) in [
            (r#"{"remote_plan_format":2,"run_id":"run-1","hostname":"h"}"#, "format"),
            (r#"{"remote_plan_format":1,"run_id":"x","hostname":"h"}"#, "no run"),
            (r#"{"remote_plan_format":1,"run_id":"run-1"}"#, "no host"),
        ] {
            std::fs::write(&path, text).unwrap();
            assert!(Bookmark::is(&path));
            assert!(Bookmark::read(&path).unwrap_err().detail.contains(why), "{text}");
        }
        std::fs::write(&path, "{}").unwrap();
        assert!(!Bookmark::is(&path) && !Bookmark::is(dir.path()));
    }
}
