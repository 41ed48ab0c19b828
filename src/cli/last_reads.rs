//! The file with the times at which objects and data sources were read: `reads/NAME.json` in the data directory, where the
//! name is made of the lineage of the state.
//!
//! It exists from the first plan with `-refresh=changed` or `-refresh=older-than=…` on; without these options nobody needs it, and
//! plans write nothing. From then on, each plan and apply in this directory adds to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::inputs::PlanOptions;
use engine::last_reads::LastReads;
use engine::plan::{Action, Plan};
use files::{Policy, replace};
use serde::{Deserialize, Serialize};
use state::State;
use syntax::Diagnostic;

use crate::process::now;

const FORMAT: &str = "1.0";

/// Directory below the data directory.
const DIRECTORY: &str = "reads";

#[derive(Serialize, Deserialize)]
struct Document {
    format_version: String,
    reads: LastReads,
}

/// The last reads of the objects of one state, in their file.
pub struct LastReadsFile {
    path: PathBuf,
    /// Start of the operation, recorded as the time of its reads: a change during the operation may have been missed.
    began: String,
    reads: LastReads,
}

impl LastReadsFile {
    /// Opens the file of a state if there is one, or if `needed` requests its creation. A state without lineage, which was
    /// never written, has no such file.
    #[must_use]
    pub fn open(data_dir: &str, lineage: &str, needed: bool) -> Option<LastReadsFile> {
        if lineage.is_empty() {
            return None;
        }
        let path = Path::new(data_dir).join(DIRECTORY).join(LastReads::file_name(lineage));
        let reads = match std::fs::read(&path) {
            Ok(bytes) => understood(&bytes, &path),
            Err(_) if !needed => return None,
            Err(_) => LastReads::default(),
        };
        let began = timestamp(now());
        Some(LastReadsFile { path, began, reads })
    }

    /// Opens the file for a plan like [`LastReadsFile::open`], and adds the recorded times to the plan's options.
    #[must_use]
    pub fn of_plan(data_dir: &str, lineage: &str, options: &mut PlanOptions) -> Option<LastReadsFile> {
        let file = LastReadsFile::open(data_dir, lineage, options.partial_refresh.is_some());
        if let (Some(partial), Some(file)) = (&mut options.partial_refresh, &file) {
            partial.last_reads = Arc::new(file.reads.clone());
        }
        file
    }

    /// Adds the reads of a plan. Returns a warning if the file cannot be written.
    pub fn add_plan(mut self, plan: &Plan) -> Option<Diagnostic> {
        self.reads.record_reads(&plan.reads, &plan.prior_state, &self.began);
        self.reads.retain_in(&[&plan.previous_state, &plan.prior_state]);
        self.save()
    }

    /// Adds the objects that an apply has changed. Returns a warning if the file cannot be written.
    pub fn add_applied(mut self, plan: &Plan, state: &State) -> Option<Diagnostic> {
        let changed = plan.changes.iter().filter(|change| change.action != Action::NoOp);
        let changed = changed.map(|change| &change.address);
        self.reads.record_applied(changed, state, &self.began);
        self.reads.retain_in(&[state]);
        self.save()
    }

    fn save(self) -> Option<Diagnostic> {
        let document = Document {
            format_version: FORMAT.to_owned(),
            reads: self.reads,
        };
        let written = serde_json::to_vec(&document)
            .map_err(std::io::Error::from)
            .and_then(|bytes| {
                if let Some(directory) = self.path.parent() {
                    std::fs::create_dir_all(directory)?;
                }
                // The digests allow others to verify guesses at the values of objects, so only the owner can
                // read the file.
                let policy = Policy {
                    durable: false,
                    ..Policy::SECRET
                };
                replace(&self.path, &bytes, policy)
            });
        written.err().map(|e| {
            Diagnostic::warning(
                "Times of reads cannot be kept",
                format!(
                    "The file {} cannot be written: {}. The next plan with -refresh=older-than reads more than necessary.",
                    self.path.display(),
                    files::io_reason(&e)
                ),
            )
        })
    }
}

/// Decodes the reads in a file. An invalid file counts as empty: the next plan then reads more objects than necessary.
fn understood(bytes: &[u8], path: &Path) -> LastReads {
    match serde_json::from_slice::<Document>(bytes) {
        Ok(document) if document.format_version.starts_with("1.") => document.reads,
        _ => {
            tracing::warn!("the times of reads in {} cannot be understood", path.display());
            LastReads::default()
        }
    }
}

/// Returns a time in the form of these files: RFC 3339, UTC, whole seconds.
#[must_use]
pub fn timestamp(time: jiff::Timestamp) -> String {
    jiff::Timestamp::from_second(time.as_second())
        .unwrap_or(time)
        .to_string()
}
