//! JUnit report of a test suite.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use syntax::{Diagnostic, SourceMap};
use testing::{Event, Performed, Status, View};

use crate::diagnostics::{self, Layout};
use crate::junit::{WIDTH, cdata, escaped};
use crate::ui::Style;

/// View that collects the results of a suite, and passes every event on to another view.
pub struct Report<'v> {
    next: &'v dyn View,
    sources: SourceMap,
    files: Mutex<BTreeMap<String, File>>,
}

#[derive(Default)]
struct File {
    runs: Vec<Case>,
    problems: String,
    failed: bool,
}

#[derive(Default)]
struct Case {
    name: String,
    status: Status,
    asserts: usize,
    failed: usize,
    /// Detail of the first assertion that failed.
    first: String,
    failures: String,
    errors: String,
    rest: String,
    time: Option<(SystemTime, Duration)>,
}

fn text(problem: &Diagnostic, sources: &SourceMap) -> String {
    let layout = Layout {
        style: Style { on: false },
        width: WIDTH,
        plain: true,
    };
    diagnostics::format(problem, sources, layout)
}

fn is_assertion(problem: &Diagnostic) -> bool {
    problem.summary == "Test assertion failed"
}

impl<'v> Report<'v> {
    /// Returns a report that passes events on to this view.
    #[must_use]
    pub fn new(next: &'v dyn View, sources: SourceMap) -> Report<'v> {
        Report {
            next,
            sources,
            files: Mutex::default(),
        }
    }

    fn case(&self, name: &str, asserts: usize, done: &Performed) -> Case {
        let mut case = Case {
            name: name.to_owned(),
            status: done.status,
            asserts,
            failed: done.failed_assertions,
            time: done.time,
            ..Case::default()
        };
        for problem in &done.diagnostics {
            let shown = text(problem, &self.sources);
            // If the run's status is "error", every error is a result; otherwise only failed assertions are.
            if case.status == Status::Error && problem.is_error() {
                case.errors.push_str(&shown);
            } else if is_assertion(problem) {
                if case.first.is_empty() {
                    case.first.clone_from(&problem.detail);
                }
                case.failures.push_str(&shown);
            } else {
                case.rest.push_str(&shown);
            }
        }
        case
    }

    /// Returns the report. `interrupted` is set if the suite was stopped.
    #[must_use]
    pub fn document(&self, interrupted: bool) -> String {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?><testsuites>\n");
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, file) in &*files {
            let count = |status: Status| file.runs.iter().filter(|c| c.status == status).count();
            out.push_str(&format!(
                "  <testsuite name=\"{}\" tests=\"{}\" skipped=\"{}\" failures=\"{}\" errors=\"{}\">\n",
                escaped(name),
                file.runs.len(),
                count(Status::Skip),
                count(Status::Fail),
                count(Status::Error)
            ));
            let failed = file.runs.iter().find(|c| c.status == Status::Error);
            for case in &file.runs {
                write_case(&mut out, name, case, failed, file, interrupted);
            }
            if file.failed && !file.problems.is_empty() {
                out.push_str(&format!("    <system-err>{}</system-err>\n", cdata(&file.problems)));
            }
            out.push_str("  </testsuite>\n");
        }
        out.push_str("</testsuites>");
        out
    }
}

fn timestamp(time: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).unwrap_or_default();
    let whole = jiff::TimestampRound::new()
        .smallest(jiff::Unit::Second)
        .mode(jiff::RoundMode::Trunc);
    time.round(whole).unwrap_or(time).to_string()
}

fn write_case(out: &mut String, file: &str, case: &Case, failed: Option<&Case>, of: &File, interrupted: bool) {
    out.push_str(&format!(
        "    <testcase name=\"{}\" classname=\"{}\"",
        escaped(&case.name),
        escaped(file)
    ));
    if let Some((began, took)) = case.time {
        out.push_str(&format!(
            " time=\"{}\" timestamp=\"{}\"",
            took.as_secs_f64(),
            timestamp(began)
        ));
    }
    let mut inner = String::new();
    match case.status {
        Status::Skip => {
            let (message, reason) = if interrupted {
                (
                    "Testcase skipped due to an interrupt",
                    "The test was interrupted, so that this run was not carried out.".to_owned(),
                )
            } else if let Some(failed) = failed {
                (
                    "Testcase skipped due to a previous testcase error",
                    format!(
                        "The run {:?} ended with an error, and this one depends on it.",
                        failed.name
                    ),
                )
            } else if of.failed {
                ("Testcase skipped due to file-level errors", String::new())
            } else {
                ("", String::new())
            };
            inner.push_str("      <skipped");
            if !message.is_empty() {
                inner.push_str(&format!(" message=\"{}\"", escaped(message)));
            }
            let body = if reason.is_empty() {
                String::new()
            } else {
                cdata(&reason)
            };
            inner.push_str(&format!(">{body}</skipped>\n"));
        }
        Status::Fail => {
            inner.push_str("      <failure");
            // If the run only lacks an expected failure, there is no failed assertion and no message.
            if case.failed > 0 {
                let including = if case.failed == 1 { ": " } else { ", including: " };
                let message = format!(
                    "{} of {} assertions failed{including}{}",
                    case.failed, case.asserts, case.first
                );
                inner.push_str(&format!(" message=\"{}\"", escaped(&message)));
            }
            let body = if case.failures.is_empty() {
                String::new()
            } else {
                cdata(&case.failures)
            };
            inner.push_str(&format!(">{body}</failure>\n"));
        }
        Status::Error => inner.push_str(&format!(
            "      <error message=\"Encountered an error\">{}</error>\n",
            cdata(&case.errors)
        )),
        Status::Pass | Status::Pending => {}
    }
    if !case.rest.is_empty() {
        inner.push_str(&format!("      <system-err>{}</system-err>\n", cdata(&case.rest)));
    }
    if inner.is_empty() {
        out.push_str("></testcase>\n");
    } else {
        out.push_str(&format!(">\n{inner}    </testcase>\n"));
    }
}

impl View for Report<'_> {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::FileBegins(file) => {
                // Runs that never started are reported, too, as skipped.
                let runs = file.file.runs.iter().map(|run| Case {
                    name: run.name.to_string(),
                    ..Case::default()
                });
                let entry = File {
                    runs: runs.collect(),
                    ..File::default()
                };
                let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
                files.insert(file.file.name.to_string(), entry);
            }
            Event::RunEnds(file, run, done) => {
                let asserts = file.file.runs.get(*run).map_or(0, |run| run.asserts.len());
                let case = self.case(file.run_name(*run), asserts, done);
                let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(slot) = files.get_mut(&*file.file.name).and_then(|f| f.runs.get_mut(*run)) {
                    *slot = case;
                }
            }
            Event::FileEnds(file, _, problems) => {
                let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(entry) = files.get_mut(&*file.file.name) {
                    entry.failed = problems.has_errors();
                    entry.problems = problems.iter().map(|p| text(p, &self.sources)).collect();
                }
            }
            _ => {}
        }
        self.next.event(event);
    }
}
