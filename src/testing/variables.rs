//! Values of variables of a run, of its file, and from outside the test files.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::Referenceable;
use config::model::Variable;
use config::{Config, Module, TestRun};
use cty::Value;
use engine::inputs::Variables;
use lang::eval::{Context, evaluate};
use lang::refs;
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, Diagnostics, Range};

use crate::file::FileRun;
use crate::order::Named;
use crate::scope::{FileScope, without_definition};

/// Values of the variables of a run.
#[derive(Clone, Debug, Default)]
pub struct RunVariables {
    /// Variables that the module declares.
    pub declared: Variables,
    /// Variables that only assertions refer to.
    pub extra: BTreeMap<Arc<str>, Value>,
}

fn missing(variable: &Variable) -> Diagnostic {
    Diagnostic::error(
        "No value for required variable",
        format!(
            "The variable \"{}\" of the module under test has no default, and neither the run nor its file gives it a value, nor \
             anything outside.",
            variable.name
        ),
    )
    .at(&variable.range)
}

impl FileRun<'_> {
    /// Returns the value of a variable for an expression of the file, from the file or from outside, with true if
    /// the file defines the variable; `None` if the variable has no value.
    pub(crate) fn value_of(&self, name: &Arc<str>, at: &Range) -> Result<Option<(Value, bool)>, Diagnostics> {
        if self.of.file.variables.contains_key(name) || self.of.file.definitions.contains_key(name) {
            // `file_variable` has reported its failure.
            let value = self.file_variable(name);
            return value.map(|value| Some((value, true))).map_err(|()| Diagnostics::new());
        }
        // The declarations of the module do not apply here.
        let (mut values, mut problems) = self.outside_values([Variable::undeclared(name.clone(), at)]);
        if problems.has_errors() {
            problems.push(without_definition(name, at));
            return Err(problems);
        }
        Ok(values.remove(name).map(|value| (value, false)))
    }

    /// Returns the values of these variables from outside. Variables without a value are left out.
    fn outside_values(
        &self,
        variables: impl IntoIterator<Item = Variable>,
    ) -> (BTreeMap<Arc<str>, Value>, Diagnostics) {
        let mut module = Module::default();
        module
            .variables
            .extend(variables.into_iter().map(|v| (v.name.clone(), v)));
        if module.variables.is_empty() {
            return (BTreeMap::new(), Diagnostics::new());
        }
        let inputs = if self.of.file.in_test_dir {
            self.suite.outside_in_tests
        } else {
            self.suite.outside
        };
        let collected = config::values::collect(&module, inputs);
        self.add_sources(collected.sources);
        let values = collected.values.into_iter().map(|(name, found)| (name, found.value));
        (values.collect(), collected.diagnostics)
    }

    /// Returns the value of a variable of the file, which is evaluated once.
    pub(crate) fn file_variable(&self, name: &Arc<str>) -> Result<Value, ()> {
        if let Some(known) = self.known_variable(name) {
            return known;
        }
        // Variables are evaluated on demand. If one is begun twice, it depends on itself.
        if !self.begin_variable(name) {
            self.report(Diagnostic::error(
                format!("Cycle: {}.var.{name}", self.of.file.name),
                "The value of the variable refers to itself.",
            ));
            return Err(());
        }
        let found = self.evaluated_variable(name);
        let (value, problems) = found;
        let failed = problems.has_errors();
        for problem in problems {
            self.report(problem);
        }
        let result = match value {
            Some(value) if !failed => Ok(value),
            _ => Err(()),
        };
        self.end_variable(name, result.clone());
        result
    }

    fn evaluated_variable(&self, name: &Arc<str>) -> (Option<Value>, Diagnostics) {
        if let Some(expr) = self.of.file.variables.get(name) {
            let scope = FileScope::new(self);
            let (value, mut problems) = evaluate(expr, Context::new(&scope));
            problems.extend(scope.into_warnings());
            let failed = problems.has_errors() || failed_silently(&value, &problems, expr, self);
            return ((!failed).then_some(value), problems);
        }
        let Some(variable) = self.of.file.definitions.get(name) else {
            return (None, Diagnostics::new());
        };
        let (mut values, mut problems) = self.outside_values([variable.clone()]);
        let value = values.remove(name);
        if value.is_none() && !problems.has_errors() {
            problems.push(
                Diagnostic::error(
                    "Required variable not set",
                    format!("The variable \"{name}\" of the test file has no default, and no value from outside."),
                )
                .at(&variable.range),
            );
        }
        (value, problems)
    }

    /// Returns the values of the variables of a run. Errors are among the diagnostics.
    pub(crate) fn run_variables(&self, index: usize, module: &Config) -> (RunVariables, Diagnostics) {
        let file = &self.of.file;
        let run = &file.runs[index];
        let declared = &module.root.module.variables;
        let mut extra = referenced(run);
        extra.retain(|name, _| !declared.contains_key(name));
        let mut out = RunVariables::default();
        let mut problems = Diagnostics::new();
        let mut outside = Vec::new();
        for name in declared.keys().chain(extra.keys()) {
            let variable = declared.get(name);
            let (value, range) = if let Some(expr) = run.variables.get(name) {
                let scope = FileScope::new(self);
                let (value, mut found) = evaluate(expr, Context::new(&scope));
                found.extend(scope.into_warnings());
                let failed = found.has_errors() || failed_silently(&value, &found, expr, self);
                problems.extend(found);
                if failed {
                    continue;
                }
                (value, expr.range().clone())
            } else if file.variables.contains_key(name) || file.definitions.contains_key(name) {
                let Ok(value) = self.file_variable(name) else { continue };
                let range = file.variables.get(name).map(|e| e.range().clone());
                let range = range.or_else(|| file.definitions.get(name).map(|v| v.range.clone()));
                (value, range.unwrap_or_else(|| run.range.clone()))
            } else {
                let variable = variable.cloned();
                outside.push(variable.unwrap_or_else(|| Variable::undeclared(name.clone(), &run.range)));
                continue;
            };
            match variable {
                None => {
                    out.extra.insert(name.clone(), value);
                }
                Some(variable) => match variable.accept(&value, &range) {
                    Ok(value) => {
                        out.declared.values.insert(name.clone(), value);
                    }
                    Err(problem) => problems.push(*problem),
                },
            }
        }
        self.add_outside(outside, declared, &extra, &mut out, &mut problems);
        // An error in a value is reported instead, because it may be the reason why a variable is missing.
        let complete = !problems.has_errors();
        for (name, expr) in run.variables.iter().filter(|_| complete) {
            if !declared.contains_key(name) && !extra.contains_key(name) {
                let hint = did_you_mean(suggest(name, declared.keys().map(|n| &**n)));
                problems.push(
                    Diagnostic::warning(
                        "Value for undeclared variable",
                        format!(
                            "The module under test declares no variable \"{name}\", and no assertion of the run refers to it, so that \
                             the value has no effect.{hint}"
                        ),
                    )
                    .at(expr.range()),
                );
            }
        }
        (out, problems)
    }

    fn add_outside(
        &self,
        outside: Vec<Variable>,
        declared: &BTreeMap<Arc<str>, Variable>,
        extra: &BTreeMap<Arc<str>, Range>,
        out: &mut RunVariables,
        problems: &mut Diagnostics,
    ) {
        let names: Vec<Arc<str>> = outside.iter().map(|v| v.name.clone()).collect();
        let (mut values, found) = self.outside_values(outside);
        let failed = found.has_errors();
        problems.extend(found);
        for name in names {
            match (values.remove(&name), declared.get(&name)) {
                (Some(value), Some(variable)) => {
                    let default = variable.default.as_ref() == Some(&value);
                    // An ephemeral variable with its default has no entry, because it matters whether it was set
                    // explicitly.
                    if !(variable.ephemeral && default) {
                        out.declared.values.insert(name, value);
                    }
                }
                (Some(value), None) => {
                    problems.extend(extra.get(&name).map(|at| without_definition(&name, at)));
                    out.extra.insert(name, value);
                }
                (None, Some(variable)) if !failed => problems.push(missing(variable)),
                // There is a value, but it cannot be parsed.
                (None, None) if failed => {
                    let at = extra.get(&name).filter(|at| self.value_of(&name, at).is_err());
                    problems.extend(at.map(|at| without_definition(&name, at)));
                }
                (None, _) => {}
            }
        }
    }
}

/// Returns the variables that a run's own expressions refer to, with the last reference.
fn referenced(run: &TestRun) -> BTreeMap<Arc<str>, Range> {
    let rules = run
        .asserts
        .iter()
        .flat_map(|rule| [&rule.condition, &rule.error_message]);
    let traversals = rules.chain(run.variables.values()).flat_map(refs::traversals);
    let mut out = BTreeMap::new();
    for reference in traversals.filter_map(|t| refs::whole_reference(t).ok()) {
        if let Referenceable::Variable(name) = reference.subject {
            out.insert(name, reference.range);
        }
    }
    out
}

/// Returns true if a value is missing because an object that it refers to has failed, which has been reported.
fn failed_silently(value: &Value, problems: &Diagnostics, expr: &syntax::ast::Expr, file: &FileRun<'_>) -> bool {
    if !problems.is_empty() || value.is_wholly_known() {
        return false;
    }
    let mut named = Named::default();
    named.add(expr);
    named
        .variables
        .iter()
        .any(|name| matches!(file.known_variable(name), Some(Err(()))))
}
