//! Calls in progress: their stop signals, and the options of a call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cty::{Type, Value};
use tokio::sync::Notify;

use crate::diag::Result;
use crate::stop::Stop;
use crate::wire::{Wire, decode};

/// Options of a call, in addition to its arguments.
#[derive(Clone, Debug)]
pub struct CallOptions {
    /// Stop signal of the call.
    pub stop: Stop,
    /// True if the caller declares the client capability `deferral_allowed`: it accepts an answer that defers the object.
    pub deferral_allowed: bool,
    /// The calling module's `provider_meta` block for this provider, encoded; empty if there is none.
    pub provider_meta: Wire,
}

impl From<Stop> for CallOptions {
    fn from(stop: Stop) -> CallOptions {
        CallOptions {
            stop,
            deferral_allowed: false,
            provider_meta: Wire::default(),
        }
    }
}

impl CallOptions {
    /// Sets whether the caller supports deferred answers.
    pub fn deferral(mut self, allowed: bool) -> CallOptions {
        self.deferral_allowed = allowed;
        self
    }

    /// Adds the encoded `provider_meta` block of the calling module.
    pub fn meta(mut self, wire: Wire) -> CallOptions {
        self.provider_meta = wire;
        self
    }

    /// Decodes the `provider_meta` block; null if there is none.
    pub(crate) fn meta_value(&self, ty: &Type) -> Result<Value> {
        decode(&self.provider_meta, ty)
    }
}

/// Registry of the calls in progress, with the stop signal of each.
#[derive(Clone, Debug, Default)]
pub struct Calls(Arc<Registry>);

#[derive(Debug, Default)]
struct Registry {
    signals: Mutex<Signals>,
    /// Notified when the last call in progress ends.
    idle: Notify,
}

#[derive(Debug, Default)]
struct Signals {
    next: u64,
    by_call: HashMap<u64, Stop>,
}

impl Calls {
    pub fn new() -> Calls {
        Calls::default()
    }

    fn signals(&self) -> MutexGuard<'_, Signals> {
        self.0.signals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a call, which ends when the returned value is dropped.
    pub fn begin(&self) -> Call {
        let stop = Stop::never();
        let mut signals = self.signals();
        let id = signals.next;
        signals.next += 1;
        signals.by_call.insert(id, stop.clone());
        drop(signals);
        Call {
            calls: self.clone(),
            id,
            stop,
        }
    }

    /// Requests all calls in progress to stop. Later calls are not affected.
    pub fn stop(&self) {
        for signal in self.signals().by_call.values() {
            signal.request();
        }
    }

    /// Waits until no call is in progress.
    pub async fn idle(&self) {
        loop {
            // Created before the check, so that it completes even if the last call ends in between.
            let idle = self.0.idle.notified();
            if self.signals().by_call.is_empty() {
                return;
            }
            idle.await;
        }
    }
}

/// A call in progress. It ends when this value is dropped.
#[derive(Debug)]
pub struct Call {
    calls: Calls,
    id: u64,
    stop: Stop,
}

impl Call {
    /// Returns the stop signal of this call.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Returns a guard that requests this call to stop when it is dropped. The code that answers the caller holds it, and drops it when the
    /// caller disconnects.
    pub fn stop_on_drop(&self) -> StopOnDrop {
        // The guard has the number of the call instead of a [`Call`], which would keep the call in progress until the caller drops the
        // guard.
        StopOnDrop {
            calls: self.calls.clone(),
            id: self.id,
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut signals = self.calls.signals();
        signals.by_call.remove(&self.id);
        let was_last = signals.by_call.is_empty();
        // The lock is released first, because the tasks woken below take it at once.
        drop(signals);
        if was_last {
            self.calls.0.idle.notify_waiters();
        }
    }
}

/// Guard that requests a call to stop when the guard is dropped: see [`Call::stop_on_drop`]. It does nothing if the call has ended.
#[derive(Debug)]
pub struct StopOnDrop {
    calls: Calls,
    id: u64,
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(signal) = self.calls.signals().by_call.get(&self.id) {
            signal.request();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_reaches_calls_in_progress_and_not_later_ones() {
        let calls = Calls::new();
        let (first, ended) = (calls.begin(), calls.begin());
        let ended_signal = ended.stop();
        drop(ended);
        calls.stop();
        assert!(first.stop().is_requested() && !ended_signal.is_requested());
        assert!(!calls.begin().stop().is_requested(), "a later call has a fresh signal");
    }

    #[tokio::test]
    async fn a_call_is_asked_to_stop_when_its_caller_goes_away() {
        let calls = Calls::new();
        let (abandoned, other) = (calls.begin(), calls.begin());
        drop(abandoned.stop_on_drop());
        let mut stop = abandoned.stop();
        stop.requested().await;
        assert!(!other.stop().is_requested());
        drop((abandoned, other));
        calls.idle().await;
    }
}
