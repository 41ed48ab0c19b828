//! The dependency graph as a self-contained HTML page: its data, and a script that draws it.

use std::collections::BTreeMap;

use addrs::ConfigResource;
use engine::graph::ResourceGraph;
use engine::plan::{Action, Plan};
use serde_json::{Value as Json, json};

/// Template of the page; `DATA` marks the place of the data.
const PAGE: &str = include_str!("graph_page.html");

/// Renders the page of a graph, with the planned actions on the instances of each resource.
pub fn page(graph: &ResourceGraph, plan: Option<&Plan>) -> String {
    // The JSON writer escapes `<` and `>`, so no text can end the script element.
    let data = cty::json::to_text(&data(graph, plan), None);
    PAGE.replacen("DATA", &data, 1)
}

fn data(graph: &ResourceGraph, plan: Option<&Plan>) -> Json {
    let mut actions: BTreeMap<ConfigResource, BTreeMap<&str, usize>> = BTreeMap::new();
    for change in plan.iter().flat_map(|plan| &plan.changes) {
        if change.action != Action::NoOp {
            let counts = actions.entry(change.address.config()).or_default();
            *counts.entry(change.action.word()).or_default() += 1;
        }
    }
    let node = |resource: &ConfigResource| {
        json!({
            "address": resource.to_string(),
            "module": resource.module.to_string(),
            "label": resource.resource.to_string(),
            "actions": actions.get(resource).cloned().unwrap_or_default(),
        })
    };
    json!({
        "nodes": graph.resources.iter().map(node).collect::<Vec<_>>(),
        "edges": graph.edges,
    })
}
