//! Progress of an operation in the live area: totals, and the running operations with their durations, slowest first.
//!
//! Events change a record whose size is that of the running operations. A thread draws it at most ten times a second, and at
//! least once a second. An operation that ends soon shows nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use addrs::AbsResourceInstance;
use engine::events::Event;

use crate::area::{Line, Size};
use crate::progress::{invocation, name};
use crate::reporter::{OperationView, StillRunning, seconds};
use crate::ui::Ui;
use crate::words::{ephemeral_words, words};

/// Time before the first drawing. Shorter operations would only flicker.
const DELAY: Duration = Duration::from_millis(400);
/// Shortest time between two drawings.
const PAUSE: Duration = Duration::from_millis(100);
/// Interval at which the terminal is checked for another size, and for output that has replaced the area.
const GLANCE: Duration = Duration::from_millis(200);
/// Interval at which elapsed times are redrawn.
const SECOND: Duration = Duration::from_secs(1);
/// Limit of the running operations that are listed.
const LINES: usize = 8;
/// Completed instances and elapsed time from which on the rate is good enough for an estimate.
const GROUND: (usize, Duration) = (10, Duration::from_secs(5));

/// Operation to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Title: `Applying`.
    pub title: &'static str,
    /// Least number of instances, if it is known at the start.
    pub expected: Option<usize>,
    /// True if the total in the events is that of the whole operation from the start.
    pub counted: bool,
}

impl Work {
    /// Returns an operation whose size is not known at the start.
    #[must_use]
    pub fn named(title: &'static str) -> Work {
        Work {
            title,
            expected: None,
            counted: false,
        }
    }
}

/// View that shows events in the live area.
pub struct Live {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    record: Mutex<Record>,
    wake: Condvar,
}

impl Shared {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a time, or until the condition `so` is false.
    fn wait<'r>(
        &self,
        record: MutexGuard<'r, Record>,
        time: Duration,
        so: impl FnMut(&mut Record) -> bool,
    ) -> MutexGuard<'r, Record> {
        let waited = self.wake.wait_timeout_while(record, time, so);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Live {
    /// Starts to show an operation, if there is a live area.
    #[must_use]
    pub fn start(ui: &Arc<Ui>, work: Work) -> Option<Arc<Live>> {
        if !ui.is_live() {
            return None;
        }
        let shared = Arc::new(Shared {
            record: Mutex::new(Record::new(work, Instant::now())),
            wake: Condvar::new(),
        });
        let thread = std::thread::Builder::new().name("live-area".to_owned()).spawn({
            let (shared, ui) = (shared.clone(), ui.clone());
            move || draw(&shared, &ui)
        });
        match thread {
            Ok(thread) => Some(Arc::new(Live {
                shared,
                thread: Mutex::new(Some(thread)),
            })),
            // The area is an extra: without a thread the operation goes on, with lines of text.
            Err(error) => {
                tracing::warn!("no thread can be started for the live area: {error}");
                None
            }
        }
    }

    /// Ends the thread, which erases the area.
    fn stop(&self) {
        self.shared.record().ended = true;
        self.shared.wake.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the thread has been reported already.
            let _ = thread.join();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.stop();
    }
}

impl OperationView for Live {
    fn event(&self, event: &Event) {
        let mut record = self.shared.record();
        // One notification for all events until the next drawing.
        if record.update(event, Instant::now()) && !std::mem::replace(&mut record.changed, true) {
            self.shared.wake.notify_one();
        }
    }

    fn still_running(&self, _operations: &[StillRunning]) {}

    fn end(&self) {
        self.stop();
    }
}

/// Draws the record until the operation has ended.
fn draw(shared: &Shared, ui: &Ui) {
    let mut record = shared.wait(shared.record(), DELAY, |record| !record.ended);
    while !record.ended {
        let size = ui.size();
        record.changed = false;
        let lines = record.lines(Instant::now(), size);
        // The lock is released, so that a slow terminal does not hold up the engine's events.
        drop(record);
        ui.area(&lines);
        record = shared.wait(shared.record(), PAUSE, |record| !record.ended);
        // Clocks show whole seconds. An event, other output in place of the area, or another size of the terminal ends the wait.
        let next = Instant::now() + (SECOND - PAUSE);
        while !record.ended && !record.changed && ui.is_drawn() && ui.size() == size && Instant::now() < next {
            record = shared.wait(record, GLANCE, |record| !record.ended && !record.changed);
        }
    }
    drop(record);
    ui.clear_area();
}

/// State of an operation.
struct Record {
    work: Work,
    began: Instant,
    done: usize,
    total: usize,
    stopping: bool,
    /// Running operations in the order of their start, which is that of their duration.
    running: BTreeMap<u64, Running>,
    /// Key in `running`, by subject.
    places: HashMap<Subject, u64>,
    started: u64,
    /// True if there is something new to draw.
    changed: bool,
    ended: bool,
}

/// Subject of a running operation.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Subject {
    /// Object; the key if it is a deposed one.
    Object(AbsResourceInstance, Option<Arc<str>>),
    /// Action with its trigger.
    Action(String),
}

struct Running {
    subject: Subject,
    /// Word for the running operation: `Creating`.
    begins: &'static str,
    /// Provisioner that is running.
    provisioner: Option<Arc<str>>,
    since: Instant,
}

impl Record {
    fn new(work: Work, now: Instant) -> Record {
        Record {
            work,
            began: now,
            done: 0,
            total: 0,
            stopping: false,
            running: BTreeMap::new(),
            places: HashMap::new(),
            started: 0,
            changed: false,
            ended: false,
        }
    }

    /// Applies an event; returns true if there is something new to draw.
    fn update(&mut self, event: &Event, now: Instant) -> bool {
        let object = |address: &AbsResourceInstance| Subject::Object(address.clone(), None);
        match event {
            Event::RefreshStart { address, .. } => self.start(object(address), "Refreshing state", now),
            Event::RefreshComplete { address, .. } | Event::RefreshFailed { address } => self.finish(&object(address)),
            Event::OperationStart {
                address,
                deposed,
                action,
                ..
            } => {
                let Some(words) = words(*action) else { return false };
                self.start(Subject::Object(address.clone(), deposed.clone()), words.begins, now);
            }
            Event::OperationComplete { address, deposed, .. } | Event::OperationFailed { address, deposed, .. } => {
                self.finish(&Subject::Object(address.clone(), deposed.clone()));
            }
            Event::EphemeralStart { address, action } => {
                self.start(object(address), ephemeral_words(*action).begins, now);
            }
            Event::EphemeralComplete { address, .. } | Event::EphemeralFailed { address, .. } => {
                self.finish(&object(address));
            }
            Event::ProvisionStart { address, provisioner } => self.provision(address, Some(provisioner)),
            Event::ProvisionComplete { address, .. } | Event::ProvisionFailed { address, .. } => {
                self.provision(address, None);
            }
            Event::ActionStart { address, trigger } => {
                self.start(Subject::Action(invocation(address, trigger)), "Invoking", now);
            }
            Event::ActionComplete { address, trigger } | Event::ActionFailed { address, trigger, .. } => {
                self.finish(&Subject::Action(invocation(address, trigger)));
            }
            Event::Progress { done, total } => (self.done, self.total) = (*done, *total),
            Event::Stopping => self.stopping = true,
            Event::ImportStart { .. }
            | Event::Imported { .. }
            | Event::ProvisionOutput { .. }
            | Event::ActionProgress { .. }
            | Event::EphemeralDeferred { .. }
            | Event::ListStart { .. }
            | Event::ListComplete { .. } => return false,
        }
        true
    }

    fn start(&mut self, subject: Subject, begins: &'static str, now: Instant) {
        // A subject that starts again replaces its entry, which nothing could end any more.
        self.finish(&subject);
        self.started += 1;
        self.places.insert(subject.clone(), self.started);
        let running = Running {
            subject,
            begins,
            provisioner: None,
            since: now,
        };
        self.running.insert(self.started, running);
    }

    fn finish(&mut self, subject: &Subject) {
        if let Some(place) = self.places.remove(subject) {
            self.running.remove(&place);
        }
    }

    /// Sets the provisioner that runs on an object.
    fn provision(&mut self, address: &AbsResourceInstance, provisioner: Option<&Arc<str>>) {
        let place = self.places.get(&Subject::Object(address.clone(), None));
        if let Some(running) = place.and_then(|place| self.running.get_mut(place)) {
            running.provisioner = provisioner.cloned();
        }
    }

    fn lines(&self, now: Instant, size: Size) -> Vec<Line> {
        let mut out = vec![Line::heading(self.heading(now))];
        // Room for the heading, the line with the number of the others, and one permanent line.
        let room = size.height.saturating_sub(3).min(LINES);
        let shown = self.running.values().take(room);
        out.extend(shown.map(|running| Line::part(running.line(now))));
        let more = self.running.len().saturating_sub(room);
        if more > 0 && room > 0 {
            out.push(Line::part(format!("{:>9}... and {more} more", "")));
        }
        out
    }

    /// Returns the heading, like `Applying: 37/120 done, 10 running, 1m23s elapsed, about 3m left`.
    fn heading(&self, now: Instant) -> String {
        let title = if self.stopping { "Stopping" } else { self.work.title };
        let total = self.all();
        let mut parts = Vec::new();
        if total > 0 {
            parts.push(format!("{}/{total} done", self.done));
        }
        if !self.running.is_empty() {
            parts.push(format!("{} running", self.running.len()));
        }
        let elapsed = now.saturating_duration_since(self.began);
        parts.push(format!("{} elapsed", whole_seconds(elapsed)));
        if let Some(left) = self.left(elapsed) {
            parts.push(format!("about {} left", seconds(left)));
        }
        format!("{title}: {}", parts.join(", "))
    }

    /// Returns the number of instances, as far as it is known.
    fn all(&self) -> usize {
        self.total.max(self.work.expected.unwrap_or_default())
    }

    /// Estimates the remaining time from the rate so far, rounded to a step that the estimate can justify.
    fn left(&self, elapsed: Duration) -> Option<Duration> {
        // While the total still grows, an estimate would be too short.
        let known = self.work.counted || self.work.expected.is_some();
        let rest = self.all().checked_sub(self.done).filter(|rest| *rest > 0)?;
        if !known || self.stopping || self.done < GROUND.0 || elapsed < GROUND.1 {
            return None;
        }
        let left = elapsed.as_secs_f64() * rest as f64 / self.done as f64;
        let step = match left {
            ..60.0 => 5.0,
            ..600.0 => 10.0,
            _ => 60.0,
        };
        Duration::try_from_secs_f64((left / step).ceil() * step).ok()
    }
}

impl Running {
    /// Returns the line of a running operation. The time comes first, so that a narrow terminal shows it.
    fn line(&self, now: Instant) -> String {
        let time = whole_seconds(now.saturating_duration_since(self.since));
        let subject = match &self.subject {
            Subject::Object(address, deposed) => name(address, deposed.as_ref()),
            Subject::Action(invocation) => invocation.clone(),
        };
        let provisioner = self.provisioner.as_ref().map(|p| format!(" ({p})"));
        format!(
            "{time:>7}  {subject}: {}...{}",
            self.begins,
            provisioner.unwrap_or_default()
        )
    }
}

/// Formats a duration in completed seconds, so that a clock on the screen does not run ahead.
fn whole_seconds(time: Duration) -> String {
    seconds(Duration::from_secs(time.as_secs()))
}

#[cfg(test)]
mod tests {
    use engine::plan::Action;

    use super::*;

    const SIZE: Size = Size { width: 80, height: 24 };
    const APPLY: Work = Work {
        title: "Applying",
        expected: None,
        counted: true,
    };

    fn address(i: usize) -> AbsResourceInstance {
        addrs::parse::resource_instance(&format!("terraform_data.a[{i}]")).unwrap()
    }

    fn started(i: usize) -> Event {
        Event::OperationStart {
            address: address(i),
            deposed: None,
            action: Action::Create,
            id: None,
        }
    }

    fn failed(i: usize) -> Event {
        Event::OperationFailed {
            address: address(i),
            deposed: None,
            action: Action::Create,
            elapsed: Duration::ZERO,
        }
    }

    fn texts(record: &Record, now: Instant, size: Size) -> Vec<String> {
        record.lines(now, size).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn what_runs_is_listed_slowest_first_and_as_far_as_there_is_room() {
        let began = Instant::now();
        let mut record = Record::new(APPLY, began);
        let at = |s| began + Duration::from_secs(s);
        for i in 0..12 {
            assert!(record.update(&started(i), at(i as u64)));
        }
        record.update(
            &Event::ProvisionStart {
                address: address(1),
                provisioner: "local-exec".into(),
            },
            at(12),
        );
        record.update(&failed(0), at(12));
        record.update(&Event::Progress { done: 1, total: 13 }, at(12));
        assert_eq!(
            texts(&record, at(75), Size { height: 6, ..SIZE }),
            [
                "Applying: 1/13 done, 11 running, 1m15s elapsed",
                "  1m14s  terraform_data.a[1]: Creating... (local-exec)",
                "  1m13s  terraform_data.a[2]: Creating...",
                "  1m12s  terraform_data.a[3]: Creating...",
                "         ... and 8 more",
            ]
        );
        assert_eq!(texts(&record, at(75), SIZE).len(), 1 + LINES + 1);
        assert_eq!(texts(&record, at(75), Size { height: 2, ..SIZE }).len(), 1);
        for i in 1..12 {
            record.update(&failed(i), at(80));
        }
        assert_eq!(texts(&record, at(80), SIZE), ["Applying: 1/13 done, 1m20s elapsed"]);
        assert!(record.places.is_empty() && record.running.is_empty());
    }

    #[test]
    fn there_is_an_estimate_once_there_is_ground_for_one() {
        let began = Instant::now();
        let heading = |work, done, seconds| {
            let mut record = Record::new(work, began);
            record.update(&Event::Progress { done, total: 100 }, began);
            record.heading(began + Duration::from_secs(seconds))
        };
        assert_eq!(heading(APPLY, 9, 60), "Applying: 9/100 done, 1m0s elapsed");
        assert_eq!(heading(APPLY, 50, 4), "Applying: 50/100 done, 4s elapsed");
        assert_eq!(
            heading(APPLY, 50, 7),
            "Applying: 50/100 done, 7s elapsed, about 10s left"
        );
        assert_eq!(
            heading(APPLY, 10, 60),
            "Applying: 10/100 done, 1m0s elapsed, about 9m0s left"
        );
        assert_eq!(heading(APPLY, 100, 60), "Applying: 100/100 done, 1m0s elapsed");
        // During planning, instances become known block by block; only the state tells a number in advance.
        let plan = Work::named("Planning");
        assert_eq!(heading(plan, 50, 60), "Planning: 50/100 done, 1m0s elapsed");
        let of_state = Work {
            expected: Some(200),
            ..plan
        };
        assert_eq!(
            heading(of_state, 50, 60),
            "Planning: 50/200 done, 1m0s elapsed, about 3m0s left"
        );
    }

    #[test]
    fn a_stop_is_in_the_heading() {
        let began = Instant::now();
        let mut record = Record::new(APPLY, began);
        record.update(&started(1), began);
        record.update(&Event::Stopping, began);
        assert_eq!(record.heading(began), "Stopping: 1 running, 0s elapsed");
    }

    #[test]
    fn a_refresh_that_fails_runs_no_longer() {
        let began = Instant::now();
        let mut record = Record::new(APPLY, began);
        let start = Event::RefreshStart {
            address: address(1),
            id: None,
        };
        record.update(&start, began);
        assert_eq!(
            texts(&record, began, SIZE)[1],
            "     0s  terraform_data.a[1]: Refreshing state..."
        );
        record.update(&Event::RefreshFailed { address: address(1) }, began);
        assert!(record.running.is_empty());
    }
}
