//! Control of the concurrent requests to one provider: additive increase, multiplicative decrease.
//!
//! The limit is adapted after each round, which has as many requests as may run at once, but at least `LEAST_ROUND`. If the requests were
//! no slower than usual and all permits were in use, the limit grows by one; until requests first become slower, it doubles. If requests
//! were somewhat slower, the limit shrinks by one, and if they took twice as long, by a fifth. If the provider reports throttling, the
//! limit is halved at once. Reports about requests that were sent before a decrease are then ignored.
//!
//! Times are compared among requests of one kind only, because a read of one resource type may take ten times as long as a read of another.
//! Medians of rounds are compared, because network times vary. Requests are slower than usual if the median of a round is more than `FLAT`
//! times the baseline, which follows the lowest medians of earlier rounds. The code reads no clock: callers pass times in, so that tests
//! can simulate them.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// Bounds of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub lowest: usize,
    pub highest: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            lowest: 1,
            highest: 100,
        }
    }
}

/// Limit at the start: the default of `-parallelism`.
const START: usize = 10;

/// Times below this one count as equal. A provider that only computes locally responds this fast, and its times vary with the load of the
/// machine.
const FLOOR: Duration = Duration::from_millis(5);

/// Minimum number of requests in a round, so that a few slow requests do not decide.
const LEAST_ROUND: usize = 8;

/// Factor of the baseline up to which the median of a round is no slower than usual.
const FLAT: f64 = 1.5;
/// Factor of the baseline from which on the median of a round is much slower than usual.
const STRAINED: f64 = 2.0;

/// Number of first requests of a kind whose mean is the usual time of that kind.
const FIRST: u32 = 8;

/// Factor by which the baseline grows after each round whose median is not below it, so that the control adapts to a provider that has
/// become slower for good.
const FORGETTING: f64 = 1.0005;

/// A request that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<K> {
    /// Kind of the request, within which times are compared.
    pub kind: K,
    /// Time at which the request began, relative to any fixed instant.
    pub began: Duration,
    pub now: Duration,
    /// False if the duration depends on the work of the request and not on the load of the service.
    pub timed: bool,
    /// True if the provider reported throttling.
    pub throttled: bool,
    /// True if all permits were in use when the request ended.
    pub full: bool,
}

/// State of the control for one provider. `K` is the kind of a request.
#[derive(Debug)]
pub struct Pace<K> {
    bounds: Bounds,
    limit: usize,
    /// True until requests first become slower or are throttled. The limit doubles meanwhile.
    begins: bool,
    /// Usual time of each kind, which is the mean duration of its first requests in seconds, and the number of these requests.
    usual: HashMap<K, (f64, u32)>,
    /// Baseline for the median of a round. A median below it moves it halfway to that median; after any other round it grows by the factor
    /// `FORGETTING`.
    shortest: f64,
    /// Durations of the round's requests, each divided by the usual time of its kind.
    round: Vec<f64>,
    /// True if all permits were in use at some time in this round.
    full: bool,
    /// Time of the last decrease.
    decreased: Option<Duration>,
}

impl<K: Eq + Hash> Pace<K> {
    #[must_use]
    pub fn new(bounds: Bounds) -> Pace<K> {
        let lowest = bounds.lowest.max(1);
        let bounds = Bounds {
            lowest,
            highest: bounds.highest.max(lowest),
        };
        Pace {
            limit: START.clamp(bounds.lowest, bounds.highest),
            bounds,
            begins: true,
            usual: HashMap::new(),
            shortest: 1.0,
            round: Vec::new(),
            full: false,
            decreased: None,
        }
    }

    /// Returns the number of requests that may run at once.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Records a request that has ended, and adapts the limit.
    pub fn ended(&mut self, request: Ended<K>) {
        // The request was sent before the last decrease, when the limit was higher, so it is no reason for another decrease.
        let is_echo = self.decreased.is_some_and(|at| request.began < at);
        if request.throttled {
            if !is_echo {
                self.decrease(self.limit / 2, request.now);
            }
            return;
        }
        let relative = match request.timed {
            true => self.relative(request.kind, request.now.saturating_sub(request.began)),
            false => 1.0,
        };
        if is_echo {
            return;
        }
        self.round.push(relative);
        self.full |= request.full;
        if self.round.len() >= self.limit.max(LEAST_ROUND) {
            self.end_round(request.now);
        }
    }

    /// Returns the duration of a request divided by the usual time of its kind.
    fn relative(&mut self, kind: K, time: Duration) -> f64 {
        let time = time.max(FLOOR).as_secs_f64();
        let (usual, count) = self.usual.entry(kind).or_insert((time, 0));
        if *count < FIRST {
            *count += 1;
            *usual += (time - *usual) / f64::from(*count);
        }
        time / *usual
    }

    fn end_round(&mut self, now: Duration) {
        let mut round = std::mem::take(&mut self.round);
        let full = std::mem::take(&mut self.full);
        // The median is used, because single requests may be slow for other reasons than load.
        let middle = round.len() / 2;
        let (_, median, _) = round.select_nth_unstable_by(middle, f64::total_cmp);
        let strain = *median / self.shortest;
        self.shortest = match *median < self.shortest {
            true => (self.shortest + *median) / 2.0,
            false => self.shortest * FORGETTING,
        };
        if strain >= STRAINED {
            self.decrease(self.limit * 4 / 5, now);
        } else if strain > FLAT {
            self.begins = false;
            self.limit = (self.limit - 1).max(self.bounds.lowest);
        } else if full {
            let more = if self.begins { self.limit } else { 1 };
            self.limit = self.limit.saturating_add(more).min(self.bounds.highest);
        }
    }

    fn decrease(&mut self, to: usize, now: Duration) {
        self.limit = to.clamp(self.bounds.lowest, self.bounds.highest);
        self.begins = false;
        self.round.clear();
        self.full = false;
        self.decreased = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Simulates requests to a service that answers in `latency` while at most `capacity` requests run, and proportionally later if more
    /// run. With `refuses`, it reports throttling instead of answering later. Returns the control, and the limits over time.
    fn against(
        bounds: Bounds,
        latency: Duration,
        capacity: usize,
        refuses: bool,
        rounds: usize,
    ) -> (Pace<u8>, Vec<usize>) {
        let mut pace = Pace::new(bounds);
        let (mut now, mut limits) = (Duration::ZERO, Vec::new());
        for _ in 0..rounds {
            let running = pace.limit();
            let began = now;
            let over = running > capacity;
            let takes = match (over, refuses) {
                (true, false) => latency.mul_f64(running as f64 / capacity as f64),
                _ => latency,
            };
            now += takes;
            for i in 0..running {
                pace.ended(Ended {
                    kind: 0,
                    began,
                    now,
                    timed: true,
                    throttled: over && refuses && i >= capacity,
                    full: true,
                });
            }
            limits.push(pace.limit());
        }
        (pace, limits)
    }

    fn later(limits: &[usize]) -> (usize, usize) {
        let last = &limits[limits.len() / 2..];
        (*last.iter().min().unwrap(), *last.iter().max().unwrap())
    }

    #[test]
    fn limit_grows_to_the_bound_while_latency_stays_flat() {
        let (pace, limits) = against(Bounds::default(), 100 * MS, 1_000, false, 12);
        assert_eq!(pace.limit(), 100);
        assert_eq!(limits[0], 20, "the first rounds double it");
    }

    #[test]
    fn times_that_vary_by_themselves_do_not_stop_the_growth() {
        let mut pace = Pace::new(Bounds::default());
        let (mut now, mut seed) = (Duration::ZERO, 1_u64);
        for _ in 0..200 {
            let began = now;
            now += 300 * MS;
            for _ in 0..pace.limit() {
                // Times between 50 and 200 ms, without a pattern.
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let took = MS * u32::try_from(50 + (seed >> 33) % 150).unwrap();
                pace.ended(Ended {
                    kind: 0,
                    began,
                    now: began + took,
                    timed: true,
                    throttled: false,
                    full: true,
                });
            }
        }
        assert!(pace.limit() >= 60, "{}", pace.limit());
    }

    #[test]
    fn limit_settles_below_the_pace_that_is_refused() {
        let (_, limits) = against(Bounds::default(), 100 * MS, 30, true, 400);
        let (least, most) = later(&limits);
        assert!(least >= 12 && most <= 31, "{least} to {most}");
    }

    #[test]
    fn limit_settles_where_latency_begins_to_rise() {
        let (_, limits) = against(Bounds::default(), 100 * MS, 20, false, 400);
        let (least, most) = later(&limits);
        assert!(least >= 15 && most <= 45, "{least} to {most}");
    }

    #[test]
    fn throttling_halves_the_limit_once_for_all_requests_under_way() {
        let mut pace = Pace::new(Bounds::default());
        for _ in 0..10 {
            pace.ended(Ended {
                kind: "read",
                began: Duration::ZERO,
                now: 50 * MS,
                timed: true,
                throttled: true,
                full: true,
            });
        }
        assert_eq!(pace.limit(), 5);
        pace.ended(Ended {
            kind: "read",
            began: 60 * MS,
            now: 70 * MS,
            timed: true,
            throttled: true,
            full: true,
        });
        assert_eq!(pace.limit(), 2);
    }

    #[test]
    fn limit_stays_while_places_are_free_and_for_kinds_that_differ() {
        let mut pace = Pace::new(Bounds::default());
        let mut now = Duration::ZERO;
        for i in 0..200_u64 {
            // Two kinds of requests alternate, and one of them takes ten times as long.
            let kind = i % 2;
            let began = now;
            now += MS * 10 * (1 + 9 * u32::try_from(kind).unwrap());
            pace.ended(Ended {
                kind,
                began,
                now,
                timed: true,
                throttled: false,
                full: i >= 100,
            });
            if i < 100 {
                assert_eq!(pace.limit(), 10);
            }
        }
        assert!(pace.limit() > 10, "{}", pace.limit());
    }

    #[test]
    fn times_of_a_provider_that_only_computes_cause_no_decrease() {
        let mut pace = Pace::new(Bounds::default());
        let mut now = Duration::ZERO;
        for i in 0..500_u32 {
            let began = now;
            now += Duration::from_micros(u64::from(i * 7919 % 4_000));
            pace.ended(Ended {
                kind: 0,
                began,
                now,
                timed: true,
                throttled: false,
                full: false,
            });
            assert_eq!(pace.limit(), 10);
        }
    }

    proptest! {
        #[test]
        fn limit_is_always_within_the_bounds(
            lowest in 0_usize..50,
            more in 0_usize..200,
            requests in prop::collection::vec((0_u8..3, 0_u64..5_000, 0_u64..5_000, any::<bool>(), any::<bool>()), 0..400),
        ) {
            let bounds = Bounds { lowest, highest: lowest + more };
            let mut pace = Pace::new(bounds);
            let mut now = Duration::ZERO;
            for (kind, took, passed, throttled, full) in requests {
                now += MS * u32::try_from(passed).unwrap();
                let before = pace.limit();
                pace.ended(Ended { kind, began: now.saturating_sub(MS * u32::try_from(took).unwrap()), now, timed: kind < 2, throttled, full });
                prop_assert!(pace.limit() >= lowest.max(1) && pace.limit() <= (lowest + more).max(1));
                // After throttling is reported the limit never grows, and otherwise at most doubles.
                prop_assert!(!throttled || pace.limit() <= before);
                prop_assert!(pace.limit() <= 2 * before);
                prop_assert!(pace.limit() >= before.min(before / 2).max(1));
            }
        }
    }

    proptest! {
        // With 176 services and 600 steps for each case, the default of 256 cases would take half of the test time of this crate.
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_service_with_any_capacity_is_used_and_not_overrun_for_long(capacity in 2_usize..90, refuses in any::<bool>()) {
            let (_, limits) = against(Bounds::default(), 100 * MS, capacity, refuses, 600);
            let (least, most) = later(&limits);
            prop_assert!(least * 4 >= capacity, "{least} of {capacity}");
            prop_assert!(most <= 3 * capacity.max(8), "{most} of {capacity}");
        }
    }
}
