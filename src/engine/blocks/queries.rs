//! What is asked of the graph once it is drawn: who needs whom, directly or not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use addrs::{AbsProviderConfig, ConfigResource, Mode};
use petgraph::Direction;
use petgraph::graph::NodeIndex;

use super::{Block, Blocks};

impl Blocks {
    /// For each resource all resources it depends on, directly or not, itself not included. Only managed resources
    /// count, unless `with_others`.
    #[must_use]
    pub fn resource_dependencies(&self, with_others: bool) -> BTreeMap<ConfigResource, BTreeSet<ConfigResource>> {
        let resources: Vec<NodeIndex> = self
            .graph
            .node_indices()
            .filter(|n| matches!(self.graph[*n], Block::Resource(_)))
            .collect();
        let mut number = vec![usize::MAX; self.graph.node_count()];
        for (i, n) in resources.iter().enumerate() {
            number[n.index()] = i;
        }
        // One bit a resource, handed on along the edges in topological order.
        let words = resources.len().div_ceil(64);
        let mut above = vec![0u64; words * self.graph.node_count()];
        let order = petgraph::algo::toposort(&self.graph, None).unwrap_or_default();
        for n in order {
            for from in self.graph.neighbors_directed(n, Direction::Incoming) {
                let (from_at, at) = (from.index() * words, n.index() * words);
                for w in 0..words {
                    above[at + w] |= above[from_at + w];
                }
                if number[from.index()] != usize::MAX {
                    above[at + number[from.index()] / 64] |= 1 << (number[from.index()] % 64);
                }
            }
        }
        let address = |n: NodeIndex| match &self.graph[n] {
            Block::Resource(r) => Some(r),
            _ => None,
        };
        resources
            .iter()
            .filter_map(|n| {
                let set = resources
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| above[n.index() * words + i / 64] & (1 << (i % 64)) != 0)
                    .filter_map(|(_, d)| address(*d))
                    .filter(|r| with_others || r.resource.mode == Mode::Managed)
                    .cloned()
                    .collect();
                Some((address(*n)?.clone(), set))
            })
            .collect()
    }

    /// All resources a block depends on, directly or not.
    #[must_use]
    pub fn resources_before(&self, block: &Block) -> BTreeSet<ConfigResource> {
        let mut seen = vec![false; self.graph.node_count()];
        let mut queue: VecDeque<_> = self.find(block).into_iter().collect();
        let mut out = BTreeSet::new();
        while let Some(n) = queue.pop_front() {
            for from in self.graph.neighbors_directed(n, Direction::Incoming) {
                if !std::mem::replace(&mut seen[from.index()], true) {
                    if let Block::Resource(r) = &self.graph[from] {
                        out.insert(r.clone());
                    }
                    queue.push_back(from);
                }
            }
        }
        out
    }

    /// For each ephemeral resource the blocks that may use it while they are worked on, directly or through what is only
    /// evaluated, provider configurations and ephemeral resources included. What is behind a managed resource or a data
    /// source has to do with that.
    #[must_use]
    pub fn ephemeral_users(&self) -> Vec<(ConfigResource, Vec<Block>)> {
        let mut out = Vec::new();
        for node in self.graph.node_indices() {
            let Block::Resource(resource) = &self.graph[node] else {
                continue;
            };
            if resource.resource.mode == Mode::Ephemeral {
                let users = self.reach(node, Direction::Outgoing);
                let users = users.into_iter().map(|n| self.graph[n].clone()).collect();
                out.push((resource.clone(), users));
            }
        }
        out
    }

    /// The ephemeral resources that a block may use while it is worked on, inner ones first.
    #[must_use]
    pub fn ephemeral_before(&self, block: &Block) -> Vec<ConfigResource> {
        let found = self.find(block).map(|n| self.reach(n, Direction::Incoming));
        let mut nodes: Vec<NodeIndex> = found.unwrap_or_default();
        nodes.reverse();
        let resources = nodes.into_iter().filter_map(|n| match &self.graph[n] {
            Block::Resource(r) if r.resource.mode == Mode::Ephemeral => Some(r.clone()),
            _ => None,
        });
        resources.collect()
    }

    /// What can be reached from a node without going through a managed resource or a data source: each after one that
    /// leads to it, and after all that do if the graph has no cycles. Itself not included.
    fn reach(&self, start: NodeIndex, direction: Direction) -> Vec<NodeIndex> {
        let stands = |n: NodeIndex| match &self.graph[n] {
            Block::Resource(r) => r.resource.mode != Mode::Ephemeral,
            _ => false,
        };
        let next = |n| self.graph.neighbors_directed(n, direction);
        let mut seen = vec![false; self.graph.node_count()];
        seen[start.index()] = true;
        let mut order = Vec::new();
        let mut stack = vec![(start, next(start))];
        while let Some((node, neighbors)) = stack.last_mut() {
            match neighbors.next() {
                Some(n) if std::mem::replace(&mut seen[n.index()], true) => {}
                Some(n) if stands(n) => order.push(n),
                Some(n) => stack.push((n, next(n))),
                None => {
                    if *node != start {
                        order.push(*node);
                    }
                    stack.pop();
                }
            }
        }
        // What is left last was come to by all the others.
        order.reverse();
        order
    }

    /// The resources that a provider configuration manages.
    pub fn managed_by<'b>(&'b self, provider: &AbsProviderConfig) -> impl Iterator<Item = &'b ConfigResource> {
        let node = self.find(&Block::Provider(provider.clone()));
        let after = node
            .into_iter()
            .flat_map(|n| self.graph.neighbors_directed(n, Direction::Outgoing));
        after.filter_map(|n| match &self.graph[n] {
            Block::Resource(r) => Some(r),
            _ => None,
        })
    }
}
