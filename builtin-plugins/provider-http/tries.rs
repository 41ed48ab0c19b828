//! Tries of a request: how many, how long each may take, and the pauses between them.

#![expect(
    clippy::disallowed_methods,
    reason = "a server says at what time a request may be repeated"
)]

use std::fmt;
use std::time::{Duration, SystemTime};

use reqwest::header::RETRY_AFTER;
use reqwest::{Response, StatusCode};
use tokio::time::{Instant, timeout_at};

use ::trust::http::asked_pause as bounded;

use crate::failure::{Failure, Kind};

/// How long, and how often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How often a request is tried again.
    pub retries: i64,
    /// The pause before the second try; it doubles.
    pub min_delay: Duration,
    /// The longest pause.
    pub max_delay: Duration,
    /// How long one try may take, with its redirects and the body of its response.
    pub timeout: Option<Duration>,
}

/// The result of work that may take until the deadline.
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

/// Whether a response means that the server may answer the same request in another way later.
pub(crate) fn worth_another_try(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || (status.as_u16() >= 500 && status != StatusCode::NOT_IMPLEMENTED)
}

/// The pause after some tries.
pub(crate) fn pause(tries: i64, limits: &Limits) -> Duration {
    let doubled = u32::try_from(tries).ok().and_then(|tries| 1_u32.checked_shl(tries));
    limits
        .min_delay
        .saturating_mul(doubled.unwrap_or(u32::MAX))
        .min(limits.max_delay)
}

/// The pause that a busy server asks for, in seconds or up to a moment.
pub(crate) fn asked_pause(response: &Response) -> Option<Duration> {
    if !matches!(
        response.status(),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    ) {
        return None;
    }
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(bounded(Duration::from_secs(seconds)));
    }
    let moment = httpdate::parse_http_date(text).ok()?;
    Some(bounded(moment.duration_since(SystemTime::now()).unwrap_or_default()))
}

/// The error of a request that took longer than its limit.
pub(crate) fn exceeded(limit: Duration, reason: &str) -> String {
    format!(
        "request exceeded the specified timeout: {}, err: {reason}",
        InWords(limit)
    )
}

/// A time as the official provider writes it: `5ms`, `1.5s`, `2m0s`.
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
    fn pauses_double_up_to_the_longest() {
        let limits = |min, max| Limits {
            retries: 9,
            min_delay: Duration::from_millis(min),
            max_delay: Duration::from_millis(max),
            timeout: None,
        };
        let pauses = |limits: Limits| [0, 1, 2, 70].map(|n| pause(n, &limits).as_millis());
        assert_eq!(pauses(limits(10, 35)), [10, 20, 35, 35]);
        assert_eq!(pauses(limits(0, 35)), [0; 4]);
        assert_eq!(pauses(limits(90, 35)), [35; 4]);
    }

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
