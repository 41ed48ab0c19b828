//! Expansion: the keys of a block's instances, and `count.index` and `each` in each of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::InstanceKey;
use cty::{Type, Value};

use super::Reported;

/// Instances of a block that can have a repetition argument, such as a resource or a module call.
#[derive(Clone, Debug, PartialEq)]
pub enum Expansion {
    /// One instance without key: the block has no repetition argument, or `enabled = true`.
    Single,
    /// The block has no instance, and its value is null: `enabled = false`.
    Disabled,
    /// The number of instances: the value of `count`.
    Count(u64),
    /// Keys and values of the instances: the value of `for_each`.
    ForEach(BTreeMap<Arc<str>, Value>),
    /// Unknown; in static evaluation only.
    Unknown {
        /// Set if the repetition argument is `count`, not `for_each`.
        counted: bool,
    },
}

/// Values of `count.index` and `each` in one instance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repetition {
    /// `count.index`.
    pub index: Option<Value>,
    /// `each.key` and `each.value`.
    pub each: Option<(Value, Value)>,
}

impl Repetition {
    /// Returns the values for an existing object, which may not be in the configuration any more. `each.value` is unknown.
    #[must_use]
    pub fn of_existing(key: &InstanceKey) -> Repetition {
        match key {
            InstanceKey::None => Repetition::default(),
            InstanceKey::Int(i) => Repetition {
                index: Some(Value::number(i64::try_from(*i).unwrap_or(i64::MAX))),
                each: None,
            },
            InstanceKey::String(k) => Repetition {
                index: None,
                each: Some((Value::shared_string(k.clone()), Value::dynamic())),
            },
        }
    }
}

impl Expansion {
    /// Returns the expansion that represents every possible value of a block's repetition arguments, for static evaluation. The
    /// parameters tell which of the arguments the block has.
    #[must_use]
    pub fn of_any(count: bool, for_each: bool) -> Expansion {
        match (count, for_each) {
            (false, false) => Expansion::Single,
            (counted, _) => Expansion::Unknown { counted },
        }
    }

    #[must_use]
    pub fn keys(&self) -> Vec<InstanceKey> {
        match self {
            Expansion::Single | Expansion::Unknown { .. } => vec![InstanceKey::None],
            Expansion::Disabled => Vec::new(),
            Expansion::Count(n) => (0..*n).map(InstanceKey::Int).collect(),
            Expansion::ForEach(items) => items.keys().cloned().map(InstanceKey::String).collect(),
        }
    }

    /// Returns true if there is an instance with this key.
    #[must_use]
    pub fn has(&self, key: &InstanceKey) -> bool {
        match (self, key) {
            (Expansion::Single | Expansion::Unknown { .. }, InstanceKey::None) => true,
            (Expansion::Count(n), InstanceKey::Int(i)) => i < n,
            (Expansion::ForEach(items), InstanceKey::String(k)) => items.contains_key(k),
            _ => false,
        }
    }

    /// Returns the values of `count.index` and `each` in the instance with this key.
    #[must_use]
    pub fn repetition(&self, key: &InstanceKey) -> Repetition {
        match (self, key) {
            (Expansion::Count(_), InstanceKey::Int(i)) => {
                let index = Value::number(i64::try_from(*i).unwrap_or(i64::MAX));
                Repetition {
                    index: Some(index),
                    each: None,
                }
            }
            (Expansion::ForEach(items), InstanceKey::String(k)) => {
                let value = items.get(k).cloned().unwrap_or_else(Value::dynamic);
                Repetition {
                    index: None,
                    each: Some((Value::shared_string(k.clone()), value)),
                }
            }
            (Expansion::Unknown { counted: true }, _) => Repetition {
                index: Some(Value::unknown_not_null(Type::Number)),
                each: None,
            },
            (Expansion::Unknown { counted: false }, _) => Repetition {
                index: None,
                each: Some((Value::unknown_not_null(Type::String), Value::dynamic())),
            },
            _ => Repetition::default(),
        }
    }

    /// Builds the value of all instances: the value of the only instance, a tuple for `count`, or an object for `for_each`. The value is
    /// null if the block is disabled, and unknown if the expansion is unknown.
    pub fn gather(&self, mut instance: impl FnMut(InstanceKey) -> Result<Value, Reported>) -> Result<Value, Reported> {
        Ok(match self {
            Expansion::Single => instance(InstanceKey::None)?,
            Expansion::Disabled => Value::null(Type::Dynamic),
            Expansion::Unknown { .. } => Value::dynamic(),
            Expansion::Count(n) => Value::tuple(
                (0..*n)
                    .map(|i| instance(InstanceKey::Int(i)))
                    .collect::<Result<_, _>>()?,
            ),
            Expansion::ForEach(items) => Value::object(
                items
                    .keys()
                    .map(|k| Ok((k.clone(), instance(InstanceKey::String(k.clone()))?)))
                    .collect::<Result<Vec<_>, _>>()?,
            ),
        })
    }
}
