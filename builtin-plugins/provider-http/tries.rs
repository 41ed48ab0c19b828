//! Attempts of a request: their number, their time limits, and the pauses between them.

use std::fmt;
use std::time::Duration;

use http::retry::{self, Backoff};
use http::{Response, StatusCode};
use tokio::time::{Instant, timeout_at};

use crate::failure::{Failure, Kind};

/// Time limits and retries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Number of retries after the first attempt.
    pub retries: i64,
    /// Pause before the second attempt. The pause doubles before each further attempt.
    pub min_delay: Duration,
    /// Upper limit of the pause between attempts.
    pub max_delay: Duration,
    /// Time limit of one attempt, including its redirects and the body of the response.
    pub timeout: Option<Duration>,
}

/// Waits for a future until the deadline. After that, returns a failure of the kind `Timeout`.
pub(crate) async fn within<T>(
    deadline: Option<Instant>,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let Some(deadline) = deadline else {
        return work.await;
    };
    timeout_at(deadline, work).await.unwrap_or_else(|_| {
        Err(Failure {
            reason: "there was no whole response in time".to_owned(),
            kind: Kind::Timeout,
        })
    })
}

/// Returns the pause after this number of retries.
pub(crate) fn pause(tries: i64, limits: &Limits) -> Duration {
    let backoff = Backoff {
        first: limits.min_delay,
        longest: limits.max_delay,
    };
    backoff.pause(tries.unsigned_abs())
}

/// Returns the pause that a busy server requests (`Retry-After`).
pub(crate) fn asked_pause(response: &Response) -> Option<Duration> {
    // As in the official provider, the header counts only for these two statuses, and the pause has no upper limit: a server that is
    // retried too early would refuse all attempts.
    match response.status() {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            retry::whole_asked_pause(response.header_map())
        }
        _ => None,
    }
}

/// Returns the reason for a request that exceeded its time limit.
pub(crate) fn exceeded(limit: Duration, reason: &str) -> String {
    format!(
        "request exceeded the specified timeout: {}, err: {reason}",
        InWords(limit)
    )
}

/// Duration in the format of Go: `5ms`, `1.5s`, `2m0s`.
struct InWords(Duration);

impl fmt::Display for InWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.0.as_secs(), self.0.subsec_millis());
        if seconds == 0 {
            return write!(f, "{millis}ms");
        }
        if seconds >= 3600 {
            write!(f, "{}h", seconds / 3600)?;
        }
        if seconds >= 60 {
            write!(f, "{}m", seconds / 60 % 60)?;
        }
        let text = format!("{}.{millis:03}", seconds % 60);
        write!(f, "{}s", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_words() {
        for (millis, expected) in [
            (5, "5ms"),
            (1500, "1.5s"),
            (10_000, "10s"),
            (120_000, "2m0s"),
            (3_661_001, "1h1m1.001s"),
        ] {
            assert_eq!(InWords(Duration::from_millis(millis)).to_string(), expected);
        }
    }
}
