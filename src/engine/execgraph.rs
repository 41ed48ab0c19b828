//! Execution graph: the operations that apply carries out, and their order.
//!
//! All ordering is decided here. Operations on the instances of one resource form *groups* with a barrier node before and
//! after each, so that a dependency between two resources is one edge, however many instances they have.
//!
//! A resource has up to four groups:
//! - *change*: objects are created, updated or read. The creation in a replacement belongs here.
//! - *destroy first*: objects are destroyed, including the old objects of replacements that destroy first.
//! - *destroy last*: the old objects of replacements with create_before_destroy are destroyed.
//! - *deposed*: deposed objects of earlier runs are destroyed; their dependencies may differ from those of current objects.
//!
//! The rules, where `r` depends on `d`:
//! 1. `d` is changed before `r` is changed.
//! 2. The objects of `r` are destroyed before those of `d`.
//! 3. The *destroy first* objects of `d` are destroyed before `r` is changed.
//! 4. The *destroy last* objects of `d` are destroyed after `r` is changed.
//! 5. Within a replacement, the old object is destroyed before the new one is created, or the other way round.
//! 6. The *destroy first* objects of `r` are destroyed before `d` is changed, and its *destroy last* objects after that.
//! 7. If the provider configuration of `r` refers to `d`, it needs the new values of `d`, so `d` is changed before any operation on `r`. In
//!    this case rule 6 cannot hold, nor rule 2 for the *destroy first* objects of `d`.
//!
//! If the direction of a dependency was reversed since the last apply, or if a provider configuration refers to objects of another
//! provider, the rules can make a cycle. Constraints on the cycle are then left out, in this order: rule 6; rule 4 if the state does not
//! record that `r` depends on `d`; rule 2 for deposed objects of `d` (the objects of `r` more likely depend on the current ones); rule 2
//! between objects of different provider configurations.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use addrs::{AbsProviderConfig, ConfigResource};
use petgraph::graph::{DiGraph, NodeIndex};
use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::invocation::ActionInvocation;

/// Operation of the execution graph. The number is an index of the plan's changes or invocations, or the number of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// The beginning of a group.
    GroupStart(u32),
    /// The end of a group. After a change group, the value of its resource is complete.
    GroupEnd(u32),
    /// Create or update the object, or read the data source.
    Change(u32),
    /// Destroy the object of a deletion, or the old object of a replacement; or forget it.
    Destroy(u32),
    /// Invoke an action that the user requests. The number is an index of the plan's invocations.
    Invoke(u32),
}

/// Operations of an apply and their order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ExecGraph {
    /// Operations in no particular order.
    pub nodes: Vec<Operation>,
    /// Pairs of indexes into `nodes`: the second operation runs after the first.
    pub edges: Vec<(u32, u32)>,
}

/// The properties of a planned change that determine its order.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The resource that the changed object belongs to.
    pub resource: ConfigResource,
    /// Action of the change.
    pub action: Action,
    /// Set for a deletion in the group *destroy last*.
    pub destroy_last: bool,
    pub deposed: bool,
    /// The provider configuration that applies the change.
    pub provider: AbsProviderConfig,
    /// The dependencies of the prior object: resources whose objects must not be destroyed before it.
    pub state_dependencies: Arc<[ConfigResource]>,
}

/// Direct and indirect dependencies of resources and of provider configurations.
#[derive(Clone, Debug, Default)]
pub struct Dependencies {
    /// Dependencies between resources, as the configuration has them.
    pub resources: BTreeMap<ConfigResource, BTreeSet<ConfigResource>>,
    /// Dependencies of provider configurations on resources.
    pub providers: BTreeMap<AbsProviderConfig, BTreeSet<ConfigResource>>,
}

/// Priority of a constraint, highest first. If constraints make a cycle, those of the lowest priority are left out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    /// Never left out.
    Firm,
    /// Rule 2 between objects with different provider configurations.
    BetweenProviders,
    /// Rule 2 if the dependency is a deposed object.
    Deposed,
    /// Rule 4 if the state does not record the dependency.
    NotRecorded,
    /// Rule 6: the order of destroying an object and changing its dependency.
    BeforeChange,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum GroupKind {
    Change,
    DestroyFirst,
    DestroyLast,
    Deposed,
}

/// An edge from the first group to the second, and its priority.
type Constraint = (u32, u32, Priority);

/// Properties of each resource that determine the order of the groups.
#[derive(Default)]
struct GroupFacts<'p> {
    /// Dependencies of the objects to destroy. They must be destroyed after these objects. The flag in the key is set for deposed
    /// objects.
    destroyed_before: BTreeMap<(&'p ConfigResource, bool), BTreeSet<&'p ConfigResource>>,
    /// The provider configurations that apply the changes of each resource.
    providers: BTreeMap<&'p ConfigResource, BTreeSet<&'p AbsProviderConfig>>,
    /// The dependencies that the state records for the changed objects.
    recorded: BTreeMap<&'p ConfigResource, BTreeSet<&'p ConfigResource>>,
}

#[derive(Default)]
struct Builder<'p> {
    graph: ExecGraph,
    groups: BTreeMap<(&'p ConfigResource, GroupKind), (u32, u32)>,
}

impl<'p> Builder<'p> {
    fn node(&mut self, operation: Operation) -> u32 {
        self.graph.nodes.push(operation);
        u32::try_from(self.graph.nodes.len() - 1).unwrap_or(u32::MAX)
    }

    fn group(&mut self, resource: &'p ConfigResource, kind: GroupKind) -> (u32, u32) {
        if let Some(group) = self.groups.get(&(resource, kind)) {
            return *group;
        }
        let number = u32::try_from(self.groups.len()).unwrap_or(u32::MAX);
        let group = (
            self.node(Operation::GroupStart(number)),
            self.node(Operation::GroupEnd(number)),
        );
        self.graph.edges.push(group);
        self.groups.insert((resource, kind), group);
        group
    }

    fn member(&mut self, resource: &'p ConfigResource, kind: GroupKind, operation: Operation) -> u32 {
        let (start, end) = self.group(resource, kind);
        let node = self.node(operation);
        self.graph.edges.push((start, node));
        self.graph.edges.push((node, end));
        node
    }

    /// Adds the operations of all changes to their groups, and collects the facts for the order of the groups.
    fn add_members(&mut self, changes: &'p [Planned]) -> GroupFacts<'p> {
        let mut facts = GroupFacts::default();
        for (i, change) in changes.iter().enumerate() {
            let i = u32::try_from(i).unwrap_or(u32::MAX);
            let r = &change.resource;
            if change.action != Action::NoOp && !change.state_dependencies.is_empty() {
                facts.recorded.entry(r).or_default().extend(&*change.state_dependencies);
            }
            if change.action == Action::NoOp {
                continue;
            }
            if facts
                .providers
                .get(r)
                .is_none_or(|known| !known.contains(&change.provider))
            {
                facts.providers.entry(r).or_default().insert(&change.provider);
            }
            match change.action {
                Action::NoOp => continue,
                Action::Create | Action::Read | Action::Update | Action::CreateThenForget => {
                    self.member(r, GroupKind::Change, Operation::Change(i));
                    continue;
                }
                Action::Delete | Action::Forget => {
                    let kind = if change.deposed {
                        GroupKind::Deposed
                    } else if change.destroy_last {
                        GroupKind::DestroyLast
                    } else {
                        GroupKind::DestroyFirst
                    };
                    self.member(r, kind, Operation::Destroy(i));
                }
                Action::DeleteThenCreate => {
                    let destroy = self.member(r, GroupKind::DestroyFirst, Operation::Destroy(i));
                    let create = self.member(r, GroupKind::Change, Operation::Change(i));
                    // Rule 5, the order within one replacement: this edge is never left out.
                    self.graph.edges.push((destroy, create));
                }
                Action::CreateThenDelete => {
                    let create = self.member(r, GroupKind::Change, Operation::Change(i));
                    let destroy = self.member(r, GroupKind::DestroyLast, Operation::Destroy(i));
                    self.graph.edges.push((create, destroy));
                }
            }
            let dependencies = facts.destroyed_before.entry((r, change.deposed)).or_default();
            dependencies.extend(&*change.state_dependencies);
        }
        facts
    }

    fn group_of(&self, resource: &'p ConfigResource, kind: GroupKind) -> Option<(u32, u32)> {
        self.groups.get(&(resource, kind)).copied()
    }

    fn constraints(&self, facts: &GroupFacts<'p>, dependencies: &'p Dependencies) -> Vec<Constraint> {
        let mut out = Vec::new();
        for ((r, kind), group) in &self.groups {
            if *kind == GroupKind::Change {
                self.constrain_change(r, *group, facts, dependencies, &mut out);
            } else {
                self.constrain_destroy((r, *kind), *group, facts, dependencies, &mut out);
            }
        }
        out
    }

    /// Adds the constraints of rules 1, 3 and 4 for the changes of a resource.
    fn constrain_change(
        &self,
        r: &'p ConfigResource,
        (start, end): (u32, u32),
        facts: &GroupFacts<'p>,
        dependencies: &'p Dependencies,
        out: &mut Vec<Constraint>,
    ) {
        for d in dependencies.resources.get(r).into_iter().flatten().filter(|d| *d != r) {
            if let Some((_, end_d)) = self.group_of(d, GroupKind::Change) {
                out.push((end_d, start, Priority::Firm));
            }
            if let Some((_, end_d)) = self.group_of(d, GroupKind::DestroyFirst) {
                out.push((end_d, start, Priority::Firm));
            }
            for (start_d, _) in [GroupKind::DestroyLast, GroupKind::Deposed]
                .iter()
                .filter_map(|p| self.group_of(d, *p))
            {
                // If the state does not record the dependency, breaking a cycle may leave this constraint out.
                let is_recorded = facts.recorded.get(r).is_some_and(|with| with.contains(d));
                let priority = if is_recorded {
                    Priority::Firm
                } else {
                    Priority::NotRecorded
                };
                out.push((end, start_d, priority));
            }
        }
    }

    /// Adds the constraints of rules 2, 6 and 7 for the destruction of objects of a resource.
    fn constrain_destroy(
        &self,
        (r, kind): (&'p ConfigResource, GroupKind),
        (start, end): (u32, u32),
        facts: &GroupFacts<'p>,
        dependencies: &'p Dependencies,
        out: &mut Vec<Constraint>,
    ) {
        let own = facts.providers.get(r);
        let needed: BTreeSet<&ConfigResource> = own
            .into_iter()
            .flatten()
            .filter_map(|p| dependencies.providers.get(*p))
            .flatten()
            .collect();
        let mut all = facts
            .destroyed_before
            .get(&(r, kind == GroupKind::Deposed))
            .cloned()
            .unwrap_or_default();
        all.extend(&needed);
        for d in all.into_iter().filter(|d| *d != r) {
            let by_provider = needed.contains(d);
            let changed = self.group_of(d, GroupKind::Change);
            let priority = if own == facts.providers.get(d) {
                Priority::Firm
            } else {
                Priority::BetweenProviders
            };
            if let Some((start_d, _)) = self.group_of(d, GroupKind::DestroyLast) {
                out.push((end, start_d, priority));
            }
            if let Some((start_d, _)) = self.group_of(d, GroupKind::Deposed) {
                out.push((end, start_d, Priority::Deposed));
            }
            match (self.group_of(d, GroupKind::DestroyFirst), changed) {
                // Rule 7 outweighs rule 2 here: the provider configuration needs the new values of `d`.
                (Some(_), Some(_)) if by_provider => {}
                (Some((start_d, _)), _) => out.push((end, start_d, priority)),
                (None, _) => {}
            }
            match changed {
                Some((_, end_d)) if by_provider => out.push((end_d, start, Priority::Firm)),
                Some((start_d, _)) if kind == GroupKind::DestroyFirst => {
                    out.push((end, start_d, Priority::BeforeChange));
                }
                Some((_, end_d)) => out.push((end_d, start, Priority::BeforeChange)),
                None => {}
            }
        }
    }
}

impl ExecGraph {
    /// Builds the graph of these changes. In destroy mode, both the recorded dependencies and those of the configuration order the
    /// destruction of objects.
    #[must_use]
    pub fn build(changes: &[Planned], dependencies: &Dependencies, destroy_mode: bool) -> ExecGraph {
        let mut builder = Builder::default();
        let mut facts = builder.add_members(changes);
        if destroy_mode {
            for ((r, _), out) in &mut facts.destroyed_before {
                out.extend(dependencies.resources.get(*r).into_iter().flatten());
            }
        }
        let constraints = builder.constraints(&facts, dependencies);
        builder.graph.with_constraints(constraints)
    }

    /// Adds the invocations that the user requests. They have no dependencies, because their configuration is known from the plan.
    /// Invocations that changes trigger are part of the operations on their objects.
    pub fn add_invocations(&mut self, invocations: &[ActionInvocation]) {
        for (i, invocation) in invocations.iter().enumerate() {
            if invocation.trigger.lifecycle().is_none() {
                self.nodes.push(Operation::Invoke(u32::try_from(i).unwrap_or(u32::MAX)));
            }
        }
    }

    /// Adds the constraints as edges. Constraints on a cycle are left out, lowest priority first, until no cycle remains. `Firm`
    /// constraints always stay.
    fn with_constraints(mut self, mut constraints: Vec<Constraint>) -> ExecGraph {
        // Edges inside of groups are never left out.
        let within = std::mem::take(&mut self.edges);
        for lowest in [
            Priority::BeforeChange,
            Priority::NotRecorded,
            Priority::Deposed,
            Priority::BetweenProviders,
        ] {
            self.edges = within
                .iter()
                .copied()
                .chain(constraints.iter().map(|(a, b, _)| (*a, *b)))
                .collect();
            let cycles = self.cycles();
            if cycles.is_empty() {
                return self;
            }
            // Only constraints inside a cycle are dropped, so that operations outside of cycles keep their order.
            constraints.retain(|(a, b, priority)| {
                let inside = cycles.get(a).is_some_and(|c| cycles.get(b) == Some(c));
                !(inside && *priority == lowest)
            });
        }
        self.edges = within
            .into_iter()
            .chain(constraints.into_iter().map(|(a, b, _)| (a, b)))
            .collect();
        self
    }

    /// Returns the cycle of each operation that is on one: the key is the index of the operation, the value an arbitrary number for the
    /// cycle.
    fn cycles(&self) -> HashMap<u32, usize> {
        let components = petgraph::algo::kosaraju_scc(&self.to_walk());
        // A cycle has at least two nodes, because no edge leads from a node to itself.
        let cycles = components.iter().enumerate().filter(|(_, c)| c.len() > 1);
        cycles
            .flat_map(|(i, c)| c.iter().map(move |n| (u32::try_from(n.index()).unwrap_or(u32::MAX), i)))
            .collect()
    }

    /// Returns true if apply can walk the graph: all nodes, changes and invocations that it refers to exist, and it has no cycle. Graphs of
    /// saved plans are checked with this.
    #[must_use]
    pub fn fits(&self, changes: usize, invocations: usize) -> bool {
        let exists = |i: u32, count: usize| (i as usize) < count;
        let nodes = self.nodes.len();
        let operations = self.nodes.iter().all(|operation| match operation {
            Operation::Change(i) | Operation::Destroy(i) => exists(*i, changes),
            Operation::Invoke(i) => exists(*i, invocations),
            Operation::GroupStart(_) | Operation::GroupEnd(_) => true,
        });
        operations && self.edges.iter().all(|(a, b)| exists(*a, nodes) && exists(*b, nodes)) && self.cycle().is_none()
    }

    /// Returns the number of nodes other than group barriers.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.nodes
            .iter()
            .filter(|n| matches!(n, Operation::Change(_) | Operation::Destroy(_) | Operation::Invoke(_)))
            .count()
    }

    /// Returns the graph in the form for a walk.
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

    /// Returns the operations on one cycle, if there is one.
    #[must_use]
    pub fn cycle(&self) -> Option<Vec<Operation>> {
        let graph = self.to_walk();
        petgraph::algo::kosaraju_scc(&graph)
            .into_iter()
            .find(|component| component.len() > 1)
            .map(|component| component.into_iter().map(|n| graph[n]).collect())
    }
}

#[cfg(test)]
mod tests;
