//! Queue of records to be written to a journal, and tickets, with which tasks and threads wait until a record is durable.
//!
//! A record with a ticket is not written at once. All other tasks that are ready run first, because they may add records as well. While
//! many operations run, records wait a little longer, so that one synchronization covers many of them.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::format::InFlight;
use super::{Base, IntentKey, Outcome};
use crate::StateError;

/// Time for which a record waits for others while other operations are running: most of these begin or end soon, and one `fdatasync` then
/// covers all records. An intent waits only while many operations run, because its operation cannot begin before.
const WINDOW: Duration = Duration::from_millis(2);

/// Waiting time while many operations run, or while other tasks have not run yet. The engine has enough other work meanwhile.
const LONG_WINDOW: Duration = Duration::from_millis(10);

/// Number of running operations above which waiting costs no time, because they keep the providers busy.
pub(super) const MANY: usize = 5;

/// State shared by a writer and its thread.
#[derive(Debug)]
pub(super) struct Shared {
    /// Path of the file; `None` if a store receives the records.
    pub(super) path: Option<PathBuf>,
    pub(super) queue: Mutex<Queue>,
    pub(super) work: Condvar,
    pub(super) size: AtomicU64,
    /// Set if the last record could not be written.
    pub(super) failing: AtomicBool,
    /// Number of creations that have begun and not ended.
    pub(super) creating: AtomicUsize,
    /// Handle of the thread, joined at the end.
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

/// Records that the thread has not taken yet, and the numbers that decide when it writes.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) items: Vec<Item>,
    /// Number of outcomes so far, which is the number of the last one.
    pub(super) outcomes: u64,
    /// Number of operations that have begun and not ended.
    pub(super) running: usize,
    /// Number of intents in `items`. Their operations wait.
    pub(super) intents: usize,
    /// Number of items that must be written without delay.
    pub(super) urgent: usize,
    /// Number of items with a ticket.
    pub(super) awaited: usize,
    /// Estimated number of tickets that still let other tasks run before the queue is written.
    pub(super) patient: usize,
    /// Set while items that the thread has taken are not durable yet, or if they could not be written.
    pub(super) unwritten: bool,
    pub(super) ended: bool,
}

/// Request to the thread: a record, or an action after all earlier records.
#[derive(Debug)]
pub(super) enum Item {
    Begin(InFlight, Arc<Slot>),
    Outcome(u64, Box<Outcome>),
    End(IntentKey),
    Fold(Base, Arc<Slot>),
    Sync(Arc<Slot>),
    /// Replace the journal by one that continues this state. The state has all outcomes up to this number.
    Compact(u64, Base),
    /// End the journal. The state has all outcomes, and only creations that the provider did not answer remain in the file.
    Leave(Base),
}

/// Reason why a record is not durable. Several tickets can receive the same reason.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The journal has ended and accepts no records.
    #[error("the journal has ended")]
    Ended,
    /// The record cannot be encoded or written.
    #[error(transparent)]
    Write(Arc<StateError>),
}

impl From<StateError> for JournalError {
    fn from(error: StateError) -> JournalError {
        JournalError::Write(Arc::new(error))
    }
}

/// Answer to a ticket, and the task or thread that waits for it.
#[derive(Debug, Default)]
pub(super) struct Slot {
    answer: Mutex<Pending>,
    given: Condvar,
}

/// The answer, once it exists, and the task to wake then.
#[derive(Debug, Default)]
struct Pending {
    answer: Option<Result<(), JournalError>>,
    waker: Option<Waker>,
    /// Set while a thread is blocked until the answer exists.
    blocks: bool,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn answer(&self, result: Result<(), JournalError>) {
        let mut answer = self.lock();
        answer.answer.get_or_insert(result);
        if let Some(waker) = answer.waker.take() {
            waker.wake();
        }
        // Notifying a condition variable is a system call even if no thread waits, and a run sends two answers for each object.
        if answer.blocks {
            self.given.notify_all();
        }
    }
}

/// Future that completes when a record is durable or has failed. Tasks await it; threads call [`Ticket::wait`].
#[derive(Debug)]
pub struct Ticket {
    slot: Arc<Slot>,
    patience: Patience,
}

/// How long a ticket lets other tasks add their records before the queue is written.
#[derive(Debug)]
enum Patience {
    /// Not polled yet: other tasks run first, because they may have records as well.
    OthersFirst(Arc<Shared>),
    /// Polled once: the other tasks have run when it is polled again.
    OthersHadTheirTurn(Arc<Shared>),
    /// The thread decides when to write.
    Told,
}

impl Ticket {
    /// Creates the ticket of a queued item. With `patient`, other tasks run before the item is written.
    pub(super) fn pending(slot: Arc<Slot>, shared: &Arc<Shared>, patient: bool) -> Ticket {
        let patience = match patient {
            true => Patience::OthersFirst(shared.clone()),
            false => Patience::Told,
        };
        Ticket { slot, patience }
    }

    pub(super) fn answered(result: Result<(), JournalError>) -> Ticket {
        let slot = Arc::new(Slot::default());
        slot.answer(result);
        Ticket {
            slot,
            patience: Patience::Told,
        }
    }

    /// Blocks the thread until the record is durable.
    ///
    /// # Errors
    /// The record could not be written, or the journal has ended.
    pub fn wait(self) -> Result<(), JournalError> {
        // While this thread is blocked, it runs no other tasks, so there is no use in waiting for their records.
        if let Patience::OthersFirst(shared) | Patience::OthersHadTheirTurn(shared) = &self.patience {
            shared.hurry(&mut shared.queue());
        }
        let mut answer = self.slot.lock();
        loop {
            match answer.answer.take() {
                Some(result) => return result,
                None => {
                    answer.blocks = true;
                    answer = self.slot.given.wait(answer).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl Future for Ticket {
    type Output = Result<(), JournalError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut answer = self.slot.lock();
        if let Some(result) = answer.answer.take() {
            return Poll::Ready(result);
        }
        answer.waker = Some(context.waker().clone());
        drop(answer);
        // At the first poll, the task wakes itself and so yields to the other tasks of the executor. At the second poll, they have run, and
        // their records are in the queue.
        self.patience = match std::mem::replace(&mut self.patience, Patience::Told) {
            Patience::OthersFirst(shared) => {
                context.waker().wake_by_ref();
                Patience::OthersHadTheirTurn(shared)
            }
            Patience::OthersHadTheirTurn(shared) => {
                shared.others_had_their_turn();
                Patience::Told
            }
            Patience::Told => Patience::Told,
        };
        Poll::Pending
    }
}

impl Queue {
    /// Counts an operation as ended.
    pub(super) fn ended(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// Returns the number of running operations, except for those that wait for their intents to be durable.
    pub(super) fn under_way(&self) -> usize {
        self.running.saturating_sub(self.intents)
    }

    /// Returns true if waiting for more records costs time: no operation runs, or an operation waits for its intent while at most [`MANY`]
    /// others run.
    fn is_idle(&self) -> bool {
        self.running == 0 || (self.intents > 0 && self.under_way() <= MANY)
    }
}

impl Shared {
    pub(super) fn new(path: Option<PathBuf>) -> Shared {
        Shared {
            path,
            queue: Mutex::default(),
            work: Condvar::new(),
            size: AtomicU64::new(0),
            failing: AtomicBool::new(false),
            creating: AtomicUsize::new(0),
            thread: Mutex::default(),
        }
    }

    pub(super) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the thread write the whole queue at once.
    pub(super) fn hurry(&self, queue: &mut Queue) {
        queue.urgent += 1;
        self.work.notify_one();
    }

    /// Waits until the queue must be written, or the journal has ended. Records without a ticket stay in the queue until a record with one
    /// is added.
    pub(super) fn wait(&self) -> MutexGuard<'_, Queue> {
        let mut queue = self.queue();
        let mut since: Option<Instant> = None;
        loop {
            if queue.ended || queue.urgent > 0 {
                return queue;
            }
            if queue.awaited == 0 {
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let busy = queue.patient > 0 || queue.under_way() > MANY;
            let window = if busy { LONG_WINDOW } else { WINDOW };
            let left = window.saturating_sub(since.get_or_insert_with(Instant::now).elapsed());
            if left.is_zero() {
                return queue;
            }
            // The wait is at most `WINDOW` long, because the window may become shorter when the number of running operations changes.
            let waited = self.work.wait_timeout(queue, left.min(WINDOW));
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Called when the other tasks have run for one ticket. After the last ticket, the queue is written, unless many operations run.
    fn others_had_their_turn(&self) {
        let mut queue = self.queue();
        queue.patient = queue.patient.saturating_sub(1);
        if queue.awaited > 0 && queue.patient == 0 && queue.is_idle() {
            self.hurry(&mut queue);
        }
    }
}
