//! The execution graph: which operations apply carries out, and in which order.
//!
//! All ordering stands here. Operations on the instances of one resource form *groups* with a barrier node before and
//! after each, so that a dependency between two resources is one edge, however many instances they have.
//!
//! A resource has up to three groups:
//! - *change*: objects are created, updated, read; the creating half of a replacement belongs here.
//! - *destroy first*: objects are destroyed, including the old objects of replacements that destroy first.
//! - *destroy last*: old objects are destroyed that were created to be replaced before they are destroyed.
//!
//! The rules, where `r` depends on `d`:
//! 1. `d` is changed before `r` is.
//! 2. The objects of `r` are destroyed before those of `d`.
//! 3. What `d` destroys first is destroyed before `r` is changed.
//! 4. What `d` destroys last is destroyed after `r` is changed.
//! 5. Within a replacement, the old object goes before the new one comes, or the other way round.

use std::collections::{BTreeMap, BTreeSet};

use addrs::ConfigResource;
use petgraph::graph::{DiGraph, NodeIndex};
use serde::{Deserialize, Serialize};

use crate::plan::Action;

/// One operation. The numbers are indexes into the plan's changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// The beginning of a group.
    GroupStart(u32),
    /// The end of a group. After a change group, the value of its resource is complete.
    GroupEnd(u32),
    /// Create the object, or read the data source, or update the object.
    Change(u32),
    /// Destroy the object: that of a deletion, or the old one of a replacement. Or forget it.
    Destroy(u32),
}

/// Operations and their order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ExecGraph {
    /// The operations.
    pub nodes: Vec<Operation>,
    /// Who waits for whom: the second for the first, as indexes into `nodes`.
    pub edges: Vec<(u32, u32)>,
}

/// What the builder must know of a planned change.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The resource it belongs to.
    pub resource: ConfigResource,
    /// What is done.
    pub action: Action,
    /// Whether a deletion belongs to the group that is destroyed last.
    pub destroy_last: bool,
    /// What the object as it is depends on: resources whose objects must outlive it.
    pub state_dependencies: Vec<ConfigResource>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Change,
    DestroyFirst,
    DestroyLast,
}

#[derive(Default)]
struct Builder<'p> {
    graph: ExecGraph,
    groups: BTreeMap<(&'p ConfigResource, Phase), (u32, u32)>,
}

impl<'p> Builder<'p> {
    fn node(&mut self, operation: Operation) -> u32 {
        self.graph.nodes.push(operation);
        u32::try_from(self.graph.nodes.len() - 1).unwrap_or(u32::MAX)
    }

    fn group(&mut self, resource: &'p ConfigResource, phase: Phase) -> (u32, u32) {
        if let Some(group) = self.groups.get(&(resource, phase)) {
            return *group;
        }
        let number = u32::try_from(self.groups.len()).unwrap_or(u32::MAX);
        let group = (self.node(Operation::GroupStart(number)), self.node(Operation::GroupEnd(number)));
        self.graph.edges.push(group);
        self.groups.insert((resource, phase), group);
        group
    }

    fn member(&mut self, resource: &'p ConfigResource, phase: Phase, operation: Operation) -> u32 {
        let (start, end) = self.group(resource, phase);
        let node = self.node(operation);
        self.graph.edges.push((start, node));
        self.graph.edges.push((node, end));
        node
    }
}

impl ExecGraph {
    /// Lays down the graph for these changes, given for each resource of the configuration all others it depends on,
    /// directly or not.
    #[must_use]
    pub fn build(changes: &[Planned], dependencies: &BTreeMap<ConfigResource, BTreeSet<ConfigResource>>) -> ExecGraph {
        let mut b = Builder::default();
        // What the objects that will be destroyed depend on, by resource.
        let mut outlived: BTreeMap<&ConfigResource, BTreeSet<&ConfigResource>> = BTreeMap::new();
        for (i, change) in changes.iter().enumerate() {
            let i = u32::try_from(i).unwrap_or(u32::MAX);
            let r = &change.resource;
            match change.action {
                Action::NoOp => continue,
                Action::Create | Action::Read | Action::Update => {
                    b.member(r, Phase::Change, Operation::Change(i));
                    continue;
                }
                Action::Delete | Action::Forget => {
                    let phase = if change.destroy_last { Phase::DestroyLast } else { Phase::DestroyFirst };
                    b.member(r, phase, Operation::Destroy(i));
                }
                Action::DeleteThenCreate => {
                    let destroy = b.member(r, Phase::DestroyFirst, Operation::Destroy(i));
                    let create = b.member(r, Phase::Change, Operation::Change(i));
                    b.graph.edges.push((destroy, create));
                }
                Action::CreateThenDelete => {
                    let create = b.member(r, Phase::Change, Operation::Change(i));
                    let destroy = b.member(r, Phase::DestroyLast, Operation::Destroy(i));
                    b.graph.edges.push((create, destroy));
                }
            }
            outlived.entry(r).or_default().extend(&change.state_dependencies);
        }
        let groups: Vec<_> = b.groups.iter().map(|(key, group)| (*key, *group)).collect();
        for ((r, phase), (start, end)) in groups {
            if phase == Phase::Change {
                for d in dependencies.get(r).into_iter().flatten().filter(|d| *d != r) {
                    if let Some((_, end_d)) = b.groups.get(&(d, Phase::Change)) {
                        b.graph.edges.push((*end_d, start));
                    }
                    if let Some((_, end_d)) = b.groups.get(&(d, Phase::DestroyFirst)) {
                        b.graph.edges.push((*end_d, start));
                    }
                    if let Some((start_d, _)) = b.groups.get(&(d, Phase::DestroyLast)) {
                        b.graph.edges.push((end, *start_d));
                    }
                }
            } else {
                for d in outlived.get(r).into_iter().flatten().filter(|d| **d != r) {
                    for phase_d in [Phase::DestroyFirst, Phase::DestroyLast] {
                        if let Some((start_d, _)) = b.groups.get(&(*d, phase_d)) {
                            b.graph.edges.push((end, *start_d));
                        }
                    }
                }
            }
        }
        b.graph
    }

    /// The same as a graph to walk.
    #[must_use]
    pub fn to_walk(&self) -> DiGraph<Operation, ()> {
        let mut graph = DiGraph::with_capacity(self.nodes.len(), self.edges.len());
        for operation in &self.nodes {
            graph.add_node(*operation);
        }
        for (a, b) in &self.edges {
            graph.add_edge(NodeIndex::new(*a as usize), NodeIndex::new(*b as usize), ());
        }
        graph
    }

    /// The operations that wait for one another in a circle, if there are such.
    #[must_use]
    pub fn cycle(&self) -> Option<Vec<Operation>> {
        let graph = self.to_walk();
        petgraph::algo::tarjan_scc(&graph)
            .into_iter()
            .find(|component| component.len() > 1)
            .map(|component| component.into_iter().map(|n| graph[n]).collect())
    }
}

#[cfg(test)]
mod tests {
    use addrs::{Module, Resource};

    use super::*;

    fn res(name: &str) -> ConfigResource {
        Resource::managed("t", name).in_module(&Module::root())
    }

    fn planned(name: &str, action: Action, deps: &[&str]) -> Planned {
        let state_dependencies = deps.iter().map(|d| res(d)).collect();
        Planned {
            resource: res(name),
            action,
            destroy_last: action == Action::CreateThenDelete,
            state_dependencies,
        }
    }

    /// Whether the first operation comes before the second in every order the graph allows.
    fn before(graph: &ExecGraph, first: Operation, second: Operation) -> bool {
        let walk = graph.to_walk();
        let find = |op| walk.node_indices().find(|n| walk[*n] == op).unwrap();
        petgraph::algo::has_path_connecting(&walk, find(first), find(second), None)
    }

    fn depends(pairs: &[(&str, &[&str])]) -> BTreeMap<ConfigResource, BTreeSet<ConfigResource>> {
        pairs.iter().map(|(r, ds)| (res(r), ds.iter().map(|d| res(d)).collect())).collect()
    }

    #[test]
    fn creation_follows_dependencies_and_destruction_goes_against_them() {
        let deps = depends(&[("b", &["a"])]);
        let graph = ExecGraph::build(&[planned("b", Action::Create, &[]), planned("a", Action::Create, &[])], &deps);
        assert!(before(&graph, Operation::Change(1), Operation::Change(0)));
        let graph =
            ExecGraph::build(&[planned("b", Action::Delete, &["a"]), planned("a", Action::Delete, &[])], &deps);
        assert!(before(&graph, Operation::Destroy(0), Operation::Destroy(1)));
    }

    #[test]
    fn replacement_that_destroys_first_takes_dependents_down_before_and_up_after() {
        let deps = depends(&[("b", &["a"])]);
        let replace = Action::DeleteThenCreate;
        let graph = ExecGraph::build(&[planned("a", replace, &[]), planned("b", replace, &["a"])], &deps);
        assert!(before(&graph, Operation::Destroy(1), Operation::Destroy(0)));
        assert!(before(&graph, Operation::Destroy(0), Operation::Change(0)));
        assert!(before(&graph, Operation::Change(0), Operation::Change(1)));
        assert_eq!(graph.cycle(), None);
    }

    #[test]
    fn replacement_that_creates_first_destroys_after_dependents_have_changed() {
        let deps = depends(&[("b", &["a"])]);
        let graph = ExecGraph::build(
            &[planned("a", Action::CreateThenDelete, &[]), planned("b", Action::Update, &["a"])],
            &deps,
        );
        assert!(before(&graph, Operation::Change(0), Operation::Change(1)));
        assert!(before(&graph, Operation::Change(1), Operation::Destroy(0)));
        assert_eq!(graph.cycle(), None);
    }

    #[test]
    fn edges_grow_with_instances_only_linearly() {
        let deps = depends(&[("b", &["a"])]);
        let many: Vec<_> =
            (0..2000).map(|i| planned(if i % 2 == 0 { "a" } else { "b" }, Action::Create, &[])).collect();
        let graph = ExecGraph::build(&many, &deps);
        assert_eq!(graph.edges.len(), 2 * 2000 + 2 + 1);
    }
}
