//! Order of statements: a statement comes after those that move objects to its source, and a move inside a module comes before or after a
//! move of that module, depending on which of the module's addresses it uses. Statements are indexed by name and key, so that each is
//! compared only with statements whose addresses can be equal to its own or contain it.

use std::collections::HashMap;

use addrs::{InstanceKey, Module, Resource};
use petgraph::graph::{DiGraph, NodeIndex};

use super::statement::{Endpoint, MoveKind, Statement};

/// Returns true if two sides of statements can match the same address.
fn same(a: (&Endpoint, MoveKind), b: (&Endpoint, MoveKind)) -> bool {
    let kinds = a.1 == b.1 || (a.1.is_module() && b.1.is_module());
    kinds && a.0.steps.len() == b.0.steps.len() && a.0.resource == b.0.resource && a.0.key == b.0.key && meets(a.0, b.0)
}

/// Returns true if `inner` can match an address inside an address that `outer` matches.
fn inside(inner: (&Endpoint, MoveKind), outer: (&Endpoint, MoveKind)) -> bool {
    let (within, around) = (inner.0, outer.0);
    if around.steps.len() > within.steps.len() || !meets(around, within) {
        return false;
    }
    match outer.1 {
        MoveKind::Call | MoveKind::ModuleInstance => !inner.1.is_module() || within.steps.len() > around.steps.len(),
        MoveKind::Resource => {
            inner.1 == MoveKind::ResourceInstance
                && within.steps.len() == around.steps.len()
                && within.resource == around.resource
        }
        MoveKind::ResourceInstance => false,
    }
}

fn meets(shorter: &Endpoint, longer: &Endpoint) -> bool {
    shorter.steps.iter().zip(&longer.steps).all(|(a, b)| a.meets(b))
}

/// Index key of an endpoint: its module and resource names, and its last instance key if it has one.
type Name = (Module, Option<Resource>, Option<InstanceKey>);

/// Statements, indexed by one of their endpoints.
#[derive(Default)]
struct Index(HashMap<Name, Vec<usize>>);

impl Index {
    fn new<'s>(sides: impl Iterator<Item = &'s Endpoint>) -> Index {
        let mut index = Index::default();
        for (i, side) in sides.enumerate() {
            let key = match &side.resource {
                Some(_) => side.key.clone(),
                None => side.steps.last().and_then(|s| s.key.clone()),
            };
            index
                .0
                .entry((side.module(), side.resource.clone(), key))
                .or_default()
                .push(i);
        }
        index
    }

    /// Returns the statements whose indexed endpoint may be equal to this one or contain it.
    fn at_or_around<'i>(&'i self, side: &Endpoint) -> impl Iterator<Item = usize> + 'i {
        let mut names: Vec<Name> = Vec::new();
        if let Some(resource) = &side.resource {
            names.push((side.module(), Some(resource.clone()), None));
            if side.key.is_some() {
                names.push((side.module(), Some(resource.clone()), side.key.clone()));
            }
        }
        let module = side.module();
        for length in 1..=side.steps.len() {
            let path = Module(module.0[..length].into());
            names.push((path.clone(), None, None));
            match &side.steps[length - 1].key {
                Some(key) => names.push((path, None, Some(key.clone()))),
                // An endpoint without a key matches all keys.
                None => names.extend(
                    self.0
                        .keys()
                        .filter(|(m, r, k)| *m == path && r.is_none() && k.is_some())
                        .cloned(),
                ),
            }
        }
        names
            .into_iter()
            .filter_map(|name| self.0.get(&name))
            .flatten()
            .copied()
    }
}

/// Returns the statements in order, as indexes. If there are cycles, the error has the statements of each.
pub(super) fn sorted(statements: &[Statement]) -> Result<Vec<usize>, Vec<Vec<usize>>> {
    let from = Index::new(statements.iter().map(|s| &s.from));
    let to = Index::new(statements.iter().map(|s| &s.to));
    let mut graph: DiGraph<usize, ()> = DiGraph::with_capacity(statements.len(), statements.len());
    for i in 0..statements.len() {
        graph.add_node(i);
    }
    let mut connect = |first: usize, then: usize| {
        if first != then && depends(&statements[then], &statements[first]) {
            graph.update_edge(NodeIndex::new(first), NodeIndex::new(then), ());
        }
    };
    for (i, statement) in statements.iter().enumerate() {
        for other in to.at_or_around(&statement.from).chain(to.at_or_around(&statement.to)) {
            connect(other, i);
        }
        for around in from
            .at_or_around(&statement.from)
            .chain(from.at_or_around(&statement.to))
        {
            connect(i, around);
        }
    }
    let mut order = Vec::with_capacity(statements.len());
    let mut circles = Vec::new();
    for mut component in petgraph::algo::kosaraju_scc(&graph) {
        component.sort();
        match component.as_slice() {
            [one] => order.push(one.index()),
            _ => circles.push(component.iter().map(|n| n.index()).collect()),
        }
    }
    // `kosaraju_scc` returns components in reverse topological order.
    order.reverse();
    if circles.is_empty() { Ok(order) } else { Err(circles) }
}

/// Returns true if the statement `waits` must come after the statement `first`.
fn depends(waits: &Statement, first: &Statement) -> bool {
    let (a_from, a_to) = ((&waits.from, waits.kind), (&waits.to, waits.kind));
    let (b_from, b_to) = ((&first.from, first.kind), (&first.to, first.kind));
    if same(a_from, b_to) {
        return true;
    }
    if !(inside(a_from, b_to) || inside(a_to, b_to) || inside(b_from, a_from) || inside(b_to, a_from)) {
        return false;
    }
    // If `waits` only changes the key of a module, a statement declared inside the module matches both its source and its target. Such a
    // statement must come after `waits`, so `waits` does not depend on it.
    waits.to.declared >= first.to.declared || !waits.only_changes_key()
}
