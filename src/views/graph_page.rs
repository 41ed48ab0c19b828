//! The dependency graph as a self-contained HTML page for reviews: its data, and a script that draws it.
//!
//! The script lays out and draws in the browser. It has three parts: `model.js` (the shown nodes and their positions),
//! `view.js` (the drawing, of which the document has only the part near the window) and `panel.js` (details, search, keys and
//! pointers).

use std::collections::BTreeMap;

use addrs::ConfigResource;
use engine::change_kind::ChangeKind;
use engine::graph::ResourceGraph;
use engine::plan::{Plan, ResourceChange};
use provider::Schemas;
use serde_json::{Value as Json, json};

use crate::diff;
use crate::json::Object;
use crate::summary::reasons;

/// Template of the page; `STYLE`, `DATA` and `SCRIPT` mark the positions of its parts.
const PAGE: &str = include_str!("graph_page.html");
const STYLE: &str = include_str!("graph_page/style.css");
const SCRIPT: &str = concat!(
    include_str!("graph_page/model.js"),
    include_str!("graph_page/view.js"),
    include_str!("graph_page/panel.js"),
);

/// Limit of the text of one change in bytes.
const CHANGE_LIMIT: usize = 8_000;
/// Limit of the text of all changes in bytes; with more, browsers become slow.
const LIMIT: usize = 16_000_000;

/// Plan whose changes the page shows.
#[derive(Clone, Copy, Debug)]
pub struct Changes<'p> {
    pub plan: &'p Plan,
    pub schemas: &'p Schemas,
    pub style: diff::Style,
    /// Command that explains the values of an object, up to its address.
    pub explain: &'p str,
}

/// Renders the page of a graph, with the planned changes of the instances of each resource.
#[must_use]
pub fn page(graph: &ResourceGraph, changes: Option<Changes<'_>>) -> String {
    // The JSON writer escapes `<` and `>`, so no text can end the script element.
    let data = cty::json::to_text(&data(graph, changes), None);
    // The data are inserted last, because their texts can contain the placeholders.
    PAGE.replacen("STYLE", STYLE, 1)
        .replacen("SCRIPT", SCRIPT, 1)
        .replacen("DATA", &data, 1)
}

#[derive(Default)]
struct OfResource {
    counts: BTreeMap<&'static str, usize>,
    changes: Vec<Json>,
}

fn data(graph: &ResourceGraph, changes: Option<Changes<'_>>) -> Json {
    let mut of_resources: BTreeMap<ConfigResource, OfResource> = BTreeMap::new();
    let mut length = 0;
    if let Some(changes) = changes {
        for change in &changes.plan.changes {
            let Some(kind) = ChangeKind::from_change(change) else {
                continue;
            };
            let entry = of_resources.entry(change.address.config()).or_default();
            *entry.counts.entry(kind.as_str()).or_default() += 1;
            let text = text(changes, change, length);
            length += text.len();
            let object = Object::default()
                .with("address", change.address.to_string())
                .with("action", kind.as_str())
                .with_content("because", reasons(change).into_iter().collect::<Vec<_>>())
                .with("text", text);
            entry.changes.push(object.into());
        }
    }
    let mut node = |resource: &ConfigResource| {
        let OfResource { counts, changes } = of_resources.remove(resource).unwrap_or_default();
        let node = Object::default()
            .with("address", resource.to_string())
            .with("module", resource.module.to_string())
            .with("label", resource.resource.to_string())
            .with("actions", json!(counts))
            .with_content("changes", changes);
        Json::from(node)
    };
    let nodes: Vec<Json> = graph.resources.iter().map(&mut node).collect();
    Object::default()
        .with_some("plan", changes.map(|c| format!("Plan: {}", c.plan.view().totals())))
        .with_some("explain", changes.map(|c| c.explain))
        .with("nodes", nodes)
        .with("edges", json!(graph.edges))
        .into()
}

/// Renders a change, with the comment that gives its reason. `before` is the length of the texts so far.
fn text(changes: Changes<'_>, change: &ResourceChange, before: usize) -> String {
    if before > LIMIT {
        return "# left out, to keep this page small".to_owned();
    }
    let style = diff::Style {
        colour: false,
        short: true,
        width: 100,
        ..changes.style
    };
    let mut text = diff::change_text(changes.plan.view(), changes.schemas, style, change);
    if text.len() > CHANGE_LIMIT {
        // The last line that ends within the limit. A line break is always a boundary of characters.
        let lines = text.match_indices('\n').map(|(at, _)| at);
        let end = lines.take_while(|at| *at <= CHANGE_LIMIT).last().unwrap_or(0);
        text.truncate(end);
        text.push_str("\n# the rest is left out");
    }
    text
}
