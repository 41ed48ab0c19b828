//! Retries: the requests that are repeated, and the pauses before that.

#![expect(clippy::disallowed_methods, reason = "a server names a time to wait for")]

use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use crate::rules::LONGEST_PAUSE;

/// Returns true if the same request may succeed later: after too many requests (429), or after a server error other than 501.
#[must_use]
pub fn may_change(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.as_u16() >= 500 && status != StatusCode::NOT_IMPLEMENTED
}

/// Pauses that double with each try.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    pub first: Duration,
    pub longest: Duration,
}

impl Backoff {
    /// Returns the pause after this number of repetitions: `first` doubled for each, at most `longest`.
    #[must_use]
    pub fn pause(&self, repetitions: u64) -> Duration {
        let factor = u32::try_from(repetitions).ok().and_then(|n| 1_u32.checked_shl(n));
        self.first.saturating_mul(factor.unwrap_or(u32::MAX)).min(self.longest)
    }
}

/// Returns the pause that `Retry-After` requests, at most [`LONGEST_PAUSE`]; `None` if the header is missing or
/// invalid.
#[must_use]
pub fn asked_pause(headers: &HeaderMap) -> Option<Duration> {
    whole_asked_pause(headers).map(|asked| asked.min(LONGEST_PAUSE))
}

/// Returns the pause that `Retry-After` requests, in seconds or until a date, without a limit; `None` if the header
/// is missing or invalid. Used for requests whose repetition the user has configured.
#[must_use]
pub fn whole_asked_pause(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => {
            // A date in the past is no pause.
            let until = httpdate::parse_http_date(text).ok()?;
            Some(until.duration_since(SystemTime::now()).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn errors_of_a_server_may_change_but_not_what_it_cannot_do() {
        for (status, expected) in [
            (200, false),
            (404, false),
            (429, true),
            (500, true),
            (501, false),
            (503, true),
            (599, true),
        ] {
            assert_eq!(may_change(StatusCode::from_u16(status).unwrap()), expected, "{status}");
        }
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses = |first, longest| {
            let backoff = Backoff {
                first: Duration::from_millis(first),
                longest: Duration::from_millis(longest),
            };
            [0, 1, 2, 70].map(|n| backoff.pause(n).as_millis())
        };
        assert_eq!(pauses(10, 35), [10, 20, 35, 35]);
        assert_eq!(pauses(0, 35), [0; 4]);
        assert_eq!(pauses(90, 35), [35; 4]);
    }

    #[test]
    fn servers_cannot_make_us_wait_for_long() {
        let asked = |text: &str| asked_pause(&HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]));
        assert_eq!(asked("2"), Some(Duration::from_secs(2)));
        assert_eq!(asked("3600"), Some(LONGEST_PAUSE));
        let an_hour = HeaderMap::from_iter([(RETRY_AFTER, "3600".parse().unwrap())]);
        assert_eq!(whole_asked_pause(&an_hour), Some(Duration::from_secs(3600)));
        assert_eq!(asked("Fri, 31 Dec 9999 23:59:59 GMT"), Some(LONGEST_PAUSE));
        assert_eq!(asked("Thu, 01 Jan 1970 00:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(
            (asked("soon"), asked("-1"), asked_pause(&HeaderMap::new())),
            (None, None, None)
        );
    }
}
