//! Tests of the order of operations.

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
        deposed: false,
        provider: provider("p"),
        state_dependencies,
    }
}

fn provider(name: &str) -> AbsProviderConfig {
    AbsProviderConfig::root(addrs::Provider::default_for(name))
}

/// Returns true if the first operation comes before the second in every order that the graph allows.
fn before(graph: &ExecGraph, first: Operation, second: Operation) -> bool {
    let walk = graph.to_walk();
    let find = |op| walk.node_indices().find(|n| walk[*n] == op).unwrap();
    petgraph::algo::has_path_connecting(&walk, find(first), find(second), None)
}

fn depends(pairs: &[(&str, &[&str])]) -> Dependencies {
    let resources = pairs
        .iter()
        .map(|(r, ds)| (res(r), ds.iter().map(|d| res(d)).collect()))
        .collect();
    Dependencies {
        resources,
        ..Dependencies::default()
    }
}

#[test]
fn creation_in_dependency_order_and_destruction_in_reverse() {
    let deps = depends(&[("b", &["a"])]);
    let graph = ExecGraph::build(
        &[planned("b", Action::Create, &[]), planned("a", Action::Create, &[])],
        &deps,
        false,
    );
    assert!(before(&graph, Operation::Change(1), Operation::Change(0)));
    let graph = ExecGraph::build(
        &[planned("b", Action::Delete, &["a"]), planned("a", Action::Delete, &[])],
        &deps,
        false,
    );
    assert!(before(&graph, Operation::Destroy(0), Operation::Destroy(1)));
}

#[test]
fn destroy_first_replacement_destroys_dependents_before_and_creates_them_after() {
    let deps = depends(&[("b", &["a"])]);
    let replace = Action::DeleteThenCreate;
    let graph = ExecGraph::build(
        &[planned("a", replace, &[]), planned("b", replace, &["a"])],
        &deps,
        false,
    );
    assert!(before(&graph, Operation::Destroy(1), Operation::Destroy(0)));
    assert!(before(&graph, Operation::Destroy(0), Operation::Change(0)));
    assert!(before(&graph, Operation::Change(0), Operation::Change(1)));
    assert_eq!(graph.cycle(), None);
}

#[test]
fn create_before_destroy_destroys_old_object_after_dependents_change() {
    let deps = depends(&[("b", &["a"])]);
    let graph = ExecGraph::build(
        &[
            planned("a", Action::CreateThenDelete, &[]),
            planned("b", Action::Update, &["a"]),
        ],
        &deps,
        false,
    );
    assert!(before(&graph, Operation::Change(0), Operation::Change(1)));
    assert!(before(&graph, Operation::Change(1), Operation::Destroy(0)));
    assert_eq!(graph.cycle(), None);
}

#[test]
fn deletion_precedes_change_of_dependency_unless_destroyed_last() {
    let update = planned("a", Action::Update, &[]);
    let graph = ExecGraph::build(
        &[update.clone(), planned("b", Action::Delete, &["a"])],
        &depends(&[]),
        false,
    );
    assert!(before(&graph, Operation::Destroy(1), Operation::Change(0)));
    let last = Planned {
        destroy_last: true,
        ..planned("b", Action::Delete, &["a"])
    };
    let graph = ExecGraph::build(&[update, last], &depends(&[]), false);
    assert!(before(&graph, Operation::Change(0), Operation::Destroy(1)));
}

#[test]
fn deletion_follows_change_of_provider_configuration_dependency() {
    // `b` and its provider configuration both refer to `a`. `a` is changed, and `b` deleted.
    for action in [Action::Update, Action::DeleteThenCreate, Action::CreateThenDelete] {
        let mut deps = depends(&[]);
        deps.providers.insert(provider("q"), [res("a")].into());
        let b = Planned {
            provider: provider("q"),
            ..planned("b", Action::Delete, &["a"])
        };
        let graph = ExecGraph::build(&[planned("a", action, &[]), b], &deps, false);
        assert_eq!(graph.cycle(), None);
        assert!(before(&graph, Operation::Change(0), Operation::Destroy(1)));
        if action == Action::CreateThenDelete {
            assert!(before(&graph, Operation::Destroy(1), Operation::Destroy(0)));
        }
    }
}

#[test]
fn cycle_of_constraints_leaves_out_lowest_priority() {
    // Recorded: x depends on r, and r on d. The provider configuration of x refers to d, which is updated; x and r are
    // deleted.
    let mut deps = depends(&[]);
    deps.providers.insert(provider("q"), [res("d")].into());
    let x = Planned {
        provider: provider("q"),
        ..planned("x", Action::Delete, &["r"])
    };
    let graph = ExecGraph::build(
        &[
            planned("d", Action::Update, &[]),
            planned("r", Action::Delete, &["d"]),
            x,
        ],
        &deps,
        false,
    );
    assert_eq!(graph.cycle(), None);
    assert!(before(&graph, Operation::Change(0), Operation::Destroy(2)));
    assert!(before(&graph, Operation::Destroy(2), Operation::Destroy(1)));
}

#[test]
fn replacement_with_reversed_dependency_has_no_cycle() {
    // Recorded: `b` depends on `a`. Configured: `a` depends on `b`, which has create_before_destroy. Both are
    // replaced.
    let deps = depends(&[("a", &["b"])]);
    let graph = ExecGraph::build(
        &[
            planned("a", Action::DeleteThenCreate, &[]),
            planned("b", Action::CreateThenDelete, &["a"]),
        ],
        &deps,
        false,
    );
    assert_eq!(graph.cycle(), None);
    assert!(before(&graph, Operation::Change(1), Operation::Change(0)));
    assert!(before(&graph, Operation::Destroy(1), Operation::Destroy(0)));
}

#[test]
fn deposed_object_is_destroyed_by_its_recorded_dependencies() {
    // The deposed object of `b` depends on `a`, whose current object depends on the current object of `b`.
    let left = Planned {
        deposed: true,
        ..planned("b", Action::Delete, &["a"])
    };
    let graph = ExecGraph::build(
        &[
            planned("a", Action::Delete, &["b"]),
            planned("b", Action::Delete, &[]),
            left,
        ],
        &depends(&[("a", &["b"])]),
        true,
    );
    assert_eq!(graph.cycle(), None);
    assert!(before(&graph, Operation::Destroy(2), Operation::Destroy(0)));
    assert!(before(&graph, Operation::Destroy(0), Operation::Destroy(1)));
}

#[test]
fn number_of_edges_is_linear_in_instances() {
    let deps = depends(&[("b", &["a"])]);
    let many: Vec<_> = (0..2000)
        .map(|i| planned(if i % 2 == 0 { "a" } else { "b" }, Action::Create, &[]))
        .collect();
    let graph = ExecGraph::build(&many, &deps, false);
    assert_eq!(graph.edges.len(), 2 * 2000 + 2 + 1);
}
