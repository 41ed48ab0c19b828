//! Durations of pauses.

use std::time::Duration;

/// Parses the duration of a pause: one number with one unit (milliseconds, seconds, minutes or hours).
pub(crate) fn parse_wait(text: &str) -> Option<Duration> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let unit = text.strip_prefix(number)?;
    // As in the official provider, there must be digits on both sides of a decimal point.
    let has_digits = number
        .split('.')
        .all(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()));
    if !has_digits || !matches!(unit, "ms" | "s" | "m" | "h") {
        return None;
    }
    gotext::duration::parse(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_takes_one_unit() {
        for (text, expected) in [
            ("30s", Some(30_000)),
            ("1.5m", Some(90_000)),
            ("250ms", Some(250)),
            ("1h", Some(3_600_000)),
            ("1h30m", None),
            ("1d", None),
            ("-1s", None),
            (".5s", None),
            ("1.s", None),
            ("5us", None),
            ("0", None),
            ("1.5.5s", None),
            ("", None),
            ("9999999h", None),
        ] {
            assert_eq!(parse_wait(text).map(|d| d.as_millis()), expected, "{text}");
        }
    }
}
