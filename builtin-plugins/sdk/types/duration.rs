//! Lengths of time.

use std::time::Duration;

use super::text::text_type;
use crate::model::ModelError;

/// A length of time as Go writes it: numbers with the units `ns`, `us`, `ms`, `s`, `m` and `h`, such as `1h30m` or `1.5s`.
///
/// ```
/// use monoform_sdk::types::GoDuration;
///
/// let time: GoDuration = "1h30m".parse()?;
/// assert_eq!(time.duration().as_secs(), 5400);
/// # Ok::<(), monoform_sdk::model::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoDuration {
    text: String,
    nanoseconds: i64,
}

text_type!(GoDuration);

impl GoDuration {
    /// Reads a duration.
    ///
    /// # Errors
    /// The text is not a duration, or the duration is longer than 292 years (the range of 64-bit nanoseconds).
    pub fn new(text: impl Into<String>) -> Result<GoDuration, ModelError> {
        let text = text.into();
        match gotext::duration::nanoseconds(&text) {
            Ok(nanoseconds) => Ok(GoDuration { text, nanoseconds }),
            Err(_) => Err(ModelError::new(
                "it must be a duration, which is a sequence of numbers with a unit each (ns, us, ms, s, m or h), such as \"1h30m\"",
            )),
        }
    }

    /// Returns the length of time; zero if the duration is negative.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.nanoseconds).unwrap_or_default())
    }

    /// Returns the length in nanoseconds, with its sign.
    #[must_use]
    pub fn nanoseconds(&self) -> i64 {
        self.nanoseconds
    }

    fn meaning(&self) -> i64 {
        self.nanoseconds
    }
}

impl From<Duration> for GoDuration {
    /// Writes a duration in seconds, or in nanoseconds if it has a fraction of a second. A duration longer than about 292 years becomes
    /// that maximum.
    fn from(time: Duration) -> GoDuration {
        let nanoseconds = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let text = match nanoseconds % 1_000_000_000 {
            0 => format!("{}s", nanoseconds / 1_000_000_000),
            _ => format!("{nanoseconds}ns"),
        };
        GoDuration { text, nanoseconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CustomType as _;

    #[test]
    fn durations_of_the_same_length_mean_the_same() {
        let read = |text: &str| GoDuration::new(text).unwrap();
        assert!(read("1h").same(&read("60m")) && !read("1h").same(&read("61m")));
        assert_eq!(GoDuration::from(read("1.5s").duration()).nanoseconds(), 1_500_000_000);
        assert_eq!(GoDuration::from(Duration::from_secs(90)).to_string(), "90s");
        assert_eq!(
            (read("-5s").duration(), read("-5s").nanoseconds()),
            (Duration::ZERO, -5_000_000_000)
        );
        for wrong in ["", "5", "1 h", "1d", "h"] {
            assert!(GoDuration::new(wrong).is_err(), "{wrong}");
        }
    }
}
