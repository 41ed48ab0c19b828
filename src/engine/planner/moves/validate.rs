//! Validation of move statements against the instances that the configuration declares.

use std::collections::{HashMap, HashSet};

use addrs::{AbsResource, Module, ModuleInstance};
use config::Config;
use state::State;
use syntax::{Diagnostic, Diagnostics, Range};

use super::order;
use super::statement::{Statement, Subject};
use crate::eval::Evaluator;

/// Instances that the configuration declares, as far as their expansion could be evaluated.
struct Declared<'d, 'a> {
    evaluator: &'d Evaluator<'a>,
    modules: HashMap<Module, HashSet<ModuleInstance>>,
}

impl Declared<'_, '_> {
    fn instances(&mut self, module: &Module) -> &HashSet<ModuleInstance> {
        let evaluator = self.evaluator;
        self.modules.entry(module.clone()).or_insert_with(|| {
            let instances = evaluator.module_instances(module).unwrap_or_default();
            instances.into_iter().collect()
        })
    }

    fn has_module(&mut self, module: &ModuleInstance) -> bool {
        self.instances(&module.module()).contains(module)
    }

    fn has_resource(&mut self, resource: &AbsResource) -> bool {
        self.evaluator.config().resource(&resource.config()).is_some() && self.has_module(&resource.module)
    }

    /// Returns true if the configuration declares this address.
    fn has(&mut self, subject: &Subject) -> bool {
        match subject {
            Subject::Call(module, name) => {
                let config = self.evaluator.config();
                let calls = config.node(&module.module()).map(|n| &n.module.module_calls);
                calls.is_some_and(|calls| calls.contains_key(name)) && self.has_module(module)
            }
            Subject::ModuleInstance(module) => self.has_module(module),
            Subject::Resource(resource) => self.has_resource(resource),
            Subject::ResourceInstance(instance) => {
                self.has_resource(&instance.containing_resource())
                    && self
                        .evaluator
                        .resource_expansion(&instance.module, &instance.resource.resource)
                        .is_ok_and(|expansion| expansion.has(&instance.resource.key))
            }
        }
    }
}

/// Returns the range that messages about an address refer to: the `count` or `for_each` argument, or else the block.
fn place(config: &Config, subject: &Subject) -> Option<Range> {
    let call = |module: &Module, name: &str, instance: bool| {
        let call = config.node(module)?.module.module_calls.get(name)?;
        let repeated = call.for_each.as_ref().or(call.count.as_ref()).filter(|_| instance);
        Some(repeated.map_or(&call.range, |expr| expr.range()).clone())
    };
    match subject {
        Subject::Call(module, name) => call(&module.module(), name, false),
        Subject::ModuleInstance(module) => {
            let (parent, step) = module.parent()?;
            call(&parent.module(), &step.name, true)
        }
        Subject::Resource(resource) => Some(config.resource(&resource.config())?.range.clone()),
        Subject::ResourceInstance(instance) => {
            let block = config.resource(&instance.config())?;
            let repeated = block.for_each.as_ref().or(block.count.as_ref());
            Some(repeated.map_or(&block.range, |expr| expr.range()).clone())
        }
    }
}

fn at(range: &Range) -> String {
    format!("{}:{},{}", range.file, range.start.line, range.start.column)
}

/// One move of a statement, in one instance of the module that declares it.
struct Move<'s> {
    statement: &'s Statement,
    from: Subject,
    to: Subject,
}

/// Moves seen so far, by source or by target, with the address on the other side and the statement.
type MovesBy<'s> = HashMap<Subject, (Subject, &'s Statement)>;

struct Validation<'v> {
    declared: Declared<'v, 'v>,
    by_source: MovesBy<'v>,
    by_target: MovesBy<'v>,
    /// Moves to the target of an earlier move, each with the source and the statement of the earlier one.
    clashes: Vec<(Move<'v>, Subject, &'v Statement)>,
    /// Sources of all moves, by their targets.
    sources: HashMap<Subject, Vec<Subject>>,
    /// State before the moves.
    before: &'v State,
    out: Diagnostics,
}

/// Validates the statements. `before` is the state before their application.
pub(in crate::planner) fn validate<'v>(
    statements: &'v [Statement],
    evaluator: &'v Evaluator<'v>,
    before: &'v State,
) -> Diagnostics {
    let mut validation = Validation {
        declared: Declared {
            evaluator,
            modules: HashMap::new(),
        },
        by_source: HashMap::new(),
        by_target: HashMap::new(),
        clashes: Vec::new(),
        sources: HashMap::new(),
        before,
        out: Diagnostics::new(),
    };
    for statement in statements {
        let instances = validation.declared.instances(&statement.from.declaring());
        let mut modules: Vec<ModuleInstance> = instances.iter().cloned().collect();
        // The modules are sorted, because the order of a set would make the order of messages random.
        modules.sort();
        for module in modules {
            validation.check(Move {
                statement,
                from: statement.from.within(&module, statement.kind),
                to: statement.to.within(&module, statement.kind),
            });
        }
    }
    // Clashes are checked last, because `had` follows the sources of all moves.
    validation.check_clashes();
    let mut out = validation.out;
    if !out.has_errors()
        && let Err(cycles) = order::sorted(statements)
    {
        out.extend(cycles.into_iter().map(|cycle| cyclic(statements, cycle)));
    }
    out
}

impl<'v> Validation<'v> {
    fn check(&mut self, m: Move<'v>) {
        let Move { statement, from, to } = &m;
        if from == to {
            let detail =
                format!("This statement says that {from} has moved to {to}, which is where it was. Remove it.");
            self.problem(statement, "Redundant move statement", detail);
            return;
        }
        if self.declared.has(from) {
            self.source_is_declared(&m);
        }
        self.check_source(&m);
        self.check_target(m);
    }

    fn problem(&mut self, statement: &Statement, summary: &str, detail: String) {
        self.out.push(Diagnostic::error(summary, detail).at(&statement.range));
    }

    fn source_is_declared(&mut self, m: &Move<'_>) {
        let Move { statement, from, to } = m;
        let (noun, short) = statement.kind.noun();
        let declared_at = place(self.declared.evaluator.config(), from)
            .map(|r| format!(" at {}", at(&r)))
            .unwrap_or_default();
        let detail = format!(
            "This statement says that {from} has moved, but that {noun} is still declared{declared_at}.\n\nDeclare this \
             {short} as {to} instead, or remove the statement."
        );
        self.problem(statement, "Moved object still exists", detail);
    }

    /// Reports an error if another statement moves the same source to another target.
    fn check_source(&mut self, m: &Move<'v>) {
        let Move { statement, from, to } = m;
        match self.by_source.get(from) {
            Some((other, first)) if other != to => {
                let (noun, _) = statement.kind.noun();
                let range = &first.range;
                let detail = format!(
                    "A statement at {} says that {from} has moved to {other}, this one that it has moved to {to}.\n\nEach \
                     {noun} can have moved to one place only.",
                    at(range)
                );
                self.problem(statement, "Ambiguous move statements", detail);
            }
            Some(_) => {}
            None => {
                self.by_source.insert(from.clone(), (to.clone(), statement));
            }
        }
    }

    /// Records a clash if another statement moves another source to the same target.
    fn check_target(&mut self, m: Move<'v>) {
        self.sources.entry(m.to.clone()).or_default().push(m.from.clone());
        match self.by_target.get(&m.to) {
            Some((other, first)) if *other != m.from => {
                let (other, first) = (other.clone(), *first);
                self.clashes.push((m, other, first));
            }
            Some(_) => {}
            None => {
                self.by_target.insert(m.to, (m.from, m.statement));
            }
        }
    }

    /// Reports moves of two sources to the same target. Statements in two modules, such as a module and its caller, may both move an object
    /// to the same address. That is an error only if the state has objects at both sources.
    fn check_clashes(&mut self) {
        for (m, other, first) in std::mem::take(&mut self.clashes) {
            let Move { statement, from, to } = &m;
            let same_module = first.from.declaring() == statement.from.declaring();
            let both_exist = self.had(from, &mut HashSet::new()) && self.had(&other, &mut HashSet::new());
            if !(same_module || both_exist) {
                continue;
            }
            let (noun, _) = statement.kind.noun();
            let detail = format!(
                "A statement at {} says that {other} has moved to {to}, this one that {from} has.\n\nEach {noun} can have come from one place \
                 only.",
                at(&first.range)
            );
            self.problem(statement, "Ambiguous move statements", detail);
        }
    }

    /// Returns true if the state had an object at an address, or at a source of moves to it.
    fn had(&self, subject: &Subject, seen: &mut HashSet<Subject>) -> bool {
        let mut resources = self.before.resources.keys();
        let stored = match subject {
            Subject::Call(module, name) => resources.any(|r| {
                module.contains(&r.module) && r.module.0.get(module.0.len()).is_some_and(|step| step.name == *name)
            }),
            Subject::ModuleInstance(module) => resources.any(|r| module.contains(&r.module)),
            Subject::Resource(resource) => self.before.resources.contains_key(resource),
            Subject::ResourceInstance(instance) => self.before.instance(instance).is_some(),
        };
        if stored {
            return true;
        }
        // A cycle of statements is reported by `cyclic`, so the search only has to end.
        if !seen.insert(subject.clone()) {
            return false;
        }
        let sources = self.sources.get(subject).into_iter().flatten();
        sources.into_iter().any(|source| self.had(source, seen))
    }
}

fn cyclic(statements: &[Statement], cycle: Vec<usize>) -> Diagnostic {
    let mut lines: Vec<String> = cycle
        .into_iter()
        .map(|i| &statements[i])
        .map(|s| format!("\n  - {}: {} → {}", at(&s.range), s.from, s.to))
        .collect();
    // The search may enter the cycle at any statement, so the lines are sorted to make the message reproducible.
    lines.sort();
    Diagnostic::error(
        "Cyclic dependency in move statements",
        format!(
            "These statements move objects in a circle, so that there is no place where they end up:{}\n\nA chain of \
             moves must end with an address that is in no other statement, usually that of something the \
             configuration declares.",
            lines.concat()
        ),
    )
}
