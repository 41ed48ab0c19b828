//! Text formats of Go's standard library and common packages.
//!
//! Settings, environment variables and file formats around Terraform are defined by Go programs: a duration is `1h30m`,
//! a flag is `true` or `t` or `1`, a list of words is printed as `["a" "b"]`. The core and the plugins read and write
//! these formats with this crate, so that a text has one meaning everywhere. The crate has no dependencies.
//!
//! - [`duration`]: durations such as `1h30m` (`time.ParseDuration`).
//! - [`glob`]: path patterns with `**` and `{a,b}`.
//! - [`quote`]: quoted text with escapes (`%q`), and printable characters.
//! - [`boolean`]: truth values (`strconv.ParseBool`).
//!
//! Start with [`duration`]. Callers that accept more or less than Go document the difference.

pub mod duration;
pub mod glob;
pub mod instant;
mod printable;
pub mod quote;

/// Parses a truth value like Go's `strconv.ParseBool`; `None` for other text.
#[must_use]
pub fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::boolean;

    #[test]
    fn truth_values_are_those_of_go() {
        for text in ["1", "t", "T", "true", "TRUE", "True"] {
            assert_eq!(boolean(text), Some(true), "{text}");
        }
        for text in ["0", "f", "F", "false", "FALSE", "False"] {
            assert_eq!(boolean(text), Some(false), "{text}");
        }
        for text in ["", "yes", "no", "tRUE", "2", " true"] {
            assert_eq!(boolean(text), None, "{text}");
        }
    }
}
