//! `ignore_changes`: prior values replace configured ones before planning.

use config::IgnoreChanges;
use cty::{Kind, Path, Step, Type, Value};
use schema::BlockSchema;

use super::attribute;

/// Arguments that `ignore_changes` lists.
#[derive(Clone, Debug)]
pub enum Ignore<'p> {
    /// Every argument.
    All,
    /// The arguments at these paths.
    Paths(&'p [Path]),
}

/// Replaces the arguments that a lifecycle block ignores by their prior values.
pub fn with_ignored_changes(schema: &BlockSchema, prior: &Value, config: &Value, ignored: &IgnoreChanges) -> Value {
    match ignored {
        IgnoreChanges::None => config.clone(),
        IgnoreChanges::All => ignore_changes(schema, prior, config, &Ignore::All),
        IgnoreChanges::Paths(paths) => {
            let paths: Vec<Path> = paths.iter().map(|(path, _)| path.clone()).collect();
            ignore_changes(schema, prior, config, &Ignore::Paths(&paths))
        }
    }
}

/// Replaces the ignored paths of a configuration by their prior values. Without a prior object nothing is ignored.
pub fn ignore_changes(schema: &BlockSchema, prior: &Value, config: &Value, ignore: &Ignore<'_>) -> Value {
    if !prior.is_present() || !config.is_present() {
        return config.clone();
    }
    match ignore {
        Ignore::All => ignore_all(schema, prior),
        Ignore::Paths(paths) => paths
            .iter()
            .fold(config.clone(), |config, path| replace(&config, prior, &path.0)),
    }
}

/// Returns the prior object as a configuration: without the values that only the provider can set.
fn ignore_all(schema: &BlockSchema, prior: &Value) -> Value {
    Value::object(
        schema
            .attributes
            .iter()
            .map(|(name, a)| {
                let value = attribute(prior, name);
                let value = if a.computed && !a.optional {
                    Value::null(a.implied_type())
                } else {
                    value
                };
                (name.clone(), value)
            })
            .chain(schema.blocks.keys().map(|name| (name.clone(), attribute(prior, name)))),
    )
}

/// Replaces the part of `config` at `path` by the same part of `prior`. If the path ends at a map element, the element is also added or
/// removed, so that the map has it exactly if `prior` has it.
fn replace(config: &Value, prior: &Value, path: &[Step]) -> Value {
    let Some((step, rest)) = path.split_first() else {
        return prior.clone();
    };
    if let (Step::Index(key), Type::Map(element), true) = (step, config.ty(), rest.is_empty()) {
        // The map element may be missing in `config` or in `prior`, and a null map counts as an empty one.
        let Some(key) = key.as_str() else { return config.clone() };
        if !config.is_known() {
            return config.clone();
        }
        let mut items: std::collections::BTreeMap<_, _> = config
            .entries()
            .into_iter()
            .flatten()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        match prior.get(key) {
            Some(value) => {
                items.insert(key.into(), value.clone());
            }
            None => {
                items.remove(key);
            }
        }
        if items.is_empty() && config.is_null() {
            return config.clone();
        }
        return Value::map((**element).clone(), items).with_marks(config.marks());
    }
    // If the type is dynamic, an index step may select an attribute of an object.
    let attribute = match (step, config.ty()) {
        (Step::Index(key), Type::Object(_)) => key.as_arc_str().map(|name| Step::Attribute(name.clone())),
        _ => None,
    };
    let step = attribute.as_ref().unwrap_or(step);
    let (Some(inner), Some(before)) = (step.get(config), step.get(prior)) else {
        return config.clone();
    };
    let changed = replace(inner, before, rest);
    if matches!(config.kind(), Kind::Unknown(_) | Kind::Null) {
        return config.clone();
    }
    // The part is found by its memory address: other parts may have the same value, and the step may be an index or a name.
    let target = inner as *const Value;
    config.map_parts(|_, part| {
        if std::ptr::eq(part, target) {
            changed.clone()
        } else {
            part.clone()
        }
    })
}
