//! Progress of an operation without a terminal, such as in the log of a CI job: a line each half minute, the slowest
//! operations at the end, and a section of the log for the lines of objects that are refreshed.
//!
//! The program called as `terraform` writes none of it: scripts that compare or parse its output get what Terraform writes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engine::events::Event;

use crate::record::{Record, Work};
use crate::reporter::{OperationView, StillRunning};
use crate::ui::Ui;

/// Interval of the lines. Shorter operations have no lines.
const INTERVAL: Duration = Duration::from_secs(30);

/// CI system whose log has sections that can be folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sections {
    /// `GITHUB_ACTIONS`.
    GitHub,
    /// `GITLAB_CI`.
    GitLab,
}

/// View that writes the progress of an operation.
pub struct StatusLines {
    ui: Arc<Ui>,
    sections: Option<Sections>,
    state: Mutex<State>,
}

struct State {
    record: Record,
    next: Instant,
    /// True while a section of the log is open.
    is_open: bool,
}

impl StatusLines {
    /// Returns the view of an operation.
    #[must_use]
    pub fn new(ui: Arc<Ui>, work: Work, sections: Option<Sections>) -> StatusLines {
        let now = Instant::now();
        StatusLines {
            ui,
            sections,
            state: Mutex::new(State {
                record: Record::new(work, now),
                next: now + INTERVAL,
                is_open: false,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_section(&self, state: &mut State) {
        let Some(sections) = self.sections.filter(|_| !state.is_open) else {
            return;
        };
        state.is_open = true;
        let title = "Refreshing state";
        let line = match sections {
            Sections::GitHub => format!("::group::{title}\n"),
            Sections::GitLab => {
                let time = crate::process::now().as_second();
                // GitLab recognizes the marker by these control sequences, which also hide the marker in its
                // log.
                format!("\x1b[0Ksection_start:{time}:refresh[collapsed=true]\r\x1b[0K{title}\n")
            }
        };
        self.ui.out_bytes(line.as_bytes());
    }

    fn end_section(&self, state: &mut State) {
        if !std::mem::take(&mut state.is_open) {
            return;
        }
        let line = match self.sections {
            Some(Sections::GitLab) => {
                let time = crate::process::now().as_second();
                format!("\x1b[0Ksection_end:{time}:refresh\r\x1b[0K\n")
            }
            _ => "::endgroup::\n".to_owned(),
        };
        self.ui.out_bytes(line.as_bytes());
    }

    fn tick_at(&self, now: Instant) {
        let mut state = self.state();
        // The live area of a terminal shows this continuously.
        if now < state.next || self.ui.is_live() {
            return;
        }
        while state.next <= now {
            state.next += INTERVAL;
        }
        self.ui.line(state.record.status(now));
        self.ui.flush();
    }

    fn end_at(&self, now: Instant) {
        let mut state = self.state();
        self.end_section(&mut state);
        let lines = state.record.slowest(now);
        if !lines.is_empty() {
            self.ui.line(format!("\n{}", lines.join("\n")));
        }
    }

    fn event_at(&self, event: &Event, now: Instant) {
        let mut state = self.state();
        if matches!(event, Event::RefreshStart { .. }) {
            self.begin_section(&mut state);
        }
        state.record.update(event, now);
    }
}

impl OperationView for StatusLines {
    fn event(&self, event: &Event) {
        self.event_at(event, Instant::now());
    }

    fn still_running(&self, _operations: &[StillRunning]) {}

    fn tick(&self) {
        self.tick_at(Instant::now());
    }

    fn end(&self) {
        self.end_at(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refreshed() -> Event {
        Event::RefreshStart {
            address: addrs::parse::resource_instance("t.a").unwrap(),
            id: None,
        }
    }

    #[test]
    fn a_line_is_written_each_half_minute() {
        let (ui, out, _) = Ui::captured();
        let view = StatusLines::new(ui, Work::named("Planning"), None);
        let began = Instant::now();
        let at = |s| began + Duration::from_secs(s);
        view.event_at(&refreshed(), at(0));
        for second in [1, 29, 31, 32, 59, 61] {
            view.tick_at(at(second));
        }
        view.end_at(at(62));
        assert_eq!(
            out.text(),
            "Planning: 0 done, 1 running, slowest t.a 31s\nPlanning: 0 done, 1 running, slowest t.a 1m1s\n"
        );
    }

    #[test]
    fn lines_of_refreshed_objects_are_a_section() {
        for (sections, begin, end) in [
            (Sections::GitHub, "::group::Refreshing state\n", "::endgroup::\n"),
            (
                Sections::GitLab,
                "refresh[collapsed=true]\r\x1b[0KRefreshing state\n",
                ":refresh\r\x1b[0K\n",
            ),
        ] {
            let (ui, out, _) = Ui::captured();
            let view = StatusLines::new(ui.clone(), Work::named("Planning"), Some(sections));
            view.event(&refreshed());
            view.event(&refreshed());
            ui.line("t.a: Refreshing state...");
            view.end();
            let text = out.text();
            let (before, after) = text.split_once("t.a: Refreshing state...\n").unwrap();
            assert!(before.ends_with(begin) && after.ends_with(end), "{text:?}");
            assert_eq!(before.matches("Refreshing state").count(), 1, "{text:?}");
        }
    }
}
