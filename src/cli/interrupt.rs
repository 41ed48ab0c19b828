//! Interrupts. The first one requests a graceful stop; the second one cancels running operations, saves results and ends the
//! process.
//!
//! SIGINT, SIGTERM and SIGHUP have the same effect, but a second SIGHUP does not count as a second interrupt: when a terminal is
//! closed, both the kernel and the shell may send it. A program that was started with SIGHUP ignored (`nohup`) continues.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use engine::stop::Stop;
use state::SharedStore;
use system::signals::Interrupts;
use system::{Interrupt, Os};
use views::stream::Stream;
use views::ui::Ui;

use stores::persist::Results;

/// Time that the process has to end after a second interrupt, before it is aborted.
const PATIENCE: Duration = Duration::from_secs(5);

/// Deadlines on systems that kill a process soon after they have requested its end. `graceful` is the time until the request counts as a
/// second interrupt; `patience` is the time for each of the steps that follow (ending by itself, saving results, releasing the lock).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Hurry {
    graceful: Duration,
    patience: Duration,
}

impl Hurry {
    fn within(limit: Duration) -> Hurry {
        // The graceful stop takes 30 % of the limit, and each of the three steps after it 20 %. The last tenth is for printing, and for
        // threads that start late.
        Hurry {
            graceful: limit * 3 / 10,
            patience: limit / 5,
        }
    }
}

/// Completes at an instant, or never.
async fn at(instant: Option<tokio::time::Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// Time limit for printing a message before the request to stop is passed on.
const PRINTING: Duration = Duration::from_millis(200);

/// Results that are saved, and state whose lock is released, before this process is aborted.
#[derive(Default)]
pub struct LastResort {
    store: Mutex<Option<SharedStore>>,
    results: Mutex<Option<Results>>,
}

impl LastResort {
    /// Sets the state whose lock is released.
    pub fn protect(&self, store: &SharedStore) {
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Some(store.clone());
    }

    /// Sets the results that are saved.
    pub fn follow(&self, results: Option<Results>) {
        *self.results.lock().unwrap_or_else(PoisonError::into_inner) = results;
    }

    fn run(&self, patience: Duration) {
        let results = self.results.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(results) = results {
            results.save(patience);
        }
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(store) = store else { return };
        // Another thread may be writing the state. A disk that hangs must not keep the process alive.
        let end = Instant::now() + patience;
        while Instant::now() < end {
            if let Ok(mut store) = store.try_lock() {
                if let Err(e) = store.unlock() {
                    tracing::warn!("{e}");
                }
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Listens for interrupts while the runtime lives, for work without results to save.
pub fn listen(ui: Arc<Ui>, stop: Stop) {
    listen_with_messages(ui, None, stop, Arc::default());
}

/// Listens for interrupts, with results to save and a lock to release. With `stream`, messages are machine-readable.
pub fn listen_with_messages(ui: Arc<Ui>, stream: Option<Arc<Stream>>, stop: Stop, last_resort: Arc<LastResort>) {
    views::prompt::listened();
    // The handlers are installed before this returns, so that no interrupt is missed. Under nohup, a command
    // continues after its terminal was closed.
    let Ok(mut interrupts) = Interrupts::listen_as_started() else {
        tracing::warn!("signals cannot be listened for");
        return;
    };
    tokio::spawn(async move {
        let mut received = 0;
        let (mut patience, mut limit) = (PATIENCE, None);
        loop {
            let request = tokio::select! {
                request = interrupts.next() => Some(request),
                () = at(limit) => None,
            };
            // When the time for the graceful stop has passed, that counts as one more interrupt.
            limit = limit.filter(|_| request.is_some());
            if let Some(time) = request.and_then(|request| Os::CURRENT.limit_after(request))
                && received < 2
                && limit.is_none()
            {
                let hurry = Hurry::within(time);
                limit = Some(tokio::time::Instant::now() + hurry.graceful);
                patience = hurry.patience;
            }
            if views::prompt::is_asking() {
                // The interrupt ends the prompt, and so the command. It does not count as a first one.
                stop.request();
                continue;
            }
            if request == Some(Interrupt::Hangup) && received > 0 {
                continue;
            }
            received += 1;
            let text = match received {
                1 => format!(
                    "
Interrupt received.
Please wait for {} to exit or data loss may occur.
Gracefully shutting \
                     down...
No further operation begins. Running providers and commands are asked to stop.
",
                    ui.program.tool
                ),
                2 => {
                    // The last resort runs on a thread of its own, since the runtime may be blocked.
                    end_by_force(last_resort.clone(), patience);
                    "\nTwo interrupts received. Exiting immediately. Note that data loss may have occurred.\n"
                        .to_owned()
                }
                // A third interrupt skips saving: the user has seen the warning of data loss.
                _ => crate::process::abort(),
            };
            let (ui, stream) = (ui.clone(), stream.clone());
            let print = tokio::task::spawn_blocking(move || {
                match (&stream, received) {
                    (Some(stream), _) => stream.log(&text),
                    (None, 1) => ui.line(text),
                    (None, _) => ui.err(text),
                }
                ui.flush();
            });
            // Printing may block for as long as standard output is not read, and the request for a stop must not
            // wait for that.
            let _ = tokio::time::timeout(PRINTING, print).await;
            if received == 1 {
                stop.request();
            } else {
                stop.cancel();
            }
        }
    });
}

/// Completes when an interrupt is received, for a command that runs until then. The handlers are installed before this returns.
pub fn received() -> impl Future<Output = ()> {
    views::prompt::listened();
    // Under nohup, a command continues after its terminal was closed.
    let interrupts = Interrupts::listen_as_started();
    async move {
        let Ok(mut interrupts) = interrupts else {
            tracing::warn!("signals cannot be listened for");
            return std::future::pending().await;
        };
        interrupts.next().await;
    }
}

/// Aborts this process, unless it ends by itself within `patience`.
fn end_by_force(last_resort: Arc<LastResort>, patience: Duration) {
    let work = move || {
        std::thread::sleep(patience);
        last_resort.run(patience);
        crate::process::abort();
    };
    // A thread of its own is used, because the runtime may be blocked.
    if std::thread::Builder::new()
        .name("last-resort".to_owned())
        .spawn(work)
        .is_err()
    {
        tracing::warn!("no thread can be started to end this process by force");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_saved_before_the_system_ends_the_process() {
        let limit = Duration::from_secs(5);
        let hurry = Hurry::within(limit);
        let whole = hurry.graceful + PRINTING + 3 * hurry.patience;
        assert!(whole < limit, "{whole:?}");
        assert!(hurry.graceful >= Duration::from_secs(1) && hurry.patience >= Duration::from_secs(1));
    }
}
