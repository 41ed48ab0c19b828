//! Timestamps.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::text::text_type;
use crate::model::ModelError;

/// An RFC 3339 timestamp, such as `2024-05-01T12:00:00Z` or `2024-05-01T14:00:00.5+02:00`. Two timestamps of the same instant mean the
/// same.
///
/// ```
/// use monoform_sdk::CustomType as _;
/// use monoform_sdk::types::Timestamp;
///
/// let noon = Timestamp::new("2024-05-01T12:00:00Z")?;
/// assert!(noon.same(&Timestamp::new("2024-05-01T14:00:00+02:00")?));
/// assert_eq!(noon.unix_seconds(), 1_714_564_800);
/// # Ok::<(), monoform_sdk::model::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timestamp {
    text: String,
    seconds: i64,
    nanoseconds: u32,
}

text_type!(Timestamp);

impl Timestamp {
    /// Reads a timestamp. Fractions of a nanosecond (digits after the ninth) are ignored.
    ///
    /// # Errors
    /// The text is not an RFC 3339 timestamp.
    pub fn new(text: impl Into<String>) -> Result<Timestamp, ModelError> {
        let text = text.into();
        match read(&text) {
            Some((seconds, nanoseconds)) => Ok(Timestamp {
                text,
                seconds,
                nanoseconds,
            }),
            None => Err(ModelError::new(
                "it must be a timestamp by RFC 3339, such as \"2024-05-01T12:00:00Z\" or \"2024-05-01T14:00:00+02:00\"",
            )),
        }
    }

    /// Returns the seconds since 1970-01-01T00:00:00Z, negative before it. Leap seconds are not counted.
    #[must_use]
    pub fn unix_seconds(&self) -> i64 {
        self.seconds
    }

    /// Returns the nanoseconds since the full second of [`Timestamp::unix_seconds`].
    #[must_use]
    pub fn nanoseconds(&self) -> u32 {
        self.nanoseconds
    }

    /// Returns the instant as a `SystemTime`; `None` if that type cannot represent it.
    #[must_use]
    pub fn system_time(&self) -> Option<SystemTime> {
        let whole = Duration::from_secs(self.seconds.unsigned_abs());
        let at = match self.seconds < 0 {
            true => UNIX_EPOCH.checked_sub(whole)?,
            false => UNIX_EPOCH.checked_add(whole)?,
        };
        at.checked_add(Duration::from_nanos(self.nanoseconds.into()))
    }

    fn meaning(&self) -> (i64, u32) {
        (self.seconds, self.nanoseconds)
    }
}

/// Reads a timestamp as seconds since 1970-01-01T00:00:00Z, and nanoseconds.
fn read(text: &str) -> Option<(i64, u32)> {
    let (date, rest) = text.split_once(['T', 't'])?;
    let [year, month, day] = numbers::<3>(date, '-', [4, 2, 2])?;
    let zone_at = rest.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = rest.split_at(zone_at);
    let (time, fraction) = match time.split_once('.') {
        Some((time, fraction)) => (time, Some(fraction)),
        None => (time, None),
    };
    let [hour, minute, second] = numbers::<3>(time, ':', [2, 2, 2])?;
    let valid_day = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    // Second 60 is a leap second. Depending on the time zone, it can occur in any minute.
    if !valid_day || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let offset = match zone {
        "Z" | "z" => 0,
        _ => {
            let [hours, minutes] = numbers::<2>(zone.get(1..)?, ':', [2, 2])?;
            if hours > 23 || minutes > 59 {
                return None;
            }
            let seconds = hours * 3600 + minutes * 60;
            if zone.starts_with('-') { -seconds } else { seconds }
        }
    };
    let seconds = days_from_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
    Some((seconds, nanoseconds(fraction)?))
}

/// Reads numbers of exactly these widths, with a separator between them.
fn numbers<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[i64; N]> {
    let mut out = [0; N];
    let mut parts = text.split(separator);
    for (number, width) in out.iter_mut().zip(widths) {
        let part = parts.next()?;
        if part.len() != width || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(out)
}

fn nanoseconds(fraction: Option<&str>) -> Option<u32> {
    let Some(digits) = fraction else { return Some(0) };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let nine: String = digits.chars().chain("000000000".chars()).take(9).collect();
    nine.parse().ok()
}

fn days_in(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days from 1970-01-01 to a day of the Gregorian calendar.
fn days_from_1970(year: i64, month: i64, day: i64) -> i64 {
    // The year is counted from March, so that the leap day is the last day of a year.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CustomType as _;

    #[test]
    fn timestamps_of_one_instant_mean_the_same() {
        let read = |text: &str| Timestamp::new(text).unwrap();
        assert!(read("2024-05-01T12:00:00Z").same(&read("2024-05-01t14:30:00.000+02:30")));
        assert!(!read("2024-05-01T12:00:00Z").same(&read("2024-05-01T12:00:00.000000001Z")));
        assert!(read("2024-12-31T23:00:00-01:00").same(&read("2025-01-01T00:00:00Z")));
        assert_eq!(read("1970-01-01T00:00:00Z").unix_seconds(), 0);
        assert_eq!(read("2000-02-29T00:00:00Z").unix_seconds(), 951_782_400);
        assert_eq!(read("1969-12-31T23:59:59.25Z").meaning(), (-1, 250_000_000));
        assert_eq!(
            read("1969-12-31T23:59:59.25Z").system_time(),
            UNIX_EPOCH.checked_sub(Duration::from_millis(750))
        );
    }

    #[test]
    fn other_forms_are_refused() {
        for wrong in [
            "",
            "2024-05-01",
            "2024-05-01 12:00:00Z",
            "2024-05-01T12:00:00",
            "2024-5-1T12:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-05-01T24:00:00Z",
            "2024-05-01T12:00:00.Z",
            "2024-05-01T12:00:00+0200",
            "2024-05-01T12:00:00+24:00",
            "+024-05-01T12:00:00Z",
            "2024-05-01T12:00:00ü",
            "2024-05-01T12:00:00Zü",
        ] {
            assert!(Timestamp::new(wrong).is_err(), "{wrong}");
        }
    }
}
