//! The host's proposal for a planned object: the configuration, in which computed attributes that are not set have their prior values, at
//! every level. Nested objects are matched by position or by key; in sets, by their configured attributes.

use monoform_sdk::cty::{self, Value};
use monoform_sdk::pairing::{came_from, inside};
use monoform_sdk::schema::{CompiledMember, Nesting};

/// Merges the prior object (null if there is none) and the configuration.
pub(crate) fn proposed(members: &[CompiledMember], prior: &Value, config: &Value) -> Value {
    config.map_parts(|part, configured| match part {
        cty::value::Part::Attribute(name) => match members.iter().find(|m| m.name() == &**name) {
            Some(member) => merged(member, &inside(prior, name), configured),
            None => configured.clone(),
        },
        _ => configured.clone(),
    })
}

fn merged(member: &CompiledMember, prior: &Value, config: &Value) -> Value {
    if let Some(attribute) = member.attribute() {
        if attribute.write_only {
            return Value::null(attribute.ty.clone());
        }
        if attribute.computed && config.is_null() {
            let removed = attribute.optional && was_configured(member, prior);
            return match removed || prior.is_null() {
                true => config.clone(),
                false => prior.clone(),
            };
        }
    }
    if member.is_computed_block() && config.is_null() && !prior.is_null() {
        return prior.clone();
    }
    match member.inside() {
        Some((nesting, members)) if config.is_present() => merged_objects(nesting, members, prior, config),
        _ => config.clone(),
    }
}

fn merged_objects(nesting: Nesting, members: &[CompiledMember], prior: &Value, config: &Value) -> Value {
    let merge = |before: Option<&Value>, object: &Value| match before {
        _ if !object.is_present() => object.clone(),
        Some(before) if before.is_present() => proposed(members, before, object),
        _ => proposed(members, &Value::null(cty::Type::Dynamic), object),
    };
    let before = prior.as_seq().unwrap_or_default();
    match nesting {
        Nesting::Single | Nesting::Group => merge(Some(prior), config),
        Nesting::Map => config.map_parts(|part, object| match part {
            cty::value::Part::Key(key) | cty::value::Part::Attribute(key) => merge(prior.get(key), object),
            _ => object.clone(),
        }),
        Nesting::List => config.map_parts(|part, object| match part {
            cty::value::Part::Index(i) => merge(before.get(i), object),
            _ => object.clone(),
        }),
        Nesting::Set => {
            // Each prior object is matched with at most one configured object.
            let mut free: Vec<&Value> = before.iter().collect();
            config.map_parts(|_, object| {
                let equal = free.iter().position(|before| *before == object);
                let at = equal.or_else(|| free.iter().position(|before| came_from(members, before, object)));
                merge(at.map(|at| free.remove(at)), object)
            })
        }
    }
}

/// Returns true if a prior value contains a value that only a configuration can have set. The attribute, which the plugin can also set, was
/// then removed from the configuration.
fn was_configured(member: &CompiledMember, prior: &Value) -> bool {
    let Some((nesting, members)) = member.inside() else {
        return false;
    };
    let holds = |object: &Value| {
        members.iter().any(|m| {
            let value = inside(object, m.name());
            let computed = m.attribute().is_some_and(|a| a.computed);
            !value.is_null() && (!computed || was_configured(m, &value))
        })
    };
    match nesting {
        Nesting::Single | Nesting::Group => prior.is_present() && holds(prior),
        Nesting::List | Nesting::Set => prior.as_seq().is_some_and(|items| items.iter().any(holds)),
        Nesting::Map => prior
            .entries()
            .is_some_and(|mut items| items.any(|(_, item)| holds(item))),
    }
}
