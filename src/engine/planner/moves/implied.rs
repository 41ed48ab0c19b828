//! Implied moves: a resource or a module call gets or loses `count`.

use std::collections::{BTreeSet, HashSet};

use addrs::program::Mode;
use addrs::{InstanceKey, Module, ModuleInstance};
use config::{Config, ModuleCall};
use state::State;

use super::statement::Statement;

/// Returns the statements that the configuration implies. Those of module calls exist only in OpenTofu.
pub(super) fn statements(config: &Config, state: &State, explicit: &[Statement]) -> Vec<Statement> {
    let mut out = of_resources(config, state, explicit);
    if Mode::current().has_opentofu() {
        out.extend(of_calls(config, state, explicit, Mode::current()));
    }
    out
}

/// Returns the key of the only instance that can have been moved to another key, and the reverse, by the arguments that
/// repeat a block: `None` for `for_each`, whose keys cannot be guessed.
fn keys(count: bool, for_each: bool) -> Option<(InstanceKey, InstanceKey)> {
    match (count, for_each) {
        (true, _) => Some((InstanceKey::None, InstanceKey::Int(0))),
        (false, false) => Some((InstanceKey::Int(0), InstanceKey::None)),
        (false, true) => None,
    }
}

/// Moves the instance without a key to instance 0 of a module call with `count`, or the reverse, unless a block moves
/// the module or a resource directly in it.
pub(super) fn of_calls(config: &Config, state: &State, explicit: &[Statement], mode: Mode) -> Vec<Statement> {
    let mentioned: HashSet<Module> = explicit.iter().flat_map(|s| [s.from.module(), s.to.module()]).collect();
    let mut out = Vec::new();
    for module in module_instances(state) {
        let Some((parent, step)) = module.parent() else {
            continue;
        };
        let path = parent.module();
        let Some(call) = config.node(&path).and_then(|n| n.module.module_calls.get(&step.name)) else {
            continue;
        };
        // Without `enabled`, the configuration is also one of Terraform, which destroys these objects.
        if !(mode.is_opentofu() || call.enabled.is_some()) {
            continue;
        }
        let Some((from, to)) = keys(call.count.is_some(), call.for_each.is_some()) else {
            continue;
        };
        if step.key != from {
            continue;
        }
        let is_mentioned = mentioned.contains(&module.module())
            && explicit
                .iter()
                .any(|s| s.from.leads_to(&module) || s.to.leads_to(&module));
        if !is_mentioned {
            let target = parent.child(step.name.clone(), to);
            out.push(Statement::of_module_instance(config, module, target, range(call)));
        }
    }
    out
}

/// Returns the instances of modules with objects in the state, also those whose objects are all in called modules.
fn module_instances(state: &State) -> BTreeSet<ModuleInstance> {
    let mut out = BTreeSet::new();
    for resource in state.resources.keys() {
        let mut module = resource.module.clone();
        // The callers of a known instance are known, too.
        while !module.is_root() && out.insert(module.clone()) {
            match module.parent() {
                Some((parent, _)) => module = parent,
                None => break,
            }
        }
    }
    out
}

fn range(call: &ModuleCall) -> syntax::Range {
    call.count.as_ref().map_or(&call.range, |count| count.range()).clone()
}

/// Moves the instance without a key to instance 0 of a resource with `count`, or the reverse, unless a block moves the
/// resource.
fn of_resources(config: &Config, state: &State, explicit: &[Statement]) -> Vec<Statement> {
    let spoken_of: HashSet<_> = explicit
        .iter()
        .flat_map(|s| [&s.from, &s.to])
        .filter_map(|side| side.resource.clone().map(|r| (side.module(), r)))
        .collect();
    let mut out = Vec::new();
    for (resource, existing) in &state.resources {
        let Some(block) = config.resource(&resource.config()) else {
            continue;
        };
        // Data sources are read again at their new addresses, so they need no move.
        if resource.resource.mode != addrs::Mode::Managed {
            continue;
        }
        let Some((from, to)) = keys(block.count.is_some(), block.for_each.is_some()) else {
            continue;
        };
        let range = block.count.as_ref().map_or(&block.range, |count| count.range());
        // The set is searched first, because it is fast and most resources are in no statement.
        let mentioned = || {
            spoken_of.contains(&(resource.module.module(), resource.resource.clone()))
                && explicit
                    .iter()
                    .any(|s| s.from.selects_resource(resource) || s.to.selects_resource(resource))
        };
        if existing.instances.contains_key(&from) && !mentioned() {
            out.push(Statement::of_instance(
                config,
                resource.instance(from),
                resource.instance(to),
                range.clone(),
            ));
        }
    }
    out
}
