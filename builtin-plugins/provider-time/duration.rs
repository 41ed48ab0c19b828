//! Durations as text: numbers with units, such as `1h30m` or `-1.5s`.

/// Units by name, in nanoseconds. Longer names come first where one begins with another.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000), // micro sign
    ("μs", 1_000), // Greek mu
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The nanoseconds of a duration; `None` if the text is not one, or more than 64 bits hold.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total: i128 = 0;
    while total == 0 || !rest.is_empty() {
        let (part, after) = term(rest)?;
        total = total.checked_add(part)?;
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// One number with its unit, and what comes after.
fn term(text: &str) -> Option<(i128, &str)> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (name, unit) = UNITS.iter().find(|(name, _)| rest.starts_with(name))?;
    let rest = rest.strip_prefix(name)?;
    let unit = i128::from(*unit);
    let mut nanoseconds = match whole {
        "" => 0,
        whole => whole.parse::<i128>().ok()?.checked_mul(unit)?,
    };
    // Digits beyond the eighteenth are less than a nanosecond.
    let fraction = fraction.get(..18).unwrap_or(fraction);
    if !fraction.is_empty() {
        let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
        nanoseconds = nanoseconds.checked_add(fraction.parse::<i128>().ok()?.checked_mul(unit)? / scale)?;
    }
    Some((nanoseconds, rest))
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// A duration to wait for: one number with one unit, of milliseconds, seconds, minutes or hours.
pub(crate) fn parse_wait(text: &str) -> Option<std::time::Duration> {
    let (_, rest) = digits(text);
    let unit = match rest.strip_prefix('.') {
        Some(rest) => {
            let (fraction, unit) = digits(rest);
            (!fraction.is_empty()).then_some(unit)?
        }
        None => rest,
    };
    if !text.starts_with(|c: char| c.is_ascii_digit()) || !matches!(unit, "ms" | "s" | "m" | "h") {
        return None;
    }
    parse(text)
        .and_then(|n| u64::try_from(n).ok())
        .map(std::time::Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("0s0h", Some(0)),
            ("1h30m", Some(5_400_000_000_000)),
            ("-1.5s", Some(-1_500_000_000)),
            ("+.5s", Some(500_000_000)),
            ("1.s", Some(1_000_000_000)),
            ("1us2µs3μs", Some(6_000)),
            ("100ms7ns", Some(100_000_007)),
            ("1.9999999999999999999999ns", Some(1)),
            ("2562047h47m16.854775807s", Some(i64::MAX)),
            ("2562047h47m16.854775808s", None),
            ("", None),
            ("-", None),
            ("1", None),
            (".s", None),
            ("1d", None),
            ("1h ", None),
            ("1h-1m", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

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
        ] {
            assert_eq!(parse_wait(text).map(|d| d.as_millis()), expected, "{text}");
        }
    }
}
