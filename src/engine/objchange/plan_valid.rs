//! Rules for the planned objects that providers return.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Path, Type, Value};
use schema::{AttributeSchema, AttributeType, BlockSchema, NestedBlock, NestedObject, Nesting};

use super::computed_blocks::is_set_by_provider;
use super::{Problem, at_index, at_key, attribute};

/// Returns the rules that a planned object breaks. Configured arguments must be planned as configured or keep their prior values, other
/// attributes must be null unless they are computed, and planned blocks must correspond one to one to configured blocks.
pub fn plan_problems(schema: &BlockSchema, prior: &Value, config: &Value, planned: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    block(schema, prior, config, planned, &Path::root(), &mut problems);
    problems
}

fn block(schema: &BlockSchema, prior: &Value, config: &Value, planned: &Value, path: &Path, out: &mut Vec<Problem>) {
    if planned.is_null() && !config.is_null() {
        out.push(Problem::new(path, "planned for absence but config wants existence"));
        return;
    }
    if config.is_null() && !planned.is_null() {
        out.push(Problem::new(path, "planned for existence but config wants absence"));
        return;
    }
    if !planned.is_known() {
        if config.is_known() {
            out.push(Problem::new(path, "planned unknown for a block that is configured"));
        }
        return;
    }
    if !config.is_present() {
        return;
    }
    attributes(&schema.attributes, prior, config, planned, path, out);
    for (name, nested) in &schema.blocks {
        let (p, c, n) = (
            attribute(prior, name),
            attribute(config, name),
            attribute(planned, name),
        );
        // A provider may set computed blocks, but a collection of them must not be planned as null. `nested_block` reports that.
        let in_place = nested.nesting == Nesting::Single || !n.is_null();
        if in_place && is_set_by_provider(schema, name, config) {
            continue;
        }
        // A shortcut: most collections of blocks are empty, so no path needs to be built.
        if c.len() == Some(0) && n.len() == Some(0) && !matches!(nested.nesting, Nesting::Single | Nesting::Group) {
            continue;
        }
        nested_block(nested, &p, &c, &n, &path.attribute(name.clone()), out);
    }
}

fn nested_block(
    schema: &NestedBlock,
    prior: &Value,
    config: &Value,
    planned: &Value,
    path: &Path,
    out: &mut Vec<Problem>,
) {
    match schema.nesting {
        Nesting::Single | Nesting::Group => return block(&schema.block, prior, config, planned, path, out),
        // The number of blocks is unknown, so any number may be planned.
        _ if !config.is_known() => return,
        _ if planned.is_null() => {
            return out.push(Problem::new(
                path,
                "nested blocks are null; without blocks, the collection must be empty",
            ));
        }
        _ if !planned.is_known() => {
            return out.push(Problem::new(
                path,
                "the collection of nested blocks is unknown; only attributes inside \
                                                the blocks may be",
            ));
        }
        _ => {}
    }
    match schema.nesting {
        Nesting::Map => {
            let planned_keys: Vec<_> = planned.entries().into_iter().flatten().collect();
            for (key, element) in &planned_keys {
                match config.get(key) {
                    None => out.push(Problem::new(
                        &at_key(path, key),
                        "the plan has a block with a key that the configuration does not have",
                    )),
                    Some(c) => {
                        let p = prior.get(key).cloned().unwrap_or_else(|| Value::null(c.ty().clone()));
                        block(&schema.block, &p, c, element, &at_key(path, key), out);
                    }
                }
            }
            for (key, _) in config.entries().into_iter().flatten() {
                if planned.get(key).is_none() {
                    out.push(Problem::new(
                        &at_key(path, key),
                        "the plan lacks the block with this key",
                    ));
                }
            }
        }
        nesting => {
            let (planned, config) = (
                planned.as_seq().unwrap_or_default(),
                config.as_seq().unwrap_or_default(),
            );
            if planned.len() != config.len() {
                out.push(Problem::new(
                    path,
                    format!(
                        "{} blocks are planned, and {} are configured",
                        planned.len(),
                        config.len()
                    ),
                ));
            } else if nesting == Nesting::List {
                let before = prior.as_seq().unwrap_or_default();
                for (i, (n, c)) in planned.iter().zip(config).enumerate() {
                    let p = before.get(i).cloned().unwrap_or_else(|| Value::null(c.ty().clone()));
                    block(&schema.block, &p, c, n, &at_index(path, i), out);
                }
            }
            // The elements of sets are not compared: planned elements cannot be paired with configured ones, because computed attributes
            // may differ.
        }
    }
}

fn attributes(
    schemas: &BTreeMap<Arc<str>, AttributeSchema>,
    prior: &Value,
    config: &Value,
    planned: &Value,
    path: &Path,
    out: &mut Vec<Problem>,
) {
    for (name, schema) in schemas {
        let (p, c, n) = (
            attribute(prior, name),
            attribute(config, name),
            attribute(planned, name),
        );
        // Most attributes are planned as configured, so a path is built only for the others.
        if n != c {
            value(schema, &p, &c, &n, &path.attribute(name.clone()), out);
        }
    }
}

fn value(
    schema: &AttributeSchema,
    prior: &Value,
    config: &Value,
    planned: &Value,
    path: &Path,
    out: &mut Vec<Problem>,
) {
    if schema.write_only {
        // Write-only attributes are checked by `planned_write_only`, which also covers elements of sets and providers with the legacy
        // type system.
        return;
    }
    if planned == prior && !prior.is_null() && !config.is_null() {
        // The provider may keep a prior value that is equivalent to the one in the configuration.
        return;
    }
    if config.is_null() {
        if schema.computed {
            // The attribute is computed and not configured, so any value is valid. (Attributes nested in an object are
            // configured only if the object is.)
            return;
        }
        if schema.sensitive {
            out.push(Problem::new(
                path,
                "sensitive planned value for a non-computed attribute",
            ));
        } else {
            out.push(Problem::new(path, "planned value for a non-computed attribute"));
        }
        return;
    }
    if let AttributeType::Nested(nested) = &schema.ty {
        return nested_object(nested, prior, config, planned, path, out);
    }
    if same_where_known(config, planned) {
        return;
    }
    let what = if schema.sensitive {
        "sensitive planned value"
    } else {
        "planned value"
    };
    if prior.is_null() {
        out.push(Problem::new(path, format!("{what} does not match config value")));
    } else {
        out.push(Problem::new(
            path,
            format!("{what} does not match config value nor prior value"),
        ));
    }
}

/// Returns true if a planned value matches a configured one, whose unknown parts match anything.
fn same_where_known(config: &Value, planned: &Value) -> bool {
    if !config.is_known() {
        // The provider may refine an unknown value, or leave it unknown.
        return true;
    }
    if config.is_wholly_known() {
        return config == planned;
    }
    match (config.entries(), planned.entries()) {
        (Some(c), Some(p)) => {
            let (c, p): (Vec<_>, Vec<_>) = (c.collect(), p.collect());
            return c.len() == p.len()
                && c.iter()
                    .zip(p)
                    .all(|((ck, c), (pk, p))| *ck == pk && same_where_known(c, p));
        }
        (None, None) => {}
        _ => return false,
    }
    match (config.as_seq(), planned.as_seq()) {
        // Unknown elements may turn out to be equal, so a planned set may be smaller.
        (Some(_), Some(p)) if matches!(config.ty(), Type::Set(_)) => p.len() <= config.len().unwrap_or(0),
        (Some(c), Some(p)) => c.len() == p.len() && c.iter().zip(p).all(|(c, p)| same_where_known(c, p)),
        _ => false,
    }
}

fn nested_object(
    schema: &NestedObject,
    prior: &Value,
    config: &Value,
    planned: &Value,
    path: &Path,
    out: &mut Vec<Problem>,
) {
    // The configuration is unknown, so any plan may be valid.
    if !config.is_known() {
        return;
    }
    if planned.is_null() {
        return out.push(Problem::new(path, "planned for absence but config wants existence"));
    }
    if !planned.is_known() {
        return out.push(Problem::new(path, "planned unknown for configured value"));
    }
    match schema.nesting {
        Nesting::Single | Nesting::Group => attributes(&schema.attributes, prior, config, planned, path, out),
        Nesting::Map => {
            for (key, n) in planned.entries().into_iter().flatten() {
                match config.get(key) {
                    None => out.push(Problem::new(
                        &at_key(path, key),
                        "the plan has a map key that the configuration does not have",
                    )),
                    Some(c) => {
                        let p = prior.get(key).cloned().unwrap_or_else(|| Value::null(c.ty().clone()));
                        element(schema, &p, c, n, &at_key(path, key), out);
                    }
                }
            }
            for (key, _) in config.entries().into_iter().flatten() {
                if planned.get(key).is_none() {
                    out.push(Problem::new(&at_key(path, key), "the plan lacks this map key"));
                }
            }
        }
        nesting => {
            let (n, c) = (
                planned.as_seq().unwrap_or_default(),
                config.as_seq().unwrap_or_default(),
            );
            if n.len() != c.len() {
                out.push(Problem::new(
                    path,
                    format!(
                        "count in plan ({}) disagrees with count in config ({})",
                        n.len(),
                        c.len()
                    ),
                ));
            } else if nesting == Nesting::List {
                // Elements of sets are not compared, because planned ones cannot be paired with configured ones.
                let before = prior.as_seq().unwrap_or_default();
                for (i, (n, c)) in n.iter().zip(c).enumerate() {
                    let p = before.get(i).cloned().unwrap_or_else(|| Value::null(c.ty().clone()));
                    element(schema, &p, c, n, &at_index(path, i), out);
                }
            }
        }
    }
}

fn element(schema: &NestedObject, prior: &Value, config: &Value, planned: &Value, path: &Path, out: &mut Vec<Problem>) {
    if config.is_present() && planned.is_present() {
        attributes(&schema.attributes, prior, config, planned, path, out);
    } else if config.is_known() && config != planned {
        out.push(Problem::new(path, "planned value does not match config value"));
    }
}
