//! Conditions: validations, preconditions, postconditions, assertions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use addrs::{AbsResourceInstance, ModuleInstance};
use config::{CheckRule, Config};
use cty::{Type, Value};
use lang::eval::{Context, evaluate, with_expression};
use state::{CheckResult, CheckStatus, CheckedObject};
use syntax::ast::Expr;
use syntax::diag::Extra;
use syntax::{Diagnostic, Diagnostics};

use super::{Evaluator, ModuleScope, Reported};
use crate::blocks::Block;

/// Result of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// The condition holds.
    Pass,
    /// The condition does not hold. The message is empty if it must not be shown.
    Fail(String),
    /// The result of the condition is unknown.
    Unknown,
    /// The condition could not be evaluated, which has been reported.
    Error,
}

/// Kind of a condition, which decides the summary of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionKind {
    /// A `validation` of a variable.
    Variable,
    /// A `precondition` of a resource.
    Precondition,
    /// A `postcondition` of a resource.
    Postcondition,
    /// A `precondition` of an output value.
    Output,
    /// An `assert` of a check block: a failure is only a warning.
    Assertion,
}

impl ConditionKind {
    fn summary(self) -> &'static str {
        match self {
            ConditionKind::Variable => "Invalid value for variable",
            ConditionKind::Precondition => "Resource precondition failed",
            ConditionKind::Postcondition => "Resource postcondition failed",
            ConditionKind::Output => "Module output value precondition failed",
            ConditionKind::Assertion => "Check block assertion failed",
        }
    }
}

/// Severity with which a failed condition is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureSeverity {
    /// An error, which fails the block.
    Error,
    Warning,
}

/// An object with conditions.
#[derive(Clone, Debug)]
pub enum Checked {
    /// An input variable.
    Variable(ModuleInstance, Arc<str>),
    /// An output value.
    Output(ModuleInstance, Arc<str>),
    /// A check block.
    Check(ModuleInstance, Arc<str>),
    Resource(AbsResourceInstance),
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (module, kind, name) = match self {
            Checked::Variable(module, name) => (module, "var", name),
            Checked::Output(module, name) => (module, "output", name),
            Checked::Check(module, name) => (module, "check", name),
            Checked::Resource(address) => return address.fmt(f),
        };
        if !module.is_root() {
            write!(f, "{module}.")?;
        }
        write!(f, "{kind}.{name}")
    }
}

impl Checked {
    /// Returns the block that the checked object is an instance of.
    fn block(&self) -> Block {
        match self {
            Checked::Variable(module, name) => Block::Variable(module.module(), name.clone()),
            Checked::Output(module, name) => Block::Output(module.module(), name.clone()),
            Checked::Check(module, name) => Block::Check(module.module(), name.clone()),
            Checked::Resource(address) => Block::Resource(address.config()),
        }
    }
}

/// Results of the conditions of one object: the worst status, and the messages of failed conditions.
#[derive(Clone, Debug)]
struct ObjectResult {
    status: CheckStatus,
    messages: Vec<Arc<str>>,
}

/// Results of all conditions, by block and object.
#[derive(Debug, Default)]
pub(super) struct Results(BTreeMap<Block, BTreeMap<String, ObjectResult>>);

fn worse(a: CheckStatus, b: CheckStatus) -> CheckStatus {
    let rank = |s: CheckStatus| match s {
        CheckStatus::Pass => 0,
        CheckStatus::Unknown => 1,
        CheckStatus::Fail => 2,
        CheckStatus::Error => 3,
    };
    if rank(b) > rank(a) { b } else { a }
}

/// Conditions of one kind that an object has, and everything that their evaluation needs.
pub struct Conditions<'c> {
    pub rules: &'c [CheckRule],
    pub kind: ConditionKind,
    /// Scope of the conditions' expressions.
    pub scope: &'c ModuleScope<'c>,
    pub of: &'c Checked,
    pub severity: FailureSeverity,
}

impl Evaluator<'_> {
    /// Evaluates conditions, reports those that do not hold, and records their results. Returns an error if the severity is `Error` and a
    /// condition does not hold or could not be evaluated.
    pub fn check_all(&self, conditions: &Conditions<'_>) -> Result<(), Reported> {
        let mut failed = false;
        for rule in conditions.rules {
            // Does not return early, so that all conditions that fail are reported in one run.
            let status = self.check(rule, conditions);
            failed |= matches!(status, Status::Fail(_) | Status::Error);
            self.record(conditions.of, &status);
        }
        if failed && conditions.severity == FailureSeverity::Error {
            Err(Reported)
        } else {
            Ok(())
        }
    }

    /// Reports problems of the data source in a check block as warnings. If there are errors among them, the check has failed.
    pub fn report_of_check(&self, check: &Checked, mut problems: Diagnostics) {
        let errors: Vec<String> = problems
            .iter()
            .filter(|d| d.is_error())
            .map(|d| {
                if d.detail.is_empty() {
                    d.summary.clone()
                } else {
                    format!("{}: {}", d.summary, d.detail)
                }
            })
            .collect();
        match errors.as_slice() {
            [] => {}
            [one] => self.record(check, &Status::Fail(one.clone())),
            many => self.record(
                check,
                &Status::Fail(format!("{} problems:\n\n- {}", many.len(), many.join("\n- "))),
            ),
        }
        for problem in &mut problems.0 {
            if problem.is_error() {
                // Tests match expected failures by this address.
                problem.condition_of = Some(check.to_string());
            }
            problem.severity = syntax::Severity::Warning;
            problem.extra = Extra::OfCheck;
        }
        self.report(problems);
    }

    /// Records the result of a condition.
    pub fn record(&self, of: &Checked, status: &Status) {
        let (status, message) = match status {
            Status::Pass => (CheckStatus::Pass, None),
            Status::Fail(message) => (
                CheckStatus::Fail,
                Some(Arc::from(message.as_str())).filter(|m: &Arc<str>| !m.is_empty()),
            ),
            Status::Unknown => (CheckStatus::Unknown, None),
            Status::Error => (CheckStatus::Error, None),
        };
        let mut results = self.results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let object = results
            .0
            .entry(of.block())
            .or_default()
            .entry(of.to_string())
            .or_insert(ObjectResult {
                status: CheckStatus::Pass,
                messages: Vec::new(),
            });
        // An object has one status for all of its conditions: the worst of their results.
        object.status = worse(object.status, status);
        object.messages.extend(message);
    }

    /// Returns the results of all conditions, sorted by address. Objects without a result keep the one in `before`; `visited` returns true
    /// if all objects of a block have been evaluated.
    pub fn check_results(&self, before: &[CheckResult], visited: impl Fn(&Block) -> bool) -> Vec<CheckResult> {
        let results = self.results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let before: BTreeMap<&str, &CheckResult> = before.iter().map(|r| (&*r.config_addr, r)).collect();
        let mut out: Vec<CheckResult> = with_conditions(self.config)
            .into_iter()
            .map(|(block, kind)| {
                let config_addr: Arc<str> = block.to_string().into();
                let mut objects: BTreeMap<Arc<str>, CheckedObject> = BTreeMap::new();
                let earlier = before.get(&*config_addr);
                for object in earlier.into_iter().flat_map(|r| &r.objects) {
                    objects.insert(object.object_addr.clone(), object.clone());
                }
                // A result of this run replaces the earlier one of the object.
                for (address, result) in results.0.get(&block).into_iter().flatten() {
                    let object_addr: Arc<str> = address.as_str().into();
                    let object = CheckedObject {
                        object_addr: object_addr.clone(),
                        status: result.status,
                        failure_messages: result.messages.clone(),
                    };
                    objects.insert(object_addr, object);
                }
                // A block without objects passes if it was evaluated: it has no instances.
                let none = match earlier {
                    Some(earlier) => earlier.status,
                    None if visited(&block) => CheckStatus::Pass,
                    None => CheckStatus::Unknown,
                };
                let status = objects.values().map(|o| o.status).reduce(worse).unwrap_or(none);
                CheckResult {
                    object_kind: kind.into(),
                    config_addr,
                    status,
                    objects: objects.into_values().collect(),
                }
            })
            .collect();
        out.sort_by(|a, b| a.config_addr.cmp(&b.config_addr));
        out
    }

    /// Evaluates a condition and reports its failure, without recording the result.
    pub fn check(&self, rule: &CheckRule, conditions: &Conditions<'_>) -> Status {
        let assertion = conditions.kind == ConditionKind::Assertion;
        let (status, mut problems) = conditions.evaluate(rule);
        // A failed assertion is only a warning, but one that cannot be evaluated is an error.
        let is_warning = if assertion {
            matches!(status, Status::Fail(_))
        } else {
            conditions.severity == FailureSeverity::Warning
        };
        if is_warning {
            problems = as_warnings(problems);
        }
        self.report(if assertion { of_check(problems) } else { problems });
        status
    }
}

impl Conditions<'_> {
    fn evaluator(&self) -> &Evaluator<'_> {
        self.scope.evaluator
    }

    /// Returns false for an assertion in static evaluation, whose result is not reported.
    fn reports_result(&self) -> bool {
        self.kind != ConditionKind::Assertion || !self.evaluator().is_static()
    }

    /// Adds the expression of a condition and the values of its references to a diagnostic.
    fn about_condition(&self, rule: &CheckRule, diagnostic: Diagnostic) -> Diagnostic {
        with_expression(diagnostic, &rule.condition, Context::new(self.scope))
    }

    fn evaluate(&self, rule: &CheckRule) -> (Status, Diagnostics) {
        let (condition, mut problems) = evaluate(&rule.condition, Context::new(self.scope));
        if problems.has_errors() {
            return (Status::Error, problems);
        }
        self.warn_of_deprecations(&condition, &rule.condition);
        let (condition, _) = condition.unmark();
        let value = match cty::convert(&condition, &Type::Bool) {
            Ok(value) => value,
            Err(e) => {
                let detail = format!("Invalid condition result value: {}.", e.message);
                problems.push(invalid(rule, &detail));
                return (Status::Error, problems);
            }
        };
        if !value.is_known() {
            // The other kinds need no warning, because apply evaluates them before it uses the value.
            if self.kind == ConditionKind::Assertion && self.reports_result() {
                let mut diagnostic = Diagnostic::warning(
                    "Check block assertion known after apply",
                    "The condition depends on values that are known only after apply; it is checked then.",
                );
                diagnostic.condition_of = Some(self.of.to_string());
                problems.push(self.about_condition(rule, diagnostic.at(rule.condition.range())));
            }
            return (Status::Unknown, problems);
        }
        match value.as_bool() {
            Some(true) => (Status::Pass, problems),
            Some(false) => self.failure(rule, problems),
            None => {
                problems.push(invalid(rule, "The condition is null, where true or false is required."));
                (Status::Error, problems)
            }
        }
    }

    fn warn_of_deprecations(&self, value: &Value, expr: &Expr) {
        // A deprecation warning is about the use of a value. Static evaluation does not use it: the plan evaluates the condition again.
        if !self.evaluator().is_static() {
            let module = self.scope.module.module();
            self.evaluator().warn_of_deprecations(value, &module, expr.range());
        }
    }

    /// Returns the result of a condition that does not hold.
    fn failure(&self, rule: &CheckRule, mut problems: Diagnostics) -> (Status, Diagnostics) {
        let (message, found) = self.error_message(rule);
        let Some(message) = message else {
            // The message depends on values that static evaluation does not know. The plan evaluates the condition again, with its message.
            return (Status::Unknown, problems);
        };
        if self.kind == ConditionKind::Assertion && found.has_errors() {
            // The error in the message takes the place of the failed assertion.
            return (Status::Error, found);
        }
        problems.extend(found);
        let detail = if message.is_empty() {
            "The condition does not hold. Another diagnostic has the reason why its message is not shown."
        } else {
            &message
        };
        let mut diagnostic = Diagnostic::error(self.kind.summary(), detail).at(rule.condition.range());
        diagnostic.condition_of = Some(self.of.to_string());
        match self.of {
            Checked::Resource(address) => diagnostic = diagnostic.about(address),
            // The error is in the value, which another file may set, so the range is that of the value.
            Checked::Variable(module, name) => {
                diagnostic.subject = self.evaluator().input_range(module, name).or(diagnostic.subject.take());
                diagnostic.detail = format!("{detail}\n\nThe validation block is at {}.", rule.range);
            }
            Checked::Output(..) | Checked::Check(..) => {}
        }
        if self.reports_result() {
            problems.push(self.about_condition(rule, diagnostic));
        }
        (Status::Fail(message), problems)
    }

    /// Evaluates the message of a condition that does not hold; `None` if static evaluation cannot know it.
    fn error_message(&self, rule: &CheckRule) -> (Option<String>, Diagnostics) {
        let (value, mut problems) = evaluate(&rule.error_message, Context::new(self.scope));
        let problem = |summary: &str, detail: &str| Diagnostic::error(summary, detail).at(rule.error_message.range());
        if problems.has_errors() {
            return (Some(NO_MESSAGE.into()), problems);
        }
        self.warn_of_deprecations(&value, &rule.error_message);
        let (value, marks) = value.unmark_deep();
        if !value.is_known() && self.evaluator().is_static() {
            return (None, problems);
        }
        if marks.is_sensitive() || marks.is_ephemeral() {
            let what = if marks.is_sensitive() { "sensitive" } else { "ephemeral" };
            let mut diagnostic = problem(
                &format!("Error message refers to {what} values"),
                &format!(
                    "The error message of this condition depends on {what} values and is therefore not \
                     shown.\n\nLeave these values out of the message, or apply nonsensitive() where the result \
                     discloses nothing."
                ),
            );
            diagnostic.extra = Extra::CausedBySensitive;
            problems.push(diagnostic);
            if self.kind != ConditionKind::Variable {
                // The message cannot be evaluated, so the error is that the condition failed, and the problems of the message become
                // warnings.
                return (Some(String::new()), as_warnings(problems));
            }
            return (
                Some(format!(
                    "The error message included a {what} value, so it will not be displayed."
                )),
                problems,
            );
        }
        let message = match cty::convert(&value, &Type::String) {
            Ok(value) if !value.is_known() => {
                "The condition does not hold. Its message depends on values that are known only after apply.".into()
            }
            Ok(value) => match value.as_str() {
                Some(text) => text.trim().to_owned(),
                None => "The condition does not hold. Its message is null.".into(),
            },
            Err(e) => {
                let detail = format!("Unsuitable value for error message: {}.", e.message);
                problems.push(problem("Invalid error message", &detail));
                NO_MESSAGE.into()
            }
        };
        (Some(message), problems)
    }
}

const NO_MESSAGE: &str = "Failed to evaluate condition error message.";

fn as_warnings(mut problems: Diagnostics) -> Diagnostics {
    for problem in &mut problems.0 {
        problem.severity = syntax::Severity::Warning;
    }
    problems
}

/// Marks problems as those of a check block.
fn of_check(mut problems: Diagnostics) -> Diagnostics {
    for problem in &mut problems.0 {
        problem.extra = Extra::OfCheck;
    }
    problems
}

fn invalid(rule: &CheckRule, detail: &str) -> Diagnostic {
    Diagnostic::error("Invalid condition result", detail).at(rule.condition.range())
}

/// Returns the blocks of a configuration that have conditions, with their kinds in states.
fn with_conditions(config: &Config) -> Vec<(Block, &'static str)> {
    let mut out = Vec::new();
    for node in config.nodes() {
        let (path, module) = (&node.path, &node.module);
        let variables = module.variables.iter().filter(|(_, v)| !v.validations.is_empty());
        out.extend(variables.map(|(name, _)| (Block::Variable(path.clone(), name.clone()), "var")));
        let outputs = module.outputs.iter().filter(|(_, o)| !o.preconditions.is_empty());
        out.extend(outputs.map(|(name, _)| (Block::Output(path.clone(), name.clone()), "output")));
        let checks = module.checks.keys();
        out.extend(checks.map(|name| (Block::Check(path.clone(), name.clone()), "check")));
        let resources = module.resources.values().filter(|r| {
            let lifecycle = &r.lifecycle;
            !(lifecycle.preconditions.is_empty() && lifecycle.postconditions.is_empty())
        });
        out.extend(resources.map(|r| (Block::Resource(r.address.in_module(path)), "resource")));
    }
    out
}
