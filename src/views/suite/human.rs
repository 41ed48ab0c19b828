//! View of a test suite on the terminal.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use addrs::AbsResourceInstance;
use syntax::{Diagnostics, SourceMap};
use testing::events::{Left, Outcome, objects};
use testing::suite::SuiteResult;
use testing::{Event, Performed, Status, View};

use crate::area::Line;
use crate::diagnostics;
use crate::plan::Shown;
use crate::ui::{Style, Ui};

use super::totals;

/// View that writes a suite as lines of text.
pub struct Human {
    ui: Arc<Ui>,
    sources: SourceMap,
    verbose: bool,
    compact: bool,
    /// Locked while an event is written, so that events of concurrent runs do not mix.
    writing: Mutex<Live>,
}

/// State that is only used on a terminal.
#[derive(Default)]
struct Live {
    /// Current runs with their elapsed times.
    going: BTreeMap<usize, (String, Duration)>,
    /// Duration of each completed run.
    times: Vec<(Duration, String)>,
}

/// Limit of the slowest runs that are listed at the end.
const SLOWEST: usize = 5;
/// Limit of the current runs that are named.
const NAMED: usize = 3;

fn seconds(time: Duration) -> String {
    format!("{:.2}s", time.as_secs_f64())
}

fn word(status: Status, style: Style) -> String {
    match status {
        Status::Pass => style.green("pass"),
        Status::Fail | Status::Error => style.red("fail"),
        Status::Skip => style.light("skip"),
        Status::Pending => style.light("pending"),
    }
}

impl Human {
    /// Returns the view. With `verbose` it shows plans and states; with `compact`, warnings as summaries only.
    #[must_use]
    pub fn new(ui: Arc<Ui>, sources: SourceMap, verbose: bool, compact: bool) -> Human {
        Human {
            ui,
            sources,
            verbose,
            compact,
            writing: Mutex::default(),
        }
    }

    fn show(&self, problems: &Diagnostics) {
        let form = diagnostics::Form {
            compact: self.compact,
            ..diagnostics::Form::default()
        };
        diagnostics::show(&self.ui, problems, &self.sources, form);
        // An empty line follows warnings, as in Terraform.
        if problems.iter().any(|d| !d.is_error()) {
            self.ui.line("");
        }
        self.ui.flush();
    }

    /// Returns true if standard output is a terminal. Durations are only shown there, since they would make recorded output
    /// differ from run to run.
    fn is_live(&self) -> bool {
        self.ui.is_terminal() && !self.ui.plain
    }

    /// Shows the current runs in the live area, until something else is written.
    fn going(&self, live: &Live) {
        let one = |(name, time): &(String, Duration)| match time.as_secs() {
            0 => name.clone(),
            s => format!("{name} ({s}s)"),
        };
        let named: Vec<String> = live.going.values().take(NAMED).map(one).collect();
        let more = match live.going.len().saturating_sub(NAMED) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        if !named.is_empty() {
            self.ui
                .area(&[Line::part(format!("  running {}{more}", named.join(", ")))]);
        }
    }

    fn slowest(&self, live: &mut Live) {
        if !self.is_live() || live.times.len() < 2 {
            return;
        }
        live.times.sort_by(|a, b| b.cmp(a));
        self.ui.line("\nSlowest runs:");
        for (time, name) in live.times.iter().take(SLOWEST) {
            self.ui.line(format!("  {:>8} {name}", seconds(*time)));
        }
    }

    fn run_ends(&self, name: &str, done: &Performed) {
        let style = self.ui.style();
        let time = match done.time {
            Some((_, time)) if self.is_live() => style.dim(format!(" {}", seconds(time))),
            _ => String::new(),
        };
        self.ui
            .line(format!("  run {name:?}... {}{time}", word(done.status, style)));
        if self.verbose {
            self.outcome(done);
        }
        self.ui.flush();
        self.show(&done.diagnostics);
    }

    fn outcome(&self, done: &Performed) {
        match &done.outcome {
            Some(Outcome::Planned(plan)) => {
                crate::plan::show(&self.ui, plan.view(), &done.schemas, Shown::default());
                self.ui.line("");
            }
            Some(Outcome::Applied(state)) => {
                let style = Shown::default().style(&self.ui);
                self.ui.line("");
                self.ui.out(crate::diff::state_text(state, &done.schemas, style));
                self.ui.line("");
            }
            None => {}
        }
    }

    fn interrupted(&self, file: &str, states: &[Left], planned: &[AbsResourceInstance]) {
        let mut text = format!("\nThe tests in {file} were interrupted while they ran.\n");
        for left in states {
            let of = match &*left.key {
                "" => "the main state".to_owned(),
                key => format!("the state {key:?}"),
            };
            text.push_str(&format!("\nThese objects are in {of} and were not destroyed:\n"));
            for (address, _) in objects(&left.state) {
                text.push_str(&format!("  - {address}\n"));
            }
            if let Some(path) = &left.kept {
                text.push_str(&format!("They are recorded in the state file {}.\n", path.display()));
            }
        }
        if !planned.is_empty() {
            text.push_str("\nThese objects were about to be created, and may exist:\n");
            for address in planned {
                text.push_str(&format!("  - {address}\n"));
            }
        }
        self.ui.err(text);
        self.ui.flush();
        states.iter().for_each(|left| self.show(&left.diagnostics));
    }

    /// Writes the last line of the suite: its status and totals.
    pub fn ends(&self, result: &SuiteResult) {
        let style = self.ui.style();
        let word = if result.status <= Status::Pass {
            style.green("Success!")
        } else {
            style.red("Failure!")
        };
        self.slowest(&mut self.writing.lock().unwrap_or_else(PoisonError::into_inner));
        self.ui.line(format!("\n{word} {}", totals(result.counts)));
        self.ui.flush();
    }
}

impl View for Human {
    fn event(&self, event: &Event<'_>) {
        // The output is locked until the end, so that the lines of parallel runs are not mixed.
        let mut live = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (ui, style) = (&self.ui, self.ui.style());
        match event {
            Event::SuiteBegins(_) | Event::TeardownOfRun(..) => {}
            Event::RunBegins(file, run) => {
                let name = format!("{:?}", file.run_name(*run));
                live.going.insert(*run, (name, Duration::ZERO));
            }
            Event::RunGoesOn(_, run, time) => {
                if let Some(going) = live.going.get_mut(run) {
                    going.1 = *time;
                }
            }
            Event::FileBegins(file) => {
                ui.line(format!("{}... {}", file.file.name, style.light("in progress")));
                ui.flush();
            }
            Event::RunEnds(file, run, done) => {
                live.going.remove(run);
                if let Some((_, time)) = done.time {
                    let name = format!("{}/{}", file.file.name, file.run_name(*run));
                    live.times.push((time, name));
                }
                self.run_ends(file.run_name(*run), done);
            }
            Event::TeardownBegins(file) => {
                ui.line(format!("{}... {}", file.file.name, style.light("tearing down")));
                ui.flush();
            }
            Event::TeardownOfRunEnds(file, run, done) => {
                let name = format!("{}/{}", file.file.name, file.run_name(*run));
                if done.diagnostics.has_errors() {
                    ui.err(format!("Destroying what {name} has created did not go well:\n"));
                }
                self.show(&done.diagnostics);
                let left = objects(&done.left);
                if left.is_empty() {
                    return;
                }
                let mut text = format!(
                    "\nThe run {name} left the following resources in state after it was destroyed, and they need to be cleaned up \
                     manually:\n"
                );
                for (address, deposed) in left {
                    match deposed {
                        Some(key) => text.push_str(&format!("  - {address} ({})\n", key.0)),
                        None => text.push_str(&format!("  - {address}\n")),
                    }
                }
                if let Some(path) = &done.kept {
                    text.push_str(&format!("\nThey are recorded in the state file {}.\n", path.display()));
                }
                ui.err(text);
                ui.flush();
            }
            Event::FileEnds(file, status, problems) => {
                ui.line(format!("{}... {}", file.file.name, word(*status, style)));
                ui.flush();
                self.show(problems);
            }
            Event::Interrupted(file, states, planned) => self.interrupted(&file.file.name, states, planned),
        }
        self.going(&live);
    }
}
