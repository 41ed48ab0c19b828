//! A suite: runs its files one after the other.

use std::sync::Arc;

use syntax::SourceMap;

pub use crate::context::{Leftovers, Recorder, Suite};
use crate::events::{Event, Status};
use crate::file::FileRun;
use crate::providers::Pool;
pub use crate::suite_file::SuiteFile;

/// Number of runs by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: usize,
    /// Runs with an assertion that does not hold.
    pub failed: usize,
    /// Runs with any other error.
    pub errored: usize,
    pub skipped: usize,
}

impl Counts {
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

#[derive(Debug, Default)]
pub struct SuiteResult {
    pub status: Status,
    pub counts: Counts,
    /// Files that were run, with their statuses.
    pub files: Vec<(Arc<str>, Status)>,
    /// Source texts for diagnostics, such as those about the values of variables.
    pub sources: SourceMap,
}

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
        // Some runs were skipped, so the result must not be a success.
        out.status = out.status.max(Status::Error);
    }
    tokio::select! {
        () = pool.close() => {}
        () = suite.stop.cancelled() => {}
    }
    out
}
