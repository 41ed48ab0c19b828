//! Where the calls of a plugin run.
//!
//! The connection is served by one thread, which is enough for many thousand small calls a second. Calls run beside it, as
//! tasks of their own: on that thread if no code of the plugin ever blocks, else on a pool of threads, so that a call that
//! blocks holds up neither the others nor the connection (a request to stop, above all).

use std::future::Future;
use std::sync::LazyLock;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tonic::Status;

use crate::Stop;
use crate::context::Calls;

/// How many calls may block at the same time. Programs make ten calls at a time by default.
const WORKERS: usize = 16;

/// Starts a task of the plugin's.
pub(crate) fn spawn<T: Send + 'static>(blocks: bool, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    // It lives as long as the process: where it cannot be had, the one thread must do.
    static POOL: LazyLock<Option<Runtime>> = LazyLock::new(|| {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(WORKERS)
            .thread_name("call")
            .enable_all()
            .build()
            .ok()
    });
    match POOL.as_ref() {
        Some(pool) if blocks => pool.spawn(task),
        _ => tokio::spawn(task),
    }
}

/// Runs a call to its end. Who waits for it may go away: then the call is asked to stop, and not cut off in the middle.
pub(crate) async fn run<T, F>(calls: &Calls, blocks: bool, work: impl FnOnce(Stop) -> F) -> Result<T, Status>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let call = calls.begin();
    let _stop_on_drop = call.stop_on_drop();
    let work = work(call.stop());
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
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_call_that_blocks_its_thread_does_not_hold_up_the_others() {
        let calls = Calls::new();
        let (release, wait) = mpsc::channel::<()>();
        let blocking = run(&calls, true, |_| async move { wait.recv().is_ok() });
        let other = async {
            // Only this ends the other call.
            let released = run(&calls, true, |_| async move { release.send(()).is_ok() }).await;
            released.is_ok_and(|released| released)
        };
        let (blocked, released) = tokio::join!(blocking, other);
        assert!(blocked.is_ok_and(|ended| ended) && released);
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
