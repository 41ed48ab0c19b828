//! Stop signal of a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// The signal to end a call early. Each call has a signal of its own: it is set when the user requests a stop
/// during the call, or when the caller disconnects. Later calls have new signals.
///
/// ```
/// use std::time::Duration;
///
/// use monoform_sdk::{Diagnostic, Result, Stop};
///
/// async fn pause(mut stop: Stop) -> Result<()> {
///     tokio::select! {
///         () = tokio::time::sleep(Duration::from_secs(3600)) => Ok(()),
///         () = stop.requested() => Err(Diagnostic::error("Operation Canceled", "The pause was cut short.").into()),
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // In a test: a signal that is set at once.
/// assert!(pause(Stop::when(async {})).await.is_err());
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Stop(Arc<Signal>);

/// The state of a signal. Every call of every object has a signal, but few calls ever wait for theirs, so it has to be cheap. A `watch`
/// channel of tokio, which contains eight lists of waiting tasks, took a tenth of the time of a call.
#[derive(Debug, Default)]
struct Signal {
    is_set: AtomicBool,
    changed: Notify,
}

impl Stop {
    /// Creates a signal that is never set.
    #[must_use]
    pub fn never() -> Stop {
        Stop(Arc::default())
    }

    /// Creates a signal that is set after this time, for tests.
    #[must_use]
    pub fn after(time: std::time::Duration) -> Stop {
        Stop::when(tokio::time::sleep(time))
    }

    /// Creates a signal that is set when a future completes, for tests that stop an operation at a certain point.
    #[must_use]
    pub fn when(event: impl Future<Output = ()> + Send + 'static) -> Stop {
        let stop = Stop::never();
        let set = stop.clone();
        tokio::spawn(async move {
            event.await;
            set.request();
        });
        stop
    }

    /// Returns true if a stop has been requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.is_set.load(Ordering::Acquire)
    }

    /// Sets the signal.
    pub(crate) fn request(&self) {
        self.0.is_set.store(true, Ordering::Release);
        self.0.changed.notify_waiters();
    }

    /// Waits until a stop is requested, possibly forever.
    pub async fn requested(&mut self) {
        // Created before the check, so that it completes even if the signal is set in between.
        let changed = self.0.changed.notified();
        if !self.is_requested() {
            changed.await;
        }
    }
}
