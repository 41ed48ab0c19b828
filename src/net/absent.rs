//! Optional members of what servers answer. Programs in Go write `null` for an empty list or map, others leave it out: absent, `null`
//! and empty are one thing, and so is an element that is `null`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// Reads a member that may be `null`. With `#[serde(default)]` it may be absent, too.
///
/// # Errors
/// The member is of another type.
pub fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(member: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(member)?.unwrap_or_default())
}

/// Reads a list that may be `null`, without elements that are.
///
/// # Errors
/// The member is not a list of such elements.
pub fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(member: D) -> Result<Vec<T>, D::Error> {
    let list: Option<Vec<Option<T>>> = Option::deserialize(member)?;
    Ok(list.unwrap_or_default().into_iter().flatten().collect())
}

/// Reads a map that may be `null`, without entries that are.
///
/// # Errors
/// The member is not a map of such values.
pub fn map<'de, D: Deserializer<'de>, T: Deserialize<'de>>(member: D) -> Result<BTreeMap<String, T>, D::Error> {
    let map: Option<BTreeMap<String, Option<T>>> = Option::deserialize(member)?;
    let entries = map.unwrap_or_default().into_iter();
    Ok(entries.filter_map(|(name, value)| Some((name, value?))).collect())
}

/// Reads a map whose names count, and whose values may be `null`.
///
/// # Errors
/// The member is not a map of such values.
pub fn names<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    member: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    let map: Option<BTreeMap<String, Option<T>>> = Option::deserialize(member)?;
    let entries = map.unwrap_or_default().into_iter();
    Ok(entries.map(|(name, value)| (name, value.unwrap_or_default())).collect())
}
