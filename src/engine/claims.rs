//! Parts of a state that the apply of a plan changes, and parts that it depends on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use addrs::{AbsResourceInstance, ConfigResource, Mode as ResourceMode, Module};
use config::Config;
use petgraph::Direction;
use petgraph::graph::NodeIndex;
use provider::Schemas;
use state::journal::changes;
use state::{Claims, ScopedResource};
use syntax::Diagnostics;

use crate::action::Action;
use crate::blocks::{Block, Blocks};
use crate::plan::{Mode, Plan};

/// Returns the claims of a plan on its state.
///
/// Dependencies are those between blocks: through values, providers, modules and `depends_on`. For a resource that the configuration does
/// not have, they are those that the state records. Unless a dependency leads through an outer module, an object depends only on objects
/// in the same module instance.
///
/// # Errors
/// The configuration has errors.
pub fn of_plan(config: &Config, schemas: &Schemas, plan: &Plan) -> Result<Claims, Diagnostics> {
    let mut claims = Claims {
        is_complete: !plan.is_partial(),
        ..Claims::default()
    };
    for change in &plan.changes {
        let is_moved = change.previous_address.is_some();
        if change.action != Action::NoOp || is_moved || change.importing.is_some() {
            claims.objects.insert(change.address.clone());
            claims.objects.extend(change.previous_address.clone());
        }
    }
    claims.objects.extend(plan.dropped_data.iter().cloned());
    if plan.mode == Mode::RefreshOnly {
        let refreshed = changes(&plan.previous_state, &plan.prior_state);
        claims
            .objects
            .extend(refreshed.into_iter().map(|outcome| outcome.address));
    }
    let outputs = plan.outputs.iter().filter(|(_, change)| change.action != Action::NoOp);
    claims.outputs.extend(outputs.map(|(name, _)| name.clone()));
    add_needed(&mut claims, config, schemas, plan)?;
    Ok(claims)
}

/// Returns the claims of the import of an object, which the plan has read.
///
/// # Errors
/// The configuration has errors.
pub fn of_import(
    config: &Config,
    schemas: &Schemas,
    plan: &Plan,
    address: &AbsResourceInstance,
) -> Result<Claims, Diagnostics> {
    let (before, after) = (&plan.previous_state.outputs, &plan.prior_state.outputs);
    let names = before.keys().chain(after.keys());
    let mut claims = Claims {
        objects: BTreeSet::from([address.clone()]),
        outputs: names
            .filter(|name| before.get(*name) != after.get(*name))
            .cloned()
            .collect(),
        ..Claims::default()
    };
    add_needed(&mut claims, config, schemas, plan)?;
    Ok(claims)
}

/// Adds the resources that the claimed objects depend on.
fn add_needed(claims: &mut Claims, config: &Config, schemas: &Schemas, plan: &Plan) -> Result<(), Diagnostics> {
    let blocks = Blocks::build_with_state(config, schemas, &plan.prior_state)?;
    let mut found: HashMap<ConfigResource, BTreeMap<ConfigResource, usize>> = HashMap::new();
    for address in &claims.objects {
        let resource = address.config();
        let needed = match found.get(&resource) {
            Some(needed) => needed,
            None => {
                let needed = match config.resource(&resource) {
                    Some(_) => depths(&blocks, &resource),
                    None => recorded(plan, &resource),
                };
                found.entry(resource).or_insert(needed)
            }
        };
        let needed = needed
            .iter()
            .filter(|(needed, _)| needed.resource.mode != ResourceMode::Ephemeral);
        claims
            .needed
            .extend(needed.map(|(needed, depth)| ScopedResource::new(&address.module, *depth, needed.clone())));
    }
    Ok(())
}

/// Returns the number of leading modules that two paths share.
fn shared(one: &Module, other: &Module) -> usize {
    one.0.iter().zip(other.0.iter()).take_while(|(a, b)| a == b).count()
}

/// Returns the direct and indirect dependencies of a resource. The number is a depth in module levels: up to that level, the dependency is
/// in the same module instance as the resource.
fn depths(blocks: &Blocks, resource: &ConfigResource) -> BTreeMap<ConfigResource, usize> {
    let module = |node: NodeIndex| match &blocks.graph[node] {
        Block::Provider(provider) => provider.module.clone(),
        block => block.module().cloned().unwrap_or_default(),
    };
    let mut best: HashMap<NodeIndex, usize> = HashMap::new();
    let start = blocks.find(&Block::Resource(resource.clone()));
    let mut open: Vec<(NodeIndex, usize)> = start.into_iter().map(|node| (node, resource.module.0.len())).collect();
    while let Some((node, depth)) = open.pop() {
        let own = module(node);
        // The argument of a variable is evaluated in the calling module, so the dependency leads one level up.
        let limit = match &blocks.graph[node] {
            Block::Variable(..) => own.0.len().saturating_sub(1),
            _ => own.0.len(),
        };
        for from in blocks.graph.neighbors_directed(node, Direction::Incoming) {
            let depth = depth.min(limit).min(shared(&own, &module(from)));
            let known = best.entry(from).or_insert(usize::MAX);
            // A shorter shared path is the weaker claim, so it replaces a longer one, and the dependencies of this block are searched
            // again.
            if depth < *known {
                *known = depth;
                open.push((from, depth));
            }
        }
    }
    let resources = best.into_iter().filter_map(|(node, depth)| match &blocks.graph[node] {
        Block::Resource(found) => Some((found.clone(), depth)),
        _ => None,
    });
    resources.collect()
}

/// Returns the recorded dependencies of a resource that the configuration does not have, with the same depths as [`depths`].
fn recorded(plan: &Plan, resource: &ConfigResource) -> BTreeMap<ConfigResource, usize> {
    let instances = plan
        .prior_state
        .instances()
        .filter(|(found, ..)| found.config() == *resource);
    instances
        .flat_map(|(_, _, _, instance)| instance.current.iter().chain(instance.deposed.values()))
        .flat_map(|object| object.dependencies.iter().cloned())
        .map(|needed| {
            let depth = shared(&resource.module, &needed.module);
            (needed, depth)
        })
        .collect()
}
