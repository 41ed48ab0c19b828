//! Limits of concurrent operations.
//!
//! `-parallelism` limits the concurrent requests to providers. Waiting for the disk does not count: an operation returns its permit while
//! it waits for its results to become durable. Where requests are short, the next operations write their intents before they have a permit,
//! so that one synchronization of the journal covers many intents.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::lanes::LanePlace;

/// Number of operations that may wait for their results to be durable, in addition to the running ones. One synchronization of the journal
/// makes the results of all of them durable.
pub(super) const SETTLING: usize = 256;

/// Intents are written in advance only while requests are shorter than this. With longer requests, a crash would leave intents of
/// operations that were far from beginning.
const SHORT: Duration = Duration::from_millis(20);

/// Maximum number of intents that are written in advance. After a crash, users must check every object that has an open intent, so the
/// number stays bounded even for very short requests.
const AHEAD: usize = 120;

pub(super) struct Slots {
    /// One permit for each operation that sends requests, as limited by `-parallelism`.
    running: Arc<Semaphore>,
    /// Separate permits for operations on objects that exist only in the state. `None` if they use `running` like all others.
    local: Option<Arc<Semaphore>>,
    /// Permits of operations that send requests or prepare for it: an operation without such a permit may not write its intent.
    admitted: Arc<Semaphore>,
    /// Number of permits in `running`.
    limit: usize,
    /// Number of operations that may prepare in advance: the permits in `admitted` beyond `limit`.
    ahead: AtomicUsize,
    /// Typical duration of an apply request in microseconds: a moving average in which each new duration weighs a quarter. Zero before the
    /// first request.
    typical: AtomicU64,
}

impl Slots {
    /// Creates the limits: `local` for operations on objects of state-only resource types, such as `terraform_data`, and `parallelism`
    /// for the others. Without `local`, `parallelism` limits all operations.
    pub(super) fn new(parallelism: usize, local: Option<usize>) -> Slots {
        let limit = parallelism.clamp(1, Semaphore::MAX_PERMITS / 4);
        let ahead = least_ahead(limit);
        Slots {
            running: Arc::new(Semaphore::new(limit)),
            local: local.map(|limit| Arc::new(Semaphore::new(limit))),
            admitted: Arc::new(Semaphore::new(limit + ahead)),
            limit,
            ahead: AtomicUsize::new(ahead),
            typical: AtomicU64::new(0),
        }
    }

    /// Waits until an operation may be prepared. It must not send requests before [`Slot::run`] returns.
    pub(super) async fn admit(&self) -> Slot<'_> {
        // `acquire_owned` fails only if the semaphore is closed, which never happens. Without a permit, the operation would just be
        // unlimited.
        let admitted = self.admitted.clone().acquire_owned().await.ok();
        Slot {
            slots: self,
            permits: Mutex::new((admitted, None)),
            lane: None,
        }
    }

    /// Creates the slot of an operation that holds a permit of a lane. It needs no other permit, so it can run at once.
    pub(super) fn admit_to(&self, place: LanePlace) -> Slot<'_> {
        Slot {
            slots: self,
            permits: Mutex::default(),
            lane: Some(Mutex::new(Some(place))),
        }
    }

    /// Returns true if typical requests are shorter than [`SHORT`], so that intents may be written in advance. Returns false before the
    /// first request.
    pub(super) fn are_short(&self) -> bool {
        let typical = self.typical.load(Ordering::Relaxed);
        typical > 0 && Duration::from_micros(typical) < SHORT
    }

    /// Records the duration of a request, and adapts the number of operations that may prepare in advance.
    pub(super) fn took(&self, time: Duration) {
        let time = u64::try_from(time.as_micros())
            .unwrap_or(u64::MAX / 8)
            .clamp(1, u64::MAX / 8);
        // Two concurrent updates may lose one duration, which does not matter for an estimate.
        let typical = match self.typical.load(Ordering::Relaxed) {
            0 => time,
            before => (3 * before).saturating_add(time) / 4,
        }
        .max(1);
        self.typical.store(typical, Ordering::Relaxed);
        self.admit_ahead(self.worth_ahead(typical));
    }

    /// Returns the number of intents that are worth writing in advance: those of operations that begin within the time [`SHORT`].
    fn worth_ahead(&self, typical: u64) -> usize {
        let begin = (self.limit as u64).saturating_mul(SHORT.as_micros() as u64 / typical);
        usize::try_from(begin)
            .unwrap_or(AHEAD)
            .clamp(least_ahead(self.limit), AHEAD)
    }

    /// Sets the number of operations that may prepare in advance.
    fn admit_ahead(&self, ahead: usize) {
        let before = self.ahead.load(Ordering::Relaxed);
        // If the exchange fails, another thread has changed the limit, and this change is dropped.
        let change = |to| {
            self.ahead
                .compare_exchange(before, to, Ordering::Relaxed, Ordering::Relaxed)
        };
        if ahead > before && change(ahead).is_ok() {
            self.admitted.add_permits(ahead - before);
        } else if ahead < before {
            // Only free permits can be removed. Later calls remove the rest, when operations have returned their permits.
            let taken = self.admitted.forget_permits(before - ahead);
            if taken > 0 && change(before - taken).is_err() {
                self.admitted.add_permits(taken);
            }
        }
    }
}

/// Returns the minimum number of operations that may prepare in advance, which holds even for long requests.
fn least_ahead(limit: usize) -> usize {
    (2 * limit).min(32)
}

type Permits = (Option<OwnedSemaphorePermit>, Option<OwnedSemaphorePermit>);

/// Permits of an operation: to be prepared, and to send requests. They are returned by [`Slot::release`] or on drop.
pub(super) struct Slot<'a> {
    slots: &'a Slots,
    permits: Mutex<Permits>,
    /// Permit of a lane, which replaces the two permits of `permits`. The inner option is `None` once the permit is returned.
    lane: Option<Mutex<Option<LanePlace>>>,
}

impl Slot<'_> {
    /// Waits until the operation may send requests, and returns true. If it already may, returns false at once.
    pub(super) async fn run(&self) -> bool {
        if self.lane.is_some() || self.lock().1.is_some() {
            return false;
        }
        let running = self.slots.running.clone().acquire_owned().await.ok();
        self.lock().1 = running;
        true
    }

    /// Waits for a permit of the separate limit for objects that exist only in the state. The permit of `admit` is returned first, so that
    /// another operation can prepare. Without a separate limit, returns false and keeps that permit.
    pub(super) async fn run_local(&self) -> bool {
        let Some(local) = &self.slots.local else { return false };
        self.release();
        let running = local.clone().acquire_owned().await.ok();
        self.lock().1 = running;
        true
    }

    /// Returns the permits, so that another operation can run.
    pub(super) fn release(&self) {
        *self.lock() = (None, None);
        if let Some(lane) = &self.lane {
            drop(lane.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Permits> {
        self.permits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_more_run_than_may_and_few_are_prepared() {
        let slots = Slots::new(2, None);
        let mut admitted = Vec::new();
        for _ in 0..6 {
            admitted.push(slots.admit().await);
        }
        assert!(futures::poll!(Box::pin(slots.admit())).is_pending());
        assert!(admitted[3].run().await);
        assert!(!admitted[3].run().await);
        admitted[0].run().await;
        assert!(futures::poll!(Box::pin(admitted[1].run())).is_pending());
        admitted[3].release();
        admitted[1].run().await;
        assert!(futures::poll!(Box::pin(admitted[2].run())).is_pending());
        drop(admitted.remove(1));
        admitted[1].run().await;
    }

    #[tokio::test]
    async fn operations_with_a_limit_of_their_own_take_no_place_of_others() {
        let slots = Slots::new(1, Some(2));
        let mut local = Vec::new();
        for _ in 0..2 {
            let slot = slots.admit().await;
            assert!(slot.run_local().await);
            assert!(!slot.run().await, "it runs already");
            local.push(slot);
        }
        let third = slots.admit().await;
        assert!(futures::poll!(Box::pin(third.run_local())).is_pending());
        assert!(
            slots.admit().await.run().await,
            "the place of another operation is free"
        );
        assert!(!Slots::new(1, None).admit().await.run_local().await);
    }

    #[test]
    fn the_shorter_the_requests_the_more_are_written_ahead() {
        let slots = Slots::new(10, None);
        assert_eq!(slots.admitted.available_permits(), 30);
        slots.took(Duration::from_micros(300));
        assert_eq!(slots.admitted.available_permits(), 10 + AHEAD);
        let held: Vec<_> = (0..120)
            .map(|_| slots.admitted.clone().try_acquire_owned().unwrap())
            .collect();
        for _ in 0..40 {
            slots.took(Duration::from_millis(10));
        }
        // `forget_permits` cannot remove the permits in use, so they are removed after they have been returned.
        assert_eq!(slots.admitted.available_permits(), 0);
        drop(held);
        slots.took(Duration::from_millis(10));
        assert_eq!(slots.admitted.available_permits(), 30);
        assert_eq!(Slots::new(1_000, None).ahead.load(Ordering::Relaxed), 32);
    }

    #[test]
    fn intents_are_written_ahead_once_requests_are_known_to_be_short() {
        let slots = Slots::new(10, None);
        assert!(!slots.are_short());
        slots.took(Duration::from_micros(300));
        assert!(slots.are_short());
        for _ in 0..3 {
            slots.took(Duration::from_secs(1));
        }
        assert!(!slots.are_short());
        for _ in 0..40 {
            slots.took(Duration::from_micros(300));
        }
        assert!(slots.are_short());
        slots.took(Duration::MAX);
        assert!(!slots.are_short());
    }
}
