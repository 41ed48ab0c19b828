//! The threads that answer requests, and the way of a request to one of them.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use state::Codec;
use syntax::Diagnostics;

use super::command::{Command, Event};
use super::states::States;
use super::{Answer, Request};

/// Threads that read states.
const READERS: usize = 4;
/// Threads that lock and write states.
const WRITERS: usize = 8;

/// A request for the state of a workspace.
pub struct Job {
    pub workspace: String,
    pub request: Request,
    /// Receives the answer.
    pub reply: Box<dyn FnOnce(Answer) + Send>,
}

/// Queues of the threads.
pub struct Pool(Mutex<Option<Queues>>);

struct Queues {
    reads: Sender<Job>,
    writers: Vec<Sender<Job>>,
    /// Writers of the states that are in use.
    assigned: BTreeMap<String, Assigned>,
}

#[derive(Clone, Copy, Debug)]
struct Assigned {
    writer: usize,
    /// Requests without an answer.
    open: usize,
    /// Set if a client holds the lock.
    is_held: bool,
}

/// Returns the writer of a state: the one that has it already, or the one with the fewest states.
fn assign(assigned: &mut BTreeMap<String, Assigned>, workspace: &str) -> usize {
    let mut counts = [0_usize; WRITERS];
    for of_writer in assigned.values() {
        if let Some(count) = counts.get_mut(of_writer.writer) {
            *count += 1;
        }
    }
    let entry = assigned.entry(workspace.to_owned()).or_insert_with(|| {
        let fewest = (0..WRITERS).min_by_key(|at| counts.get(*at));
        Assigned {
            writer: fewest.unwrap_or_default(),
            open: 0,
            is_held: false,
        }
    });
    entry.open += 1;
    entry.writer
}

/// Ends a request. The state is assigned anew next time if nothing binds it to its writer.
fn release(assigned: &mut BTreeMap<String, Assigned>, workspace: &str, is_held: bool) {
    let Some(entry) = assigned.get_mut(workspace) else {
        return;
    };
    entry.open = entry.open.saturating_sub(1);
    entry.is_held = is_held;
    if entry.open == 0 && !is_held {
        assigned.remove(workspace);
    }
}

impl Pool {
    /// Sends a request to its thread. After the end of the server the request is dropped, and has no answer.
    pub fn send(&self, job: Job) {
        let mut queues = self.lock();
        let Some(queues) = queues.as_mut() else { return };
        let queue = match job.request {
            Request::Read => Some(&queues.reads),
            _ => queues.writers.get(assign(&mut queues.assigned, &job.workspace)),
        };
        // Without its thread, the request is dropped.
        let _ = queue.map(|queue| queue.send(job));
    }

    /// Ends the threads when they have answered all requests.
    pub fn close(&self) {
        self.lock().take();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Queues>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the server if its thread panics: the panic is reported when the threads are joined.
struct Guard(Sender<Event>);

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.send(Event::End);
        }
    }
}

/// Starts the threads. A thread returns warnings about the locks that clients have at its end.
///
/// # Errors
/// The system starts no more threads.
pub fn start(codec: &Codec, events: &Sender<Event>) -> io::Result<(Arc<Pool>, Vec<JoinHandle<Diagnostics>>)> {
    let (reads, read_jobs) = channel();
    let read_jobs = Arc::new(Mutex::new(read_jobs));
    let (writers, write_jobs): (Vec<_>, Vec<Receiver<Job>>) = (0..WRITERS).map(|_| channel()).unzip();
    let pool = Arc::new(Pool(Mutex::new(Some(Queues {
        reads,
        writers,
        assigned: BTreeMap::new(),
    }))));
    let mut threads = Vec::new();
    let started = (0..READERS).try_for_each(|_| {
        let (jobs, events, codec) = (read_jobs.clone(), events.clone(), codec.clone());
        threads.push(spawn("state-reader", move || read(&jobs, codec, events))?);
        Ok(())
    });
    let started = started.and_then(|()| {
        write_jobs.into_iter().try_for_each(|jobs| {
            let (pool, events, codec) = (pool.clone(), events.clone(), codec.clone());
            threads.push(spawn("state-writer", move || write(&jobs, &pool, codec, events))?);
            Ok(())
        })
    });
    if started.is_err() {
        // Ends those that have started.
        pool.close();
    }
    started.map(|()| (pool, threads))
}

fn spawn(name: &str, work: impl FnOnce() -> Diagnostics + Send + 'static) -> io::Result<JoinHandle<Diagnostics>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work)
}

fn read(jobs: &Mutex<Receiver<Job>>, codec: Codec, events: Sender<Event>) -> Diagnostics {
    let _guard = Guard(events.clone());
    let mut states = States::new(codec, Command::new(events));
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return Diagnostics::new() };
        (job.reply)(states.answer(&job.workspace, job.request));
    }
}

fn write(jobs: &Receiver<Job>, pool: &Pool, codec: Codec, events: Sender<Event>) -> Diagnostics {
    let _guard = Guard(events.clone());
    let mut states = States::new(codec, Command::new(events));
    for job in jobs {
        // A client that is gone gets no answer, and its request is still carried out: it may have been sent to write a state.
        let answer = states.answer(&job.workspace, job.request);
        if let Some(queues) = pool.lock().as_mut() {
            release(&mut queues.assigned, &job.workspace, states.holds(&job.workspace));
        }
        (job.reply)(answer);
    }
    states.release()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_in_use_keep_their_writers_and_others_get_the_idlest_one() {
        let mut assigned = BTreeMap::new();
        assert_eq!(assign(&mut assigned, "a"), 0);
        assert_eq!(assign(&mut assigned, "b"), 1);
        assert_eq!(assign(&mut assigned, "a"), 0, "its other request has no answer yet");
        release(&mut assigned, "a", true);
        release(&mut assigned, "a", true);
        assert_eq!(assign(&mut assigned, "c"), 2, "a client has the lock of a");
        release(&mut assigned, "b", false);
        assert_eq!(assign(&mut assigned, "d"), 1);
        assert_eq!(assign(&mut assigned, "a"), 0);
        release(&mut assigned, "a", false);
        assert_eq!(assign(&mut assigned, "e"), 0);
    }
}
