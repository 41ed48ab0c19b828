//! Stop signal of a call.

use tokio::sync::watch;

/// The signal to end a call early. Each call has a signal of its own: it is set when the user requests a stop
/// during the call, or when the caller disconnects. Later calls have new signals.
#[derive(Clone, Debug)]
pub struct Stop(pub(crate) watch::Receiver<bool>);

impl Stop {
    /// Creates a signal that is never set.
    #[must_use]
    pub fn never() -> Stop {
        // The sender is dropped at once; `requested` then waits for ever.
        Stop(watch::channel(false).1)
    }

    /// Creates a signal that is set after this time, for tests.
    #[must_use]
    pub fn after(time: std::time::Duration) -> Stop {
        Stop::when(tokio::time::sleep(time))
    }

    /// Creates a signal that is set when a future completes, for tests that stop an operation at a certain point.
    #[must_use]
    pub fn when(event: impl Future<Output = ()> + Send + 'static) -> Stop {
        let (sender, receiver) = watch::channel(false);
        tokio::spawn(async move {
            event.await;
            sender.send_replace(true);
        });
        Stop(receiver)
    }

    /// Returns true if a stop has been requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until a stop is requested, possibly forever.
    pub async fn requested(&mut self) {
        if self.0.wait_for(|stop| *stop).await.is_err() {
            // The sender is dropped: no request can arrive any more.
            std::future::pending::<()>().await;
        }
    }
}
