//! Interrupts: the first requests a graceful stop; the second cancels what is running, saves, and ends.
//!
//! SIGINT, SIGTERM and SIGHUP mean the same, but a second SIGHUP is no second interrupt: when a terminal goes away, both the
//! kernel and the shell may send it. A program that was started with SIGHUP ignored (`nohup`) continues.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use engine::stop::Stop;
use state::SharedStore;
use tokio::signal::unix::{Signal, SignalKind, signal};
use views::stream::Stream;
use views::ui::Ui;

use stores::persist::Results;

/// How long the end may take after a second interrupt before it is forced.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a message may delay what it is about.
const PRINTING: Duration = Duration::from_millis(200);

/// What is done before this process ends by force: results are saved, and the lock is released.
#[derive(Default)]
pub struct LastResort {
    store: Mutex<Option<SharedStore>>,
    results: Mutex<Option<Results>>,
}

impl LastResort {
    /// The state is here, and may be locked.
    pub fn protect(&self, store: &SharedStore) {
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Some(store.clone());
    }

    /// Results go here now.
    pub fn follow(&self, results: Option<Results>) {
        *self.results.lock().unwrap_or_else(PoisonError::into_inner) = results;
    }

    fn run(&self) {
        let results = self.results.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(results) = results {
            results.save(PATIENCE);
        }
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(store) = store else { return };
        // Somebody may be writing the state; a disk that hangs is not waited for without end.
        let end = Instant::now() + PATIENCE;
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

/// Listens for interrupts as long as the runtime lives, where nothing needs to be saved.
pub fn listen(ui: Arc<Ui>, stop: Stop) {
    listen_telling(ui, None, stop, Arc::default());
}

/// The same where there are results to save and a lock to release; messages may go to a program.
pub fn listen_telling(ui: Arc<Ui>, stream: Option<Arc<Stream>>, stop: Stop, last_resort: Arc<LastResort>) {
    views::prompt::listened();
    // The handlers are installed at once, so that an interrupt is not missed.
    let signals =
        signal(SignalKind::interrupt()).and_then(|interrupt| Ok((interrupt, signal(SignalKind::terminate())?)));
    let Ok((mut interrupt, mut terminate)) = signals else {
        tracing::warn!("signals cannot be listened for");
        return;
    };
    let mut hangup = if hangup_is_ignored() {
        None
    } else {
        signal(SignalKind::hangup()).ok()
    };
    tokio::spawn(async move {
        let mut received = 0;
        loop {
            let hung_up = tokio::select! {
                _ = interrupt.recv() => false,
                _ = terminate.recv() => false,
                () = next(&mut hangup) => true,
            };
            if views::prompt::is_asking() {
                // The question ends, and with it the command.
                stop.request();
                continue;
            }
            if hung_up && received > 0 {
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
                    end_by_force(last_resort.clone());
                    "\nTwo interrupts received. Exiting immediately. Note that data loss may have occurred.\n"
                        .to_owned()
                }
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
            // To print may take as long as the reader wants; the request does not wait for that.
            let _ = tokio::time::timeout(PRINTING, print).await;
            if received == 1 {
                stop.request();
            } else {
                stop.cancel();
            }
        }
    });
}

/// Is done when an interrupt has come, for a command that runs until then. The handlers are installed at once.
pub fn received() -> impl Future<Output = ()> {
    views::prompt::listened();
    let signals =
        signal(SignalKind::interrupt()).and_then(|interrupt| Ok((interrupt, signal(SignalKind::terminate())?)));
    let mut hangup = if hangup_is_ignored() {
        None
    } else {
        signal(SignalKind::hangup()).ok()
    };
    async move {
        let Ok((mut interrupt, mut terminate)) = signals else {
            tracing::warn!("signals cannot be listened for");
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = next(&mut hangup) => {}
        }
    }
}

async fn next(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Ends this process unless it ends by itself soon.
fn end_by_force(last_resort: Arc<LastResort>) {
    let work = move || {
        std::thread::sleep(PATIENCE);
        last_resort.run();
        crate::process::abort();
    };
    if std::thread::Builder::new()
        .name("last-resort".to_owned())
        .spawn(work)
        .is_err()
    {
        tracing::warn!("no thread can be started to end this process by force");
    }
}

/// Whether this process was started with SIGHUP ignored.
fn hangup_is_ignored() -> bool {
    // Where there is no such file, it is unknown whether SIGHUP is ignored.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 != 0)
}
