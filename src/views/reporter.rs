//! Distribution of the engine's events to the views that subscribe to them, with the state that all views need: running
//! operations with their start, and the numbers of changed objects.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use addrs::AbsResourceInstance;
use engine::events::{EphemeralAction, Event, EventSink};
use engine::plan::Action;

/// Interval of the reports that an operation is still running, as in Terraform.
const REMINDER: Duration = Duration::from_secs(10);

/// Numbers of objects and actions of an apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    pub added: usize,
    pub changed: usize,
    pub destroyed: usize,
    /// Actions invoked, including those that failed.
    pub invoked: usize,
    pub failed: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectOperation {
    /// Change or read of a resource.
    Change(Action),
    /// Opening, renewal or closing of an ephemeral resource.
    Ephemeral(EphemeralAction),
}

/// Operation that has been running for a multiple of ten seconds.
#[derive(Clone, Debug)]
pub struct StillRunning {
    pub address: AbsResourceInstance,
    /// Key of a deposed object; `None` for the current one.
    pub deposed: Option<Arc<str>>,
    pub operation: ObjectOperation,
    /// Name and value of the attribute that identifies the object.
    pub id: Option<(String, String)>,
    pub elapsed: Duration,
}

/// Subscriber of an operation's events. It is called with one event at a time.
pub trait OperationView: Send + Sync {
    fn event(&self, event: &Event);

    /// Returns true if the view needs the events about the planning of each object.
    fn wants_planning(&self) -> bool {
        false
    }

    /// Shows operations that are still running, in the order of the addresses.
    fn still_running(&self, operations: &[StillRunning]);

    /// Called several times a second, to flush output that was written.
    fn tick(&self) {}

    /// Called when the operation has ended, to erase temporary output.
    fn end(&self) {}
}

/// Distributor of the events of one operation to its views.
pub struct Reporter {
    views: Vec<Arc<dyn OperationView>>,
    record: Mutex<Record>,
}

#[derive(Default)]
struct Record {
    running: HashMap<(AbsResourceInstance, Option<Arc<str>>), Running>,
    done: Done,
}

struct Running {
    operation: ObjectOperation,
    id: Option<(String, String)>,
    since: Instant,
    reminders: u64,
}

impl Reporter {
    #[must_use]
    pub fn new(views: Vec<Arc<dyn OperationView>>) -> Reporter {
        Reporter {
            views,
            record: Mutex::default(),
        }
    }

    /// Returns the numbers of completed changes so far.
    #[must_use]
    pub fn done(&self) -> Done {
        self.record().done
    }

    /// Every 200 ms until the future is dropped, calls [`OperationView::tick`], and reports each operation that has been running for
    /// another ten seconds.
    pub async fn tick(&self) -> std::convert::Infallible {
        let mut interval = tokio::time::interval(Duration::from_millis(200));
        loop {
            interval.tick().await;
            self.remind(Instant::now());
        }
    }

    /// Ends the display of all views.
    pub fn end(&self) {
        self.views.iter().for_each(|view| view.end());
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remind(&self, now: Instant) {
        // The record stays locked while the views are called. Otherwise an operation could end and be reported as still running
        // afterwards.
        let mut record = self.record();
        let mut due = Vec::new();
        for ((address, deposed), running) in &mut record.running {
            // The reminders are computed as multiples of the interval, so that a delayed tick does not shift
            // later reminders.
            let times = now.saturating_duration_since(running.since).as_secs() / REMINDER.as_secs();
            if times > running.reminders {
                running.reminders = times;
                due.push(StillRunning {
                    address: address.clone(),
                    deposed: deposed.clone(),
                    operation: running.operation,
                    id: running.id.clone(),
                    elapsed: Duration::from_secs(times * REMINDER.as_secs()),
                });
            }
        }
        // The operations are sorted, because the map has no order and the output must be the same in every run.
        due.sort_by_cached_key(|one| (one.address.to_string(), one.deposed.clone()));
        for view in &self.views {
            if !due.is_empty() {
                view.still_running(&due);
            }
            view.tick();
        }
    }
}

impl Record {
    fn update(&mut self, event: &Event) {
        match event {
            Event::OperationStart {
                address,
                deposed,
                action,
                id,
            } if has_operation(*action) => {
                let running = Running {
                    operation: ObjectOperation::Change(*action),
                    id: id.clone().filter(|_| *action != Action::Create),
                    since: Instant::now(),
                    reminders: 0,
                };
                self.running.insert((address.clone(), deposed.clone()), running);
            }
            Event::OperationComplete {
                address,
                deposed,
                action,
                ..
            } => {
                self.running.remove(&(address.clone(), deposed.clone()));
                match action {
                    Action::Create => self.done.added += 1,
                    Action::Update => self.done.changed += 1,
                    Action::Delete => self.done.destroyed += 1,
                    _ => {}
                }
            }
            Event::OperationFailed { address, deposed, .. } => {
                self.running.remove(&(address.clone(), deposed.clone()));
            }
            Event::EphemeralStart { address, action } => {
                let running = Running {
                    operation: ObjectOperation::Ephemeral(*action),
                    id: None,
                    since: Instant::now(),
                    reminders: 0,
                };
                self.running.insert((address.clone(), None), running);
            }
            Event::EphemeralComplete { address, .. } | Event::EphemeralFailed { address, .. } => {
                self.running.remove(&(address.clone(), None));
            }
            Event::ActionComplete { .. } => self.done.invoked += 1,
            Event::ActionFailed { .. } => {
                self.done.invoked += 1;
                self.done.failed += 1;
            }
            _ => {}
        }
    }
}

/// Returns true if a single operation carries out an action. A replacement consists of two.
fn has_operation(action: Action) -> bool {
    matches!(action, Action::Create | Action::Update | Action::Delete | Action::Read)
}

impl EventSink for Reporter {
    fn event(&self, event: Event) {
        let mut record = self.record();
        record.update(&event);
        self.views.iter().for_each(|view| view.event(&event));
    }

    fn wants_planning(&self) -> bool {
        self.views.iter().any(|view| view.wants_planning())
    }
}

/// Splits a provisioner's output into lines for display. A carriage return also ends a line, since progress bars use it; empty
/// lines are left out.
pub fn lines_of_output(output: &str) -> impl Iterator<Item = &str> {
    let lines = output.split(['\n', '\r']).map(str::trim_end);
    lines.filter(|line| !line.is_empty())
}

/// Formats a duration in rounded seconds, as Go does: `1h2m3s`.
#[must_use]
pub fn seconds(time: Duration) -> String {
    let all = (time + Duration::from_millis(500)).as_secs();
    let (h, m, s) = (all / 3600, all / 60 % 60, all % 60);
    if h > 0 {
        format!("{h}h{m}m{s}s")
    } else if m > 0 {
        format!("{m}m{s}s")
    } else {
        format!("{s}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Recorded(Mutex<Vec<String>>);

    impl OperationView for Recorded {
        fn event(&self, event: &Event) {
            if let Event::OperationComplete { address, .. } = event {
                self.0.lock().unwrap().push(format!("{address} complete"));
            }
        }

        fn still_running(&self, operations: &[StillRunning]) {
            let lines = operations
                .iter()
                .map(|o| format!("{} {}", o.address, seconds(o.elapsed)));
            self.0.lock().unwrap().extend(lines);
        }
    }

    fn start(name: &str) -> Event {
        Event::OperationStart {
            address: addrs::parse::resource_instance(name).unwrap(),
            deposed: None,
            action: Action::Create,
            id: None,
        }
    }

    #[test]
    fn views_receive_the_same_in_the_same_order() {
        let (one, other) = (Arc::new(Recorded::default()), Arc::new(Recorded::default()));
        let reporter = Reporter::new(vec![one.clone(), other.clone()]);
        for name in ["t.b", "t.a"] {
            reporter.event(start(name));
        }
        reporter.remind(Instant::now() + Duration::from_secs(15));
        reporter.remind(Instant::now() + Duration::from_secs(16));
        reporter.event(Event::OperationComplete {
            address: addrs::parse::resource_instance("t.b").unwrap(),
            deposed: None,
            action: Action::Create,
            id: None,
            elapsed: Duration::from_secs(17),
        });
        reporter.remind(Instant::now() + Duration::from_secs(25));
        let lines = one.0.lock().unwrap().clone();
        assert_eq!(lines, ["t.a 10s", "t.b 10s", "t.b complete", "t.a 20s"]);
        assert_eq!(lines, *other.0.lock().unwrap());
        assert_eq!(reporter.done().added, 1);
    }
}
