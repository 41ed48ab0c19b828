//! Timestamps as Go writes them, in UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Formats an instant as `time.RFC3339Nano`, without the zeros at the end of the fraction: `2024-05-01T12:00:00.25Z`.
#[must_use]
pub fn rfc3339_nano(at: SystemTime) -> String {
    let (mut text, nanoseconds) = seconds(at);
    if nanoseconds > 0 {
        text.push('.');
        text.push_str(format!("{nanoseconds:09}").trim_end_matches('0'));
    }
    text.push('Z');
    text
}

/// Formats an instant with six digits after the second, as logs have it.
#[must_use]
pub fn rfc3339_micro(at: SystemTime) -> String {
    let (text, nanoseconds) = seconds(at);
    format!("{text}.{:06}Z", nanoseconds / 1_000)
}

/// Returns an instant up to its second as text, and its nanoseconds.
fn seconds(at: SystemTime) -> (String, u32) {
    let (whole, nanoseconds) = match at.duration_since(UNIX_EPOCH) {
        Ok(after) => (signed(after), after.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            match before.subsec_nanos() {
                0 => (-signed(before), 0),
                part => (-signed(before) - 1, 1_000_000_000 - part),
            }
        }
    };
    let (year, month, day) = date(whole.div_euclid(86_400));
    let time = whole.rem_euclid(86_400);
    let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
    let text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    (text, nanoseconds)
}

fn signed(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

/// Returns year, month and day of a day that is counted from 1970-01-01.
fn date(days: i64) -> (i64, i64, i64) {
    // Years are counted from March, so that a leap day is the last of its year. 146,097 days are 400 years.
    let days = days.saturating_add(719_468);
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_as_in_go() {
        for (seconds, nanoseconds, nano, micro) in [
            (0, 0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"),
            (
                951_782_400,
                1_000,
                "2000-02-29T00:00:00.000001Z",
                "2000-02-29T00:00:00.000001Z",
            ),
            (
                1_709_251_199,
                250_000_000,
                "2024-02-29T23:59:59.25Z",
                "2024-02-29T23:59:59.250000Z",
            ),
            (
                1_735_689_599,
                999_999_999,
                "2024-12-31T23:59:59.999999999Z",
                "2024-12-31T23:59:59.999999Z",
            ),
            (4_107_542_400, 0, "2100-03-01T00:00:00Z", "2100-03-01T00:00:00.000000Z"),
        ] {
            let at = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
            assert_eq!((rfc3339_nano(at).as_str(), rfc3339_micro(at).as_str()), (nano, micro));
        }
        let before = UNIX_EPOCH - Duration::from_millis(750);
        assert_eq!(rfc3339_nano(before), "1969-12-31T23:59:59.25Z");
        assert_eq!(
            rfc3339_nano(UNIX_EPOCH - Duration::from_secs(86_400)),
            "1969-12-31T00:00:00Z"
        );
    }
}
