//! Limits of concurrent operations.
//!
//! `-parallelism` limits the concurrent requests to providers. Waiting for the disk does not count: an operation whose
//! results become durable frees its permit for another, and where operations are short, the next ones write their
//! intents before their turn.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::lanes::LanePlace;

/// Number of operations that may wait for their results to be durable, in addition to the running ones. One
/// synchronisation of the journal is enough for all of them.
pub(super) const SETTLING: usize = 256;

/// Requests shorter than this have their intents written ahead. With longer ones, the journal would name operations
/// after a crash that were far from beginning.
const SHORT: Duration = Duration::from_millis(20);

/// Maximum number of intents that are written ahead, however short the requests. After a crash, users must check
/// every object that has one.
const AHEAD: usize = 120;

/// The limits of an apply.
pub(super) struct Slots {
    /// Permits of operations that run.
    running: Arc<Semaphore>,
    /// Permits of operations on objects that are in the state alone, if these do not share the permits of the
    /// other operations.
    local: Option<Arc<Semaphore>>,
    /// Permits of operations that run, or are about to.
    admitted: Arc<Semaphore>,
    /// Limit of running operations.
    limit: usize,
    /// Number of operations that may be about to run.
    ahead: AtomicUsize,
    /// Typical time of a request to apply a change, in microseconds: a mean in which the latest count most. Zero while
    /// unknown.
    typical: AtomicU64,
}

impl Slots {
    /// Creates the limits: `parallelism` for all operations, `local` for operations on objects of state-only resource types, such
    /// as `terraform_data`.
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

    /// Waits until an operation may be prepared. It must not make requests before [`Slot::run`].
    pub(super) async fn admit(&self) -> Slot<'_> {
        // The semaphore is never closed; an error would mean that there is no limit.
        let admitted = self.admitted.clone().acquire_owned().await.ok();
        Slot {
            slots: self,
            permits: Mutex::new((admitted, None)),
            lane: None,
        }
    }

    /// Admits an operation that holds a permit of a lane, so that it can run at once.
    pub(super) fn admit_to(&self, place: LanePlace) -> Slot<'_> {
        Slot {
            slots: self,
            permits: Mutex::default(),
            lane: Some(Mutex::new(Some(place))),
        }
    }

    /// Returns true if requests are so short that intents may be written ahead.
    pub(super) fn are_short(&self) -> bool {
        let typical = self.typical.load(Ordering::Relaxed);
        typical > 0 && Duration::from_micros(typical) < SHORT
    }

    /// Records the time of a request.
    pub(super) fn took(&self, time: Duration) {
        let time = u64::try_from(time.as_micros())
            .unwrap_or(u64::MAX / 8)
            .clamp(1, u64::MAX / 8);
        // Two concurrent updates may lose one of them, which an estimate tolerates.
        let typical = match self.typical.load(Ordering::Relaxed) {
            0 => time,
            before => (3 * before).saturating_add(time) / 4,
        }
        .max(1);
        self.typical.store(typical, Ordering::Relaxed);
        self.admit_ahead(self.worth_ahead(typical));
    }

    /// Returns the number of intents that are worth writing ahead: those of operations that begin within the next
    /// [`SHORT`] time.
    fn worth_ahead(&self, typical: u64) -> usize {
        let begin = (self.limit as u64).saturating_mul(SHORT.as_micros() as u64 / typical);
        usize::try_from(begin)
            .unwrap_or(AHEAD)
            .clamp(least_ahead(self.limit), AHEAD)
    }

    /// Sets the number of operations that may be about to run.
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
            // Only free permits can be taken back; the rest is taken back with later requests.
            let taken = self.admitted.forget_permits(before - ahead);
            if taken > 0 && change(before - taken).is_err() {
                self.admitted.add_permits(taken);
            }
        }
    }
}

/// Returns the number of admitted operations that holds even for long requests.
fn least_ahead(limit: usize) -> usize {
    (2 * limit).min(32)
}

type Permits = (Option<OwnedSemaphorePermit>, Option<OwnedSemaphorePermit>);

/// Permits of an operation to be prepared and to run. They are returned early or when it is dropped.
pub(super) struct Slot<'a> {
    slots: &'a Slots,
    permits: Mutex<Permits>,
    /// Permit of a lane, in place of the two other permits; none after it was returned.
    lane: Option<Mutex<Option<LanePlace>>>,
}

impl Slot<'_> {
    /// Waits until the operation may run. Returns false at once if it runs already.
    pub(super) async fn run(&self) -> bool {
        if self.lane.is_some() || self.lock().1.is_some() {
            return false;
        }
        let running = self.slots.running.clone().acquire_owned().await.ok();
        self.lock().1 = running;
        true
    }

    /// Waits for a permit of the operations on objects that are in the state alone, while others may be prepared.
    /// Returns false if these operations have no limit of their own.
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
        // Permits in use are taken back when they are returned.
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
