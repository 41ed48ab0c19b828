//! A suite: its files, one after the other.

use std::sync::Arc;

use syntax::SourceMap;

pub use crate::context::{Leftovers, Recorder, Suite};
use crate::events::{Event, Status};
use crate::file::FileRun;
use crate::providers::Pool;
pub use crate::suite_file::SuiteFile;

/// How many runs had which status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All is as it should be.
    pub passed: usize,
    /// An assertion does not hold.
    pub failed: usize,
    /// Something else went wrong.
    pub errored: usize,
    /// Left out.
    pub skipped: usize,
}

impl Counts {
    /// Counts a run.
    pub fn add(&mut self, status: Status) {
        match status {
            Status::Pending => {}
            Status::Skip => self.skipped += 1,
            Status::Pass => self.passed += 1,
            Status::Fail => self.failed += 1,
            Status::Error => self.errored += 1,
        }
    }
}

/// What a suite has come to.
#[derive(Debug, Default)]
pub struct SuiteResult {
    /// The status of the whole.
    pub status: Status,
    /// The runs.
    pub counts: Counts,
    /// The files that were run, and how they went.
    pub files: Vec<(Arc<str>, Status)>,
    /// Texts that came up on the way, such as values of variables.
    pub sources: SourceMap,
}

/// Runs a suite.
pub async fn run(suite: Suite<'_>) -> SuiteResult {
    let pool = Pool::new(suite.providers);
    suite.view.event(&Event::SuiteBegins(suite.files));
    let mut out = SuiteResult {
        status: Status::Pass,
        ..SuiteResult::default()
    };
    for file in suite.files {
        if suite.stop.is_cancelled() {
            break;
        }
        let done = FileRun::new(suite, file, &pool).perform().await;
        out.status = out.status.max(done.status);
        out.files.push((file.file.name.clone(), done.status));
        for status in done.runs {
            out.counts.add(status);
        }
    }
    if suite.stop.is_requested() {
        // Runs were left out, and nobody may take that for a success.
        out.status = out.status.max(Status::Error);
    }
    tokio::select! {
        () = pool.close() => {}
        () = suite.stop.cancelled() => {}
    }
    out
}
