//! Ephemeral values in the arguments of blocks that may have no instances.

use std::collections::HashSet;
use std::sync::Arc;

use addrs::{ConfigResource, Referenceable};
use config::{Config, Resource};
use lang::refs::{references_in_body, references_in_expr};
use schema::BlockSchema;

use crate::eval::Expansion;

/// Returns true if only the plan can check the arguments of a resource for ephemeral values.
///
/// As in Terraform, validation checks a block without instances by its references. But a reference to the output of a module does not tell
/// whether its value is ephemeral, which only the plan knows.
pub(super) fn is_left_to_plan(
    config: &Config,
    address: &ConfigResource,
    block: &Resource,
    schema: &BlockSchema,
    expansion: Option<&Expansion>,
) -> bool {
    let may_have_no_instance = match expansion {
        Some(Expansion::Count(n)) => *n == 0,
        Some(Expansion::ForEach(items)) => items.is_empty(),
        Some(Expansion::Disabled | Expansion::Unknown { .. }) => true,
        Some(Expansion::Single) | None => false,
    };
    may_have_no_instance && refers_to_modules(config, address, block, schema)
}

/// Returns true if the arguments of a resource depend on the outputs of a module, through local values or directly.
fn refers_to_modules(config: &Config, address: &ConfigResource, block: &Resource, schema: &BlockSchema) -> bool {
    let Some(node) = config.node(&address.module) else {
        return false;
    };
    let mut next = references_in_body(&block.body, schema).0;
    let mut seen: HashSet<Arc<str>> = HashSet::new();
    while let Some(reference) = next.pop() {
        match reference.subject {
            Referenceable::Module(_) | Referenceable::ModuleInstance(..) | Referenceable::ModuleOutput(..) => {
                return true;
            }
            Referenceable::Local(name) if seen.insert(name.clone()) => {
                let local = node.module.locals.get(&name);
                next.extend(local.into_iter().flat_map(|local| references_in_expr(&local.expr).0));
            }
            _ => {}
        }
    }
    false
}
