//! Progress of an operation in the live area: totals, and the running operations with their durations, slowest first.
//!
//! Events change a [`Record`]. A thread draws it at most ten times a second, and at
//! least once a second. An operation that ends soon shows nothing.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::events::Event;

use crate::record::Record;
pub use crate::record::Work;
use crate::reporter::{OperationView, StillRunning};
use crate::ui::Ui;

/// Time before the first drawing. Shorter operations would only flicker.
const DELAY: Duration = Duration::from_millis(400);
/// Shortest time between two drawings.
const PAUSE: Duration = Duration::from_millis(100);
/// Interval at which the terminal is checked for another size, and for output that has replaced the area.
const GLANCE: Duration = Duration::from_millis(200);
/// Interval at which elapsed times are redrawn.
const SECOND: Duration = Duration::from_secs(1);

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

    /// Waits until `time` has passed or `so` returns false.
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
            // The area is optional: if the thread cannot be started, the operation continues with lines of
            // text.
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
        // A single notification serves all events until the next drawing.
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
        // The lock is released, so that a slow terminal does not delay the engine's events.
        drop(record);
        ui.area(&lines);
        record = shared.wait(shared.record(), PAUSE, |record| !record.ended);
        // Durations are shown in whole seconds. The wait ends early after an event, other output, or a change of the
        // terminal's size.
        let next = Instant::now() + (SECOND - PAUSE);
        while !record.ended && !record.changed && ui.is_drawn() && ui.size() == size && Instant::now() < next {
            record = shared.wait(record, GLANCE, |record| !record.ended && !record.changed);
        }
    }
    drop(record);
    ui.clear_area();
}
