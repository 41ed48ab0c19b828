//! Durations: an optional sign, then numbers with units, such as `1h30m`, `-1.5s` or `300ms`; or `0`.

use std::time::Duration;

/// Nanoseconds by unit.
const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),  // micro sign
    ("\u{3bc}s", 1_000), // Greek mu
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DurationError<'t> {
    /// A number is missing, or the duration exceeds 64 bits of nanoseconds (about 292 years).
    Invalid,
    /// A number without a unit.
    NoUnit,
    UnknownUnit(&'t str),
}

/// Parses a duration; `None` if the text is not one. A negative duration becomes zero, for callers that wait.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    let nanos = nanoseconds(text).ok()?;
    Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)))
}

/// Parses a duration as signed nanoseconds. Fractions of a nanosecond are truncated.
///
/// # Errors
/// Returns an error if the text is not a duration, or if the duration exceeds 64 bits.
pub fn nanoseconds(text: &str) -> Result<i64, DurationError<'_>> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(DurationError::Invalid);
    }
    // The parts are summed in 128 bits, because the absolute value of the smallest 64-bit number does not fit
    // 64 bits.
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (part, after) = term(rest)?;
        total = total.checked_add(part).ok_or(DurationError::Invalid)?;
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).map_err(|_| DurationError::Invalid)
}

/// Parses one number with its unit. Returns nanoseconds and the text after them.
fn term(text: &str) -> Result<(i128, &str), DurationError<'_>> {
    let (whole, rest) = split(text, |c| !c.is_ascii_digit());
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => split(rest, |c| !c.is_ascii_digit()),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationError::Invalid);
    }
    let (name, rest) = split(rest, |c| c.is_ascii_digit() || c == '.');
    if name.is_empty() {
        return Err(DurationError::NoUnit);
    }
    let (_, unit) = UNITS
        .iter()
        .find(|(known, _)| *known == name)
        .ok_or(DurationError::UnknownUnit(name))?;
    let mut nanoseconds = match whole {
        "" => 0,
        // A number that exceeds 128 bits also exceeds 64 bits.
        whole => whole
            .parse::<i128>()
            .ok()
            .and_then(|whole| whole.checked_mul(*unit))
            .ok_or(DurationError::Invalid)?,
    };
    // Digits are added up before the division, so that they are not rounded one by one. In any unit, digits after
    // the eighteenth are less than a nanosecond.
    let (mut parts, mut scale) = (0, 1);
    for digit in fraction.bytes().take(18) {
        parts = parts * 10 + i128::from(digit - b'0') * unit;
        scale *= 10;
    }
    nanoseconds = nanoseconds.checked_add(parts / scale).ok_or(DurationError::Invalid)?;
    Ok((nanoseconds, rest))
}

/// Splits the text before the first character that `ends` accepts.
fn split(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        for (text, expected) in [
            ("0", 0),
            ("-0", 0),
            ("+0", 0),
            ("0s", 0),
            ("0s0h", 0),
            ("5m", 300_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("-1.5s", -1_500_000_000),
            ("+.5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("1us2µs3μs", 6_000),
            ("100ms7ns", 100_000_007),
            ("0.1h", 360_000_000_000),
            ("1.9999999999999999999999ns", 1),
            ("2562047h47m16.854775807s", i64::MAX),
            ("-2562047h47m16.854775808s", i64::MIN),
        ] {
            assert_eq!(nanoseconds(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_an_error_that_names_its_reason() {
        let invalid = DurationError::Invalid;
        for (text, expected) in [
            ("", invalid.clone()),
            ("-", invalid.clone()),
            ("s", invalid.clone()),
            (".s", invalid.clone()),
            ("five", invalid.clone()),
            ("--1s", invalid.clone()),
            (" 1s", invalid.clone()),
            ("2562047h47m16.854775808s", invalid.clone()),
            ("99999999999999999999999999999999999999999h", invalid),
            ("1", DurationError::NoUnit),
            ("1s2", DurationError::NoUnit),
            ("1..2s", DurationError::NoUnit),
            ("1d", DurationError::UnknownUnit("d")),
            ("5 m", DurationError::UnknownUnit(" m")),
            ("1h ", DurationError::UnknownUnit("h ")),
            ("1h-1m", DurationError::UnknownUnit("h-")),
        ] {
            assert_eq!(nanoseconds(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn negative_durations_are_no_time_to_wait() {
        assert_eq!(parse("-3s"), Some(Duration::ZERO));
        assert_eq!(parse("300ms"), Some(Duration::from_millis(300)));
        assert_eq!(parse("300"), None);
    }

    proptest! {
        #[test]
        fn sum_of_the_parts_is_the_duration(h in 0..2000_i64, m in 0..100_i64, s in 0..100_i64, n in 0..1_000_000_000_i64, minus: bool) {
            let sign = if minus { "-" } else { "" };
            let nanos = ((h * 60 + m) * 60 + s) * 1_000_000_000 + n;
            let expected = if minus { -nanos } else { nanos };
            for text in [format!("{sign}{h}h{m}m{s}.{n:09}s"), format!("{sign}{h}h{m}m{s}s{n}ns")] {
                prop_assert_eq!(nanoseconds(&text), Ok(expected));
            }
        }

        #[test]
        fn no_text_makes_it_fail_to_return(text in "[-+.0-9a-zµ ]{0,40}") {
            let _ = nanoseconds(&text);
        }
    }
}
