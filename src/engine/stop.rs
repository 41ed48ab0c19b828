//! The request to end early, in two degrees: stop (complete what is running) and cancel (wait for nothing more).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// A request to stop that many tasks can see. Clones are the same request.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    requested: AtomicBool,
    cancelled: AtomicBool,
    notify: Notify,
}

impl Stop {
    /// A request that nobody has made yet.
    #[must_use]
    pub fn new() -> Stop {
        Stop::default()
    }

    /// Makes the request.
    pub fn request(&self) {
        self.0.requested.store(true, Ordering::SeqCst);
        self.0.notify.notify_waiters();
    }

    /// Whether the request was made.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::SeqCst)
    }

    /// Asks to end at once: what is running is not waited for.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        self.request();
    }

    /// Whether it was asked to end at once.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Waits until it is asked to end at once.
    pub async fn cancelled(&self) {
        loop {
            let notified = self.0.notify.notified();
            if self.is_cancelled() {
                return;
            }
            notified.await;
        }
    }

    /// Waits until the request is made.
    pub async fn requested(&self) {
        loop {
            let notified = self.0.notify.notified();
            if self.is_requested() {
                return;
            }
            notified.await;
        }
    }
}
