//! Coverage of a module by the runs of a suite: resources that had objects; outputs, local values and conditions that
//! were evaluated; and the branches of conditional expressions that were chosen.
//!
//! A branch counts if its value was chosen: both are always evaluated, to determine the type of the result. Choices
//! inside a branch that was not taken do not count.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use addrs::AbsResource;
use config::{CheckRule, Config, Module, ModuleNode};
use engine::plan::Plan;
use lang::refs::conditionals;
use lang::scope::Witness;
use state::State;
use syntax::Range;
use syntax::ast::{Body, Expr};

/// Range of bytes in a file.
type Place = (Arc<str>, u32, u32);

fn place(range: &Range) -> Place {
    (range.file.clone(), range.start.byte, range.end.byte)
}

#[derive(Debug, Default)]
struct Seen {
    /// Number of evaluations of each expression.
    evaluated: HashMap<Place, u64>,
    /// For each conditional, how often it was false and how often true.
    chosen: HashMap<Place, [u64; 2]>,
    /// For each resource, the number of runs in which it had objects.
    resources: HashMap<Place, u64>,
}

/// Coverage that is recorded while suites run.
#[derive(Debug, Default)]
pub struct Coverage(Mutex<Seen>);

/// Kind of a part of a module that runs can cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Resource,
    Output,
    Local,
    Condition,
    /// One of the two results of a conditional expression.
    Branch,
}

impl Kind {
    /// All kinds, in the order of reports.
    pub const ALL: [Kind; 5] = [Kind::Resource, Kind::Output, Kind::Local, Kind::Condition, Kind::Branch];

    /// Returns the name of the kind in machine-readable reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Kind::Resource => "resource",
            Kind::Output => "output",
            Kind::Local => "local",
            Kind::Condition => "condition",
            Kind::Branch => "branch",
        }
    }

    /// Returns the plural of the kind, for text output.
    #[must_use]
    pub fn many(self) -> &'static str {
        match self {
            Kind::Resource => "resources",
            Kind::Output => "output values",
            Kind::Local => "local values",
            Kind::Condition => "conditions",
            Kind::Branch => "branches",
        }
    }
}

/// A part of a module that runs can cover.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub kind: Kind,
    /// Name or description of the item, in text output.
    pub name: String,
    pub range: Range,
    /// Number of times that the item was covered.
    pub hits: u64,
}

impl Witness for Coverage {
    fn evaluated(&self, at: &Range) {
        *self.seen().evaluated.entry(place(at)).or_default() += 1;
    }

    fn chosen(&self, conditional: &Range, yes: bool) {
        let mut seen = self.seen();
        let counts = seen.chosen.entry(place(conditional)).or_default();
        counts[usize::from(yes)] += 1;
    }
}

impl Coverage {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the resources of a plan.
    pub(crate) fn planned(&self, config: &Config, plan: &Plan) {
        let planned = plan.changes.iter().map(|c| c.address.containing_resource());
        let read = plan.prior_state.resources.keys().cloned();
        self.objects(config, planned.chain(read));
    }

    /// Records the resources of a state.
    pub(crate) fn exist(&self, config: &Config, state: &State) {
        self.objects(config, state.resources.keys().cloned());
    }

    fn objects(&self, config: &Config, all: impl Iterator<Item = AbsResource>) {
        // A set, because a run counts once for a resource, even if the resource has several instances.
        let all: BTreeSet<_> = all.map(|r| (r.module.module(), r.resource)).collect();
        let mut seen = self.seen();
        for (module, resource) in all {
            let declared = config.node(&module).and_then(|n| n.module.resources.get(&resource));
            if let Some(declared) = declared {
                *seen.resources.entry(place(&declared.range)).or_default() += 1;
            }
        }
    }

    /// Lists the items of a module, and of the modules that it calls by local paths, in the order of the files.
    #[must_use]
    pub fn measured(&self, root: &Config) -> Vec<Item> {
        let seen = self.seen();
        let mut out = Vec::new();
        let mut dirs = BTreeSet::new();
        let mut open: Vec<&ModuleNode> = vec![&root.root];
        while let Some(node) = open.pop() {
            // Modules from registries or repositories have tests of their own.
            let local = |child: &&ModuleNode| child.source.starts_with('.');
            open.extend(node.children.values().filter(local));
            // The items of a module that is called twice are counted once.
            if dirs.insert(node.module.source_dir.clone()) {
                of_module(&node.module, &seen, &mut out);
            }
        }
        out.sort_by(|a, b| {
            let key = |item: &Item| (item.range.file.clone(), item.range.start.byte, item.kind);
            key(a).cmp(&key(b))
        });
        out
    }
}

/// Returns for each kind the number of covered items and of all.
#[must_use]
pub fn totals(items: &[Item]) -> BTreeMap<Kind, (usize, usize)> {
    let mut out = BTreeMap::new();
    for item in items {
        let (covered, all): &mut (usize, usize) = out.entry(item.kind).or_default();
        *covered += usize::from(item.hits > 0);
        *all += 1;
    }
    out
}

/// Collector of a module's items.
struct Items<'m> {
    seen: &'m Seen,
    out: &'m mut Vec<Item>,
}

impl Items<'_> {
    fn add(&mut self, kind: Kind, name: String, range: &Range, hits: u64) {
        let range = range.clone();
        self.out.push(Item {
            kind,
            name,
            range,
            hits,
        });
    }

    fn evaluated(&self, expr: &Expr) -> u64 {
        self.seen.evaluated.get(&place(expr.range())).copied().unwrap_or(0)
    }

    fn rules(&mut self, rules: &[CheckRule], of: &str) {
        for rule in rules {
            let hits = self.evaluated(&rule.condition);
            self.add(
                Kind::Condition,
                format!("condition of {of}"),
                rule.condition.range(),
                hits,
            );
            self.branches(&rule.condition);
        }
    }

    fn branches(&mut self, expr: &Expr) {
        for conditional in conditionals(expr) {
            let seen = self.seen.chosen.get(&place(conditional.range));
            let [no, yes] = seen.copied().unwrap_or_default();
            self.add(Kind::Branch, "result for true".to_owned(), conditional.yes, yes);
            self.add(Kind::Branch, "result for false".to_owned(), conditional.no, no);
        }
    }

    fn body(&mut self, body: &Body) {
        body.attributes.iter().for_each(|a| self.branches(&a.expr));
        body.blocks.iter().for_each(|b| self.body(&b.body));
    }
}

fn of_module(module: &Module, seen: &Seen, out: &mut Vec<Item>) {
    let mut items = Items { seen, out };
    for variable in module.variables.values() {
        items.rules(&variable.validations, &format!("var.{}", variable.name));
    }
    for local in module.locals.values() {
        let hits = items.evaluated(&local.expr);
        items.add(Kind::Local, format!("local.{}", local.name), &local.range, hits);
        items.branches(&local.expr);
    }
    for output in module.outputs.values() {
        let hits = items.evaluated(&output.expr);
        items.add(Kind::Output, format!("output.{}", output.name), &output.range, hits);
        items.branches(&output.expr);
        items.rules(&output.preconditions, &format!("output.{}", output.name));
    }
    for (address, resource) in &module.resources {
        let hits = match address.mode {
            // Neither kind leaves an object that could be counted, so an evaluated argument counts. A block without
            // arguments counts as covered.
            addrs::Mode::Ephemeral | addrs::Mode::List => {
                let exprs = resource.body.attributes.iter().map(|a| &a.expr);
                exprs.map(|e| items.evaluated(e)).max().unwrap_or(1)
            }
            _ => seen.resources.get(&place(&resource.range)).copied().unwrap_or(0),
        };
        items.add(Kind::Resource, address.to_string(), &resource.range, hits);
        resource.repetition().for_each(|expr| items.branches(expr));
        items.body(&resource.body);
        let lifecycle = &resource.lifecycle;
        items.rules(&lifecycle.preconditions, &address.to_string());
        items.rules(&lifecycle.postconditions, &address.to_string());
    }
    for check in module.checks.values() {
        items.rules(&check.asserts, &format!("check.{}", check.name));
    }
    for call in module.module_calls.values() {
        call.repetition().for_each(|expr| items.branches(expr));
        items.body(&call.inputs);
    }
}
