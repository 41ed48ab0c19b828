//! Saving results during an apply. A separate thread does this, with its own copy of the state.
//!
//! The apply sends each result to that thread and continues without waiting for the disk; the state that it works with is never copied. A
//! result is saved [`Schedule::interval`] after its arrival, together with later ones, even if more keep coming. A large state is written
//! less often: writing takes at most one part in [`SHARE`] of the processor time, because the apply needs the processor, too. Waiting for
//! the disk does not slow the apply down, so writes may take up to half of the elapsed time.
//!
//! The journal of the run gets each intent and each result first ([`state::journal`]). After a crash, the journal is enough. The state file
//! is written nevertheless, for other programs that read the state, and so that the journal can be made smaller.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use addrs::program::core_version;
use addrs::{AbsProviderConfig, AbsResourceInstance};
use async_trait::async_trait;
use engine::results::ResultSink;
use state::journal::{Answers, Intent, Outcome, Writer};
use state::{InstanceState, SharedStore, SnapshotStore, State};
use syntax::Diagnostic;

/// Writing takes one part in this many of the processor time: 5 %.
const SHARE: u32 = 20;

/// Size in bytes from which a large journal causes a write earlier than the schedule.
const LARGE_JOURNAL: u64 = 64 << 20;

/// Saves the results of one apply.
pub struct Persister {
    results: Results,
    thread: JoinHandle<State>,
}

/// Sink of the results. Clones send to the same thread.
#[derive(Clone)]
pub struct Results {
    sender: Sender<Message>,
    received: Arc<Mutex<Vec<Received>>>,
    journal: Option<Writer>,
}

struct Received {
    address: AbsResourceInstance,
    provider: AbsProviderConfig,
    objects: Option<InstanceState>,
    /// Number of the outcome in the journal.
    number: u64,
}

/// Message to the thread. Results are in a shared list, because a message would wake the thread for each of thousands of results, although
/// the thread needs the results only when a write is due.
enum Message {
    /// The first result has been added to the list.
    Received,
    /// Save at once, and confirm it.
    Save(Sender<()>),
    /// End, after the results have been added to the copy of the state.
    End,
    /// End, with the copy of the state as it was last written.
    Discard,
}

#[async_trait]
impl ResultSink for Results {
    fn instance(
        &self,
        address: &AbsResourceInstance,
        provider: &AbsProviderConfig,
        objects: Option<InstanceState>,
        answers: Answers,
    ) {
        let (address, provider) = (address.clone(), provider.clone());
        let number = self.journal.as_ref().map_or(0, |journal| {
            journal.outcome(Outcome {
                address: address.clone(),
                provider: provider.clone(),
                objects: objects.clone(),
                answers,
            })
        });
        self.receive(Received {
            address,
            provider,
            objects,
            number,
        });
    }

    async fn begin(&self, intent: &Intent) -> Result<(), Diagnostic> {
        match &self.journal {
            Some(journal) => begin(journal, intent).await,
            None => Ok(()),
        }
    }

    fn end(&self, intent: &Intent) {
        if let Some(journal) = &self.journal {
            journal.end(intent.key());
        }
    }

    async fn settled(&self) {
        if let Some(journal) = &self.journal
            && let Err(why) = journal.sync().await
        {
            // No other operation begins after this failure, and the end of the apply saves the state or reports why it cannot be saved.
            tracing::warn!("{why}");
        }
    }
}

/// Records an intent.
///
/// # Errors
/// The intent cannot be recorded.
pub async fn begin(journal: &Writer, intent: &Intent) -> Result<(), Diagnostic> {
    journal.begin(intent).await.map_err(|why| {
        if journal.path().is_none() {
            let detail = format!(
                "The store of the state cannot record that an operation on {} begins: {why} Without that record a killed run would lose \
                 its result, so the operation was not begun.",
                intent.address
            );
            return Diagnostic::error("Cannot record the operation", detail);
        }
        Diagnostic::error(
            "Cannot write the journal",
            format!(
                "The journal of this run cannot be written: {why}. Without it a killed run would lose its results, so the operation \
                 on {} was not begun. The results so far are saved. Free disk space, or make the directory writable, and run \
                 the command again.",
                intent.address
            ),
        )
    })
}

impl Results {
    fn receive(&self, result: Received) {
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = received.is_empty();
        received.push(result);
        drop(received);
        if is_first {
            // The thread runs until the end of the apply, so sending cannot fail while results matter.
            let _ = self.sender.send(Message::Received);
        }
    }

    /// Saves all results so far at once. Returns true if the attempt, successful or not, ended within the time limit.
    pub fn save(&self, limit: Duration) -> bool {
        let (answer, answered) = channel();
        self.sender.send(Message::Save(answer)).is_ok() && answered.recv_timeout(limit).is_ok()
    }
}

impl Persister {
    /// Starts the thread with the state at the beginning of the apply.
    ///
    /// # Errors
    /// No more threads can be started.
    pub fn start(
        state: State,
        store: SharedStore,
        journal: Option<Writer>,
        interval: Duration,
    ) -> io::Result<Persister> {
        let (sender, messages) = channel();
        let received = Arc::new(Mutex::default());
        let results = Results {
            sender,
            received: received.clone(),
            journal: journal.clone(),
        };
        let watched = journal;
        let work = move || {
            // The state stays the same file or store during an apply, so this is read once.
            let stream = lock(&store).is_stream();
            // A store that receives the records of the journal has all results already.
            let in_store = watched.as_ref().is_some_and(|journal| journal.path().is_none());
            let write = |state: &State, included: u64| {
                let mut store = lock(&store);
                match store.write(state, core_version()) {
                    Ok(_) => {
                        // The state was written, so the journal need not contain its outcomes any more.
                        store.compact_journal(included);
                        true
                    }
                    Err(e) => {
                        // The end of the operation writes again, and reports a failure.
                        tracing::warn!("the state could not be written meanwhile: {e}");
                        false
                    }
                }
            };
            let grown = || watched.as_ref().is_some_and(|journal| journal.size() > LARGE_JOURNAL);
            follow(
                &messages,
                &received,
                state,
                Schedule::new(interval),
                // A pipe or a device cannot replace an earlier snapshot, so it receives snapshots only on request.
                !(stream || in_store),
                grown,
                write,
            )
        };
        let thread = std::thread::Builder::new().name("persister".to_owned()).spawn(work)?;
        Ok(Persister { results, thread })
    }

    #[must_use]
    pub fn results(&self) -> Results {
        self.results.clone()
    }

    /// Ends without another write. Returns the state with all results, or `None` if the thread has panicked.
    #[must_use]
    pub fn end(self) -> Option<State> {
        let _ = self.results.sender.send(Message::End);
        self.thread.join().ok()
    }

    /// Ends without another write. Results that were not written yet are dropped. The caller has the state with all results, and adding
    /// them to this copy as well would cost time and memory for each object.
    pub fn discard(self) {
        let _ = self.results.sender.send(Message::Discard);
        if self.thread.join().is_err() {
            tracing::warn!("the thread that saves results has failed");
        }
    }
}

fn lock<'s>(store: &'s Mutex<dyn SnapshotStore + 'static>) -> std::sync::MutexGuard<'s, dyn SnapshotStore + 'static> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Schedule {
    /// Time for which a result waits for later results, so that one write saves them together.
    interval: Duration,
    /// Earliest time of the next write.
    rest: Instant,
}

impl Schedule {
    fn new(interval: Duration) -> Schedule {
        Schedule {
            interval,
            rest: Instant::now(),
        }
    }

    /// Returns the time of the next write, if the first unsaved result arrived at `first`.
    fn due(&self, first: Instant) -> Instant {
        (first + self.interval).max(self.rest)
    }

    /// Sets the pause after a write. `work` is the processor time of the write, and `elapsed` its whole duration.
    fn wrote(&mut self, work: Duration, elapsed: Duration, ended: Instant) {
        self.rest = ended + elapsed.max(work * (SHARE - 1));
    }
}

/// Applies the received results to the state. Returns the number of the last one; `None` if there were no results.
fn include(received: &Mutex<Vec<Received>>, state: &mut State) -> Option<u64> {
    // The list is taken at once, so that operations can add further results while the state is updated.
    let results = std::mem::take(&mut *received.lock().unwrap_or_else(PoisonError::into_inner));
    let last = results.last().map(|result| result.number);
    for Received {
        address,
        provider,
        objects,
        ..
    } in results
    {
        state.set_instance(&address, &provider, objects);
    }
    last
}

/// Receives messages until the end, and writes the state according to the schedule.
fn follow(
    messages: &Receiver<Message>,
    received: &Mutex<Vec<Received>>,
    mut state: State,
    mut schedule: Schedule,
    by_time: bool,
    grown: impl Fn() -> bool,
    write: impl Fn(&State, u64) -> bool,
) -> State {
    // Number of the last outcome in this state.
    let mut included = 0;
    // Arrival of the first result that has not been saved.
    let mut unsaved: Option<Instant> = None;
    loop {
        let due = unsaved.filter(|_| by_time).map(|first| match grown() {
            true => schedule.rest,
            false => schedule.due(first),
        });
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        let message = match left {
            None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            // A write is due, and will include the results of all messages that have arrived.
            Some(Duration::ZERO) => messages.try_recv().map_err(|_| RecvTimeoutError::Timeout),
            Some(left) => messages.recv_timeout(left),
        };
        let answer = match message {
            Ok(Message::Received) => {
                unsaved.get_or_insert_with(Instant::now);
                continue;
            }
            Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => {
                include(received, &mut state);
                return state;
            }
            Ok(Message::Discard) => return state,
            Ok(Message::Save(answer)) => Some(answer),
            Err(RecvTimeoutError::Timeout) => None,
        };
        included = include(received, &mut state).unwrap_or(included);
        let (began, work) = (Instant::now(), system::user::thread_time());
        let saved = write(&state, included);
        let ended = Instant::now();
        let elapsed = ended.saturating_duration_since(began);
        schedule.wrote(
            system::user::thread_time().saturating_sub(work).min(elapsed),
            elapsed,
            ended,
        );
        unsaved = (!saved).then_some(ended);
        if let Some(answer) = answer {
            // The caller may have stopped waiting, and then does not need the answer.
            let _ = answer.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use state::{Attributes, Object, RawJson};

    use super::*;

    fn result(name: &str) -> Received {
        let object = Object::new(0, Attributes::Json(RawJson::parse("{}").unwrap()));
        let objects = InstanceState {
            current: Some(Arc::new(object)),
            ..InstanceState::default()
        };
        Received {
            address: addrs::parse::resource_instance(name).unwrap(),
            provider: AbsProviderConfig::root(addrs::Provider::default_for("null")),
            objects: Some(objects),
            number: 0,
        }
    }

    /// Starts a thread that runs `follow`. Each write sends the number of instances in the state.
    fn following(interval: Duration, by_time: bool, fails: usize) -> (Results, Receiver<usize>, JoinHandle<State>) {
        let (sender, messages) = channel();
        let received = Arc::new(Mutex::default());
        let results = Results {
            sender,
            received: received.clone(),
            journal: None,
        };
        let (wrote, written) = channel();
        let failures = std::sync::atomic::AtomicUsize::new(fails);
        let thread = std::thread::spawn(move || {
            let never = || false;
            follow(
                &messages,
                &received,
                State::new(),
                Schedule::new(interval),
                by_time,
                never,
                |state, _| {
                    let fails = failures
                        .fetch_update(
                            std::sync::atomic::Ordering::SeqCst,
                            std::sync::atomic::Ordering::SeqCst,
                            |left| left.checked_sub(1),
                        )
                        .is_ok();
                    if !fails {
                        wrote.send(state.instance_count()).unwrap();
                    }
                    !fails
                },
            )
        });
        (results, written, thread)
    }

    #[test]
    fn a_result_is_saved_though_no_other_follows() {
        let (results, written, thread) = following(Duration::from_millis(10), true, 0);
        results.receive(result("a.b"));
        assert_eq!(written.recv().unwrap(), 1);
        results.receive(result("a.c"));
        assert_eq!(written.recv().unwrap(), 2);
        results.sender.send(Message::End).unwrap();
        assert_eq!(thread.join().unwrap().instance_count(), 2);
        assert!(written.recv().is_err(), "nothing new was written at the end");
    }

    #[test]
    fn a_write_that_fails_is_tried_again_without_another_result() {
        let (results, written, _) = following(Duration::from_millis(1), true, 3);
        results.receive(result("a.b"));
        assert_eq!(written.recv().unwrap(), 1);
    }

    #[test]
    fn a_stream_is_written_only_on_request() {
        let (results, written, thread) = following(Duration::ZERO, false, 0);
        results.receive(result("a.b"));
        results.receive(result("a.c"));
        assert!(results.save(Duration::from_secs(60)));
        results.sender.send(Message::End).unwrap();
        thread.join().unwrap();
        assert_eq!(written.into_iter().collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn writes_take_a_twentieth_of_the_processor_and_half_of_the_time_at_most() {
        let mut schedule = Schedule::new(Duration::from_secs(1));
        let ended = Instant::now();
        let (ms, s) = (Duration::from_millis, Duration::from_secs);
        schedule.wrote(ms(10), ms(20), ended);
        assert_eq!(schedule.due(ended), ended + s(1));
        schedule.wrote(ms(10), s(3), ended);
        assert_eq!(schedule.due(ended), ended + s(3));
        schedule.wrote(s(2), s(3), ended);
        assert_eq!(schedule.due(ended), ended + s(38));
    }
}
