//! Dependency graphs in DOT (Graphviz) and Mermaid.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use addrs::Module;
use engine::graph::{OperationGraph, ResourceGraph, Shape};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Dot,
    Mermaid,
}

const EMPTY: &str = "This configuration does not contain any resources.";

fn for_more(command: &str) -> String {
    format!("For a more detailed graph, try: {command} graph -type=plan")
}

/// Renders the resources by module, with their dependencies.
pub fn resources(graph: &ResourceGraph, format: Format, command: &str) -> String {
    match format {
        Format::Dot => resources_as_dot(graph, command),
        Format::Mermaid => resources_as_mermaid(graph, command),
    }
}

fn resources_as_dot(graph: &ResourceGraph, command: &str) -> String {
    let mut out = "digraph G {\n  rankdir = \"RL\";\n  node [shape = rect, fontname = \"sans-serif\"];\n".to_owned();
    if graph.resources.is_empty() {
        let more = for_more(command);
        let width = EMPTY.len().max(more.len());
        let _ = writeln!(out, "  /* {EMPTY:width$} */\n  /* {more:width$} */");
    }
    by_module(graph, &mut out, "  }\n", |out, step| match step {
        Step::Module(module) => {
            let label = quoted(&module.to_string());
            let cluster = quoted(&format!("cluster_{module}"));
            let _ = writeln!(
                out,
                "  subgraph {cluster} {{\n    label = {label}\n    fontname = \"sans-serif\""
            );
        }
        Step::Resource(indent, resource) => {
            let (id, label) = (quoted(&resource.to_string()), quoted(&resource.resource.to_string()));
            let _ = writeln!(out, "{indent}{id} [label={label}];");
        }
    });
    // The names are those of Terraform's output, which other programs parse.
    for (from, to) in &graph.edges {
        let name = |at: &usize| quoted(&graph.resources[*at].to_string());
        let _ = writeln!(out, "  {} -> {};", name(from), name(to));
    }
    out.push_str("}\n");
    out
}

fn resources_as_mermaid(graph: &ResourceGraph, command: &str) -> String {
    let mut out = "flowchart LR\n".to_owned();
    if graph.resources.is_empty() {
        let _ = writeln!(out, "  %% {EMPTY}\n  %% {}", for_more(command));
    }
    by_module(graph, &mut out, "  end\n", |out, step| match step {
        Step::Module(module) => {
            let _ = writeln!(out, "  subgraph {module}");
        }
        Step::Resource(indent, resource) => {
            let label = mermaid_label(&resource.resource.to_string());
            let _ = writeln!(out, "{indent}{resource}[{label}]");
        }
    });
    for (from, to) in &graph.edges {
        let _ = writeln!(out, "  {} --> {}", graph.resources[*from], graph.resources[*to]);
    }
    out
}

enum Step<'g> {
    Module(&'g Module),
    /// Resource, with the indentation of its line.
    Resource(&'static str, &'g addrs::ConfigResource),
}

fn by_module<'g>(graph: &'g ResourceGraph, out: &mut String, end: &str, mut write: impl FnMut(&mut String, Step<'g>)) {
    // The resources are sorted by module.
    for resources in graph.resources.chunk_by(|a, b| a.module == b.module) {
        let module = resources.first().map(|first| &first.module).filter(|m| !m.is_root());
        if let Some(module) = module {
            write(out, Step::Module(module));
        }
        let indent = if module.is_some() { "    " } else { "  " };
        for resource in resources {
            write(out, Step::Resource(indent, resource));
        }
        if module.is_some() {
            out.push_str(end);
        }
    }
}

/// Renders everything that an operation evaluates. Edges of cycles are red. With `verbose`, DOT also has the nodes that close
/// providers.
pub fn operation(graph: &OperationGraph, format: Format, verbose: bool) -> String {
    match format {
        Format::Dot => operation_as_dot(graph, verbose),
        Format::Mermaid => operation_as_mermaid(graph),
    }
}

fn operation_as_dot(graph: &OperationGraph, verbose: bool) -> String {
    // Terraform writes this prefix before every name.
    let name = |at: usize| quoted(&format!("[root] {}", graph.nodes[at].name));
    let mut nodes: Vec<(&str, String)> = Vec::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        let Some((label, shape)) = &node.shown else { continue };
        let shape = match shape {
            Shape::Resource => "box",
            Shape::Provider => "diamond",
            Shape::ProviderEnd if verbose => "diamond",
            Shape::ProviderEnd => continue,
            Shape::Variable => "note",
        };
        let line = format!("{} [label = {}, shape = \"{shape}\"]", name(at), quoted(label));
        nodes.push((&node.name, line));
    }
    nodes.sort();
    let edge = |(from, to): &(usize, usize)| {
        let red = if is_in_cycle(graph, *from, *to) {
            " [color = \"red\", penwidth = \"2.0\"]"
        } else {
            ""
        };
        format!("{} -> {}{red}", name(*from), name(*to))
    };
    // A set, because several dependencies can lead from one node to the same other one.
    let edges: BTreeSet<String> = graph.edges.iter().map(edge).collect();
    let mut out = "digraph {\n\tcompound = \"true\"\n\tnewrank = \"true\"\n\tsubgraph \"root\" {\n".to_owned();
    for line in nodes.into_iter().map(|(_, line)| line).chain(edges) {
        let _ = writeln!(out, "\t\t{line}");
    }
    out.push_str("\t}\n}\n");
    out
}

fn is_in_cycle(graph: &OperationGraph, from: usize, to: usize) -> bool {
    graph.cycles[from].is_some() && graph.cycles[from] == graph.cycles[to]
}

fn operation_as_mermaid(graph: &OperationGraph) -> String {
    let mut out = "flowchart LR\n".to_owned();
    for (at, node) in graph.nodes.iter().enumerate() {
        let _ = writeln!(out, "  n{at}[{}]", mermaid_label(&node.name));
    }
    let mut red = Vec::new();
    for (number, (from, to)) in graph.edges.iter().enumerate() {
        let _ = writeln!(out, "  n{from} --> n{to}");
        if is_in_cycle(graph, *from, *to) {
            red.push(number.to_string());
        }
    }
    // Mermaid does not permit "linkStyle" without a number.
    if !red.is_empty() {
        let _ = writeln!(out, "  linkStyle {} stroke:red,stroke-width:2px", red.join(","));
    }
    out
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Quotes the text of a Mermaid node.
fn mermaid_label(text: &str) -> String {
    format!("\"{}\"", text.replace('&', "&amp;").replace('"', "&quot;"))
}
