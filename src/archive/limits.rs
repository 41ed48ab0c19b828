//! Limits of packages: download size, unpacked size, number of entries.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::rc::Rc;

/// The environment variable with the maximum size of an unpacked package: `4GiB`, `500M`, or a number of bytes.
const MAX_UNPACKED_SIZE: &str = "MONOFORM_MAX_UNPACKED_SIZE";
/// The environment variable with the maximum number of entries of a package.
const MAX_UNPACKED_FILES: &str = "MONOFORM_MAX_UNPACKED_FILES";
/// The environment variable with the maximum size of a download, in the format of [`MAX_UNPACKED_SIZE`].
const MAX_DOWNLOAD_SIZE: &str = "MONOFORM_MAX_DOWNLOAD_SIZE";

/// The limits of a package. The message about an exceeded limit names the limit and the environment variable that
/// changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The total size of all files, in bytes.
    pub bytes: u64,
    pub entries: usize,
    /// The size of the download, in bytes.
    pub download: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            bytes: 4 << 30,
            entries: 200_000,
            download: 4 << 30,
        }
    }
}

/// The error for an environment variable that is not a valid limit. The text is a clause without a full stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {name} must be {expected}, and is \"{value}\"")]
pub struct InvalidLimit {
    name: &'static str,
    expected: &'static str,
    value: String,
}

impl Limits {
    /// Reads the limits from environment variables, with defaults for variables that are unset or empty.
    ///
    /// # Errors
    ///
    /// Returns an error if the value of a variable is not a valid limit.
    pub fn from_variables(variables: &BTreeMap<String, String>) -> Result<Limits, InvalidLimit> {
        fn limit<T>(
            variables: &BTreeMap<String, String>,
            name: &'static str,
            default: T,
            expected: &'static str,
            parse: impl Fn(&str) -> Option<T>,
        ) -> Result<T, InvalidLimit> {
            match variables.get(name).map(|v| v.trim()).filter(|v| !v.is_empty()) {
                None => Ok(default),
                Some(text) => parse(text).ok_or_else(|| InvalidLimit {
                    name,
                    expected,
                    value: text.to_owned(),
                }),
            }
        }
        let size = |name, default| limit(variables, name, default, "a size like 4GiB", parse_size);
        let default = Limits::default();
        Ok(Limits {
            bytes: size(MAX_UNPACKED_SIZE, default.bytes)?,
            download: size(MAX_DOWNLOAD_SIZE, default.download)?,
            entries: limit(
                variables,
                MAX_UNPACKED_FILES,
                default.entries,
                "a positive number",
                |text| text.parse().ok().filter(|n| *n > 0),
            )?,
        })
    }

    /// Returns the clause for a package that is too large.
    #[must_use]
    pub fn too_large(&self) -> String {
        format!(
            "unpacked, its files are larger than the {} that are accepted ({MAX_UNPACKED_SIZE} changes the limit)",
            Size(self.bytes)
        )
    }

    /// Returns the clause for a package with too many entries.
    #[must_use]
    pub fn too_many(&self) -> String {
        format!(
            "it has more than the {} entries that are accepted ({MAX_UNPACKED_FILES} changes the limit)",
            self.entries
        )
    }

    /// Returns the predicate of a sentence about a download that is too large; the caller adds the URL as its
    /// subject.
    #[must_use]
    pub fn too_long(&self) -> String {
        format!(
            "is larger than the {} that are accepted ({MAX_DOWNLOAD_SIZE} changes the limit)",
            Size(self.download)
        )
    }
}

/// A reader that fails when the shared budget is used up.
pub(crate) struct Bounded<R> {
    inner: R,
    budget: Budget,
}

/// The remaining bytes, shared by the readers of one archive.
#[derive(Clone)]
pub(crate) struct Budget {
    left: Rc<Cell<u64>>,
    exceeded: Rc<Cell<bool>>,
}

impl Budget {
    pub(crate) fn new(bytes: u64) -> Budget {
        Budget {
            left: Rc::new(Cell::new(bytes)),
            exceeded: Rc::new(Cell::new(false)),
        }
    }

    /// Wraps a reader so that it fails once all readers of the archive together have read more than the remaining
    /// bytes.
    pub(crate) fn bound<R>(&self, inner: R) -> Bounded<R> {
        Bounded {
            inner,
            budget: self.clone(),
        }
    }

    /// Returns true if a reader had more bytes than the budget allows.
    pub(crate) fn exceeded(&self) -> bool {
        self.exceeded.get()
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        match self.budget.left.get().checked_sub(count as u64) {
            Some(left) => {
                self.budget.left.set(left);
                Ok(count)
            }
            None => {
                // A flag is set as well, because the library around this reader may replace the error.
                self.budget.exceeded.set(true);
                Err(io::Error::other("the size limit is exceeded"))
            }
        }
    }
}

/// A number of bytes, displayed in the largest unit without a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        let unit = units
            .into_iter()
            .find(|(bits, _)| self.0 > 0 && self.0.trailing_zeros() >= *bits);
        match unit {
            Some((bits, name)) => write!(f, "{} {name}", self.0 >> bits),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

fn parse_size(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let bits = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    digits
        .parse::<u64>()
        .ok()?
        .checked_mul(1 << bits)
        .filter(|size| *size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_with_unit_is_parsed_and_displayed_in_largest_unit() {
        for (text, expected) in [
            ("10", Some("10 bytes")),
            ("4GiB", Some("4 GiB")),
            ("1024 k", Some("1 MiB")),
            ("1500M", Some("1500 MiB")),
            ("0", None),
            ("", None),
            ("-1", None),
            ("4X", None),
            ("99999999999T", None),
        ] {
            assert_eq!(
                parse_size(text).map(|s| Size(s).to_string()).as_deref(),
                expected,
                "{text}"
            );
        }
        let set = |name: &str, value: &str| Limits::from_variables(&[(name.to_owned(), value.to_owned())].into());
        assert_eq!(set(MAX_UNPACKED_SIZE, "1M").unwrap().bytes, 1 << 20);
        assert!(
            set(MAX_UNPACKED_SIZE, "much")
                .unwrap_err()
                .to_string()
                .contains("MONOFORM_MAX_UNPACKED_SIZE")
        );
        assert!(
            set(MAX_UNPACKED_FILES, "0")
                .unwrap_err()
                .to_string()
                .contains("positive")
        );
    }
}
