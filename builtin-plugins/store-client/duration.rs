//! Times as Go writes them, which arguments and variables of other programs have.

use std::time::Duration;

/// A time as Go writes it: `1h30m`, `900s`, `1.5h`.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest.get(..digits)?.parse().ok()?;
        rest = rest.get(digits..)?;
        let end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let (unit, next) = rest.split_at_checked(end)?;
        rest = next;
        seconds += number
            * match unit {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                "us" | "µs" | "μs" => 1e-6,
                "ns" => 1e-9,
                _ => return None,
            };
    }
    (!text.trim().is_empty())
        .then(|| Duration::try_from_secs_f64(seconds).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        let seconds = |text: &str| parse(text).map(|d| d.as_secs());
        assert_eq!(seconds("1h30m"), Some(5400));
        assert_eq!(seconds("900s"), Some(900));
        assert_eq!(seconds("1.5h"), Some(5400));
        for wrong in ["", "1", "h", "1d", "1h x"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
