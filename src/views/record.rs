//! State of a running operation, for views of its progress: totals, and the running operations with their durations.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use addrs::AbsResourceInstance;
use engine::events::Event;
use engine::lanes::Settled;
use unicode_width::UnicodeWidthChar as _;

use crate::area::{Line, Size};
use crate::lanes;
use crate::progress::{invocation, name};
use crate::reporter::seconds;
use crate::words::{ephemeral_words, words};

/// Limit of the running operations that are listed.
const LINES: usize = 8;
/// Minimum number of completed instances, and minimum elapsed time, for an estimate of the remaining time.
const GROUND: (usize, Duration) = (10, Duration::from_secs(5));
/// Limit of the slowest operations that are named at the end.
const SLOWEST: usize = 5;
/// Minimum time of a plan or apply for a list of the slowest operations in it.
const LONG: Duration = Duration::from_secs(60);
/// Minimum time of an operation in this list.
const SLOW: Duration = Duration::from_secs(5);
/// Limit of an address in a line of text, in columns.
const LONGEST: usize = 60;
/// Least room for a name in a line, in columns.
const SHORTEST: usize = 16;

/// Description of an operation whose progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Title: `Applying`.
    pub title: &'static str,
    /// Minimum number of instances, if it is known at the start.
    pub expected: Option<usize>,
    /// True if the events have the total of the whole operation from the start.
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

/// Progress of an operation: totals, and the operations on single objects.
pub(crate) struct Record {
    work: Work,
    began: Instant,
    done: usize,
    total: usize,
    /// Concurrency limits that the operation has adapted, by provider.
    lanes: Vec<Settled>,
    stopping: bool,
    /// Running operations, keyed by start order: the longest-running one comes first.
    running: BTreeMap<u64, Running>,
    /// Keys of running operations, by subject.
    places: HashMap<Subject, u64>,
    started: u64,
    /// Slowest operations that have ended, the slowest first.
    slowest: Vec<(Duration, String)>,
    /// Number of operations that have ended.
    finished: usize,
    /// True if the display has to be redrawn.
    pub(crate) changed: bool,
    pub(crate) ended: bool,
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
    /// Verb for the running operation: `Creating`.
    begins: &'static str,
    /// Provisioner that is running.
    provisioner: Option<Arc<str>>,
    since: Instant,
}

impl Record {
    pub(crate) fn new(work: Work, now: Instant) -> Record {
        Record {
            work,
            began: now,
            done: 0,
            total: 0,
            lanes: Vec::new(),
            stopping: false,
            running: BTreeMap::new(),
            places: HashMap::new(),
            started: 0,
            slowest: Vec::new(),
            finished: 0,
            changed: false,
            ended: false,
        }
    }

    /// Applies an event; returns true if the display has to be redrawn.
    pub(crate) fn update(&mut self, event: &Event, now: Instant) -> bool {
        let object = |address: &AbsResourceInstance| Subject::Object(address.clone(), None);
        match event {
            Event::Lanes { limits, .. } => self.lanes.clone_from(limits),
            Event::RefreshStart { address, .. } => self.start(object(address), "Refreshing state", now),
            Event::RefreshComplete { address, .. } | Event::RefreshFailed { address } => {
                self.finish(&object(address), now)
            }
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
                self.finish(&Subject::Object(address.clone(), deposed.clone()), now);
            }
            Event::EphemeralStart { address, action } => {
                self.start(object(address), ephemeral_words(*action).begins, now);
            }
            Event::EphemeralComplete { address, .. } | Event::EphemeralFailed { address, .. } => {
                self.finish(&object(address), now);
            }
            Event::ProvisionStart { address, provisioner } => self.provision(address, Some(provisioner)),
            Event::ProvisionComplete { address, .. } | Event::ProvisionFailed { address, .. } => {
                self.provision(address, None);
            }
            Event::ActionStart { address, trigger } => {
                self.start(Subject::Action(invocation(address, trigger)), "Invoking", now);
            }
            Event::ActionComplete { address, trigger } | Event::ActionFailed { address, trigger, .. } => {
                self.finish(&Subject::Action(invocation(address, trigger)), now);
            }
            Event::Progress { done, total } => (self.done, self.total) = (*done, *total),
            Event::Stopping => self.stopping = true,
            Event::ImportStart { .. }
            | Event::Imported { .. }
            | Event::ProvisionOutput { .. }
            | Event::ActionProgress { .. }
            | Event::EphemeralDeferred { .. }
            | Event::ListStart { .. }
            | Event::ListComplete { .. }
            | Event::PlanStart { .. }
            | Event::PlanComplete { .. }
            | Event::PlanFailed { .. } => return false,
        }
        true
    }

    fn start(&mut self, subject: Subject, begins: &'static str, now: Instant) {
        // If a subject starts again without having ended, its old entry is removed, because no event would remove it later.
        if let Some(place) = self.places.remove(&subject) {
            self.running.remove(&place);
        }
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

    fn finish(&mut self, subject: &Subject, now: Instant) {
        let place = self.places.remove(subject);
        let Some(ended) = place.and_then(|place| self.running.remove(&place)) else {
            return;
        };
        self.finished += 1;
        let time = now.saturating_duration_since(ended.since);
        let at = self.slowest.partition_point(|(other, _)| *other >= time);
        if at < SLOWEST {
            self.slowest
                .insert(at, (time, format!("{}: {}", ended.name(), ended.begins)));
            self.slowest.truncate(SLOWEST);
        }
    }

    /// Sets the provisioner that runs on an object.
    fn provision(&mut self, address: &AbsResourceInstance, provisioner: Option<&Arc<str>>) {
        let place = self.places.get(&Subject::Object(address.clone(), None));
        if let Some(running) = place.and_then(|place| self.running.get_mut(place)) {
            running.provisioner = provisioner.cloned();
        }
    }

    pub(crate) fn lines(&self, now: Instant, size: Size) -> Vec<Line> {
        let mut out = vec![Line::heading(self.heading(now))];
        // The heading, the line with the number of the others, and one permanent line need space.
        let room = size.height.saturating_sub(3).min(LINES);
        let shown = self.running.values().take(room);
        // The last column stays free, because some terminals wrap a line that fills it.
        let width = size.width.saturating_sub(1);
        out.extend(shown.map(|running| Line::part(running.line(now, width))));
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
        if !self.lanes.is_empty() {
            parts.push(format!("at most {}", lanes::limits(&self.lanes)));
        }
        let elapsed = now.saturating_duration_since(self.began);
        parts.push(format!("{} elapsed", whole_seconds(elapsed)));
        if let Some(left) = self.left(elapsed) {
            parts.push(format!("about {} left", seconds(left)));
        }
        format!("{title}: {}", parts.join(", "))
    }

    /// Returns a line for output that is not a terminal, like `Applying: 20 of 50 done, 3 running, slowest t.n 40s`.
    pub(crate) fn status(&self, now: Instant) -> String {
        let title = if self.stopping { "Stopping" } else { self.work.title };
        let mut parts = match self.all() {
            0 => vec![format!("{} done", self.done.max(self.finished))],
            total => vec![format!("{} of {total} done", self.done)],
        };
        // The operation that started first has been running for the longest time.
        if let Some(slowest) = self.running.values().next() {
            let time = whole_seconds(now.saturating_duration_since(slowest.since));
            parts.push(format!("{} running", self.running.len()));
            parts.push(format!("slowest {} {time}", middle(&slowest.name(), LONGEST)));
        }
        format!("{title}: {}", parts.join(", "))
    }

    /// Returns lines about the slowest operations, if the whole operation took long enough.
    pub(crate) fn slowest(&self, now: Instant) -> Vec<String> {
        if now.saturating_duration_since(self.began) < LONG || self.finished < 2 {
            return Vec::new();
        }
        let lines = self.slowest.iter().filter(|(time, _)| *time >= SLOW);
        let lines = lines.map(|(time, name)| format!("{:>9} {name}", seconds(*time)));
        let mut out: Vec<String> = lines.collect();
        if !out.is_empty() {
            out.insert(0, format!("The slowest of {}:", self.finished));
        }
        out
    }

    /// Returns the total number of instances, as far as it is known.
    fn all(&self) -> usize {
        self.total.max(self.work.expected.unwrap_or_default())
    }

    /// Estimates the remaining time from the rate so far, rounded up to 5 s, 10 s or 1 min. `None` if the total is not
    /// known, too little or everything has been done, or the operation is being stopped.
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
    fn name(&self) -> String {
        match &self.subject {
            Subject::Object(address, deposed) => name(address, deposed.as_ref()),
            Subject::Action(invocation) => invocation.clone(),
        }
    }

    /// Returns the line of a running operation. The time comes first, so that a narrow terminal shows it; a long name is
    /// shortened in the middle.
    fn line(&self, now: Instant, width: usize) -> String {
        let time = whole_seconds(now.saturating_duration_since(self.since));
        let provisioner = self.provisioner.as_ref().map(|p| format!(" ({p})"));
        let begin = format!("{time:>7}  ");
        let end = format!(": {}...{}", self.begins, provisioner.unwrap_or_default());
        let rest = width.saturating_sub(begin.len());
        // In a narrow terminal, the text after the name is cut off as well.
        let room = rest.saturating_sub(end.len()).max(SHORTEST.min(rest * 2 / 3));
        format!("{begin}{}{end}", middle(&self.name(), room))
    }
}

/// Cuts the middle out of a name that has more columns than `width`, so that its beginning and its key stay.
pub(crate) fn middle(name: &str, width: usize) -> String {
    let columns = |c: char| c.width().unwrap_or(0);
    let all: usize = name.chars().map(columns).sum();
    if all <= width {
        return name.to_owned();
    }
    let room = width.saturating_sub(1);
    let (mut head, mut tail) = (room / 2, room - room / 2);
    let fits = |left: &mut usize, c: char| match left.checked_sub(columns(c)) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    };
    let begin: String = name.chars().take_while(|c| fits(&mut head, *c)).collect();
    let end: Vec<char> = name.chars().rev().take_while(|c| fits(&mut tail, *c)).collect();
    format!("{begin}…{}", end.into_iter().rev().collect::<String>())
}

/// Formats a duration in completed seconds, so that it never shows more than has passed.
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

    #[test]
    fn status_has_counts_and_the_slowest() {
        let began = Instant::now();
        let mut record = Record::new(APPLY, began);
        let at = |s| began + Duration::from_secs(s);
        assert_eq!(record.status(at(1)), "Applying: 0 done");
        record.update(&started(1), at(10));
        record.update(&started(2), at(20));
        record.update(&Event::Progress { done: 20, total: 50 }, at(20));
        assert_eq!(
            record.status(at(50)),
            "Applying: 20 of 50 done, 2 running, slowest terraform_data.a[1] 40s"
        );
        record.update(&failed(1), at(55));
        record.update(&failed(2), at(58));
        assert_eq!(record.slowest(at(59)), [""; 0], "the whole was short");
        assert_eq!(
            record.slowest(at(61)),
            [
                "The slowest of 2:",
                "      45s terraform_data.a[1]: Creating",
                "      38s terraform_data.a[2]: Creating",
            ]
        );
    }

    #[test]
    fn long_names_are_cut_in_the_middle() {
        assert_eq!(middle("module.a.t.n[\"key\"]", 30), "module.a.t.n[\"key\"]");
        assert_eq!(middle("module.a.t.n[\"key\"]", 12), "modul…\"key\"]");
        assert_eq!(middle("名名名名", 5), "名…名");
        let began = Instant::now();
        let mut record = Record::new(APPLY, began);
        record.update(&started(123_456_789), began);
        let narrow = Size { width: 40, ..SIZE };
        assert_eq!(
            texts(&record, began, narrow)[1],
            "     0s  terrafor…3456789]: Creating..."
        );
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
        // During planning, instances become known block by block, so only the state gives a number in advance.
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
