//! References to whole modules, and what they depend on.

use std::collections::BTreeSet;

use addrs::{ConfigResource, Module};
use config::Config;
use petgraph::graph::NodeIndex;
use petgraph::visit::Dfs;

use super::{Block, Blocks};

impl Blocks {
    /// Makes a block with a reference to a whole module depend on all resources in it, as in Terraform, and not only on the
    /// outputs. A resource in the module that depends on that block would make a cycle, which Terraform reports; then these
    /// edges are left out.
    pub(super) fn connect_whole(&mut self, config: &Config, references: &BTreeSet<(Module, NodeIndex)>) {
        // Resources that only the state has are destroyed, and references cannot depend on them.
        let inside = |blocks: &Blocks, module: &Module| -> Vec<NodeIndex> {
            let below = blocks.resources_below.get(module).into_iter().flatten().copied();
            let stays = |n: &NodeIndex| matches!(&blocks.graph[*n], Block::Resource(r) if config.resource(r).is_some());
            below.filter(stays).collect()
        };
        let mut pairs = Vec::new();
        for (module, node) in references {
            let new = inside(self, module).into_iter().map(|first| (first, *node));
            pairs.extend(new.filter(|pair| self.connected.insert(*pair)));
        }
        let add = |(first, node): &(NodeIndex, NodeIndex)| self.graph.add_edge(*first, *node, ());
        let edges: Vec<_> = pairs.iter().map(add).collect();
        if edges.is_empty() || petgraph::algo::toposort(&self.graph, None).is_ok() {
            return;
        }
        for edge in edges.into_iter().rev() {
            self.graph.remove_edge(edge);
        }
        for pair in &pairs {
            self.connected.remove(pair);
        }
        for (module, node) in references {
            let mut after = Dfs::new(&self.graph, *node);
            while after.next(&self.graph).is_some() {}
            let inside = inside(self, module);
            if !inside.iter().any(|n| after.discovered.contains(n.index())) {
                inside.into_iter().for_each(|first| self.connect(first, *node));
            }
        }
    }

    /// Makes a block whose `depends_on` names a module depend on what that module depends on itself, as in Terraform: on the arguments
    /// of its call, and on what `depends_on` of the call names, even if no resource in the module needs them. Edges that would make
    /// a cycle are left out.
    pub(super) fn connect_named(&mut self) {
        let named: Vec<(Module, NodeIndex)> = self.whole_modules.iter().cloned().collect();
        for (module, node) in named {
            let first = self.before_module(&module);
            let mut after = Dfs::new(&self.graph, node);
            while after.next(&self.graph).is_some() {}
            for first in first {
                if !after.discovered.contains(first.index()) {
                    self.connect(first, node);
                }
            }
        }
    }

    /// The direct and indirect resource dependencies of a module: of its call, and of the blocks in it and in the modules below.
    #[must_use]
    pub fn resources_before_module(&self, module: &Module) -> BTreeSet<ConfigResource> {
        let call = module.parent().map(|(parent, name)| Block::Call(parent, name.clone()));
        let is_part =
            |block: &Block| block.module().is_some_and(|m| module.contains(m)) || call.as_ref() == Some(block);
        let parts = self.graph.node_indices().filter(|node| is_part(&self.graph[*node]));
        let first = self.before_module(module);
        let named = first.iter().filter_map(|node| match &self.graph[*node] {
            Block::Resource(resource) => Some(resource.clone()),
            _ => None,
        });
        let mut out: BTreeSet<ConfigResource> = named.collect();
        out.extend(self.resources_before_all(parts.chain(first.iter().copied())));
        out
    }

    /// The variables of a module and of those below, and what `depends_on` of their calls names.
    fn before_module(&self, module: &Module) -> Vec<NodeIndex> {
        let is_called = |call: NodeIndex| match &self.graph[call] {
            Block::Call(parent, name) => module.contains(&parent.child(name.clone())),
            _ => false,
        };
        let waits = self.waiting_calls.iter().filter(|(_, call)| is_called(*call));
        let variables = self.graph.node_indices().filter(|node| match &self.graph[*node] {
            Block::Variable(path, _) => module.contains(path),
            _ => false,
        });
        waits.map(|(first, _)| *first).chain(variables).collect()
    }
}
