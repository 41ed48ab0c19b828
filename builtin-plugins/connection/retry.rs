//! Repeated attempts to connect.

use std::time::Duration;

use monoform_sdk::Stop;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::{Error, Result};

/// Pause after the first attempt. Each later pause is twice as long, up to [`LONGEST`].
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(20);
// Limits longer than a year are cut, because a deadline beyond the range of the clock would panic.
const LONGEST_LIMIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// Repeats `attempt` until it succeeds or fails fatally, `limit` is reached, or the user interrupts. No attempt begins after the limit.
pub async fn retry<T, F: Future<Output = Result<T>>>(
    limit: Duration,
    stop: &mut Stop,
    mut attempt: impl FnMut() -> F,
) -> Result<T> {
    let deadline = Instant::now() + limit.min(LONGEST_LIMIT);
    let mut last: Option<Error> = None;
    let mut wait = FIRST;
    let why = |how: &str, last: Option<Error>| {
        let last = last.map_or_else(|| "the first attempt has not ended".to_owned(), |e| e.to_string());
        Error::fatal(format!("{how} - last error: {last}"))
    };
    loop {
        let result = tokio::select! {
            // The stop signal is polled first, so that an interrupt counts even if an attempt ends at the same instant.
            biased;
            () = stop.requested() => return Err(why("interrupted", last)),
            result = timeout_at(deadline, attempt()) => result,
        };
        match result {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) if error.is_fatal() => return Err(error),
            // A refused login is retried, too: a machine that is starting may answer before its users have been created.
            Ok(Err(error)) => last = Some(error),
            Err(_) => return Err(why("timeout", last)),
        }
        let next = Instant::now() + wait;
        if next >= deadline {
            return Err(why("timeout", last));
        }
        tokio::select! {
            () = stop.requested() => return Err(why("interrupted", last)),
            () = sleep_until(next) => {}
        }
        wait = (wait * 2).min(LONGEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_limit_beyond_the_range_of_the_clock_is_accepted() {
        let result = retry(Duration::MAX, &mut Stop::never(), || async { Ok(1) }).await;
        assert_eq!(result.ok(), Some(1));
    }

    async fn failing(limit: u64, stop: Stop) -> (Vec<u64>, String) {
        let began = Instant::now();
        let mut times = Vec::new();
        let mut stop = stop;
        let result: Result<()> = retry(Duration::from_secs(limit), &mut stop, || {
            times.push(began.elapsed().as_secs());
            async { Err(Error::new("refused")) }
        })
        .await;
        (times, result.unwrap_err().to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_and_the_last_error_is_reported() {
        let (times, error) = failing(100, Stop::never()).await;
        assert_eq!(times, [0, 1, 3, 7, 15, 31, 51, 71, 91]);
        assert_eq!(error, "timeout - last error: refused");
        let (times, _) = failing(0, Stop::never()).await;
        assert_eq!(times.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_when_it_should() {
        let (times, error) = failing(100, Stop::after(Duration::from_secs(2))).await;
        assert_eq!(times, [0, 1]);
        assert_eq!(error, "interrupted - last error: refused");
        let mut tried = 0;
        let result: Result<()> = retry(Duration::from_secs(9), &mut Stop::never(), || {
            tried += 1;
            async { Err(Error::fatal("no")) }
        })
        .await;
        assert_eq!((tried, result.unwrap_err().to_string().as_str()), (1, "no"));
    }
}
