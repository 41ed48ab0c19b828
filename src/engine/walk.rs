//! Concurrent walk of a dependency graph with any kind of nodes.

use std::future::Future;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Dependents can be visited.
    Done,
    /// Direct and indirect dependents are skipped.
    Failed,
    /// The node was not visited, because a dependency failed or was skipped.
    Skipped,
}

/// Visits every node after its dependencies (the sources of its incoming edges), at most `limit` nodes at a time. Returns the
/// outcome of every node by index.
///
/// The graph must not have cycles; nodes on a cycle and their dependents are skipped.
pub async fn walk<N, F, Fut>(graph: &DiGraph<N, ()>, limit: usize, visit: F) -> Vec<Outcome>
where
    F: Fn(NodeIndex) -> Fut,
    Fut: Future<Output = Outcome>,
{
    let mut outcomes = vec![Outcome::Skipped; graph.node_count()];
    let mut waiting: Vec<usize> = graph
        .node_indices()
        .map(|n| graph.neighbors_directed(n, Direction::Incoming).count())
        .collect();
    let mut has_failed_dependency = vec![false; graph.node_count()];
    let mut ready: std::collections::VecDeque<NodeIndex> =
        graph.node_indices().filter(|n| waiting[n.index()] == 0).collect();
    let mut running = FuturesUnordered::new();
    loop {
        // A limit of zero counts as one, because the walk would otherwise visit nothing.
        while running.len() < limit.max(1) {
            let Some(node) = ready.pop_front() else { break };
            if has_failed_dependency[node.index()] {
                // The node is released without a visit, because its dependents may be waiting only for this
                // node.
                release(graph, node, true, &mut waiting, &mut has_failed_dependency, &mut ready);
            } else {
                let visited = visit(node);
                running.push(async move { (node, visited.await) });
            }
        }
        let Some((node, outcome)) = running.next().await else {
            break;
        };
        outcomes[node.index()] = outcome;
        release(
            graph,
            node,
            outcome != Outcome::Done,
            &mut waiting,
            &mut has_failed_dependency,
            &mut ready,
        );
    }
    outcomes
}

fn release<N>(
    graph: &DiGraph<N, ()>,
    node: NodeIndex,
    failed: bool,
    waiting: &mut [usize],
    has_failed_dependency: &mut [bool],
    ready: &mut std::collections::VecDeque<NodeIndex>,
) {
    for next in graph.neighbors_directed(node, Direction::Outgoing) {
        has_failed_dependency[next.index()] |= failed;
        waiting[next.index()] -= 1;
        if waiting[next.index()] == 0 {
            ready.push_back(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    fn chain(edges: &[(u32, u32)]) -> DiGraph<(), ()> {
        let mut graph = DiGraph::new();
        let last = edges.iter().map(|(a, b)| (*a).max(*b)).max().unwrap_or(0);
        for _ in 0..=last {
            graph.add_node(());
        }
        for (a, b) in edges {
            graph.add_edge(NodeIndex::new(*a as usize), NodeIndex::new(*b as usize), ());
        }
        graph
    }

    #[tokio::test]
    async fn walk_visits_dependencies_first_and_skips_dependents_of_failures() {
        let graph = chain(&[(0, 1), (1, 3), (0, 2), (2, 4)]);
        let order = RefCell::new(Vec::new());
        let outcomes = walk(&graph, 4, |n| {
            order.borrow_mut().push(n.index());
            async move { if n.index() == 1 { Outcome::Failed } else { Outcome::Done } }
        })
        .await;
        assert_eq!(
            outcomes,
            [
                Outcome::Done,
                Outcome::Failed,
                Outcome::Done,
                Outcome::Skipped,
                Outcome::Done
            ]
        );
        let order = order.into_inner();
        assert!(!order.contains(&3), "{order:?}");
        assert!(
            order.iter().position(|n| *n == 2) < order.iter().position(|n| *n == 4),
            "{order:?}"
        );
    }

    #[tokio::test]
    async fn walk_limits_concurrent_visits() {
        let graph = chain(&[(0, 99)]);
        let (now, most) = (Cell::new(0), Cell::new(0));
        walk(&graph, 7, |_| async {
            now.set(now.get() + 1);
            most.set(most.get().max(now.get()));
            tokio::task::yield_now().await;
            now.set(now.get() - 1);
            Outcome::Done
        })
        .await;
        assert_eq!(most.get(), 7);
    }
}
