//! The dependency graph as data for display: of the resources only ([`resources`]), or of all blocks that an operation evaluates
//! ([`operation`]). Nodes are blocks of the configuration, which do not grow in number with `count`. The graph of an operation also has
//! nodes for the objects that it changes or destroys.

mod operation;
mod reduce;

use std::collections::BTreeSet;

use addrs::{ConfigResource, Mode};
use config::Config;
use provider::Schemas;
use state::State;
use syntax::{Diagnostics, Severity};

use crate::blocks::{Blocks, StateResource};
use operation::Builder;
use reduce::Adjacency;

pub use operation::{Node, Operation, OperationGraph, Shape, operation};

/// Resources and their direct dependencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceGraph {
    /// The resources by their modules; in a module, data sources come first.
    pub resources: Vec<ConfigResource>,
    /// Pairs of a resource and its dependency, as sorted indexes. Edges that follow from other edges (transitively) are left out.
    pub edges: Vec<(usize, usize)>,
}

/// Returns the graph of the resources in a configuration and a state, and warnings about references that cannot be resolved. An edge is a
/// dependency, directly or through blocks that are not resources. Resources that exist only in the state have their recorded dependencies.
///
/// # Errors
/// The configuration has cycles.
pub fn resources(
    config: &Config,
    schemas: &Schemas,
    state: &State,
) -> Result<(ResourceGraph, Diagnostics), Diagnostics> {
    let (blocks, problems) = Blocks::build_with_errors(config, schemas, &in_state(state));
    let problems = without_cycles(&blocks, problems)?;
    let mut builder = Builder::default();
    builder.blocks(config, &blocks, true);
    builder.recorded(config, state);
    let mut sorted: Vec<(String, &ConfigResource, usize)> = builder
        .resources
        .iter()
        .map(|(resource, node)| (resource.module.to_string(), resource, *node))
        .collect();
    // Data sources come first, as in Terraform.
    let place = |mode: Mode| (mode != Mode::Data, mode);
    sorted.sort_by(|(a_module, a, _), (b_module, b, _)| {
        let (a, b) = (&a.resource, &b.resource);
        (a_module, place(a.mode), &a.ty, &a.name).cmp(&(b_module, place(b.mode), &b.ty, &b.name))
    });
    let nodes: Vec<usize> = sorted.iter().map(|(_, _, node)| *node).collect();
    let mut dependencies = between(&builder.dependencies, &nodes);
    // As in Terraform's graph, edges that follow from other edges are left out.
    reduce::reduce(&mut dependencies);
    let edges = |(at, of): (usize, &BTreeSet<usize>)| of.iter().map(|to| (at, *to)).collect::<Vec<_>>();
    let graph = ResourceGraph {
        edges: dependencies.iter().enumerate().flat_map(edges).collect(),
        resources: sorted.into_iter().map(|(_, resource, _)| resource.clone()).collect(),
    };
    Ok((graph, problems))
}

/// Downgrades the problems to warnings, because a graph can be shown without the references that cannot be resolved. (`validate` reports
/// them as errors.) Returns them as errors if the graph has a cycle.
fn without_cycles(blocks: &Blocks, mut problems: Diagnostics) -> Result<Diagnostics, Diagnostics> {
    if problems.has_errors() && petgraph::algo::is_cyclic_directed(&blocks.graph) {
        return Err(problems);
    }
    for problem in &mut problems.0 {
        problem.severity = Severity::Warning;
    }
    Ok(problems)
}

/// Returns the resources of a state with their provider configurations.
fn in_state(state: &State) -> Vec<StateResource> {
    let resource =
        |(address, stored): (&addrs::AbsResource, &state::ResourceState)| (address.config(), stored.provider.clone());
    state.resources.iter().map(resource).collect()
}

/// Returns the dependencies between the given nodes, as indexes into `nodes`. Paths through other nodes of the graph count as direct
/// dependencies.
fn between(graph: &Adjacency, nodes: &[usize]) -> Adjacency {
    let mut dependencies = vec![BTreeSet::new(); nodes.len()];
    let mut number = vec![None; graph.len()];
    for (at, node) in nodes.iter().enumerate() {
        number[*node] = Some(at);
    }
    let mut nearest: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); graph.len()];
    // Callers have reported cycles as errors, so there is an order.
    for node in reduce::order(graph).unwrap_or_default() {
        let mut found = BTreeSet::new();
        for dependency in &graph[node] {
            match number[*dependency] {
                Some(other) => {
                    found.insert(other);
                }
                None => found.extend(&nearest[*dependency]),
            }
        }
        match number[node] {
            Some(at) => dependencies[at] = found,
            None => nearest[node] = found,
        }
    }
    dependencies
}
