//! Dependencies between the runs of a file, and their order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addrs::{Mode, Referenceable};
use config::{Config, TestFile, TestProvider, TestRun};
use lang::refs;
use petgraph::graph::{DiGraph, NodeIndex};
use syntax::ast::{Body, Expr};
use syntax::{Diagnostic, Range};

use crate::run_providers;

/// References of an expression to runs and variables of the test file.
#[derive(Clone, Debug, Default)]
pub struct Named {
    pub runs: BTreeMap<Arc<str>, Range>,
    pub variables: BTreeSet<Arc<str>>,
}

impl Named {
    /// Adds the references of an expression.
    pub fn add(&mut self, expr: &Expr) {
        for traversal in refs::traversals(expr) {
            let Ok(reference) = refs::whole_reference(traversal) else {
                continue;
            };
            match reference.subject {
                Referenceable::Variable(name) => {
                    self.variables.insert(name);
                }
                Referenceable::Resource(r) if r.mode == Mode::Managed && &*r.ty == "run" => {
                    self.runs.entry(r.name).or_insert(reference.range);
                }
                _ => {}
            }
        }
    }

    fn add_body(&mut self, body: &Body) {
        body.attributes.iter().for_each(|a| self.add(&a.expr));
        body.blocks.iter().for_each(|b| self.add_body(&b.body));
    }
}

/// Runs and variables of the file that a run depends on.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Runs that the run refers to, directly or through variables.
    pub runs: BTreeSet<usize>,
    pub variables: BTreeSet<Arc<str>>,
    /// Runs that the run's own expressions refer to.
    own_runs: BTreeSet<usize>,
    /// Variables of the file that the run's own expressions refer to, or that the run's module declares.
    own_variables: BTreeSet<Arc<str>>,
}

/// Finds the dependencies of a run: the references in its expressions, and the file's values for variables of its
/// module.
#[must_use]
pub fn needs(file: &TestFile, run: &TestRun, module: &Config) -> Needs {
    let mut named = Named::default();
    run.variables.values().for_each(|expr| named.add(expr));
    for rule in &run.asserts {
        named.add(&rule.condition);
        named.add(&rule.error_message);
    }
    for provider in run_providers::used(file, run, module) {
        if let TestProvider::Real(block) = provider {
            named.add_body(&block.body);
        }
    }
    let declared = module.root.module.variables.keys();
    named
        .variables
        .extend(declared.filter(|name| !run.variables.contains_key(*name)).cloned());
    let index = |name: &Arc<str>| file.runs.iter().position(|r| r.name == *name);
    // A name that the file does not define does not count as a dependency.
    let of_file = |name: &&Arc<str>| file.variables.contains_key(*name) || file.definitions.contains_key(*name);
    let mut out = Needs {
        own_runs: named.runs.keys().filter_map(index).collect(),
        own_variables: named.variables.iter().filter(of_file).cloned().collect(),
        ..Needs::default()
    };
    // Variables of the file may refer to other variables and to runs, on which the run then depends, too.
    let mut open: Vec<Arc<str>> = named.variables.iter().cloned().collect();
    while let Some(name) = open.pop() {
        let expr = file.variables.get(&name);
        if (expr.is_none() && !file.definitions.contains_key(&name)) || !out.variables.insert(name) {
            continue;
        }
        if let Some(expr) = expr {
            let mut more = Named::default();
            more.add(expr);
            open.extend(more.variables);
            named.runs.extend(more.runs);
        }
    }
    out.runs = named.runs.keys().filter_map(index).collect();
    out
}

/// Returns for each run the runs that it waits for.
///
/// # Errors
/// Runs depend on each other in a cycle.
pub fn order(file: &TestFile, needs: &[Needs]) -> Result<Vec<BTreeSet<usize>>, Diagnostic> {
    let mut out: Vec<BTreeSet<usize>> = Vec::with_capacity(file.runs.len());
    // The last run that is not parallel. When it has ended, all runs before it have ended, too.
    let mut barrier: Option<usize> = None;
    let mut by_key: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for (i, run) in file.runs.iter().enumerate() {
        let mut before: BTreeSet<usize> = needs.get(i).map(|n| n.runs.clone()).unwrap_or_default();
        if before.contains(&i) {
            return Err(Diagnostic::error(
                format!("Self reference: {}.run.{}", file.name, run.name),
                "",
            ));
        }
        if run.parallel {
            before.extend(barrier);
            // Two runs with the same state must not change it at the same time.
            before.extend(by_key.get(&run.key()));
        } else {
            before.extend(barrier.unwrap_or(0)..i);
            barrier = Some(i);
        }
        by_key.insert(run.key(), i);
        out.push(before);
    }
    match cycle(file, needs, &out) {
        None => Ok(out),
        Some(names) => Err(Diagnostic::error(format!("Cycle:\n  {}", names.join("\n  ")), "")),
    }
}

/// Returns for each of these states, by key, the states that are destroyed before it: those with a run that waited for
/// a run of this state. `before` has the runs that each run waited for. The result has no cycles: of two states that
/// were changed in turns, the one that was changed last is destroyed before the other.
#[must_use]
pub fn teardown(file: &TestFile, before: &[BTreeSet<usize>], keys: &[Arc<str>]) -> Vec<BTreeSet<usize>> {
    let number: BTreeMap<&Arc<str>, usize> = keys.iter().enumerate().map(|(i, key)| (key, i)).collect();
    let of_run: Vec<Option<usize>> = file.runs.iter().map(|r| number.get(&r.key()).copied()).collect();
    let mut last = vec![None; keys.len()];
    for (run, state) in of_run.iter().enumerate() {
        if let Some(state) = state {
            last[*state] = Some(run);
        }
    }
    let mut out = vec![BTreeSet::new(); keys.len()];
    for (state, run) in last.iter().enumerate() {
        let mut seen = vec![false; file.runs.len()];
        let mut open: Vec<usize> = run.iter().copied().collect();
        while let Some(run) = open.pop() {
            for earlier in before.get(run).into_iter().flatten() {
                if std::mem::replace(&mut seen[*earlier], true) {
                    continue;
                }
                open.push(*earlier);
                // The relation follows the order of the last runs, so it cannot have cycles.
                if let Some(other) = of_run[*earlier].filter(|other| *other != state && last[*other] < last[state]) {
                    out[other].insert(state);
                }
            }
        }
    }
    out
}

/// Returns the runs and variables of one dependency cycle, for the message; `None` if there is no cycle.
fn cycle(file: &TestFile, needs: &[Needs], before: &[BTreeSet<usize>]) -> Option<Vec<String>> {
    let mut graph: DiGraph<String, ()> = DiGraph::new();
    let runs: Vec<NodeIndex> = file
        .runs
        .iter()
        .map(|run| graph.add_node(format!("{}.run.{}", file.name, run.name)))
        .collect();
    let variables: BTreeMap<&Arc<str>, NodeIndex> = file
        .variables
        .keys()
        .map(|name| (name, graph.add_node(format!("var.{name}"))))
        .collect();
    for ((node, before), needs) in runs.iter().zip(before).zip(needs) {
        // A dependency through a variable is an edge of the variable, not of the run.
        let direct = before.difference(&needs.runs).chain(&needs.own_runs);
        direct.for_each(|other| {
            graph.add_edge(*node, runs[*other], ());
        });
        for other in needs.own_variables.iter().filter_map(|name| variables.get(name)) {
            graph.add_edge(*node, *other, ());
        }
    }
    for (i, run) in file.runs.iter().enumerate().skip(1) {
        // Runs that are not parallel run in the order of the file, whatever they refer to.
        if !run.parallel {
            graph.add_edge(runs[i], runs[i - 1], ());
        }
    }
    for (name, expr) in &file.variables {
        let mut named = Named::default();
        named.add(expr);
        for other in named.variables.iter().filter_map(|name| variables.get(name)) {
            graph.add_edge(variables[name], *other, ());
        }
        for other in named.runs.keys() {
            if let Some(i) = file.runs.iter().position(|run| run.name == *other) {
                graph.add_edge(variables[name], runs[i], ());
            }
        }
    }
    let all = petgraph::algo::tarjan_scc(&graph);
    let round = all.into_iter().find(|nodes| {
        let own = |node: &NodeIndex| graph.contains_edge(*node, *node);
        nodes.len() > 1 || nodes.first().is_some_and(own)
    })?;
    Some(round.into_iter().map(|node| graph[node].clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(runs: &[&str]) -> TestFile {
        let sources: config::files::MemoryFiles = [("a.tftest.hcl", runs.join("\n"))].into_iter().collect();
        let read = config::test_files::read(&sources, ".", "tests", false);
        assert!(!read.diagnostics.has_errors(), "{:?}", read.diagnostics);
        TestFile::clone(&read.files[0])
    }

    fn ordered(file: &TestFile) -> Result<Vec<BTreeSet<usize>>, Diagnostic> {
        let module = Config::clone(&config::load(&config::files::MemoryFiles::default(), ".", &options()).config);
        let needs: Vec<Needs> = file.runs.iter().map(|run| needs(file, run, &module)).collect();
        order(file, &needs)
    }

    fn options() -> config::LoadOptions<'static> {
        static NONE: std::sync::LazyLock<config::manifest::Manifest> = std::sync::LazyLock::new(Default::default);
        config::LoadOptions::new("1.16.0", &NONE)
    }

    #[test]
    fn runs_wait_for_the_one_before_unless_they_are_parallel() {
        let plain = file(&["run \"a\" {}", "run \"b\" {}", "run \"c\" {}"]);
        assert_eq!(ordered(&plain).unwrap()[2], BTreeSet::from([1]));
        let parallel = file(&[
            "test {\nparallel = true\n}",
            "run \"a\" {\nstate_key = \"a\"\n}",
            "run \"b\" {\nstate_key = \"b\"\n}",
            "run \"c\" {\nstate_key = \"a\"\n}",
            "run \"d\" {\nstate_key = \"d\"\nvariables {\nx = run.b.y\n}\n}",
        ]);
        let order = ordered(&parallel).unwrap();
        assert_eq!(order[1], BTreeSet::new());
        assert_eq!(order[2], BTreeSet::from([0]));
        assert_eq!(order[3], BTreeSet::from([1]));
    }

    #[test]
    fn states_are_destroyed_before_those_they_were_made_after() {
        let plain = file(&[
            "run \"a\" {\nstate_key = \"a\"\n}",
            "run \"b\" {\nstate_key = \"b\"\n}",
            "run \"again\" {\nstate_key = \"a\"\n}",
        ]);
        let keys = [Arc::from("a"), Arc::from("b")];
        let before = ordered(&plain).unwrap();
        assert_eq!(teardown(&plain, &before, &keys), [BTreeSet::new(), BTreeSet::from([0])]);
        let parallel = file(&[
            "test {\nparallel = true\n}",
            "run \"a\" {\nstate_key = \"a\"\n}",
            "run \"b\" {\nstate_key = \"b\"\n}",
            "run \"c\" {\nstate_key = \"c\"\nvariables {\nx = run.b.y\n}\n}",
        ]);
        let keys = [Arc::from("a"), Arc::from("b"), Arc::from("c")];
        let before = ordered(&parallel).unwrap();
        assert_eq!(
            teardown(&parallel, &before, &keys),
            [BTreeSet::new(), BTreeSet::from([2]), BTreeSet::new()]
        );
    }

    #[test]
    fn what_waits_for_each_other_is_named() {
        let later = file(&[
            "run \"a\" {\nvariables {\nx = run.b.y\n}\n}",
            "run \"b\" {}",
            "run \"c\" {}",
        ]);
        let problem = ordered(&later).unwrap_err();
        assert!(problem.summary.starts_with("Cycle:\n"), "{}", problem.summary);
        assert!(!problem.summary.contains("run.c"), "{}", problem.summary);
        let round = file(&["variables {\na = var.b\nb = var.a\n}", "run \"a\" {}"]);
        assert!(ordered(&round).unwrap_err().summary.contains("var.b"));
    }
}
