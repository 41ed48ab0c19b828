//! Transitive reduction of graphs.

use std::collections::BTreeSet;

/// Dependencies of each node, by index.
pub(super) type Adjacency = Vec<BTreeSet<usize>>;

/// Returns an order in which every node comes after its dependencies; `None` if there is a cycle.
pub(super) fn order(dependencies: &Adjacency) -> Option<Vec<usize>> {
    let mut dependents = vec![Vec::new(); dependencies.len()];
    let mut open: Vec<usize> = dependencies.iter().map(BTreeSet::len).collect();
    for (node, of) in dependencies.iter().enumerate() {
        for dependency in of {
            dependents[*dependency].push(node);
        }
    }
    let mut order: Vec<usize> = (0..dependencies.len()).filter(|node| open[*node] == 0).collect();
    let mut next = 0;
    while let Some(node) = order.get(next).copied() {
        next += 1;
        for dependent in &dependents[node] {
            open[*dependent] -= 1;
            if open[*dependent] == 0 {
                order.push(*dependent);
            }
        }
    }
    (order.len() == dependencies.len()).then_some(order)
}

/// Removes each edge to a dependency that is also reached through another dependency. A graph with a cycle is not changed.
pub(super) fn reduce(dependencies: &mut Adjacency) {
    let Some(order) = order(dependencies) else {
        return;
    };
    let mut rank = vec![0; order.len()];
    for (at, node) in order.iter().enumerate() {
        rank[*node] = at;
    }
    // The start node from which each node was last reached. One list serves all starts, where a set for each start would cost an
    // allocation.
    let mut reached = vec![usize::MAX; order.len()];
    let mut stack = Vec::new();
    for node in order {
        let mut direct: Vec<usize> = dependencies[node].iter().copied().collect();
        // A node can only reach nodes that come earlier in the order. Dependencies are visited from the last one, so whatever a dependency
        // makes redundant comes after it.
        direct.sort_unstable_by_key(|dependency| std::cmp::Reverse(rank[*dependency]));
        let Some(first) = direct.last().map(|dependency| rank[*dependency]) else {
            continue;
        };
        for dependency in direct {
            if reached[dependency] == node {
                dependencies[node].remove(&dependency);
                continue;
            }
            stack.push(dependency);
            while let Some(at) = stack.pop() {
                if std::mem::replace(&mut reached[at], node) != node {
                    stack.extend(dependencies[at].iter().filter(|further| rank[**further] >= first));
                }
            }
        }
    }
}

/// Returns for each node an arbitrary number for its cycle; `None` if the node is on no cycle.
pub(super) fn cycles(dependencies: &Adjacency) -> Vec<Option<usize>> {
    let mut graph = petgraph::graph::DiGraph::<(), ()>::new();
    let nodes: Vec<_> = dependencies.iter().map(|_| graph.add_node(())).collect();
    for (node, of) in dependencies.iter().enumerate() {
        for dependency in of {
            graph.add_edge(nodes[node], nodes[*dependency], ());
        }
    }
    let mut found = vec![None; dependencies.len()];
    for (number, component) in petgraph::algo::tarjan_scc(&graph).into_iter().enumerate() {
        let is_cycle = component.len() > 1 || component.iter().any(|n| dependencies[n.index()].contains(&n.index()));
        for node in component.into_iter().filter(|_| is_cycle) {
            found[node.index()] = Some(number);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn graph(edges: &[&[usize]]) -> Adjacency {
        edges.iter().map(|of| of.iter().copied().collect()).collect()
    }

    /// Returns the nodes that each node reaches.
    fn closure(dependencies: &Adjacency) -> Vec<BTreeSet<usize>> {
        let reach = |from: usize| {
            let mut seen = BTreeSet::new();
            let mut stack: Vec<usize> = dependencies[from].iter().copied().collect();
            while let Some(at) = stack.pop() {
                if seen.insert(at) {
                    stack.extend(&dependencies[at]);
                }
            }
            seen
        };
        (0..dependencies.len()).map(reach).collect()
    }

    #[test]
    fn a_shortcut_is_left_out_and_a_cycle_is_left_alone() {
        let mut dependencies = graph(&[&[], &[0], &[0, 1], &[0, 1, 2]]);
        reduce(&mut dependencies);
        assert_eq!(dependencies, graph(&[&[], &[0], &[1], &[2]]));
        let mut circle = graph(&[&[1], &[0], &[0, 1], &[3]]);
        reduce(&mut circle);
        assert_eq!(circle, graph(&[&[1], &[0], &[0, 1], &[3]]));
        assert_eq!(order(&circle), None);
        let found = cycles(&circle);
        assert!(found[0].is_some() && found[0] == found[1] && found[3].is_some() && found[2].is_none());
    }

    proptest! {
        #[test]
        fn the_least_graph_with_the_same_meaning(edges in proptest::collection::vec((0usize..12, 0usize..12), 0..60)) {
            let mut dependencies: Adjacency = vec![BTreeSet::new(); 12];
            for (a, b) in edges {
                if a != b {
                    dependencies[a.max(b)].insert(a.min(b));
                }
            }
            let before = closure(&dependencies);
            reduce(&mut dependencies);
            prop_assert_eq!(&before, &closure(&dependencies));
            for (node, of) in dependencies.iter().enumerate() {
                for dependency in of {
                    let mut without = dependencies.clone();
                    without[node].remove(dependency);
                    prop_assert!(!closure(&without)[node].contains(dependency), "{} -> {} is not needed", node, dependency);
                }
            }
        }
    }
}
