//! Limits of concurrent operations for each provider: `-parallelism=auto`, `-parallelism=aws=40,github=2`.
//!
//! The operations on the objects of one provider share a lane. Its limit is fixed, or adapted to the response times of the provider
//! (`pace`). Providers without a lane share the permits of `-parallelism=N`.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use addrs::Provider;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use crate::pace::Bounds;
use crate::pace::{Ended, Pace};

/// Number of operations that may wait for a permit in addition to the running ones, so that operations of a slow provider do
/// not keep others from starting.
pub(crate) const WAITING: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Fixed(usize),
    /// Adapted to the response times of the provider, within bounds.
    Auto(Bounds),
}

/// Kind of a request: its RPC method and resource type.
pub(crate) type Kind = (&'static str, Arc<str>);

/// The lanes of one command, for its plan and its apply.
#[derive(Debug)]
pub struct Lanes {
    /// Limit of each provider that is not in `listed`; `None` if these providers have no lanes.
    others: Option<Limit>,
    listed: BTreeMap<Provider, Limit>,
    began: Instant,
    lanes: Mutex<HashMap<Provider, Arc<Lane>>>,
    changed: AtomicBool,
}

impl Lanes {
    #[must_use]
    pub fn new(others: Option<Limit>, listed: BTreeMap<Provider, Limit>) -> Lanes {
        Lanes {
            others,
            listed,
            began: Instant::now(),
            lanes: Mutex::default(),
            changed: AtomicBool::new(false),
        }
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<Provider, Arc<Lane>>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the lane of a provider, if it has one.
    pub(crate) fn lane(&self, provider: &Provider) -> Option<Arc<Lane>> {
        let limit = self.listed.get(provider).copied().or(self.others)?;
        let mut lanes = self.lanes();
        let lane = lanes
            .entry(provider.clone())
            .or_insert_with(|| Arc::new(Lane::new(limit)));
        Some(lane.clone())
    }

    /// Returns the lane of a provider if its limit is adapted.
    pub(crate) fn adapted(&self, provider: &Provider) -> Option<Arc<Lane>> {
        self.lane(provider).filter(|lane| lane.is_adapted())
    }

    /// Returns the lane of a provider if its limit is fixed. Such a limit, which the user has set, also applies to objects that exist only
    /// in the state.
    pub(crate) fn fixed(&self, provider: &Provider) -> Option<Arc<Lane>> {
        self.lane(provider).filter(|lane| !lane.is_adapted())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Records the end of a request in an adapted lane.
    pub(crate) fn ended(&self, lane: &Lane, kind: Kind, began: Duration, outcome: Outcome) {
        if lane.ended(kind, began, self.elapsed(), outcome) {
            self.changed.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the limits if one of them has changed since the last call.
    pub(crate) fn take_changes(&self) -> Option<Vec<Settled>> {
        self.changed.swap(false, Ordering::Relaxed).then(|| self.settled())
    }

    /// Returns the limits of the adapted lanes that were used, sorted by provider.
    #[must_use]
    pub fn settled(&self) -> Vec<Settled> {
        let lanes = self.lanes();
        let used = lanes.iter().filter_map(|(provider, lane)| {
            let state = lane.state();
            (state.pace.is_some() && state.used).then(|| Settled {
                provider: provider.clone(),
                limit: state.limit,
                throttled: state.throttled,
            })
        });
        let mut all: Vec<Settled> = used.collect();
        all.sort_by(|a, b| a.provider.cmp(&b.provider));
        all
    }
}

/// Current limit of a provider's adapted lane, and the number of its throttled requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    pub provider: Provider,
    pub limit: usize,
    /// Number of requests that the provider refused by throttling.
    pub throttled: usize,
}

/// Outcome of a request, for the adaptation of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Answered; the time tells how loaded the service is.
    Timed,
    /// Answered; the time depends on the work of the request and tells nothing about the load of the service.
    Answered,
    Throttled,
}

/// Permits for the concurrent operations on the objects of one provider, and the control of their number.
#[derive(Debug)]
pub(crate) struct Lane {
    places: Arc<Semaphore>,
    highest: usize,
    state: Mutex<LaneState>,
}

#[derive(Debug)]
struct LaneState {
    limit: usize,
    /// Number of permits to remove when they are returned, because the limit was lowered while they were in use.
    owed: usize,
    /// Adaptation of the limit; `None` if it is fixed.
    pace: Option<Pace<Kind>>,
    throttled: usize,
    used: bool,
}

impl Lane {
    fn new(limit: Limit) -> Lane {
        let (limit, highest, pace) = match limit {
            Limit::Fixed(limit) => {
                let limit = limit.clamp(1, Semaphore::MAX_PERMITS / 4);
                (limit, limit, None)
            }
            Limit::Auto(bounds) => {
                let pace = Pace::new(bounds);
                (pace.limit(), bounds.highest.max(pace.limit()), Some(pace))
            }
        };
        Lane {
            places: Arc::new(Semaphore::new(limit)),
            highest,
            state: Mutex::new(LaneState {
                limit,
                owed: 0,
                pace,
                throttled: 0,
                used: false,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, LaneState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_adapted(&self) -> bool {
        self.state().pace.is_some()
    }

    /// Returns the upper bound of the limit.
    pub(crate) fn highest(&self) -> usize {
        self.highest
    }

    /// Waits for a permit.
    pub(crate) async fn enter(self: &Arc<Lane>) -> LanePlace {
        // `acquire_owned` fails only if the semaphore is closed, which never happens. Without a permit, the operation would just be
        // unlimited.
        let permit = self.places.clone().acquire_owned().await.ok();
        self.state().used = true;
        LanePlace {
            lane: self.clone(),
            permit,
        }
    }

    /// Records the end of a request. Returns true if that has changed the limit.
    fn ended(&self, kind: Kind, began: Duration, now: Duration, outcome: Outcome) -> bool {
        let full = self.places.available_permits() == 0;
        let mut state = self.state();
        state.throttled += usize::from(outcome == Outcome::Throttled);
        let Some(pace) = &mut state.pace else { return false };
        pace.ended(Ended {
            kind,
            began,
            now,
            timed: outcome == Outcome::Timed,
            throttled: outcome == Outcome::Throttled,
            full,
        });
        let limit = pace.limit();
        let before = std::mem::replace(&mut state.limit, limit);
        if limit > before {
            let more = limit - before;
            let kept = more.min(state.owed);
            state.owed -= kept;
            self.places.add_permits(more - kept);
        } else if limit < before {
            // Only free permits can be removed now. Permits in use are removed when they are returned.
            let fewer = before - limit;
            state.owed += fewer - self.places.forget_permits(fewer);
        }
        limit != before
    }
}

/// Permit of a lane, returned when it is dropped.
#[derive(Debug)]
pub(crate) struct LanePlace {
    lane: Arc<Lane>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Drop for LanePlace {
    fn drop(&mut self) {
        let mut state = self.lane.state();
        if state.owed > 0
            && let Some(permit) = self.permit.take()
        {
            state.owed -= 1;
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind() -> Kind {
        ("read", "t".into())
    }

    #[tokio::test]
    async fn no_more_run_than_the_limit_while_it_changes() {
        let lane = Arc::new(Lane::new(Limit::Auto(Bounds::default())));
        let mut places = Vec::new();
        for _ in 0..10 {
            places.push(lane.enter().await);
        }
        assert!(futures::poll!(Box::pin(lane.enter())).is_pending());
        let second = Duration::from_secs(1);
        assert!(lane.ended(kind(), Duration::ZERO, second, Outcome::Throttled));
        // Five more permits are removed when they are returned.
        for left in (5..10).rev() {
            places.pop();
            assert!(futures::poll!(Box::pin(lane.enter())).is_pending(), "{left} run");
        }
        places.pop();
        let _sixth = lane.enter().await;
        assert_eq!(lane.state().limit, 5);
    }

    #[test]
    fn listed_providers_have_their_own_limits() {
        let (aws, github) = (Provider::default_for("aws"), Provider::default_for("github"));
        let lanes = Lanes::new(None, [(aws.clone(), Limit::Fixed(40))].into());
        assert_eq!(lanes.lane(&aws).map(|lane| lane.highest()), Some(40));
        assert!(lanes.lane(&github).is_none() && lanes.adapted(&aws).is_none());
        let lanes = Lanes::new(
            Some(Limit::Auto(Bounds::default())),
            [(github.clone(), Limit::Fixed(2))].into(),
        );
        assert!(lanes.adapted(&aws).is_some() && lanes.fixed(&github).is_some());
        assert!(lanes.settled().is_empty(), "nothing was used");
    }
}
