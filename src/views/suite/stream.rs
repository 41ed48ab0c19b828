//! Stream of a test suite: one JSON object a line.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use syntax::{Diagnostics, SourceMap};
use testing::events::{Outcome, objects};
use testing::suite::SuiteResult;
use testing::{Event, Performed, Status, SuiteFile, View};

use crate::json;
use crate::stream::Stream;

use super::totals;

/// View that writes a suite as JSON objects.
pub struct Machine {
    stream: Arc<Stream>,
    sources: SourceMap,
    verbose: bool,
}

fn plural(count: usize, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    }
}

fn printed(status: Status) -> &'static str {
    match status {
        // The text does not distinguish errors from failures; the member `status` does.
        Status::Error => "fail",
        other => other.word(),
    }
}

fn millis(time: Duration) -> Json {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into()
}

/// Returns the addresses of objects, as the messages list them.
fn listed(state: &state::State) -> Vec<Json> {
    objects(state)
        .into_iter()
        .map(|(address, deposed)| match deposed {
            Some(key) => json!({"instance": address.to_string(), "deposed_key": &*key.0}),
            None => json!({"instance": address.to_string()}),
        })
        .collect()
}

impl Machine {
    /// Returns the view. `verbose` writes plans and states, too.
    #[must_use]
    pub fn new(stream: Arc<Stream>, sources: SourceMap, verbose: bool) -> Machine {
        Machine {
            stream,
            sources,
            verbose,
        }
    }

    fn about(file: &SuiteFile, run: Option<usize>) -> Vec<(&'static str, Json)> {
        let mut out = vec![("@testfile", Json::from(&*file.file.name))];
        if let Some(run) = run {
            out.push(("@testrun", file.run_name(run).into()));
        }
        out
    }

    fn send(&self, level: &str, message: &str, ty: &str, about: Vec<(&'static str, Json)>, body: Option<Json>) {
        let mut payload: Vec<(&str, Json)> = about;
        if let Some(body) = body {
            payload.push((ty, body));
        }
        self.stream.object(level, message, ty, payload);
    }

    fn file(&self, file: &SuiteFile, progress: &str, word: &str, status: Option<Status>) {
        let mut body = Map::new();
        body.insert("path".into(), (&*file.file.name).into());
        body.insert("progress".into(), progress.into());
        if let Some(status) = status {
            body.insert("status".into(), status.word().into());
        }
        let message = format!("{}... {word}", file.file.name);
        self.send(
            "info",
            &message,
            "test_file",
            Machine::about(file, None),
            Some(body.into()),
        );
    }

    fn run(&self, file: &SuiteFile, run: usize, progress: &str, word: &str, more: (&str, Json)) {
        let name = file.run_name(run);
        let mut body = Map::new();
        body.insert("path".into(), (&*file.file.name).into());
        body.insert("run".into(), name.into());
        body.insert("progress".into(), progress.into());
        body.insert(more.0.into(), more.1);
        let message = format!("  {name:?}... {word}");
        self.send(
            "info",
            &message,
            "test_run",
            Machine::about(file, Some(run)),
            Some(body.into()),
        );
    }

    fn diagnostics(&self, problems: &Diagnostics, about: &[(&'static str, Json)]) {
        for problem in problems {
            let (level, word) = if problem.is_error() {
                ("error", "Error")
            } else {
                ("warn", "Warning")
            };
            let message = format!("{word}: {}", &problem.summary);
            let body = json::diagnostics::diagnostic(problem, &self.sources);
            self.send(level, &message, "diagnostic", about.to_vec(), Some(body));
        }
    }

    fn run_ends(&self, file: &SuiteFile, run: usize, done: &Performed) {
        let status = ("status", Json::from(done.status.word()));
        self.run(file, run, "complete", printed(done.status), status);
        let about = Machine::about(file, Some(run));
        let printing = |what: &str, ty: &str, document: Json| {
            let message = format!("-verbose flag enabled, printing {what}");
            self.send("info", &message, ty, about.clone(), Some(document));
        };
        match done.outcome.as_ref().filter(|_| self.verbose) {
            Some(Outcome::Planned(plan)) => {
                printing("plan", "test_plan", json::tested::plan(plan.view(), &done.schemas))
            }
            Some(Outcome::Applied(state)) => printing("state", "test_state", json::tested::state(state, &done.schemas)),
            None => {}
        }
        self.diagnostics(&done.diagnostics, &about);
    }

    fn begins(&self, files: &[SuiteFile]) {
        let mut listed = Map::new();
        let mut runs = 0;
        for file in files {
            runs += file.file.runs.len();
            let names: Vec<Json> = file.file.runs.iter().map(|run| (&*run.name).into()).collect();
            // Terraform writes null for a file without runs.
            let names = if names.is_empty() { Json::Null } else { names.into() };
            listed.insert(file.file.name.to_string(), names);
        }
        let message = format!(
            "Found {} and {}",
            plural(files.len(), "file"),
            plural(runs, "run block")
        );
        self.send("info", &message, "test_abstract", Vec::new(), Some(listed.into()));
    }

    /// Writes the coverage of the module by the runs.
    pub fn coverage(stream: &Stream, document: Json) {
        let payload = vec![("test_coverage", document)];
        stream.object("info", "Coverage of the module by its tests", "test_coverage", payload);
    }

    /// Writes the last object of the suite: its status and totals.
    pub fn ends(&self, result: &SuiteResult) {
        let word = if result.status <= Status::Pass {
            "Success!"
        } else {
            "Failure!"
        };
        let counts = result.counts;
        let body = json!({
            "status": result.status.word(),
            "passed": counts.passed,
            "failed": counts.failed,
            "errored": counts.errored,
            "skipped": counts.skipped,
        });
        let message = format!("{word} {}", totals(counts));
        self.send("info", &message, "test_summary", Vec::new(), Some(body));
    }
}

impl View for Machine {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::SuiteBegins(files) => self.begins(files),
            Event::FileBegins(file) => self.file(file, "starting", "in progress", None),
            Event::RunBegins(file, run) => {
                self.run(file, *run, "starting", "in progress", ("elapsed", 0.into()));
            }
            Event::RunGoesOn(file, run, time) => {
                self.run(file, *run, "running", "in progress", ("elapsed", millis(*time)));
            }
            Event::RunEnds(file, run, done) => self.run_ends(file, *run, done),
            Event::TeardownBegins(file) => self.file(file, "teardown", "tearing down", None),
            Event::TeardownOfRun(file, run, time) => {
                self.run(file, *run, "teardown", "tearing down", ("elapsed", millis(*time)));
            }
            Event::TeardownOfRunEnds(file, run, done) => {
                let about = Machine::about(file, Some(*run));
                let left = listed(&done.left);
                if !left.is_empty() {
                    let message = format!(
                        "The run {}/{} left objects behind that need to be cleaned up manually.",
                        file.file.name,
                        file.run_name(*run)
                    );
                    let mut body = Map::new();
                    body.insert("failed_resources".into(), left.into());
                    if let Some(path) = &done.kept {
                        body.insert("state_file".into(), path.display().to_string().into());
                    }
                    let body = Json::Object(body);
                    self.send("error", &message, "test_cleanup", about.clone(), Some(body));
                }
                self.diagnostics(&done.diagnostics, &about);
            }
            Event::FileEnds(file, status, problems) => {
                self.file(file, "complete", printed(*status), Some(*status));
                self.diagnostics(problems, &Machine::about(file, None));
            }
            Event::Interrupted(file, states, planned) => {
                let mut body = Map::new();
                let mut others = Map::new();
                let mut files = Map::new();
                for left in *states {
                    if let Some(path) = &left.kept {
                        files.insert(left.key.to_string(), path.display().to_string().into());
                    }
                    if left.key.is_empty() {
                        body.insert("state".into(), listed(&left.state).into());
                    } else {
                        others.insert(left.key.to_string(), listed(&left.state).into());
                    }
                }
                if !files.is_empty() {
                    body.insert("state_files".into(), files.into());
                }
                if !others.is_empty() {
                    body.insert("states".into(), others.into());
                }
                if !planned.is_empty() {
                    let planned: Vec<Json> = planned.iter().map(|a| a.to_string().into()).collect();
                    body.insert("planned".into(), planned.into());
                }
                // If nothing is left, there is no message, as in Terraform.
                if !body.is_empty() {
                    let message = format!(
                        "The tests in {} were interrupted; objects may have been left.",
                        file.file.name
                    );
                    self.send(
                        "error",
                        &message,
                        "test_interrupt",
                        Machine::about(file, None),
                        Some(body.into()),
                    );
                }
            }
        }
    }
}
