//! The threads on which calls run.
//!
//! One thread serves the connection, which is enough for many thousand small calls a second. If no code of the plugin ever blocks, calls
//! are tasks on that thread. Otherwise each call has a thread of its own. A call that blocks then holds up neither the other calls nor the
//! connection, on which a request to stop may arrive.

use std::future::Future;
use std::io;
use std::sync::{Arc, LazyLock};

use monoform_sdk::Stop;
use monoform_sdk::calls::{Call, Calls};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tonic::Status;
use tracing::Instrument as _;

/// Maximum number of calls that run at the same time. No host makes more, so no call waits for another.
const CALLS: usize = 8192;

/// Number of threads for tasks that the plugin spawns.
const WORKERS: usize = 16;

/// Two runtimes, for two reasons. A call that blocked a worker of `tasks` would also delay the tasks that it woke before: these wait in the
/// queue of that worker, and no other worker takes them from there. And blocking work of calls (`spawn_blocking`, files, DNS) must not wait
/// for threads that only these calls can free.
struct Pool {
    /// Runtime for timers, sockets, tasks, and blocking work on which calls wait.
    tasks: Runtime,
    /// Runtime whose blocking threads run the calls.
    calls: Runtime,
}

impl Pool {
    fn new() -> io::Result<Pool> {
        Ok(Pool {
            tasks: Builder::new_multi_thread()
                .worker_threads(WORKERS)
                .thread_name("task")
                .enable_all()
                .build()?,
            // No task runs on this runtime: only its threads for blocking work are used.
            calls: Builder::new_current_thread()
                .max_blocking_threads(CALLS)
                .thread_name("call")
                .build()?,
        })
    }
}

pub(crate) fn spawn<T: Send + 'static>(blocks: bool, call: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    // The runtimes exist as long as the process. If they cannot be created, calls run on the thread of the connection.
    static POOL: LazyLock<Option<Pool>> = LazyLock::new(|| Pool::new().ok());
    // Log lines written on the other thread then have the fields of the call.
    let call = call.in_current_span();
    match POOL.as_ref() {
        Some(pool) if blocks => {
            let tasks = pool.tasks.handle();
            pool.calls.spawn_blocking(move || tasks.block_on(call))
        }
        _ => tokio::spawn(call),
    }
}

/// Runs a call to its end. If the caller disconnects, the call is not aborted, but requested to stop.
pub(crate) async fn run<T, F>(calls: &Calls, blocks: bool, work: impl FnOnce(Stop) -> F) -> Result<T, Status>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let call = calls.begin();
    let _stop_on_drop = call.stop_on_drop();
    let work = work(call.stop());
    run_begun(blocks, Arc::new(call), work).await
}

/// Runs a registered call to its end; see [`run`].
pub(crate) async fn run_begun<T, F>(blocks: bool, call: Arc<Call>, work: F) -> Result<T, Status>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let task = async move {
        let result = work.await;
        drop(call);
        result
    };
    spawn(blocks, task)
        .await
        .map_err(|error| Status::internal(format!("this call did not end: {error}")))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::{Barrier, mpsc};

    use tokio::sync::{Mutex, oneshot};

    use super::*;

    #[tokio::test]
    async fn a_call_that_blocks_its_thread_does_not_hold_up_the_others() {
        let calls = Calls::new();
        let (release, wait) = mpsc::channel::<()>();
        let blocking = run(&calls, true, |_| async move { wait.recv().is_ok() });
        let other = async {
            // The blocked call ends only when `release` is sent, so both calls must run at the same time.
            let released = run(&calls, true, |_| async move { release.send(()).is_ok() }).await;
            released.is_ok_and(|released| released)
        };
        let (blocked, released) = tokio::join!(blocking, other);
        assert!(blocked.is_ok_and(|ended| ended) && released);
    }

    #[tokio::test]
    async fn a_call_that_blocks_does_not_hold_up_one_that_waited_for_it() {
        let calls = Calls::new();
        let lock = Arc::new(Mutex::new(()));
        let (queued, is_queued) = oneshot::channel();
        let (locked, is_locked) = oneshot::channel();
        let (ended, has_ended) = mpsc::channel();
        let held = lock.clone();
        let blocking = run(&calls, true, |_| async move {
            let guard = held.lock().await;
            locked.send(()).unwrap_or_default();
            is_queued.await.unwrap_or_default();
            // Dropping the guard wakes the other call. This thread then blocks, and runs no other task.
            drop(guard);
            has_ended.recv().is_ok()
        });
        let waiting = run(&calls, true, |_| async move {
            is_locked.await.unwrap_or_default();
            let mut turn = pin!(lock.lock());
            assert!(futures::poll!(turn.as_mut()).is_pending());
            queued.send(()).unwrap_or_default();
            drop(turn.await);
            ended.send(()).is_ok()
        });
        let (first, second) = tokio::join!(blocking, waiting);
        assert!(first.is_ok_and(|ended| ended) && second.is_ok_and(|ended| ended));
    }

    #[tokio::test]
    async fn any_number_of_calls_may_block_at_once() {
        const MANY: usize = 100;
        let calls = Calls::new();
        // The barrier opens only when all calls wait at it at the same time.
        let barrier = Arc::new(Barrier::new(MANY));
        let all = (0..MANY).map(|_| {
            let barrier = barrier.clone();
            run(&calls, true, |_| async move {
                // Blocking work gets a thread although calls occupy many others.
                monoform_sdk::blocking(|| ()).await;
                barrier.wait();
            })
        });
        let ended = futures::future::join_all(all).await;
        assert!(ended.into_iter().all(|ended| ended.is_ok()));
    }

    #[tokio::test]
    async fn a_call_whose_caller_goes_away_is_asked_to_stop_and_ends() {
        let calls = Calls::new();
        let (begun, mut has_begun) = tokio::sync::mpsc::channel(1);
        let call = run(&calls, false, |mut stop| async move {
            begun.send(()).await.unwrap_or_default();
            stop.requested().await;
        });
        tokio::select! {
            _ = call => panic!("nobody asked it to stop"),
            _ = has_begun.recv() => {}
        }
        calls.idle().await;
    }
}
