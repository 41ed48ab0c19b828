//! RFC 3339 timestamps: date, time of day, and offset from UTC, in whole seconds. Fractions of a second are accepted and ignored.

#![expect(clippy::disallowed_methods, reason = "the provider is about the time")]

use std::fmt;

use jiff::civil::{Date, DateTime, Weekday};
use jiff::{SignedDuration, Timestamp};

/// Timestamp with its offset from UTC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moment {
    /// Date and time at the offset.
    local: DateTime,
    /// Offset from UTC in seconds.
    offset: i64,
}

/// Shift of a timestamp. The parts are added one after the other, as by Go's `AddDate` and `Add`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Shift {
    pub years: i64,
    pub months: i64,
    pub days: i64,
    pub hours: i64,
    pub minutes: i64,
    pub seconds: i64,
}

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Error for a text that is not an RFC 3339 timestamp.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0:?} is not a timestamp as RFC 3339 writes it, such as 2020-02-12T06:36:13Z")]
pub struct NotRfc3339(String);

impl Moment {
    /// Returns the current instant in UTC.
    pub fn now() -> Moment {
        Moment::from_unix(Timestamp::now().as_second()).unwrap_or(Moment {
            local: EPOCH,
            offset: 0,
        })
    }

    /// Returns the timestamp in UTC for the seconds since 1970; `None` outside of the years from -9999 to 9999.
    pub fn from_unix(seconds: i64) -> Option<Moment> {
        // Computed with a civil date and time, because the `Timestamp` of jiff has a smaller range.
        let local = EPOCH.checked_add(SignedDuration::from_secs(seconds)).ok()?;
        Some(Moment { local, offset: 0 })
    }

    /// Parses an RFC 3339 timestamp. As in Go, the hour may have one digit, and a comma may precede the fraction of a second.
    pub fn parse(text: &str) -> Result<Moment, NotRfc3339> {
        Scan(text.as_bytes())
            .moment()
            .ok_or_else(|| NotRfc3339(text.to_owned()))
    }

    /// Returns the timestamp after this shift; `None` outside of the years from -9999 to 9999. A day that a month does not have overflows
    /// into the next month.
    pub fn shifted(self, shift: Shift) -> Option<Moment> {
        // The order of the parts matters at the ends of months. It is that of the official provider.
        let local = plus_seconds(self.local, shift.days, 86_400)?;
        let local = plus_seconds(local, shift.hours, 3_600)?;
        let local = plus_seconds(local, shift.minutes, 60)?;
        let local = plus_months(local, shift.months)?;
        let local = plus_seconds(local, shift.seconds, 1)?;
        let local = plus_months(local, shift.years.checked_mul(12)?)?;
        Some(Moment { local, ..self })
    }

    pub fn year(self) -> i64 {
        self.local.year().into()
    }
    pub fn month(self) -> i64 {
        self.local.month().into()
    }
    pub fn day(self) -> i64 {
        self.local.day().into()
    }
    pub fn hour(self) -> i64 {
        self.local.hour().into()
    }
    pub fn minute(self) -> i64 {
        self.local.minute().into()
    }
    pub fn second(self) -> i64 {
        self.local.second().into()
    }
    /// Returns the seconds since 1970 in UTC.
    pub fn unix(self) -> i64 {
        self.local.duration_since(EPOCH).as_secs() - self.offset
    }
    /// Returns the date at the offset of the timestamp.
    pub fn date(self) -> Date {
        self.local.date()
    }
    pub fn weekday(self) -> Weekday {
        self.local.weekday()
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (date, time) = (self.local.date(), self.local.time());
        let (year, month, day) = (date.year(), date.month(), date.day());
        write!(f, "{year:04}-{month:02}-{day:02}T")?;
        write!(f, "{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second())?;
        match self.offset {
            0 => f.write_str("Z"),
            offset => {
                // Offsets in RFC 3339 have no seconds.
                let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
                write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        }
    }
}

fn plus_seconds(local: DateTime, count: i64, each: i64) -> Option<DateTime> {
    local
        .checked_add(SignedDuration::from_secs(count.checked_mul(each)?))
        .ok()
}

fn plus_months(local: DateTime, count: i64) -> Option<DateTime> {
    if count == 0 {
        return Some(local);
    }
    let months = (i64::from(local.year()) * 12 + i64::from(local.month()) - 1).checked_add(count)?;
    let year = i16::try_from(months.div_euclid(12)).ok()?;
    let month = i8::try_from(months.rem_euclid(12)).ok()? + 1;
    let first = DateTime::from_parts(Date::new(year, month, 1).ok()?, local.time());
    // Days are counted from the first of the month, so that a day that does not exist overflows into the next month.
    plus_seconds(first, i64::from(local.day()) - 1, 86_400)
}

/// The part of a text that has not been parsed yet.
struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    fn moment(&mut self) -> Option<Moment> {
        let year = self.digits(4)?;
        self.one_of(b"-")?;
        let month = self.digits(2)?;
        self.one_of(b"-")?;
        let day = self.digits(2)?;
        self.one_of(b"T")?;
        let hour = self.digits(2).or_else(|| self.digits(1))?;
        self.one_of(b":")?;
        let minute = self.digits(2)?;
        self.one_of(b":")?;
        let second = self.digits(2)?;
        if self.one_of(b".,").is_some() {
            self.digits(1)?;
            while self.digits(1).is_some() {}
        }
        let offset = match self.one_of(b"Z+-")? {
            b'Z' => 0,
            sign => {
                // The limits are those of Go's parser, which the official provider uses.
                let hours = self.digits(2).filter(|h| *h <= 24)?;
                self.one_of(b":")?;
                let minutes = self.digits(2).filter(|m| *m <= 60)?;
                let seconds = i64::from(hours) * 3_600 + i64::from(minutes) * 60;
                if sign == b'-' { -seconds } else { seconds }
            }
        };
        if !self.0.is_empty() {
            return None;
        }
        let [month, day, hour, minute, second] = [month, day, hour, minute, second].map(|n| i8::try_from(n).ok());
        let local = DateTime::new(year, month?, day?, hour?, minute?, second?, 0).ok()?;
        Some(Moment { local, offset })
    }

    /// Reads exactly this many digits as a number. Otherwise, returns `None` and consumes nothing.
    fn digits(&mut self, count: usize) -> Option<i16> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        let mut number = 0;
        for digit in digits {
            if !digit.is_ascii_digit() {
                return None;
            }
            number = number * 10 + i16::from(digit - b'0');
        }
        self.0 = rest;
        Some(number)
    }

    fn one_of(&mut self, wanted: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        if !wanted.contains(first) {
            return None;
        }
        self.0 = rest;
        Some(*first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> Moment {
        Moment::parse(text).unwrap()
    }

    #[test]
    fn rfc_3339_is_read_and_written() {
        for (text, written) in [
            ("2020-02-12T06:36:13Z", "2020-02-12T06:36:13Z"),
            ("2020-02-12T6:36:13Z", "2020-02-12T06:36:13Z"),
            ("2020-02-12T06:36:13.999Z", "2020-02-12T06:36:13Z"),
            ("2020-02-12T06:36:13,5+00:00", "2020-02-12T06:36:13Z"),
            ("2020-02-12T06:36:13-08:30", "2020-02-12T06:36:13-08:30"),
            ("9999-12-31T23:59:59+24:00", "9999-12-31T23:59:59+24:00"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
        ] {
            assert_eq!(moment(text).to_string(), written, "{text}");
        }
        for text in [
            "",
            "2020-02-12",
            "2020-02-12t06:36:13Z",
            "2020-02-12T06:36:13z",
            "2020-02-12 06:36:13Z",
            "2020-2-12T06:36:13Z",
            "2020-02-12T06:36:60Z",
            "2020-02-12T24:00:00Z",
            "2020-02-30T00:00:00Z",
            "2020-02-12T06:36:13",
            "2020-02-12T06:36:13.Z",
            "2020-02-12T06:36:13+25:00",
            "2020-02-12T06:36:13Z ",
        ] {
            assert!(Moment::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn offsets_count_for_the_moment_but_not_for_its_parts() {
        let west = moment("1996-12-19T16:39:57-08:00");
        assert_eq!((west.hour(), west.unix()), (16, 851_042_397));
        assert_eq!(moment("9999-12-31T23:59:59Z").unix(), 253_402_300_799);
        assert_eq!(
            Moment::from_unix(851_042_397).unwrap().to_string(),
            "1996-12-20T00:39:57Z"
        );
        assert_eq!(Moment::from_unix(i64::MAX), None);
    }

    #[test]
    fn days_that_do_not_exist_run_over() {
        let shift = |days, months, years| Shift {
            days,
            months,
            years,
            ..Shift::default()
        };
        for (from, by, to) in [
            ("2020-01-31T00:00:00Z", shift(0, 1, 0), "2020-03-02T00:00:00Z"),
            ("2021-01-31T00:00:00Z", shift(0, 1, 0), "2021-03-03T00:00:00Z"),
            ("2020-02-29T00:00:00Z", shift(0, 0, 1), "2021-03-01T00:00:00Z"),
            ("2020-01-31T00:00:00Z", shift(1, 1, 0), "2020-03-01T00:00:00Z"),
            (
                "2020-01-15T12:00:00+02:00",
                shift(0, -13, 0),
                "2018-12-15T12:00:00+02:00",
            ),
        ] {
            assert_eq!(moment(from).shifted(by).unwrap().to_string(), to, "{from} {by:?}");
        }
        for by in [
            shift(i64::MAX, 0, 0),
            shift(0, i64::MAX, 0),
            shift(0, 0, i64::MIN),
            shift(0, 0, 9000),
        ] {
            assert_eq!(moment("2020-01-31T00:00:00Z").shifted(by), None);
        }
    }
}
