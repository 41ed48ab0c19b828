//! Document of `graph -json`: nodes and their dependencies.

use std::collections::{BTreeMap, HashMap};

use addrs::{ConfigResource, Mode};
use engine::graph::{OperationGraph, ResourceGraph, Shape};
use engine::plan::Plan;
use serde_json::{Value as Json, json};

use super::{Object, plan as plan_json};

fn document(kind: &str, nodes: Vec<Json>, edges: Vec<Json>) -> Json {
    json!({"format_version": "1.0", "kind": kind, "nodes": nodes, "edges": edges})
}

/// Returns the resources of a configuration, with the planned actions on the instances of each.
#[must_use]
pub fn resources(graph: &ResourceGraph, plan: Option<&Plan>) -> Json {
    let mut changes: BTreeMap<ConfigResource, Vec<Json>> = BTreeMap::new();
    for change in plan.iter().flat_map(|plan| &plan.changes) {
        let of_resource = changes.entry(change.address.config()).or_default();
        of_resource.push(json!({
            "address": change.address.to_string(),
            "actions": plan_json::actions(change.action),
        }));
    }
    let mut node = |resource: &ConfigResource| {
        let mode = match resource.resource.mode {
            Mode::Managed => "managed",
            Mode::Data => "data",
            Mode::Ephemeral => "ephemeral",
            Mode::List => "list",
        };
        let address = resource.to_string();
        let node = Object::default()
            .with("id", address.clone())
            .with("address", address)
            .with_content("module_address", resource.module.to_string())
            .with("mode", mode)
            .with("type", &*resource.resource.ty)
            .with("name", &*resource.resource.name)
            .with_some("changes", plan.map(|_| changes.remove(resource).unwrap_or_default()));
        Json::from(node)
    };
    let nodes = graph.resources.iter().map(&mut node).collect();
    let name = |at: &usize| graph.resources.get(*at).map(ToString::to_string);
    let edges = graph.edges.iter();
    let edges = edges.map(|(from, to)| json!({"from": name(from), "to": name(to)}));
    document("resources", nodes, edges.collect())
}

/// Returns the graph of everything that an operation evaluates. Nodes of equal names get numbered ids.
#[must_use]
pub fn operation(graph: &OperationGraph) -> Json {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let ids: Vec<String> = graph
        .nodes
        .iter()
        .map(|node| {
            let count = seen.entry(&node.name).or_default();
            *count += 1;
            match *count {
                1 => node.name.clone(),
                n => format!("{}#{n}", node.name),
            }
        })
        .collect();
    let nodes = graph.nodes.iter().zip(&ids).map(|(node, id)| {
        let shape = node.shown.as_ref().map(|(_, shape)| match shape {
            Shape::Resource => "resource",
            Shape::Provider => "provider",
            Shape::ProviderEnd => "provider_end",
            Shape::Variable => "variable",
        });
        let label = node.shown.as_ref().map(|(label, _)| label.clone());
        let node = Object::default()
            .with("id", id.clone())
            .with("name", node.name.clone())
            .with_some("label", label)
            .with_some("shape", shape);
        Json::from(node)
    });
    let nodes = nodes.collect();
    let cycle = |at: usize| graph.cycles.get(at).copied().flatten();
    let edge = |(from, to): &(usize, usize)| {
        let in_cycle = cycle(*from).is_some() && cycle(*from) == cycle(*to);
        let edge = Object::default()
            .with_some("from", ids.get(*from).cloned())
            .with_some("to", ids.get(*to).cloned())
            .with_content("in_cycle", in_cycle);
        Json::from(edge)
    };
    document("operation", nodes, graph.edges.iter().map(edge).collect())
}
