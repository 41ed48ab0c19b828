//! Queries of the graph: direct and indirect dependencies.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use addrs::{AbsProviderConfig, ConfigResource, Mode};
use petgraph::Direction;
use petgraph::graph::NodeIndex;

use super::{Block, Blocks};

/// A sparse bit set: the nonzero words of 64 bits with their indices, sorted.
#[derive(Clone, Default)]
struct Bits(Vec<(usize, u64)>);

impl Bits {
    fn insert(&mut self, number: usize) {
        let (word, bit) = (number / 64, 1 << (number % 64));
        match self.0.binary_search_by_key(&word, |(at, _)| *at) {
            Ok(found) => self.0[found].1 |= bit,
            Err(place) => self.0.insert(place, (word, bit)),
        }
    }

    // Most blocks have one dependency that leads to resources, so most sets are copies of another one.
    fn extend(&mut self, other: &Bits) {
        if self.0.is_empty() {
            self.0.clone_from(&other.0);
            return;
        }
        let mut merged = Vec::with_capacity(self.0.len().max(other.0.len()));
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        loop {
            let next = match (a.peek(), b.peek()) {
                (None, None) => break,
                (Some((x, _)), Some((y, _))) if x == y => a.next().zip(b.next()).map(|((at, p), (_, q))| (*at, p | q)),
                (Some((x, _)), Some((y, _))) if x > y => b.next().copied(),
                (None, Some(_)) => b.next().copied(),
                (Some(_), _) => a.next().copied(),
            };
            merged.extend(next);
        }
        self.0 = merged;
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().flat_map(|(word, bits)| {
            let set = (0..64).filter(move |bit| bits & (1 << bit) != 0);
            set.map(move |bit| word * 64 + bit)
        })
    }
}

impl Blocks {
    /// Returns the direct and indirect resource dependencies of each resource, excluding the resource itself. With `with_others`,
    /// resources that are not managed, such as data sources, count, too.
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
        // One bit for each resource, propagated along the edges in topological order. Most resources depend on few others with
        // near indices, so sparse sets are small.
        let mut above: Vec<Bits> = vec![Bits::default(); self.graph.node_count()];
        for n in petgraph::algo::toposort(&self.graph, None).unwrap_or_default() {
            let mut own = Bits::default();
            for from in self.graph.neighbors_directed(n, Direction::Incoming) {
                own.extend(&above[from.index()]);
                if number[from.index()] != usize::MAX {
                    own.insert(number[from.index()]);
                }
            }
            above[n.index()] = own;
        }
        let address = |n: NodeIndex| match &self.graph[n] {
            Block::Resource(r) => Some(r),
            _ => None,
        };
        resources
            .iter()
            .filter_map(|n| {
                let set = above[n.index()]
                    .iter()
                    .filter_map(|d| address(*resources.get(d)?))
                    .filter(|r| with_others || r.resource.mode == Mode::Managed)
                    .cloned()
                    .collect();
                Some((address(*n)?.clone(), set))
            })
            .collect()
    }

    /// Returns the direct and indirect resource dependencies of a block.
    #[must_use]
    pub fn resources_before(&self, block: &Block) -> BTreeSet<ConfigResource> {
        self.resources_before_all(self.find(block))
    }

    /// Returns the direct and indirect resource dependencies of several blocks.
    pub(super) fn resources_before_all(&self, blocks: impl IntoIterator<Item = NodeIndex>) -> BTreeSet<ConfigResource> {
        // This function is called for very many blocks, most of which have few dependencies: a search is cheaper
        // than a table of all nodes.
        let mut seen = HashSet::new();
        let mut queue: VecDeque<_> = blocks.into_iter().collect();
        let mut out = BTreeSet::new();
        while let Some(n) = queue.pop_front() {
            for from in self.graph.neighbors_directed(n, Direction::Incoming) {
                if seen.insert(from) {
                    if let Block::Resource(r) = &self.graph[from] {
                        out.insert(r.clone());
                    }
                    queue.push_back(from);
                }
            }
        }
        out
    }

    /// Returns for each ephemeral resource the blocks that can use it: directly, or through blocks without objects, provider configurations
    /// and ephemeral resources. A block behind a managed resource or a data source does not count: it uses the values of that resource
    /// only.
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

    /// Returns the ephemeral resources that a block can use, in dependency order.
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

    /// Returns the nodes that can be reached from `start` without passing through a managed resource or a data source. `start` is not
    /// included. The order is reverse postorder, which is topological if the graph has no cycles.
    fn reach(&self, start: NodeIndex, direction: Direction) -> Vec<NodeIndex> {
        let stands = |n: NodeIndex| match &self.graph[n] {
            Block::Resource(r) => r.resource.mode != Mode::Ephemeral,
            _ => false,
        };
        // An explicit stack is used, because recursion would overflow the thread's stack on a chain of
        // thousands of local values.
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
        // Postorder lists a node after all nodes that are reachable from it.
        order.reverse();
        order
    }

    /// Returns the resources that use a provider configuration, as their provider or by calls of its functions.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_bit_sets_iterate_in_order() {
        let set = |numbers: &[usize]| {
            let mut bits = Bits::default();
            numbers.iter().for_each(|n| bits.insert(*n));
            bits
        };
        let mut bits = set(&[700, 3, 64, 3]);
        bits.extend(&set(&[0, 63, 64, 65, 6400]));
        bits.extend(&Bits::default());
        assert_eq!(bits.iter().collect::<Vec<_>>(), [0, 3, 63, 64, 65, 700, 6400]);
        let mut empty = Bits::default();
        empty.extend(&bits);
        assert_eq!(empty.iter().count(), 7);
    }
}
