//! References to whole modules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

use addrs::{ConfigResource, Module};
use config::Config;
use petgraph::graph::NodeIndex;
use petgraph::visit::Dfs;

use super::{Block, Blocks};

impl Blocks {
    /// Makes a block with a reference to a whole module depend on all resources in the module, as in Terraform, and not only on the
    /// outputs. If a resource in the module depends on the block, that would be a cycle, which Terraform reports. Here a reference whose
    /// edges would close a cycle is left out.
    pub(super) fn connect_whole(&mut self, config: &Config, references: &BTreeSet<(Module, NodeIndex)>) {
        // Resources that exist only in the state will be destroyed, so references cannot depend on them.
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
        // At least one of these edges closes a cycle. All are removed, then added again one reference at a time. A reference whose edges
        // would close a cycle is left out.
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

    /// Makes a block whose `depends_on` names a module depend on that module's own dependencies, as in Terraform: on
    /// the arguments of its call, and on the blocks in `depends_on` of the call, even if no resource in the module
    /// needs them. Edges that would make a cycle are left out.
    pub(super) fn connect_named(&mut self) {
        if self.whole_modules.is_empty() {
            return;
        }
        // The dependencies of all modules are computed in one pass: there may be thousands of modules, each named by another block.
        let below = self.modules_before();
        let none = Vec::new();
        let pairs: Vec<(NodeIndex, NodeIndex)> = (self.whole_modules.iter())
            .flat_map(|(module, node)| below.get(module).unwrap_or(&none).iter().map(|first| (*first, *node)))
            .filter(|pair| self.connected.insert(*pair))
            .collect();
        let edges: Vec<_> = pairs
            .iter()
            .map(|(first, node)| self.graph.add_edge(*first, *node, ()))
            .collect();
        if edges.is_empty() || petgraph::algo::toposort(&self.graph, None).is_ok() {
            return;
        }
        for edge in edges.into_iter().rev() {
            self.graph.remove_edge(edge);
        }
        for pair in &pairs {
            self.connected.remove(pair);
        }
        for (first, node) in pairs {
            if !petgraph::algo::has_path_connecting(&self.graph, node, first, None) {
                self.connect(first, node);
            }
        }
    }

    /// Returns the direct and indirect resource dependencies of a module: of its call, and of the blocks in it and in
    /// the modules below.
    #[must_use]
    pub fn resources_before_module(&self, module: &Module) -> Arc<BTreeSet<ConfigResource>> {
        // The lock is held during the computation, so that no other thread computes the same.
        let mut found = self.before_modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = found.get(module) {
            return known.clone();
        }
        let call = module.parent().map(|(parent, name)| Block::Call(parent, name.clone()));
        let is_part =
            |block: &Block| block.module().is_some_and(|m| module.contains(m)) || call.as_ref() == Some(block);
        let parts = self.graph.node_indices().filter(|node| is_part(&self.graph[*node]));
        let first = self.modules_before().remove(module).unwrap_or_default();
        let named = first.iter().filter_map(|node| match &self.graph[*node] {
            Block::Resource(resource) => Some(resource.clone()),
            _ => None,
        });
        let mut out: BTreeSet<ConfigResource> = named.collect();
        out.extend(self.resources_before_all(parts.chain(first.iter().copied())));
        let out = Arc::new(out);
        found.insert(module.clone(), out.clone());
        out
    }

    /// Returns for each module its variables, those of the modules below, and the blocks in `depends_on` of the calls of all these modules.
    fn modules_before(&self) -> BTreeMap<Module, Vec<NodeIndex>> {
        let calls = self
            .waiting_calls
            .iter()
            .filter_map(|(first, call)| match &self.graph[*call] {
                Block::Call(parent, name) => Some((parent.child(name.clone()), *first)),
                _ => None,
            });
        let variables = self.graph.node_indices().filter_map(|node| match &self.graph[node] {
            Block::Variable(module, _) => Some((module.clone(), node)),
            _ => None,
        });
        let mut below: BTreeMap<Module, Vec<NodeIndex>> = BTreeMap::new();
        for (module, node) in calls.chain(variables) {
            let mut around = Some(module);
            while let Some(module) = around {
                around = module.parent().map(|(parent, _)| parent);
                below.entry(module).or_default().push(node);
            }
        }
        below
    }
}
