//! Cancellation token of an operation. It has two levels: a graceful stop completes running operations, and a
//! cancellation drops them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Cancellation token. Clones refer to the same token.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    requested: AtomicBool,
    cancelled: AtomicBool,
    notify: Notify,
}

impl Stop {
    /// Creates a token for which neither a stop nor a cancellation is requested.
    #[must_use]
    pub fn new() -> Stop {
        Stop::default()
    }

    /// Requests a graceful stop.
    pub fn request(&self) {
        self.0.requested.store(true, Ordering::SeqCst);
        self.0.notify.notify_waiters();
    }

    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::SeqCst)
    }

    /// Requests cancellation, and with it a graceful stop.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        self.request();
    }

    /// Returns true if cancellation was requested.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Waits until cancellation is requested.
    pub async fn cancelled(&self) {
        loop {
            // The listener is created before the check, so that a request in between is not missed.
            let notified = self.0.notify.notified();
            if self.is_cancelled() {
                return;
            }
            notified.await;
        }
    }

    /// Waits until a graceful stop is requested.
    pub async fn requested(&self) {
        loop {
            // The listener is created before the check, so that a request in between is not missed.
            let notified = self.0.notify.notified();
            if self.is_requested() {
                return;
            }
            notified.await;
        }
    }
}
