//! The type of attributes that hold the duration of a pause.

use std::time::Duration;

use monoform_sdk::CustomType;
use monoform_sdk::model::ModelError;

/// Form of a pause, for messages.
pub(crate) const RULE: &str = "must be a number followed by one of the units ms, s, m or h, such as 30s";

/// A pause: one number with one unit, of milliseconds, seconds, minutes or hours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pause {
    text: String,
    time: Duration,
}

impl Pause {
    /// Reads a pause; `None` if the text is none.
    pub fn parse(text: &str) -> Option<Pause> {
        let number = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
        let unit = text.strip_prefix(number)?;
        // As in the official provider, there must be digits on both sides of a decimal point.
        let has_digits = number
            .split('.')
            .all(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()));
        if !has_digits || !matches!(unit, "ms" | "s" | "m" | "h") {
            return None;
        }
        let time = gotext::duration::parse(text)?;
        Some(Pause {
            text: text.to_owned(),
            time,
        })
    }

    pub fn time(&self) -> Duration {
        self.time
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

// The official provider has plain texts here, so that "60s" and "1m" are different.
impl CustomType for Pause {
    type Base = String;

    fn from_base(base: String) -> Result<Pause, ModelError> {
        let wrong = || ModelError::titled("Invalid Attribute Value Match", format!("it {RULE}"));
        Pause::parse(&base).ok_or_else(wrong)
    }

    fn to_base(&self) -> String {
        self.text.clone()
    }
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
            assert_eq!(Pause::parse(text).map(|p| p.time().as_millis()), expected, "{text}");
        }
    }
}
