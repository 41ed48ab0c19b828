//! Evaluation of the assertions of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addrs::{AbsResourceInstance, InstanceKey, Mode, Referenceable};
use config::{CheckRule, Config};
use cty::{Type, Value};
use engine::assertions::{Assertions, References, Results};
use engine::functions::Functions;
use engine::plan::Plan;
use lang::eval::{Context, evaluate, with_expression, with_whole_expression};
use lang::functions::CallError;
use lang::provider_function::Signature;
use lang::refs;
use lang::scope::{EvaluationError, FunctionSettings, ProviderCall, Reference, Scope};
use provider::Schemas;
use state::State;
use syntax::ast::Expr;
use syntax::content::{did_you_mean, suggest};
use syntax::diag::{Comparison, ExpressionContext};
use syntax::{Diagnostic, Diagnostics, Range};

use crate::events::Status;
use crate::file::FileRun;
use crate::setting::Setting;

/// Result of a run's operation, which its assertions refer to.
#[derive(Clone, Copy)]
pub(crate) struct After<'a> {
    pub state: &'a State,
    pub plan: Option<&'a Plan>,
    pub applied: bool,
    pub ephemerals: &'a BTreeMap<AbsResourceInstance, Value>,
    pub timestamp: Option<&'a str>,
}

/// Results of a run's assertions.
pub(crate) struct Evaluated {
    pub status: Status,
    /// Outputs of the module.
    pub outputs: Value,
    pub diagnostics: Diagnostics,
    /// Number of assertions that do not hold.
    pub failed: usize,
}

/// Scope of an assertion: the scope of the root module, with its outputs, the outputs of earlier runs, and variables of the test.
struct AssertionScope<'a, 's> {
    file: &'a FileRun<'s>,
    run: &'a str,
    config: &'a Config,
    module: &'a dyn Scope,
    results: &'a Assertions<'a>,
    after: After<'a>,
    extra: &'a BTreeMap<Arc<str>, Value>,
}

fn error(at: &Range, summary: &str, detail: impl Into<String>) -> EvaluationError {
    Diagnostic::error(summary, detail).at(at).into()
}

impl AssertionScope<'_, '_> {
    fn of_run(&self, name: &str, at: &Range) -> Result<Value, EvaluationError> {
        if let Some(outputs) = self.file.outputs_of(name).filter(|_| name != self.run) {
            return Ok(outputs);
        }
        if self.file.has_run(name) {
            return Err(error(
                at,
                "Reference to unevaluated run block",
                format!("The run \"{name}\" has not been carried out when this is evaluated."),
            ));
        }
        let names = self.file.of.file.runs.iter().map(|run| &*run.name);
        Err(error(
            at,
            "Reference to undeclared run block",
            format!(
                "There is no run \"{name}\" in this file.{}",
                did_you_mean(suggest(name, names))
            ),
        ))
    }

    /// Returns true if a resource has no objects because the plan was limited to other resources.
    fn is_left_out(&self, resource: &addrs::Resource) -> bool {
        let Some(plan) = self.after.plan.filter(|plan| plan.is_partial()) else {
            return false;
        };
        let absolute = resource.absolute(&addrs::ModuleInstance::root());
        let selected = plan.targets.iter().any(|t| t.may_select(&absolute.config()));
        let planned = plan.changes.iter().any(|c| c.address.containing_resource() == absolute);
        !selected && !planned && !self.after.state.resources.contains_key(&absolute)
    }

    /// Returns true if a local value depends on a resource that the plan has left out.
    fn lacks(&self, local: &str, seen: &mut BTreeSet<Arc<str>>) -> bool {
        let Some((name, local)) = self.config.root.module.locals.get_key_value(local) else {
            return false;
        };
        // Each local value is followed once, because many expressions may refer to it.
        seen.insert(name.clone())
            && refs::references_in_expr(&local.expr)
                .0
                .iter()
                .any(|reference| match &reference.subject {
                    Referenceable::Resource(r) => self.is_left_out(r),
                    Referenceable::Local(name) => self.lacks(name, seen),
                    _ => false,
                })
    }

    /// Removes the instances that the plan has left out from the value of a resource.
    fn without_left_out(&self, resource: &addrs::Resource, value: Value) -> Value {
        let Some(plan) = self.after.plan.filter(|plan| plan.is_partial()) else {
            return value;
        };
        let absolute = resource.absolute(&addrs::ModuleInstance::root());
        let known = |key: InstanceKey| {
            let instance = absolute.instance(key);
            self.after.state.instance(&instance).is_some() || plan.changes.iter().any(|c| c.address == instance)
        };
        let (plain, marks) = value.clone().unmark();
        let rest = match (plain.as_seq(), plain.entries()) {
            (Some(items), None) if matches!(plain.ty(), Type::Tuple(_)) => {
                let is_there = |i: &usize| known(InstanceKey::Int(*i as u64));
                // Indexes must not change, so only instances after the last one that exists can be left out.
                let count = (0..items.len()).rev().find(is_there).map_or(0, |last| last + 1);
                Value::tuple(items[..count].to_vec())
            }
            (_, Some(entries)) if self.is_for_each(resource) => {
                let there = entries.filter(|(key, _)| known(InstanceKey::String((*key).clone())));
                Value::object(there.map(|(key, value)| (key.clone(), value.clone())))
            }
            _ => return value,
        };
        rest.with_marks(marks)
    }

    fn is_for_each(&self, resource: &addrs::Resource) -> bool {
        let resources = &self.config.root.module.resources;
        resources.get(resource).is_some_and(|r| r.for_each.is_some())
    }

    fn output(&self, name: &Arc<str>, at: &Range) -> Result<Value, EvaluationError> {
        let outputs = &self.config.root.module.outputs;
        if outputs.contains_key(name) {
            return Ok(self.results.output(name));
        }
        let names = outputs.keys().map(|n| &**n);
        Err(error(
            at,
            "Reference to undeclared output value",
            format!(
                "The module under test has no output value \"{name}\".{}",
                did_you_mean(suggest(name, names))
            ),
        ))
    }
}

impl Scope for AssertionScope<'_, '_> {
    fn lookup(&self, reference: &Reference) -> Result<Value, EvaluationError> {
        match &reference.subject {
            // In a test file, `run.NAME`, `output.NAME` and `check.NAME` are parsed as resources of these types.
            Referenceable::Resource(r) if r.mode == Mode::Managed && &*r.ty == "run" => {
                self.of_run(&r.name, &reference.range)
            }
            Referenceable::Resource(r) if r.mode == Mode::Managed && &*r.ty == "output" => {
                self.output(&r.name, &reference.range)
            }
            Referenceable::Resource(r) if r.mode == Mode::Managed && &*r.ty == "check" => Err(error(
                &reference.range,
                "Reference to \"check\" in invalid context",
                "A check block has no value. It can be named in expect_failures only.",
            )),
            Referenceable::Resource(r) if r.mode == Mode::Ephemeral => Err(error(
                &reference.range,
                "Ephemeral resources cannot be asserted",
                "An ephemeral resource is closed before assertions are evaluated, so that they cannot refer to it.",
            )),
            Referenceable::Variable(name) if !self.config.root.module.variables.contains_key(name) => {
                self.extra.get(name).cloned().ok_or_else(|| {
                    error(
                        &reference.range,
                        "Reference to undeclared input variable",
                        format!(
                            "The module under test declares no variable \"{name}\", and neither the run nor its file gives a value for \
                             it, nor anything outside."
                        ),
                    )
                })
            }
            Referenceable::Resource(r) if self.is_left_out(r) => Err(error(
                &reference.range,
                "Reference to uninitialized resource",
                format!("The plan of this run was limited to other objects, so that there is no value of {r}."),
            )),
            Referenceable::Local(name)
                if self.after.plan.is_some_and(Plan::is_partial) && self.lacks(name, &mut BTreeSet::new()) =>
            {
                Err(error(
                    &reference.range,
                    "Reference to uninitialized local value",
                    format!(
                        "The plan of this run was limited to other objects, and local.{name} depends on one that was left out."
                    ),
                ))
            }
            Referenceable::Resource(r) => {
                let value = self.module.lookup(reference)?;
                Ok(self.without_left_out(r, value))
            }
            _ => self.module.lookup(reference),
        }
    }

    fn functions(&self) -> Option<&FunctionSettings> {
        self.module.functions()
    }

    fn check_result(&self, function: &str, arguments: &[Value], result: &Value) -> Result<(), CallError> {
        self.module.check_result(function, arguments, result)
    }

    fn provider_function(&self, provider: &str, function: &str) -> Result<Arc<Signature>, CallError> {
        self.module.provider_function(provider, function)
    }

    fn call_provider_function(&self, call: &ProviderCall<'_>) -> Result<Value, CallError> {
        self.module.call_provider_function(call)
    }
}

/// Result of one assertion.
struct Judged {
    status: Status,
    diagnostics: Diagnostics,
}

impl FileRun<'_> {
    /// Evaluates the assertions of a run.
    pub(crate) fn evaluated(
        &self,
        setting: &Setting<'_, '_>,
        after: After<'_>,
        schemas: &Schemas,
        functions: &Functions<'_>,
    ) -> Evaluated {
        let config = &*setting.config;
        let results = Assertions::new(Results {
            config,
            state: after.state,
            // After an apply, the state has the values that are unknown in the plan.
            plan: after.plan.filter(|_| !after.applied),
            ephemerals: after.ephemerals,
            timestamp: after.timestamp,
            schemas,
            variables: &setting.variables.declared.values,
            functions,
            environment: self.suite.environment,
            providers: &setting.providers,
        });
        let mut out = Evaluated {
            status: Status::Pass,
            outputs: Value::empty_object(),
            diagnostics: Diagnostics::new(),
            failed: 0,
        };
        if let Some(module) = results.scope() {
            let scope = AssertionScope {
                file: self,
                run: &setting.run.name,
                config,
                module: &module,
                results: &results,
                after,
                extra: &setting.variables.extra,
            };
            // The references are collected for the first assertion only, because many runs have none.
            let mut references: Option<References> = None;
            for rule in &setting.run.asserts {
                // References are checked before the evaluation, because a branch of a conditional that is not
                // taken would hide a wrong one.
                let references = references.get_or_insert_with(|| References::new(config, schemas));
                let problems = check(rule, references, &scope, schemas);
                let judged = if problems.has_errors() {
                    Judged {
                        status: Status::Error,
                        diagnostics: problems,
                    }
                } else {
                    let mut judged = judge(rule, &scope);
                    // If the object that a reference leads to has failed, that failure is among these
                    // diagnostics.
                    let found = results.take_diagnostics();
                    if found.has_errors() {
                        judged.status = Status::Error;
                        judged.diagnostics.extend(found);
                    }
                    judged
                };
                out.failed += usize::from(judged.status == Status::Fail);
                out.status = out.status.max(judged.status);
                out.diagnostics.extend(judged.diagnostics);
            }
        }
        let outputs = config.root.module.outputs.keys();
        let outputs: Vec<_> = outputs.map(|name| (name.clone(), results.output(name))).collect();
        out.outputs = Value::object(outputs);
        out
    }
}

/// Returns the errors in the references of an assertion.
fn check(
    rule: &CheckRule,
    references: &mut References,
    scope: &AssertionScope<'_, '_>,
    schemas: &Schemas,
) -> Diagnostics {
    let mut out = Diagnostics::new();
    for expr in [&rule.condition, &rule.error_message] {
        let mut own: Vec<&Range> = Vec::new();
        for traversal in refs::traversals(expr) {
            match &*traversal.root {
                "run" | "output" | "check" | "ephemeral" => own.push(&traversal.range),
                "plan" | "state" => {
                    own.push(&traversal.range);
                    out.push(
                        Diagnostic::error(
                            "Reserved symbol name",
                            format!(
                                "The name \"{0}\" is reserved in test files. If it is a resource type here, write \"resource.{0}\".",
                                traversal.root
                            ),
                        )
                        .at(&traversal.root_range),
                    );
                }
                "var" => own.push(&traversal.range),
                _ => {}
            }
        }
        let found = references.check(scope.config, schemas, expr);
        // The module's checker does not know these names, so its errors about them are wrong.
        let is_own = |d: &Diagnostic| {
            let at = d.subject.as_ref();
            at.is_some_and(|at| {
                own.iter()
                    .any(|r| r.file == at.file && r.start.byte <= at.start.byte && at.end.byte <= r.end.byte)
            })
        };
        out.extend(found.into_iter().filter(|d| !is_own(d)));
    }
    out
}

/// Evaluates an assertion.
fn judge(rule: &CheckRule, scope: &AssertionScope<'_, '_>) -> Judged {
    let context = Context::new(scope);
    let (message, mut diagnostics) = error_message(rule, scope);
    let (condition, found) = evaluate(&rule.condition, context);
    diagnostics.extend(found);
    if diagnostics.has_errors() {
        return Judged {
            status: Status::Error,
            diagnostics,
        };
    }
    let at = rule.condition.range();
    let about = |summary: &str, detail: String| {
        with_expression(Diagnostic::error(summary, detail), &rule.condition, context).at(at)
    };
    let (condition, _) = condition.unmark_deep();
    let mut status = Status::Error;
    match cty::convert(&condition, &Type::Bool) {
        Err(e) => diagnostics.push(about(
            "Invalid condition run",
            format!("The result of the condition is no truth value: {}.", e.message),
        )),
        Ok(value) if !value.is_known() => diagnostics.push(about(
            "Unknown condition value",
            "The result of the condition is not known yet. It depends on values that are known only after apply: let the run \
             apply, or assert what is known when planned."
                .to_owned(),
        )),
        Ok(value) => match value.as_bool() {
            Some(true) => status = Status::Pass,
            Some(false) => {
                status = Status::Fail;
                let problem = Diagnostic::error("Test assertion failed", message);
                let problem = with_whole_expression(problem, &rule.condition, context).at(at);
                diagnostics.push(with_sides(problem, &rule.condition, context, scope.file.suite.verbose));
            }
            None => diagnostics.push(about(
                "Invalid condition run",
                "The condition is null, where true or false is required.".to_owned(),
            )),
        },
    }
    Judged { status, diagnostics }
}

/// Evaluates the error message of an assertion; returns it with the problems that were found. As in Terraform, this is
/// also done if the assertion holds.
fn error_message(rule: &CheckRule, scope: &AssertionScope<'_, '_>) -> (String, Diagnostics) {
    let (value, mut problems) = evaluate(&rule.error_message, Context::new(scope));
    if problems.has_errors() {
        return (String::new(), problems);
    }
    let at = rule.error_message.range();
    let (value, marks) = value.unmark_deep();
    if marks.is_sensitive() || marks.is_ephemeral() {
        let what = if marks.is_sensitive() { "sensitive" } else { "ephemeral" };
        problems.push(
            Diagnostic::warning(
                format!("Error message refers to {what} values"),
                format!("The message depends on {what} values and is therefore not shown. Leave them out of it."),
            )
            .at(at),
        );
        return (String::new(), problems);
    }
    match cty::convert(&value, &Type::String).as_ref().map(Value::as_str) {
        Ok(Some(text)) => (text.trim().to_owned(), problems),
        // The assertion is evaluated nevertheless: it may hold, and if it does not, its failure is more important than
        // the message.
        Ok(None) if !value.is_known() => {
            let text = "The error message of this assertion depends on values that are known only after apply.";
            (text.to_owned(), problems)
        }
        Ok(None) => {
            problems.push(Diagnostic::error("Invalid error message", "The message is null.").at(at));
            (String::new(), problems)
        }
        Err(e) => {
            let detail = format!("The message cannot be shown as text: {}.", e.message);
            problems.push(Diagnostic::error("Invalid error message", detail).at(at));
            (String::new(), problems)
        }
    }
}

/// Adds the values of both sides to a failure, if the condition is a binary operation.
fn with_sides(mut problem: Diagnostic, condition: &Expr, context: Context<'_>, in_full: bool) -> Diagnostic {
    let Expr::Binary { left, right, .. } = condition.plain() else {
        return problem;
    };
    let (left, _) = evaluate(left, context);
    let (right, _) = evaluate(right, context);
    let comparison = Comparison {
        types_differ: left.ty() != right.ty(),
        in_full,
        left: shown(&left),
        right: shown(&right),
    };
    let mut expression: ExpressionContext = problem.expression.take().map(|e| *e).unwrap_or_default();
    expression.comparison = Some(comparison);
    for (name, statement) in &mut expression.values {
        let (expr, _) = syntax::parse_expression("", name, syntax::Pos::default());
        let (value, problems) = evaluate(&expr, context);
        if !problems.has_errors() && value.is_wholly_known() && value.deep_marks() == cty::Marks::NONE {
            *statement = format!("is {}", shown(&value));
        }
    }
    problem.expression = Some(Box::new(expression));
    problem
}

/// Renders a value as JSON with line breaks. Sensitive, ephemeral and unknown parts are replaced by a description.
fn shown(value: &Value) -> String {
    let plain = value.transform(|_, part| {
        let marks = part.marks();
        if marks.is_ephemeral() {
            Value::string("(ephemeral value)")
        } else if marks.is_sensitive() {
            Value::string("(sensitive value)")
        } else if !part.is_known() {
            Value::string("(unknown value)")
        } else {
            part
        }
    });
    match cty::json::to_simple_json(&plain.unmark_deep().0) {
        Ok(json) => cty::json::to_text(&json, Some(2)),
        Err(_) => "(value that cannot be shown)".to_owned(),
    }
}
