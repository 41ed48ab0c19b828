//! `ignore_changes`: prior values put into the configuration before planning.

use config::IgnoreChanges;
use cty::{Kind, Path, Step, Type, Value};
use schema::BlockSchema;

use super::attribute;

/// Which changes are ignored.
#[derive(Clone, Debug)]
pub enum Ignore<'p> {
    /// Every argument.
    All,
    /// These paths.
    Paths(&'p [Path]),
}

/// The configuration with prior values for the arguments that a lifecycle block ignores.
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

/// The configuration with prior values in the ignored places. Without a prior object nothing is ignored.
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

/// The whole prior object, without what only the provider can have set: that may not stand in a configuration.
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

/// `config` with the part at `path` taken from `prior`. A map key that only one side has is added or removed.
fn replace(config: &Value, prior: &Value, path: &[Step]) -> Value {
    let Some((step, rest)) = path.split_first() else {
        return prior.clone();
    };
    if let (Step::Index(key), Type::Map(element), true) = (step, config.ty(), rest.is_empty()) {
        // A single element of a map, which either side may lack; a null or absent map stands for an empty one.
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
    // What is written as an index may be the attribute of an object, where the type is only known by its value.
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
    let target = inner as *const Value;
    config.map_parts(|_, part| {
        if std::ptr::eq(part, target) {
            changed.clone()
        } else {
            part.clone()
        }
    })
}
