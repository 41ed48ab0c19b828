//! Waiting for a service: repeated attempts, and objects that become ready some time after a request.

use std::future::Future;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::{Duration, Instant};

use crate::diag::{Diagnostic, Diagnostics, Result};
use crate::stop::Stop;

/// Pauses between attempts. Each pause is twice as long as the last one, and has a random part, so that many objects do not send their
/// requests at the same instant.
#[derive(Clone, Copy, Debug)]
struct Backoff {
    next: Duration,
    most: Duration,
}

impl Backoff {
    fn pause(&mut self) -> Duration {
        let pause = self.next.min(self.most);
        self.next = pause.saturating_mul(2);
        // The random part: 80 to 120 percent of the pause.
        pause.mul_f64(0.8 + 0.4 * random())
    }
}

/// Returns a random number from 0 to 1. It only spreads requests over time, so the random seed of a hash table is good enough.
fn random() -> f64 {
    let bits = RandomState::new().build_hasher().finish();
    f64::from((bits >> 32) as u32) / f64::from(u32::MAX)
}

/// The time limit of an operation, and its stop signal.
struct Limit {
    timeout: Duration,
    end: Option<Instant>,
    stop: Stop,
}

/// Reason why a pause ended.
#[derive(Debug, PartialEq, Eq)]
enum Pause {
    Over,
    TimedOut,
    Stopped,
}

impl Limit {
    fn new(timeout: Duration, stop: Stop) -> Limit {
        Limit {
            timeout,
            // `None`, a limit that is never reached, if the end is beyond the range of the clock.
            end: Instant::now().checked_add(timeout),
            stop,
        }
    }

    fn left(&self) -> Duration {
        self.end
            .map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()))
    }

    /// Waits for this time. Returns early if a stop is requested, or at the end of the time limit.
    async fn pause(&mut self, pause: Duration) -> Pause {
        if self.stop.is_requested() {
            return Pause::Stopped;
        }
        let left = self.left();
        tokio::select! {
            () = self.stop.requested() => Pause::Stopped,
            () = tokio::time::sleep(pause.min(left)) => if pause < left { Pause::Over } else { Pause::TimedOut },
        }
    }
}

/// Reason why an attempt failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// Another attempt may succeed: the service is busy, or does not know the object yet.
    Again(Diagnostics),
    /// No attempt will succeed.
    Final(Diagnostics),
}

impl Failure {
    /// Creates the failure of an attempt that is worth repeating.
    pub fn again(summary: impl Into<String>, detail: impl Into<String>) -> Failure {
        Failure::Again(Diagnostic::error(summary, detail).into())
    }
}

/// Errors that are returned with `?` in an attempt are final.
impl From<Diagnostics> for Failure {
    fn from(errors: Diagnostics) -> Failure {
        Failure::Final(errors)
    }
}

/// Errors that are returned with `?` in an attempt are final.
impl From<Diagnostic> for Failure {
    fn from(error: Diagnostic) -> Failure {
        Failure::Final(error.into())
    }
}

/// Repeats an attempt, with growing pauses, until it succeeds, fails for good, or a time limit is reached.
///
/// ```
/// use std::time::Duration;
///
/// use monoform_sdk::retry::{Failure, Retry};
/// use monoform_sdk::{Context, Result};
///
/// async fn attach(cx: &Context<()>) -> Result<String> {
///     let retry = Retry::new(Duration::from_secs(300));
///     retry
///         .run(cx.stop(), || async {
///             match 503 {
///                 503 => Err(Failure::again("Service Busy", "The service answered with status 503.")),
///                 _ => Ok("attached".to_owned()),
///             }
///         })
///         .await
/// }
/// # let _ = attach;
/// ```
#[derive(Clone, Debug)]
pub struct Retry {
    timeout: Duration,
    backoff: Backoff,
}

impl Retry {
    /// Creates a `Retry` with this time limit. Its pauses grow from half a second to ten seconds.
    #[must_use]
    pub fn new(timeout: Duration) -> Retry {
        Retry {
            timeout,
            backoff: Backoff {
                next: Duration::from_millis(500),
                most: Duration::from_secs(10),
            },
        }
    }

    /// Sets the first and the longest pause. Each pause is twice as long as the one before, give or take a fifth.
    #[must_use]
    pub fn pauses(mut self, first: Duration, longest: Duration) -> Retry {
        self.backoff = Backoff {
            next: first,
            most: longest,
        };
        self
    }

    /// Runs attempts until one succeeds or returns [`Failure::Final`]. At least one attempt is made. A running attempt is never cut off:
    /// the time limit and a stop request only end the pauses between attempts.
    ///
    /// # Errors
    /// The errors of the last attempt. If the attempts ended because of the time limit or a stop request, the first error says so.
    pub async fn run<T, F>(&self, stop: Stop, mut attempt: impl FnMut() -> F + Send) -> Result<T>
    where
        F: Future<Output = std::result::Result<T, Failure>> + Send,
    {
        let (mut limit, mut backoff) = (Limit::new(self.timeout, stop), self.backoff);
        loop {
            let errors = match attempt().await {
                Ok(result) => return Ok(result),
                Err(Failure::Final(errors)) => return Err(errors),
                Err(Failure::Again(errors)) => errors,
            };
            let why = match limit.pause(backoff.pause()).await {
                Pause::Over => continue,
                Pause::TimedOut => timed_out(limit.timeout, "the last attempt failed, too"),
                Pause::Stopped => canceled("its last attempt had failed"),
            };
            let mut found = Diagnostics::from(why);
            found.append(errors);
            return Err(found);
        }
    }
}

fn timed_out(timeout: Duration, how: &str) -> Diagnostic {
    Diagnostic::error(
        "Operation Timed Out",
        format!("The operation did not succeed within {}: {how}.", time_text(timeout)),
    )
}

fn canceled(how: &str) -> Diagnostic {
    Diagnostic::error(
        "Operation Canceled",
        format!("The operation was requested to stop, and {how}."),
    )
}

/// Builds the error for an operation that was cut off by its timeout or, without a timeout, by a stop request.
pub(crate) fn cut_off(timeout: Option<Duration>) -> Diagnostic {
    match timeout {
        Some(timeout) => timed_out(timeout, "it was cut off"),
        None => canceled("it was cut off"),
    }
}

fn time_text(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{time:?}"),
        seconds if seconds % 60 == 0 => format!("{} minutes", seconds / 60),
        seconds => format!("{seconds} seconds"),
    }
}

/// Waits until an object reaches a target state, by reading it repeatedly.
///
/// ```
/// use std::time::Duration;
///
/// use monoform_sdk::retry::Waiter;
/// use monoform_sdk::{Context, Result};
///
/// struct Server {
///     state: String,
/// }
///
/// async fn find(_id: &str) -> Result<Option<Server>> {
///     Ok(Some(Server { state: "running".into() }))
/// }
///
/// async fn wait_for_server(id: &str, cx: &Context<()>) -> Result<Server> {
///     let waiter = Waiter::new(&["starting", "booting"], &["running"], Duration::from_secs(600));
///     waiter
///         .wait(cx.stop(), || async {
///             let server = find(id).await?;
///             Ok(server.map(|server| (server.state.clone(), server)))
///         })
///         .await
/// }
/// # let _ = wait_for_server;
/// ```
#[derive(Clone, Debug)]
pub struct Waiter {
    pending: &'static [&'static str],
    target: &'static [&'static str],
    timeout: Duration,
    delay: Duration,
    backoff: Backoff,
    absent: u32,
    in_a_row: u32,
}

impl Waiter {
    /// Creates a waiter. It waits while the object has one of the `pending` states, until it has one of the `target` states; any other
    /// state is an error. If `pending` is empty, every state except the target states is pending. The object is read at once, and then
    /// after pauses from one to ten seconds.
    #[must_use]
    pub fn new(pending: &'static [&'static str], target: &'static [&'static str], timeout: Duration) -> Waiter {
        Waiter {
            pending,
            target,
            timeout,
            delay: Duration::ZERO,
            backoff: Backoff {
                next: Duration::from_secs(1),
                most: Duration::from_secs(10),
            },
            absent: 20,
            in_a_row: 1,
        }
    }

    /// Sets the time before the first read.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Waiter {
        self.delay = delay;
        self
    }

    /// Sets the first and the longest pause. Each pause is twice as long as the one before, give or take a fifth.
    #[must_use]
    pub fn pauses(mut self, first: Duration, longest: Duration) -> Waiter {
        self.backoff = Backoff {
            next: first,
            most: longest,
        };
        self
    }

    /// Sets the number of consecutive reads without the object after which waiting fails; 20 by default. Services with replicated data may
    /// show a new object late.
    #[must_use]
    pub fn absent(mut self, times: u32) -> Waiter {
        self.absent = times;
        self
    }

    /// Sets the number of consecutive reads that must find a target state; 1 by default.
    #[must_use]
    pub fn in_a_row(mut self, times: u32) -> Waiter {
        self.in_a_row = times;
        self
    }

    /// Reads the object until it has a target state. `look` reads it, and returns its state and the object, or `None` if it is absent.
    ///
    /// # Errors
    /// An error of `look`. Or the object has an unexpected state, is absent for too long, does not reach a target state within the time
    /// limit, or a stop is requested.
    pub async fn wait<T, S, F>(&self, stop: Stop, look: impl FnMut() -> F + Send) -> Result<T>
    where
        S: AsRef<str>,
        F: Future<Output = Result<Option<(S, T)>>> + Send,
    {
        match self.follow(stop, look, false).await? {
            Some(object) => Ok(object),
            None => Err(Diagnostic::error(
                "Object Not Found",
                format!("The object was absent {} times in a row.", self.absent),
            )
            .into()),
        }
    }

    /// Reads the object until it is absent, or has a target state, in as many consecutive reads as [`in_a_row`](Waiter::in_a_row) sets.
    ///
    /// # Errors
    /// As for [`Waiter::wait`], except that an absent object is no error.
    pub async fn wait_gone<T, S, F>(&self, stop: Stop, look: impl FnMut() -> F + Send) -> Result<()>
    where
        S: AsRef<str>,
        F: Future<Output = Result<Option<(S, T)>>> + Send,
    {
        self.follow(stop, look, true).await.map(drop)
    }

    async fn follow<T, S, F>(&self, stop: Stop, mut look: impl FnMut() -> F + Send, gone: bool) -> Result<Option<T>>
    where
        S: AsRef<str>,
        F: Future<Output = Result<Option<(S, T)>>> + Send,
    {
        let (mut limit, mut backoff) = (Limit::new(self.timeout, stop), self.backoff);
        let (mut absent, mut reached) = (0, 0);
        let mut pause = self.delay;
        let mut last = None;
        loop {
            if !pause.is_zero() {
                let how = || match &last {
                    Some(state) => format!("its state was \"{state}\", and was to become {}", self.goal(gone)),
                    None => format!("it was absent, and was to become {}", self.goal(gone)),
                };
                match limit.pause(pause).await {
                    Pause::Over => {}
                    Pause::TimedOut => return Err(timed_out(limit.timeout, &how()).into()),
                    Pause::Stopped => return Err(canceled(&how()).into()),
                }
            }
            pause = backoff.pause();
            let (state, object) = match look().await? {
                None => {
                    absent += 1;
                    last = None;
                    let enough = if gone { self.in_a_row } else { self.absent };
                    if absent >= enough {
                        return Ok(None);
                    }
                    reached = 0;
                    continue;
                }
                Some((state, object)) => (state.as_ref().to_owned(), object),
            };
            absent = 0;
            if self.target.contains(&&*state) {
                reached += 1;
                if reached >= self.in_a_row {
                    return Ok(Some(object));
                }
            } else if self.pending.is_empty() || self.pending.contains(&&*state) {
                reached = 0;
            } else {
                return Err(Diagnostic::error(
                    "Unexpected State",
                    format!(
                        "The object has the state \"{state}\", and was to become {}.",
                        self.goal(gone)
                    ),
                )
                .into());
            }
            last = Some(state);
        }
    }

    fn goal(&self, gone: bool) -> String {
        let states: Vec<String> = self.target.iter().map(|state| format!("\"{state}\"")).collect();
        match (gone, states.is_empty()) {
            (true, true) => "absent".into(),
            (true, false) => format!("absent or {}", states.join(" or ")),
            (false, _) => states.join(" or "),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const SHORT: Duration = Duration::from_micros(10);

    fn summaries<T: std::fmt::Debug>(result: Result<T>) -> Vec<String> {
        result.unwrap_err().0.into_iter().map(|d| d.summary).collect()
    }

    fn retry() -> Retry {
        Retry::new(Duration::from_secs(3600)).pauses(SHORT, SHORT)
    }

    #[tokio::test]
    async fn attempts_are_repeated_until_one_succeeds_or_fails_for_good() {
        let attempts = AtomicUsize::new(0);
        let busy = || Failure::again("Busy", "");
        let third = || async {
            match attempts.fetch_add(1, Ordering::Relaxed) {
                2 => Ok("done"),
                _ => Err(busy()),
            }
        };
        assert_eq!(retry().run(Stop::never(), third).await, Ok("done"));
        attempts.store(0, Ordering::Relaxed);
        let refused = || async {
            attempts.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>(Diagnostic::error("Refused", "").into())
        };
        assert_eq!(summaries(retry().run(Stop::never(), refused).await), ["Refused"]);
        assert_eq!(attempts.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn time_and_stop_end_the_attempts() {
        let busy = || async { Err::<(), _>(Failure::again("Busy", "")) };
        let once = Retry::new(Duration::ZERO);
        assert_eq!(
            summaries(once.run(Stop::never(), busy).await),
            ["Operation Timed Out", "Busy"]
        );
        let mut stop = Stop::when(async {});
        stop.requested().await;
        assert_eq!(summaries(retry().run(stop, busy).await), ["Operation Canceled", "Busy"]);
        // Stopped during a pause without an end.
        let long = Retry::new(Duration::MAX).pauses(Duration::from_secs(86_400), Duration::MAX);
        let result = long.run(Stop::after(Duration::from_millis(1)), busy).await;
        assert_eq!(summaries(result), ["Operation Canceled", "Busy"]);
    }

    fn waiter(pending: &'static [&'static str]) -> Waiter {
        Waiter::new(pending, &["ready"], Duration::from_secs(3600)).pauses(SHORT, SHORT)
    }

    /// Returns a function that returns these states one after another, and then the last one forever.
    fn looks(
        states: &'static [Option<&'static str>],
    ) -> impl FnMut() -> std::future::Ready<Result<Option<(&'static str, usize)>>> {
        let mut at = 0;
        move || {
            let state = states[at.min(states.len() - 1)];
            at += 1;
            std::future::ready(Ok(state.map(|state| (state, at))))
        }
    }

    #[tokio::test]
    async fn waiting_ends_at_a_target_state() {
        let states = &[
            None,
            Some("new"),
            Some("ready"),
            Some("new"),
            Some("ready"),
            Some("ready"),
        ];
        assert_eq!(waiter(&["new"]).wait(Stop::never(), looks(states)).await, Ok(3));
        let twice = waiter(&[]).in_a_row(2);
        assert_eq!(twice.wait(Stop::never(), looks(states)).await, Ok(6));
        let states = &[Some("new"), Some("failed")];
        assert_eq!(
            summaries(waiter(&["new"]).wait(Stop::never(), looks(states)).await),
            ["Unexpected State"]
        );
        let never = waiter(&[]).absent(3);
        assert_eq!(
            summaries(never.wait(Stop::never(), looks(&[None])).await),
            ["Object Not Found"]
        );
        let failing = || async { Err::<Option<(&str, ())>, _>(Diagnostic::error("Refused", "").into()) };
        assert_eq!(summaries(waiter(&[]).wait(Stop::never(), failing).await), ["Refused"]);
    }

    #[tokio::test]
    async fn waiting_for_absence_ends_when_the_object_is_absent() {
        let gone = waiter(&["new"]).in_a_row(2);
        let states = &[Some("new"), None, Some("new"), None, None];
        assert_eq!(gone.wait_gone(Stop::never(), looks(states)).await, Ok(()));
        let error = Waiter::new(&["new"], &[], Duration::ZERO)
            .wait_gone(Stop::never(), looks(&[Some("new")]))
            .await
            .unwrap_err();
        assert_eq!(
            error.0[0].detail,
            "The operation did not succeed within 0ns: its state was \"new\", and was to become absent."
        );
        let mut stop = Stop::when(async {});
        stop.requested().await;
        assert_eq!(
            summaries(gone.wait_gone(stop, looks(&[Some("new")])).await),
            ["Operation Canceled"]
        );
    }
}
