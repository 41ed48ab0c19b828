//! Addresses, versions and platforms as text in JSON.

use std::fmt::Display;

use addrs::Provider;
use addrs::platform::Platform;
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer, Serializer};
use versions::Version;

/// Type with a text form that can be parsed.
pub(crate) trait Text: Display + Sized {
    fn from_text(text: &str) -> Option<Self>;
}

impl Text for Provider {
    fn from_text(text: &str) -> Option<Provider> {
        Provider::parse(text)
            .ok()
            // Only the full form is valid, so that each address has a single spelling in an index.
            .filter(|provider| provider.to_string() == text)
    }
}

impl Text for Version {
    fn from_text(text: &str) -> Option<Version> {
        Version::parse(text).ok()
    }
}

impl Text for Platform {
    fn from_text(text: &str) -> Option<Platform> {
        text.parse().ok()
    }
}

pub(crate) fn serialize<S: Serializer>(value: &impl Text, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

pub(crate) fn deserialize<'de, T: Text, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    T::from_text(&text).ok_or_else(|| D::Error::custom(format!("\"{text}\" is not valid here")))
}
