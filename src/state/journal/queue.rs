//! What waits to be written to a journal, and those who wait for it.
//!
//! A record that somebody waits for is not written at once. Whatever else can go on has its turn first, as it may have something
//! to write as well; and while many operations run, it waits a little longer, for one synchronisation to be enough for all.

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

/// How long a record waits for others, as long as other operations are running: most of them begin or end soon, and one
/// `fdatasync` is enough for all. An intent waits only while many operations run, as its own waits for it.
const WINDOW: Duration = Duration::from_millis(2);

/// The same as long as many operations run, or others have not had their turn: there is enough to do meanwhile.
const LONG_WINDOW: Duration = Duration::from_millis(10);

/// How many operations are many: while more than that run, the time of one that waits is used by others.
pub(super) const MANY: usize = 5;

/// What a writer and its thread share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) path: PathBuf,
    pub(super) queue: Mutex<Queue>,
    pub(super) work: Condvar,
    pub(super) size: AtomicU64,
    /// Whether the last record could not be written.
    pub(super) failing: AtomicBool,
    /// How many objects are being created: of those that the thread has written.
    pub(super) creating: AtomicUsize,
    /// Waited for at the end.
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

/// The queue of the thread.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) items: Vec<Item>,
    /// The number of the last outcome.
    pub(super) outcomes: u64,
    /// How many operations have begun and not ended.
    pub(super) running: usize,
    /// How many of the items are intents: their operations wait.
    pub(super) intents: usize,
    /// How many of the items must be written at once.
    pub(super) urgent: usize,
    /// For how many of them somebody waits.
    pub(super) awaited: usize,
    /// How many of those let others have their turn, who have not all had it: an estimate.
    pub(super) patient: usize,
    /// Whether items that were taken out are not durable yet, or could not be written.
    pub(super) unwritten: bool,
    pub(super) ended: bool,
}

/// What is to be written, or done when it is.
#[derive(Debug)]
pub(super) enum Item {
    Begin(InFlight, Arc<Slot>),
    Outcome(u64, Box<Outcome>),
    End(IntentKey),
    Fold(Base, Arc<Slot>),
    Sync(Arc<Slot>),
    /// The state has all outcomes up to this number, and is this one.
    Compact(u64, Base),
    /// The run has ended, and the state has all outcomes: what is open stays.
    Leave(Base),
}

/// Reason why a record is not durable. Several tickets can get the same one.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The journal takes no more records.
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

/// The answer to a ticket, and who waits for it.
#[derive(Debug, Default)]
pub(super) struct Slot {
    answer: Mutex<Pending>,
    given: Condvar,
}

/// An answer, once it is there, and who is to be woken then.
type Pending = (Option<Result<(), JournalError>>, Option<Waker>);

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn answer(&self, result: Result<(), JournalError>) {
        let mut answer = self.lock();
        answer.0.get_or_insert(result);
        if let Some(waker) = answer.1.take() {
            waker.wake();
        }
        self.given.notify_all();
    }
}

/// Something that will be durable, or will have failed. It can be waited for as a future or by a thread.
#[derive(Debug)]
pub struct Ticket {
    slot: Arc<Slot>,
    patience: Patience,
}

/// The progress of a ticket toward the write of its record.
#[derive(Debug)]
enum Patience {
    /// Whatever else can go on now has its turn first: it may have something to write as well.
    OthersFirst(Arc<Shared>),
    /// They had it.
    OthersHadTheirTurn(Arc<Shared>),
    /// The thread knows when.
    Told,
}

impl Ticket {
    /// For something in the queue. Who is patient lets others have their turn first.
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
        if let Patience::OthersFirst(shared) | Patience::OthersHadTheirTurn(shared) = &self.patience {
            shared.hurry(&mut shared.queue());
        }
        let mut answer = self.slot.lock();
        loop {
            match answer.0.take() {
                Some(result) => return result,
                None => answer = self.slot.given.wait(answer).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Future for Ticket {
    type Output = Result<(), JournalError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut answer = self.slot.lock();
        if let Some(result) = answer.0.take() {
            return Poll::Ready(result);
        }
        answer.1 = Some(context.waker().clone());
        drop(answer);
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
    /// An operation has ended.
    pub(super) fn ended(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// How many operations run, without those that wait for their intents to be durable.
    pub(super) fn under_way(&self) -> usize {
        self.running.saturating_sub(self.intents)
    }

    /// Whether somebody waits whose time nobody else uses.
    fn is_idle(&self) -> bool {
        self.running == 0 || (self.intents > 0 && self.under_way() <= MANY)
    }
}

impl Shared {
    pub(super) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is there is written at once.
    pub(super) fn hurry(&self, queue: &mut Queue) {
        queue.urgent += 1;
        self.work.notify_one();
    }

    /// Waits until there is something to write. Records for which nobody waits stay until there is one for which somebody does.
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
            // How many run may be another number by then.
            let waited = self.work.wait_timeout(queue, left.min(WINDOW));
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// One that was patient is not any more. The last one sends what is there, unless many operations run.
    fn others_had_their_turn(&self) {
        let mut queue = self.queue();
        queue.patient = queue.patient.saturating_sub(1);
        if queue.awaited > 0 && queue.patient == 0 && queue.is_idle() {
            self.hurry(&mut queue);
        }
    }
}
