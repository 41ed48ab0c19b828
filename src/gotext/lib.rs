//! Text as Go's standard library and its usual packages read and write it.
//!
//! Settings, environment variables and file formats around Terraform are defined by Go programs: a duration is `1h30m`, a flag is
//! `true` or `t` or `1`, a list of words is printed as `["a" "b"]`. The core and the plugins read and write these forms by this
//! crate, so that one text means the same to all of them. It depends on nothing.
//!
//! - [`duration`]: `1h30m` as a length of time (`time.ParseDuration`).
//! - [`glob`]: patterns of paths, with `**` and `{a,b}`.
//! - [`quote`]: text in quotes with escapes (`%q`), and which characters are printable.
//! - [`boolean`]: truth values (`strconv.ParseBool`).
//!
//! Begin with [`duration`]. A caller that accepts more or less than Go says so itself.

#![allow(missing_docs, reason = "an internal crate: names and types say the rest")]

pub mod duration;
pub mod glob;
pub mod quote;

/// A truth value as flags and environment variables have it.
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
