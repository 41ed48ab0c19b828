//! Cycles of blocks.

use std::collections::{BTreeSet, HashMap, VecDeque};

use addrs::Module;
use config::Config;
use petgraph::Direction;
use petgraph::graph::NodeIndex;
use syntax::{Diagnostic, Diagnostics, Range};

use super::{Block, Blocks};

impl Blocks {
    pub(super) fn cycles(&self, config: &Config) -> Diagnostics {
        let mut out = Diagnostics::new();
        for component in self.loops() {
            // References of a block to itself are reported by `Edges`, at the reference.
            if matches!(component.as_slice(), [one] if matches!(self.graph[*one], Block::Local(..) | Block::Resource(_)))
            {
                continue;
            }
            let path = self.shortest_cycle(&component);
            let names: Vec<String> = path.iter().map(|n| self.graph[*n].to_string()).collect();
            let mut around = names.clone();
            around.extend(names.first().cloned());
            let mut diagnostic = Diagnostic::error(
                format!("Cycle: {}", names.join(", ")),
                format!(
                    "These objects refer to one another in a circle, so none of them can be evaluated first:\n  {}\n\nTo \
                     break the circle, remove one of these references.",
                    around.join("\n    is needed by ")
                ),
            );
            if let Some(range) = path.iter().find_map(|n| declared_at(config, &self.graph[*n])) {
                diagnostic = diagnostic.at(&range);
            }
            out.push(diagnostic);
        }
        out
    }

    /// Returns the strongly connected components with a cycle.
    fn loops(&self) -> Vec<Vec<NodeIndex>> {
        let mut all = petgraph::algo::kosaraju_scc(&self.graph);
        all.retain(|component| component.len() > 1 || self.connected.contains(&(component[0], component[0])));
        all
    }

    /// Removes the edges within cycles. Returns the blocks of the cycles.
    pub(crate) fn break_cycles(&mut self) -> Vec<Block> {
        let mut of: HashMap<NodeIndex, usize> = HashMap::new();
        for (at, component) in self.loops().into_iter().enumerate() {
            of.extend(component.into_iter().map(|node| (node, at)));
        }
        if of.is_empty() {
            return Vec::new();
        }
        // All edges inside a component are removed: none of its blocks can be evaluated, and callers skip them.
        self.graph.retain_edges(|graph, edge| {
            graph
                .edge_endpoints(edge)
                .is_none_or(|(a, b)| of.get(&a).is_none_or(|at| of.get(&b) != Some(at)))
        });
        self.connected
            .retain(|(a, b)| of.get(a).is_none_or(|at| of.get(b) != Some(at)));
        of.into_keys().map(|node| self.graph[node].clone()).collect()
    }

    fn shortest_cycle(&self, component: &[NodeIndex]) -> Vec<NodeIndex> {
        let inside: BTreeSet<NodeIndex> = component.iter().copied().collect();
        let Some(start) = component
            .iter()
            .copied()
            // The cycle is reported at its smallest address, so that the message does not depend on the order of the nodes.
            .min_by(|a, b| self.graph[*a].cmp(&self.graph[*b]))
        else {
            return Vec::new();
        };
        let mut came_from: HashMap<NodeIndex, NodeIndex> = HashMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(n) = queue.pop_front() {
            for next in self
                .graph
                .neighbors_directed(n, Direction::Outgoing)
                .filter(|x| inside.contains(x))
            {
                if next == start {
                    let mut path = vec![n];
                    let mut at = n;
                    while at != start {
                        at = came_from[&at];
                        path.push(at);
                    }
                    path.reverse();
                    return path;
                }
                came_from.entry(next).or_insert_with(|| {
                    queue.push_back(next);
                    n
                });
            }
        }
        component.to_vec()
    }
}

/// Returns the source range of a block; `None` for a provider configuration and for a resource that exists only in the state.
fn declared_at(root: &Config, block: &Block) -> Option<Range> {
    let find = |path: &Module| root.node(path);
    match block {
        Block::Variable(m, n) => find(m)?.module.variables.get(n).map(|v| v.range.clone()),
        Block::Local(m, n) => find(m)?.module.locals.get(n).map(|v| v.range.clone()),
        Block::Output(m, n) => find(m)?.module.outputs.get(n).map(|v| v.range.clone()),
        Block::Call(m, n) => find(m)?.module.module_calls.get(n).map(|v| v.range.clone()),
        Block::Check(m, n) => find(m)?.module.checks.get(n).map(|v| v.range.clone()),
        Block::Resource(r) => find(&r.module)?
            .module
            .resources
            .get(&r.resource)
            .map(|v| v.range.clone()),
        Block::Action(a) => root.action(a).map(|v| v.range.clone()),
        Block::Provider(_) => None,
    }
}
