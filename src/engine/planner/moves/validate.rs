//! Whether statements make sense, given what the configuration declares.

use std::collections::{HashMap, HashSet};

use addrs::{AbsResource, Module, ModuleInstance};
use config::Config;
use syntax::{Diagnostic, Diagnostics, Range};

use super::order;
use super::statement::{Statement, Subject};
use crate::eval::Evaluator;

/// What the configuration declares, as far as it could be evaluated.
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

    /// Whether something is declared.
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

/// What decides that something is there: the expression that repeats it, or its block.
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

/// Every problem with the statements.
pub(in crate::planner) fn validate(statements: &[Statement], evaluator: &Evaluator<'_>) -> Diagnostics {
    let mut out = Diagnostics::new();
    let config = evaluator.config();
    let mut declared = Declared {
        evaluator,
        modules: HashMap::new(),
    };
    let mut left: HashMap<Subject, (Subject, &Range)> = HashMap::new();
    let mut reached: HashMap<Subject, (Subject, &Range)> = HashMap::new();
    for statement in statements {
        let mut modules: Vec<ModuleInstance> = declared
            .instances(&statement.from.declaring())
            .iter()
            .cloned()
            .collect();
        modules.sort();
        for module in modules {
            let from = statement.from.within(&module, statement.kind);
            let to = statement.to.within(&module, statement.kind);
            let (noun, short) = statement.kind.noun();
            let mut problem = |summary: &str, detail: String| {
                out.push(Diagnostic::error(summary, detail).at(&statement.range));
            };
            if from == to {
                problem(
                    "Redundant move statement",
                    format!("This statement says that {from} has moved to {to}, which is where it was. Remove it."),
                );
                continue;
            }
            if declared.has(&from) {
                let declared_at = place(config, &from)
                    .map(|r| format!(" at {}", at(&r)))
                    .unwrap_or_default();
                problem(
                    "Moved object still exists",
                    format!(
                        "This statement says that {from} has moved, but that {noun} is still declared{declared_at}.\n\nDeclare \
                         this {short} as {to} instead, or remove the statement."
                    ),
                );
            }
            match left.get(&from) {
                Some((other, range)) if *other != to => problem(
                    "Ambiguous move statements",
                    format!(
                        "A statement at {} says that {from} has moved to {other}, this one that it has moved to {to}.\n\nEach \
                         {noun} can have moved to one place only.",
                        at(range)
                    ),
                ),
                Some(_) => {}
                None => {
                    left.insert(from.clone(), (to.clone(), &statement.range));
                }
            }
            match reached.get(&to) {
                Some((other, range)) if *other != from => problem(
                    "Ambiguous move statements",
                    format!(
                        "A statement at {} says that {other} has moved to {to}, this one that {from} has.\n\nEach {noun} can \
                         have come from one place only.",
                        at(range)
                    ),
                ),
                Some(_) => {}
                None => {
                    reached.insert(to, (from, &statement.range));
                }
            }
        }
    }
    if !out.has_errors()
        && let Err(circles) = order::sorted(statements)
    {
        for circle in circles {
            let mut lines: Vec<String> = circle
                .into_iter()
                .map(|i| &statements[i])
                .map(|s| format!("\n  - {}: {} → {}", at(&s.range), s.from, s.to))
                .collect();
            lines.sort();
            out.push(Diagnostic::error(
                "Cyclic dependency in move statements",
                format!(
                    "These statements move objects in a circle, so that there is no place where they end up:{}\n\nA chain of \
                     moves must end with an address that is in no other statement, usually that of something the \
                     configuration declares.",
                    lines.concat()
                ),
            ));
        }
    }
    out
}
