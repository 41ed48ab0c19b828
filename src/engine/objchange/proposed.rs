//! The proposed new object: the configuration merged with the prior values of computed attributes.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::Value;
use schema::marking::without_write_only;
use schema::{AttributeSchema, AttributeType, BlockSchema, NestedBlock, NestedObject, Nesting};

use super::{attribute, rebuild_map, rebuild_seq};

/// Merges the prior object and the configuration: configured values take precedence, and computed attributes that are not
/// configured keep their prior values. Nested objects are matched by index, by key, or (in sets) by content.
pub fn proposed_new(schema: &BlockSchema, prior: &Value, config: &Value) -> Value {
    let merged = if prior.is_null() {
        merge_block(schema, &schema.empty_object(), config)
    } else {
        merge_block(schema, prior, config)
    };
    // Blocks without a prior counterpart are copied from the configuration, including their write-only values.
    without_write_only(schema, &merged)
}

fn merge_block(schema: &BlockSchema, prior: &Value, config: &Value) -> Value {
    if !config.is_present() {
        return prior.clone();
    }
    let mut out = merge_attributes(&schema.attributes, prior, config);
    for (name, block) in &schema.blocks {
        out.push((
            name.clone(),
            merge_nested_block(block, &attribute(prior, name), &attribute(config, name)),
        ));
    }
    // Values get the shared type of the schema, so that comparing the types of two objects only compares pointers. Its attributes are
    // sorted by name.
    out.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    Value::object_of(
        &schema.implied_object(),
        out.into_iter().map(|(_, value)| value).collect(),
    )
}

fn merge_nested_block(block: &NestedBlock, prior: &Value, config: &Value) -> Value {
    // The number of blocks is unknown, so they cannot be paired with prior blocks.
    if !config.is_known() {
        return config.clone();
    }
    let merge = |p: &Value, c: &Value| merge_block(&block.block, p, c);
    match block.nesting {
        Nesting::Single if config.is_null() => config.clone(),
        Nesting::Single | Nesting::Group => {
            if prior.is_present() {
                merge(prior, config)
            } else {
                config.clone()
            }
        }
        Nesting::List => merge_list(prior, config, merge),
        Nesting::Map => merge_map(prior, config, merge),
        Nesting::Set => merge_set(prior, config, merge, |p, c| block_could_come_from(&block.block, p, c)),
    }
}

fn merge_attributes(
    attributes: &BTreeMap<Arc<str>, AttributeSchema>,
    prior: &Value,
    config: &Value,
) -> Vec<(Arc<str>, Value)> {
    let merged = |name: &Arc<str>, schema: &AttributeSchema| {
        let configured = attribute(config, name);
        // Write-only values are not part of the proposed object. The provider reads them from the configuration.
        if schema.write_only {
            return Value::null(schema.implied_type());
        }
        let before = attribute(prior, name);
        if schema.computed && configured.is_null() {
            return if was_configured(schema, &before) {
                configured
            } else {
                before
            };
        }
        match &schema.ty {
            AttributeType::Nested(nested) => merge_nested_object(nested, &before, &configured),
            AttributeType::Plain(_) => configured,
        }
    };
    attributes
        .iter()
        .map(|(name, schema)| (name.clone(), merged(name, schema)))
        .collect()
}

/// Returns true if the prior value of a nested attribute contains a value that only the configuration can have set. The attribute was
/// configured then, and removing it from the configuration must not keep the prior value.
fn was_configured(schema: &AttributeSchema, prior: &Value) -> bool {
    let AttributeType::Nested(nested) = &schema.ty else {
        return false;
    };
    schema.optional && any_object(nested.nesting, prior, &mut |object| holds_configured(nested, object))
}

fn holds_configured(nested: &NestedObject, object: &Value) -> bool {
    nested.attributes.iter().any(|(name, a)| {
        let value = attribute(object, name);
        match &a.ty {
            _ if value.is_null() => false,
            _ if !a.computed => true,
            AttributeType::Nested(inner) => any_object(inner.nesting, &value, &mut |o| holds_configured(inner, o)),
            AttributeType::Plain(_) => false,
        }
    })
}

fn any_object(nesting: Nesting, value: &Value, test: &mut dyn FnMut(&Value) -> bool) -> bool {
    match nesting {
        Nesting::Single | Nesting::Group => value.is_present() && test(value),
        Nesting::List | Nesting::Set => value
            .as_seq()
            .is_some_and(|items| items.iter().any(|i| i.is_present() && test(i))),
        Nesting::Map => value
            .entries()
            .is_some_and(|mut items| items.any(|(_, i)| i.is_present() && test(i))),
    }
}

fn merge_nested_object(nested: &NestedObject, prior: &Value, config: &Value) -> Value {
    if !config.is_present() {
        return config.clone();
    }
    let merge = |p: &Value, c: &Value| {
        if c.is_present() {
            Value::object(merge_attributes(&nested.attributes, p, c))
        } else {
            c.clone()
        }
    };
    match nested.nesting {
        Nesting::Single | Nesting::Group => merge(prior, config),
        Nesting::List => merge_list(prior, config, merge),
        Nesting::Map => merge_map(prior, config, merge),
        Nesting::Set => merge_set(prior, config, merge, |p, c| {
            attributes_could_come_from(&nested.attributes, p, c)
        }),
    }
}

fn merge_list(prior: &Value, config: &Value, merge: impl Fn(&Value, &Value) -> Value) -> Value {
    let Some(items) = config.as_seq() else {
        return config.clone();
    };
    let before = prior.as_seq().unwrap_or_default();
    let merged = items.iter().enumerate().map(|(i, c)| match before.get(i) {
        Some(p) if p.is_present() => merge(p, c),
        _ => c.clone(),
    });
    rebuild_seq(config, merged.collect())
}

fn merge_map(prior: &Value, config: &Value, merge: impl Fn(&Value, &Value) -> Value) -> Value {
    let Some(items) = config.entries() else {
        return config.clone();
    };
    let merged = items.map(|(key, c)| {
        let value = match prior.get(key) {
            Some(p) if p.is_present() => merge(p, c),
            _ => c.clone(),
        };
        (key.clone(), value)
    });
    rebuild_map(config, merged.collect())
}

fn merge_set(
    prior: &Value,
    config: &Value,
    merge: impl Fn(&Value, &Value) -> Value,
    could_come_from: impl Fn(&Value, &Value) -> bool,
) -> Value {
    let Some(items) = config.as_seq() else {
        return config.clone();
    };
    let before = prior.as_seq().unwrap_or_default();
    // Equal elements are matched first: both sides are sorted in the same order, so one pass finds them even in large sets. Only the
    // remaining elements are compared pairwise.
    let mut used = vec![false; before.len()];
    let mut next = 0;
    let mut matched: Vec<Option<usize>> = items
        .iter()
        .map(|c| {
            let at = if before.get(next) == Some(c) {
                next
            } else {
                before.iter().position(|p| p == c)?
            };
            next = at + 1;
            used[at] = true;
            Some(at)
        })
        .collect();
    for (slot, c) in matched.iter_mut().zip(items).filter(|(slot, _)| slot.is_none()) {
        *slot = before
            .iter()
            .enumerate()
            .position(|(i, p)| !used[i] && could_come_from(p, c));
        if let Some(at) = *slot {
            used[at] = true;
        }
    }
    let merged = items.iter().zip(matched).map(|(c, at)| match at {
        Some(at) => merge(&before[at], c),
        None => c.clone(),
    });
    rebuild_seq(config, merged.collect())
}

/// Returns true if a prior set element can be the result of this configured element: they differ only in computed
/// attributes that the configuration does not set.
fn block_could_come_from(schema: &BlockSchema, prior: &Value, config: &Value) -> bool {
    prior == config
        || prior.is_present()
            && config.is_present()
            && attributes_could_come_from(&schema.attributes, prior, config)
            && schema.blocks.iter().all(|(name, b)| {
                let (p, c) = (attribute(prior, name), attribute(config, name));
                nested_could_come_from(b.nesting, &p, &c, &|p, c| block_could_come_from(&b.block, p, c))
            })
}

fn attributes_could_come_from(attributes: &BTreeMap<Arc<str>, AttributeSchema>, prior: &Value, config: &Value) -> bool {
    attributes.iter().all(|(name, a)| {
        let (p, c) = (attribute(prior, name), attribute(config, name));
        if p == c || (a.computed && c.is_null()) {
            return true;
        }
        match &a.ty {
            AttributeType::Plain(_) => false,
            AttributeType::Nested(n) => nested_could_come_from(n.nesting, &p, &c, &|p, c| {
                attributes_could_come_from(&n.attributes, p, c)
            }),
        }
    })
}

fn nested_could_come_from(
    nesting: Nesting,
    prior: &Value,
    config: &Value,
    test: &dyn Fn(&Value, &Value) -> bool,
) -> bool {
    if prior == config {
        return true;
    }
    match nesting {
        Nesting::Single | Nesting::Group => prior.is_present() && config.is_present() && test(prior, config),
        // Elements of a nested set cannot be paired, so such sets must be equal.
        Nesting::Set => false,
        Nesting::List => match (prior.as_seq(), config.as_seq()) {
            (Some(p), Some(c)) => p.len() == c.len() && p.iter().zip(c).all(|(p, c)| p == c || test(p, c)),
            _ => false,
        },
        Nesting::Map => match (prior.entries(), config.entries()) {
            (Some(p), Some(c)) => {
                let (p, c): (Vec<_>, Vec<_>) = (p.collect(), c.collect());
                p.len() == c.len()
                    && p.iter()
                        .zip(c)
                        .all(|((pk, p), (ck, c))| *pk == ck && (*p == c || test(p, c)))
            }
            _ => false,
        },
    }
}
