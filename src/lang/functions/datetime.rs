//! Functions for times.

#![expect(clippy::disallowed_methods, reason = "the function timestamp returns the time")]

use std::cmp::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use cty::Value;
use gotext::duration::DurationError;

use super::calendar::{Date, WEEKDAYS};
use super::{CallError, CallResult, Function, FunctionEnvironment, Returns, string, text, unknown};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new(
        "formatdate",
        &[string("format"), string("time")],
        Returns::String,
        |a, _, _| {
            let time = Time::parse(text(a, 1)).map_err(|e| CallError::argument(1, e.to_string()))?;
            Ok(Value::string(format_date(text(a, 0), &time)?))
        },
    ),
    Function::new("plantimestamp", &[], Returns::String, |_, t, s| {
        match &s.settings.plan_timestamp {
            Some(time) => Ok(Value::string(time)),
            None => unknown(t),
        }
    }),
    Function::new(
        "timeadd",
        &[string("timestamp"), string("duration")],
        Returns::String,
        |a, _, _| {
            let time = Time::parse(text(a, 0)).map_err(|e| CallError::failed(e.to_string()))?;
            let duration = parse_duration(text(a, 1))?;
            Ok(Value::string(time.plus(duration).rfc3339()))
        },
    )
    .nullable(),
    Function::new(
        "timecmp",
        &[string("timestamp_a"), string("timestamp_b")],
        Returns::Number,
        |a, _, _| {
            let x = Time::parse(text(a, 0)).map_err(|e| CallError::argument(0, e.to_string()))?;
            let y = Time::parse(text(a, 1)).map_err(|e| CallError::argument(1, e.to_string()))?;
            Ok(Value::number(match x.nanos.cmp(&y.nanos) {
                Ordering::Less => -1i64,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            }))
        },
    ),
    Function::new("timestamp", &[], Returns::String, timestamp),
];

fn timestamp(_: &[Value], ty: &cty::Type, environment: &FunctionEnvironment<'_>) -> CallResult {
    if environment.settings.pure {
        return unknown(ty);
    }
    // Before 1970, the time is negative.
    let nanos = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(i128::MAX),
        Err(before) => i128::try_from(before.duration().as_nanos()).map_or(i128::MIN, |n| -n),
    };
    Ok(Value::string(Time { nanos, offset: 0 }.rfc3339()))
}

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// A time of RFC 3339, with its original offset. Calculated times can have years of more than four digits.
#[derive(Clone, Copy)]
struct Time {
    /// Nanoseconds since 1970, in UTC.
    nanos: i128,
    /// Seconds east of UTC.
    offset: i64,
}

/// Date and time of day, as a clock with some offset from UTC shows them.
struct Civil {
    date: Date,
    hour: i64,
    minute: i64,
    second: i64,
}

/// A text that is not a time of RFC 3339. The messages are those of Go's library, as Terraform reports them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum TimeError {
    #[error("not a valid RFC3339 timestamp: end of string before {0}")]
    EndBefore(&'static str),
    #[error("not a valid RFC3339 timestamp: end of string where {0:?} is expected")]
    EndWhere(&'static str),
    #[error("not a valid RFC3339 timestamp: missing required time introducer 'T'")]
    NoTime,
    #[error("not a valid RFC3339 timestamp: found {rest:?} where {expected:?} is expected")]
    Separator { rest: String, expected: &'static str },
    #[error("not a valid RFC3339 timestamp: cannot use {rest:?} as {field}")]
    Field { rest: String, field: &'static str },
    #[error("not a valid RFC3339 timestamp: day out of range")]
    Day,
    #[error("not a valid RFC3339 timestamp: hour must be between 0 and 23 inclusive")]
    Hour,
    #[error("not a valid RFC3339 timestamp: minute must have exactly two digits")]
    Minute,
    #[error("not a valid RFC3339 timestamp: missing fractional seconds")]
    Fraction,
}

/// A field of a time: index of its first byte and of the byte after it, name, minimum, maximum, and the separator
/// before it.
struct Field(usize, usize, &'static str, i64, i64, &'static str);

// The fields are checked in this order, so that the error names the first invalid field.
const FIELDS: [Field; 6] = [
    Field(0, 4, "year", 0, 9999, ""),
    Field(5, 7, "month", 1, 12, "-"),
    Field(8, 10, "day of month", 1, 31, "-"),
    Field(11, 13, "hour", 0, 23, "T"),
    Field(14, 16, "minute", 0, 59, ":"),
    Field(17, 19, "second", 0, 59, ":"),
];

impl Field {
    fn read(&self, text: &str) -> Result<i64, TimeError> {
        let Field(from, to, name, low, high, separator) = *self;
        let rest = |at: usize| text.get(at..).unwrap_or_default().to_owned();
        if !separator.is_empty() {
            let at = from - 1;
            match text.get(at..from) {
                Some(found) if found == separator => {}
                _ if separator == "T" => return Err(TimeError::NoTime),
                Some(_) => {
                    return Err(TimeError::Separator {
                        rest: rest(at),
                        expected: separator,
                    });
                }
                None => return Err(TimeError::EndWhere(separator)),
            }
        }
        let Some(value) = digits(text, from, to) else {
            return Err(match rest(from) {
                rest if rest.is_empty() => TimeError::EndBefore(name),
                rest => TimeError::Field { rest, field: name },
            });
        };
        if value < low || value > high {
            return Err(match name {
                "day of month" => TimeError::Day,
                "minute" => TimeError::Minute,
                "hour" => TimeError::Hour,
                _ => TimeError::Field {
                    rest: rest(to),
                    field: name,
                },
            });
        }
        Ok(value)
    }
}

fn digits(text: &str, from: usize, to: usize) -> Option<i64> {
    let part = text.get(from..to)?;
    part.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| part.parse().ok())
        .flatten()
}

/// Reads the offset from UTC in seconds: `Z`, `+HH:MM` or `-HH:MM`.
fn read_offset(text: &str) -> Result<i64, TimeError> {
    let sign = match text.as_bytes().first() {
        None => return Err(TimeError::EndBefore("UTC offset")),
        Some(b'Z') if text.len() == 1 => return Ok(0),
        Some(b'+') => Some(1),
        Some(b'-') => Some(-1),
        Some(_) => None,
    };
    match (sign, digits(text, 1, 3), text.get(3..4), digits(text, 4, 6), text.len()) {
        (Some(sign), Some(h), Some(":"), Some(m), 6) if h < 24 && m < 60 => Ok(sign * (h * 3600 + m * 60)),
        _ => Err(TimeError::Field {
            rest: text.to_owned(),
            field: "UTC offset",
        }),
    }
}

impl Time {
    fn parse(text: &str) -> Result<Time, TimeError> {
        let mut values = [0i64; 6];
        for (value, field) in values.iter_mut().zip(&FIELDS) {
            *value = field.read(text)?;
        }
        let mut rest = text.get(19..).unwrap_or_default();
        if let Some(fraction) = rest.strip_prefix('.') {
            let end = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if end == 0 {
                return Err(TimeError::Fraction);
            }
            rest = &fraction[end..];
        }
        let offset = read_offset(rest)?;
        let [year, month, day, hour, minute, second] = values;
        let date = Date { year, month, day };
        if !date.exists() {
            return Err(TimeError::Day);
        }
        let seconds = date.days() * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second - offset;
        let nanos = i128::from(seconds) * NANOS_PER_SECOND + i128::from(fraction_nanos(text));
        Ok(Time { nanos, offset })
    }

    fn plus(self, nanos: i64) -> Time {
        Time {
            nanos: self.nanos + i128::from(nanos),
            ..self
        }
    }

    fn civil(&self) -> Civil {
        let seconds = self.nanos.div_euclid(NANOS_PER_SECOND);
        let local = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_add(self.offset);
        let of_day = local.rem_euclid(SECONDS_PER_DAY);
        Civil {
            date: Date::from_days(local.div_euclid(SECONDS_PER_DAY)),
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
        }
    }

    fn rfc3339(&self) -> String {
        let t = self.civil();
        let zone = if self.offset == 0 {
            "Z".to_owned()
        } else {
            self.zone(":")
        };
        let sign = if t.date.year < 0 { "-" } else { "" };
        format!(
            "{sign}{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{zone}",
            t.date.year.abs(),
            t.date.month,
            t.date.day,
            t.hour,
            t.minute,
            t.second
        )
    }

    /// Renders the offset, such as `+01:00`, with a separator between hours and minutes.
    fn zone(&self, separator: &str) -> String {
        let sign = if self.offset < 0 { '-' } else { '+' };
        let minutes = self.offset.abs() / 60;
        format!("{sign}{:02}{separator}{:02}", minutes / 60, minutes % 60)
    }
}

/// Returns a time of RFC 3339 without fractions of a second, and with `Z` for a zero offset; `None` if it is invalid.
pub(super) fn normal(text: &str) -> Option<String> {
    Time::parse(text).ok().map(|t| t.rfc3339())
}

/// Returns the fraction of a second in a valid time, in nanoseconds.
fn fraction_nanos(text: &str) -> i64 {
    let Some(fraction) = text.get(19..).and_then(|r| r.strip_prefix('.')) else {
        return 0;
    };
    let digits: String = fraction
        .chars()
        .take_while(char::is_ascii_digit)
        .chain("000000000".chars())
        .take(9)
        .collect();
    digits.parse().unwrap_or(0)
}

/// Reads a duration such as `1h30m` or `-1.5s` as nanoseconds.
fn parse_duration(text: &str) -> CallResult<i64> {
    gotext::duration::nanoseconds(text).map_err(|error| {
        CallError::failed(match error {
            DurationError::Invalid => format!("{text:?} is no duration, such as \"1h30m\" or \"-1.5s\""),
            DurationError::NoUnit => format!("a number of the duration {text:?} has no unit: h, m, s, ms, us or ns"),
            DurationError::UnknownUnit(unit) => {
                format!("{unit:?} in the duration {text:?} is no unit of time; these are h, m, s, ms, us and ns")
            }
        })
    })
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn format_date(format: &str, time: &Time) -> CallResult<String> {
    let t = time.civil();
    let mut out = String::new();
    let mut rest = format;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("''") {
            // Outside of a literal, two quotes mean one quote.
            out.push('\'');
            rest = after;
            continue;
        }
        if c == '\'' {
            let (literal, after) = quoted(&rest[1..])?;
            out.push_str(&literal);
            rest = after;
            continue;
        }
        if !c.is_ascii_alphabetic() {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let end = rest.find(|other| other != c).unwrap_or(rest.len());
        let (verb, after) = rest.split_at(end);
        rest = after;
        let hour12 = if t.hour % 12 == 0 { 12 } else { t.hour % 12 };
        let month = usize::try_from(t.date.month).unwrap_or(1).clamp(1, 12) - 1;
        let weekday = WEEKDAYS[t.date.weekday()];
        let piece = match verb {
            "YYYY" => format!("{:04}", t.date.year),
            "YY" => format!("{:02}", t.date.year % 100),
            "MMMM" => MONTHS[month].to_owned(),
            "MMM" => MONTHS[month][..3].to_owned(),
            "MM" => format!("{:02}", t.date.month),
            "M" => t.date.month.to_string(),
            "DD" => format!("{:02}", t.date.day),
            "D" => t.date.day.to_string(),
            "EEEE" => weekday.to_owned(),
            "EEE" => weekday[..3].to_owned(),
            "hh" => format!("{:02}", t.hour),
            "h" => t.hour.to_string(),
            "HH" => format!("{hour12:02}"),
            "H" => hour12.to_string(),
            "AA" => if t.hour < 12 { "AM" } else { "PM" }.to_owned(),
            "aa" => if t.hour < 12 { "am" } else { "pm" }.to_owned(),
            "mm" => format!("{:02}", t.minute),
            "m" => t.minute.to_string(),
            "ss" => format!("{:02}", t.second),
            "s" => t.second.to_string(),
            "ZZZZZ" => time.zone(":"),
            "ZZZZ" => time.zone(""),
            "ZZZ" if time.offset == 0 => "UTC".to_owned(),
            "ZZZ" => time.zone(""),
            "Z" if time.offset == 0 => "Z".to_owned(),
            "Z" => time.zone(":"),
            _ => {
                let hint = match c {
                    'Y' => ": a year is \"YY\" or \"YYYY\"",
                    'M' => ": a month is \"M\", \"MM\", \"MMM\" or \"MMMM\"",
                    'D' => ": a day of the month is \"D\" or \"DD\"",
                    'E' => ": a day of the week is \"EEE\" or \"EEEE\"",
                    'h' => ": an hour from 0 to 23 is \"h\" or \"hh\"",
                    'H' => ": an hour from 1 to 12 is \"H\" or \"HH\"",
                    'A' => ": the upper-case half of the day is \"AA\"",
                    'a' => ": the lower-case half of the day is \"aa\"",
                    'm' => ": a minute is \"m\" or \"mm\"",
                    's' => ": a second is \"s\" or \"ss\"",
                    'Z' => ": a time zone is \"Z\", \"ZZZZ\" or \"ZZZZZ\"",
                    _ => "",
                };
                let message = format!("invalid date format verb {verb:?}{hint}");
                return Err(CallError::argument(0, message));
            }
        };
        out.push_str(&piece);
    }
    Ok(out)
}

/// Reads literal text up to its closing quote, with doubled quotes as one. Returns the text after the literal.
fn quoted(rest: &str) -> CallResult<(String, &str)> {
    let mut out = String::new();
    let mut chars = rest.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        if c != '\'' {
            out.push(c);
        } else if matches!(chars.peek(), Some((_, '\''))) {
            chars.next();
            out.push('\'');
            if chars.peek().is_none() {
                // At the end of the format, Terraform's parser treats the second quote as the closing one, too.
                return Ok((out, ""));
            }
        } else {
            return Ok((out, &rest[i + 1..]));
        }
    }
    Err(CallError::argument(0, "unterminated literal '"))
}
