//! Pure rules about the values of objects: how the proposed new object is computed, and which responses of providers are valid. This module
//! makes no calls to providers and knows no addresses. Callers remove marks from values first.

mod compatible;
mod computed_blocks;
mod ignore;
mod plan_valid;
mod proposal;
mod proposed;

pub use compatible::applied_problems;
pub use computed_blocks::with_null_blocks;
pub use plan_valid::plan_problems;
pub use proposal::Proposal;
pub use proposed::proposed_new;

use cty::{Path, Type, Value};

#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub path: Path,
    /// The broken rule. The message contains no sensitive values.
    pub message: String,
}

impl Problem {
    fn new(path: &Path, message: impl Into<String>) -> Problem {
        Problem {
            path: path.clone(),
            message: message.into(),
        }
    }
}

/// Returns an attribute of an object. If the object is null or unknown, so is the attribute.
fn attribute(object: &Value, name: &str) -> Value {
    object.get(name).cloned().unwrap_or_else(|| {
        let ty = object
            .ty()
            .as_object()
            .and_then(|o| o.get(name))
            .cloned()
            .unwrap_or(Type::Dynamic);
        if object.is_known() {
            Value::null(ty)
        } else {
            Value::unknown(ty)
        }
    })
}

/// Builds a list or set as `like` is, if all items have its element type; otherwise a tuple.
fn rebuild_seq(like: &Value, items: Vec<Value>) -> Value {
    match like.ty() {
        Type::List(e) if items.iter().all(|i| i.ty() == &**e) => Value::list((**e).clone(), items),
        Type::Set(e) if items.iter().all(|i| i.ty() == &**e) => Value::set((**e).clone(), items),
        _ => Value::tuple(items),
    }
}

/// Builds a map as `like` is, if all values have its element type; otherwise an object.
fn rebuild_map(like: &Value, items: Vec<(std::sync::Arc<str>, Value)>) -> Value {
    match like.ty() {
        Type::Map(e) if items.iter().all(|(_, i)| i.ty() == &**e) => {
            Value::map((**e).clone(), items.into_iter().collect())
        }
        _ => Value::object(items),
    }
}

/// Returns the path to an element of a list by position.
fn at_index(path: &Path, index: usize) -> Path {
    path.index(Value::number(i64::try_from(index).unwrap_or(i64::MAX)))
}

/// Returns the path to an element of a map by key.
fn at_key(path: &Path, key: &str) -> Path {
    path.index(Value::string(key))
}
