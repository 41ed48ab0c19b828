//! Optional members of responses. Go programs write `null` for an empty list or map, others omit it: a missing
//! member, `null` and an empty value mean the same, and `null` elements are ignored.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// Deserializes a member that may be `null`. With `#[serde(default)]` it may be absent, too.
///
/// # Errors
/// Returns an error if the member has another type.
pub fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(member: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(member)?.unwrap_or_default())
}

/// Deserializes a list that may be `null`, without its `null` elements.
///
/// # Errors
/// Returns an error if the member is not a list of such elements.
pub fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(member: D) -> Result<Vec<T>, D::Error> {
    let list: Option<Vec<Option<T>>> = Option::deserialize(member)?;
    Ok(list.unwrap_or_default().into_iter().flatten().collect())
}

/// Deserializes a map that may be `null`, without its `null` entries.
///
/// # Errors
/// Returns an error if the member is not a map of such values.
pub fn map<'de, D: Deserializer<'de>, T: Deserialize<'de>>(member: D) -> Result<BTreeMap<String, T>, D::Error> {
    let map: Option<BTreeMap<String, Option<T>>> = Option::deserialize(member)?;
    let entries = map.unwrap_or_default().into_iter();
    Ok(entries.filter_map(|(name, value)| Some((name, value?))).collect())
}

/// Deserializes a map whose values may be `null`. Keys of `null` values are kept, with the default as their
/// value.
///
/// # Errors
/// Returns an error if the member is not a map of such values.
pub fn names<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    member: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    let map: Option<BTreeMap<String, Option<T>>> = Option::deserialize(member)?;
    let entries = map.unwrap_or_default().into_iter();
    Ok(entries.map(|(name, value)| (name, value.unwrap_or_default())).collect())
}
