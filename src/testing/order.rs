//! Which runs of a file wait for which.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addrs::{Mode, Referenceable};
use config::{Config, TestFile, TestProvider, TestRun};
use lang::refs;
use syntax::ast::{Body, Expr};
use syntax::{Diagnostic, Range};

/// What an expression of a test file refers to outside its module.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// The runs.
    pub runs: BTreeMap<Arc<str>, Range>,
    /// The variables.
    pub variables: BTreeSet<Arc<str>>,
}

impl Named {
    /// Adds what an expression refers to.
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

/// What a run needs of its file.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// The runs that it refers to, in whatever way.
    pub runs: BTreeSet<usize>,
    /// The variables of the file.
    pub variables: BTreeSet<Arc<str>>,
}

/// What a run needs of its file: what its expressions refer to, and the values that the file has for variables of its module.
#[must_use]
pub fn needs(file: &TestFile, run: &TestRun, module: &Config) -> Needs {
    let mut named = Named::default();
    run.variables.values().for_each(|expr| named.add(expr));
    for rule in &run.asserts {
        named.add(&rule.condition);
        named.add(&rule.error_message);
    }
    for provider in file.providers.values() {
        if let TestProvider::Real(block) = provider {
            named.add_body(&block.body);
        }
    }
    let declared = module.root.module.variables.keys();
    named
        .variables
        .extend(declared.filter(|name| !run.variables.contains_key(*name)).cloned());
    let mut out = Needs::default();
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
    let index = |name: &Arc<str>| file.runs.iter().position(|r| r.name == *name);
    out.runs = named.runs.keys().filter_map(index).collect();
    out
}

/// For each run, those that it waits for.
///
/// # Errors
/// Some wait for each other.
pub fn order(file: &TestFile, needs: &[Needs]) -> Result<Vec<BTreeSet<usize>>, Diagnostic> {
    let mut out: Vec<BTreeSet<usize>> = Vec::with_capacity(file.runs.len());
    // The last run that is not parallel: everything before it is done when it is.
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
            before.extend(by_key.get(&run.key()));
        } else {
            before.extend(barrier.unwrap_or(0)..i);
            barrier = Some(i);
        }
        by_key.insert(run.key(), i);
        out.push(before);
    }
    match cycle(&out) {
        None => Ok(out),
        Some(cycle) => {
            let names: Vec<String> = cycle
                .into_iter()
                .map(|i| format!("  {}.run.{}", file.name, file.runs[i].name))
                .collect();
            Err(Diagnostic::error("Cycle:", names.join("\n")))
        }
    }
}

/// Runs that wait for each other.
fn cycle(before: &[BTreeSet<usize>]) -> Option<Vec<usize>> {
    let mut waiting: Vec<usize> = before.iter().map(BTreeSet::len).collect();
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); before.len()];
    for (i, all) in before.iter().enumerate() {
        for j in all {
            after[*j].push(i);
        }
    }
    let mut ready: Vec<usize> = (0..before.len()).filter(|i| waiting[*i] == 0).collect();
    let mut done = 0;
    while let Some(i) = ready.pop() {
        done += 1;
        for j in &after[i] {
            waiting[*j] -= 1;
            if waiting[*j] == 0 {
                ready.push(*j);
            }
        }
    }
    (done < before.len()).then(|| (0..before.len()).filter(|i| waiting[*i] > 0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_wait_for_each_other_are_found() {
        let waits =
            |all: &[&[usize]]| -> Vec<BTreeSet<usize>> { all.iter().map(|s| s.iter().copied().collect()).collect() };
        assert_eq!(cycle(&waits(&[&[], &[0], &[0, 1]])), None);
        assert_eq!(cycle(&waits(&[&[1], &[0], &[]])), Some(vec![0, 1]));
    }
}
