//! A test file of a suite.

use std::sync::Arc;

use config::{Config, TestFile};

/// A test file with the modules of its runs.
#[derive(Clone, Debug)]
pub struct SuiteFile {
    pub file: Arc<TestFile>,
    /// Module of each run.
    pub modules: Vec<Arc<Config>>,
}

impl SuiteFile {
    #[must_use]
    pub fn run_name(&self, run: usize) -> &str {
        self.file.runs.get(run).map_or("", |run| &run.name)
    }
}
