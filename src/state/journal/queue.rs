//! Queue of records that are to be written to a journal, and the tickets of the tasks and threads that wait for them.
//!
//! A record that somebody waits for is not written at once. All other tasks that are ready run first, as they may have
//! records as well; and while many operations run, a record waits a little longer, so that one synchronisation is
//! enough for all.

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

/// Time for which a record waits for others while other operations are running: most of them begin or end soon, and one
/// `fdatasync` is enough for all. An intent waits only while many operations run, since its own operation waits for it.
const WINDOW: Duration = Duration::from_millis(2);

/// Waiting time while many operations run, or while other tasks have not run yet: the engine has enough other work
/// meanwhile.
const LONG_WINDOW: Duration = Duration::from_millis(10);

/// Number of running operations from which waiting costs nothing, because the others keep the providers busy.
pub(super) const MANY: usize = 5;

/// State shared by a writer and its thread.
#[derive(Debug)]
pub(super) struct Shared {
    /// Path of the file; `None` if a store keeps the records.
    pub(super) path: Option<PathBuf>,
    pub(super) queue: Mutex<Queue>,
    pub(super) work: Condvar,
    pub(super) size: AtomicU64,
    /// Set if the last record could not be written.
    pub(super) failing: AtomicBool,
    /// Number of objects that are being created, of those whose intents the thread has written.
    pub(super) creating: AtomicUsize,
    /// Handle of the thread, joined at the end.
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

/// Queue of the thread.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) items: Vec<Item>,
    /// Number of the last outcome.
    pub(super) outcomes: u64,
    /// Number of operations that have begun and not ended.
    pub(super) running: usize,
    /// Number of intents among the items: their operations wait.
    pub(super) intents: usize,
    /// Number of items that must be written without delay.
    pub(super) urgent: usize,
    /// Number of items that somebody waits for.
    pub(super) awaited: usize,
    /// Estimated number of awaited items that still let other tasks run first.
    pub(super) patient: usize,
    /// Set if items that were taken from the queue are not durable yet, or could not be written.
    pub(super) unwritten: bool,
    pub(super) ended: bool,
}

/// Request to the thread: a record, or an action after the records before it were written.
#[derive(Debug)]
pub(super) enum Item {
    Begin(InFlight, Arc<Slot>),
    Outcome(u64, Box<Outcome>),
    End(IntentKey),
    Fold(Base, Arc<Slot>),
    Sync(Arc<Slot>),
    /// Replaces the journal: the state is this one, and contains all outcomes up to this number.
    Compact(u64, Base),
    /// End the journal: the run has ended, and the state has all outcomes. Only creations without an answer remain.
    Leave(Base),
}

/// Reason why a record is not durable. Several tickets can get the same one.
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

/// Answer to a ticket, and the tasks or threads that wait for it.
#[derive(Debug, Default)]
pub(super) struct Slot {
    answer: Mutex<Pending>,
    given: Condvar,
}

/// Answer to a ticket, once there is one, and the task to wake then.
#[derive(Debug, Default)]
struct Pending {
    answer: Option<Result<(), JournalError>>,
    waker: Option<Waker>,
    /// Set while a thread is blocked on the answer.
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
        // Each notification is a system call, whether a thread waits or not, and a run sends two for each
        // object.
        if answer.blocks {
            self.given.notify_all();
        }
    }
}

/// Promise that a record will be durable, or will have failed. A task awaits it; a thread calls [`Ticket::wait`].
#[derive(Debug)]
pub struct Ticket {
    slot: Arc<Slot>,
    patience: Patience,
}

/// Progress of a ticket toward the write of its record.
#[derive(Debug)]
enum Patience {
    /// Waits until other tasks have run, which may have records as well.
    OthersFirst(Arc<Shared>),
    /// The other tasks have run.
    OthersHadTheirTurn(Arc<Shared>),
    /// The record is left to the thread, which decides when to write.
    Told,
}

impl Ticket {
    /// Creates the ticket of an item in the queue. A patient ticket lets other tasks run first.
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

    /// Waits, and blocks the thread.
    ///
    /// # Errors
    /// The record could not be written, or the journal has ended.
    pub fn wait(self) -> Result<(), JournalError> {
        // A blocked thread does not run other tasks, so waiting for their records is useless.
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
        // The first poll yields to the other tasks of the executor, by waking itself. When it is polled again, they
        // have run, and their records are in the queue.
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

    /// Returns the number of running operations, without those that wait for their intents to be durable.
    pub(super) fn under_way(&self) -> usize {
        self.running.saturating_sub(self.intents)
    }

    /// Returns true if too few other operations run to use the time of a waiting one.
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

    /// Waits until there is something to write. Records without a ticket stay in the queue until a record with one is
    /// added.
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
            // The timeout is short, since the number of running operations can change the window meanwhile.
            let waited = self.work.wait_timeout(queue, left.min(WINDOW));
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the patience of one ticket. After the last one, the queue is written, unless many operations run.
    fn others_had_their_turn(&self) {
        let mut queue = self.queue();
        queue.patient = queue.patient.saturating_sub(1);
        if queue.awaited > 0 && queue.patient == 0 && queue.is_idle() {
            self.hurry(&mut queue);
        }
    }
}
