//! How large what comes from outside may be: packages as they are sent, and as they are unpacked.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};

/// The environment variable with the largest size of an unpacked package: `4GiB`, `500M`, or a number of bytes.
pub const MAX_UNPACKED_SIZE: &str = "MONOFORM_MAX_UNPACKED_SIZE";
/// The environment variable with the largest number of entries of a package.
pub const MAX_UNPACKED_FILES: &str = "MONOFORM_MAX_UNPACKED_FILES";
/// The environment variable with the largest size of a download, in the same form.
pub const MAX_DOWNLOAD_SIZE: &str = "MONOFORM_MAX_DOWNLOAD_SIZE";

/// How large a package may be. What is larger is refused, with the limit and the variable that changes it in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnpackLimits {
    /// The bytes of all its files together.
    pub bytes: u64,
    /// Its entries.
    pub entries: usize,
    /// The bytes that are downloaded.
    pub download: u64,
}

impl Default for UnpackLimits {
    fn default() -> UnpackLimits {
        UnpackLimits {
            bytes: 4 << 30,
            entries: 200_000,
            download: 4 << 30,
        }
    }
}

impl UnpackLimits {
    /// The limits that the environment sets, the usual ones otherwise. The error is a sentence without its full stop.
    pub fn from_variables(variables: &BTreeMap<String, String>) -> Result<UnpackLimits, String> {
        let get = |name: &str| variables.get(name).map(|v| v.trim()).filter(|v| !v.is_empty());
        let size = |name: &str, default: u64| match get(name) {
            None => Ok(default),
            Some(text) => parse_size(text)
                .ok_or_else(|| format!("the environment variable {name} must be a size like 4GiB, and is \"{text}\"")),
        };
        let usual = UnpackLimits::default();
        Ok(UnpackLimits {
            bytes: size(MAX_UNPACKED_SIZE, usual.bytes)?,
            download: size(MAX_DOWNLOAD_SIZE, usual.download)?,
            entries: match get(MAX_UNPACKED_FILES) {
                None => usual.entries,
                Some(text) => text.parse().ok().filter(|n| *n > 0).ok_or_else(|| {
                    format!(
                        "the environment variable {MAX_UNPACKED_FILES} must be a positive number, and is \"{text}\""
                    )
                })?,
            },
        })
    }

    /// A package has more bytes than are accepted: a part of a sentence.
    #[must_use]
    pub fn too_large(&self) -> String {
        format!(
            "unpacked, its files are larger than the {} that are accepted ({MAX_UNPACKED_SIZE} changes the limit)",
            Size(self.bytes)
        )
    }

    /// A package has more entries than are accepted: a part of a sentence.
    #[must_use]
    pub fn too_many(&self) -> String {
        format!(
            "it has more than the {} entries that are accepted ({MAX_UNPACKED_FILES} changes the limit)",
            self.entries
        )
    }

    /// A server sends more than is accepted: a part of a sentence.
    #[must_use]
    pub fn too_long(&self) -> String {
        format!(
            "is larger than the {} that are accepted ({MAX_DOWNLOAD_SIZE} changes the limit)",
            Size(self.download)
        )
    }

    /// Reads no more than may be unpacked in all; beyond that it is an error, not an end.
    pub fn bound<R: Read>(&self, inner: R) -> Bounded<R> {
        Bounded {
            inner,
            left: self.bytes,
            exceeded: false,
            limits: *self,
        }
    }
}

/// A reader with an end.
#[derive(Debug)]
pub struct Bounded<R> {
    inner: R,
    left: u64,
    exceeded: bool,
    limits: UnpackLimits,
}

impl<R> Bounded<R> {
    /// Whether there was more than may be read.
    #[must_use]
    pub fn exceeded(&self) -> bool {
        self.exceeded
    }

    /// How many bytes may still be read.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        match self.left.checked_sub(count as u64) {
            Some(left) => {
                self.left = left;
                Ok(count)
            }
            None => {
                self.exceeded = true;
                Err(io::Error::other(self.limits.too_large()))
            }
        }
    }
}

/// A number of bytes, in the largest unit that it is a whole number of.
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
    fn sizes_are_read_and_shown() {
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
        let set = |name: &str, value: &str| UnpackLimits::from_variables(&[(name.to_owned(), value.to_owned())].into());
        assert_eq!(set(MAX_UNPACKED_SIZE, "1M").unwrap().bytes, 1 << 20);
        assert!(
            set(MAX_UNPACKED_SIZE, "much")
                .unwrap_err()
                .contains("MONOFORM_MAX_UNPACKED_SIZE")
        );
        assert!(set(MAX_UNPACKED_FILES, "0").unwrap_err().contains("positive"));
    }
}
