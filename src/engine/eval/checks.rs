//! Conditions: validations, preconditions, postconditions, assertions.

use config::CheckRule;
use cty::{Type, Value};
use lang::eval::{Context, evaluate, with_expression};
use syntax::diag::Extra;
use syntax::{Diagnostic, Diagnostics};

use super::{Evaluator, ModuleScope};

/// How a condition turned out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It holds.
    Pass,
    /// It does not hold; the message says why.
    Fail(String),
    /// It cannot be said yet.
    Unknown,
    /// It could not be evaluated, which has been reported.
    Error,
}

/// What a condition belongs to: decides what a failure is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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

impl Kind {
    fn summary(self) -> &'static str {
        match self {
            Kind::Variable => "Invalid value for variable",
            Kind::Precondition => "Resource precondition failed",
            Kind::Postcondition => "Resource postcondition failed",
            Kind::Output => "Module output value precondition failed",
            Kind::Assertion => "Check block assertion failed",
        }
    }
}

impl Evaluator<'_> {
    /// Evaluates a condition and reports its failure.
    pub fn check(&self, rule: &CheckRule, kind: Kind, scope: &ModuleScope<'_>, owner: Option<&str>) -> Status {
        let context = Context::new(scope);
        let (condition, mut problems) = evaluate(&rule.condition, context);
        let mut status = Status::Error;
        if !problems.has_errors() {
            let (condition, _) = condition.unmark();
            match cty::convert(&condition, &Type::Bool) {
                Ok(value) if !value.is_known() => {
                    if kind == Kind::Assertion && self.phase() != super::Phase::Validate {
                        let diagnostic = Diagnostic::warning(
                            "Check block assertion known after apply",
                            "The condition could not be evaluated at this time, a result will be known when this plan is \
                             applied.",
                        );
                        problems.push(with_expression(
                            diagnostic.at(rule.condition.range()),
                            &rule.condition,
                            context,
                        ));
                    }
                    status = Status::Unknown;
                }
                Ok(value) => match value.as_bool() {
                    Some(true) => status = Status::Pass,
                    Some(false) => {
                        let (message, found) = self.error_message(rule, scope);
                        problems.extend(found);
                        let summary = kind.summary();
                        let mut diagnostic = Diagnostic::error(summary, &message).at(rule.condition.range());
                        if kind == Kind::Assertion {
                            diagnostic.severity = syntax::Severity::Warning;
                        }
                        if let Some(owner) = owner {
                            diagnostic = diagnostic.about(owner);
                        }
                        problems.push(with_expression(diagnostic, &rule.condition, context));
                        status = Status::Fail(message);
                    }
                    None => problems.push(invalid(
                        rule,
                        "Condition expression must return either true or false, not null.",
                    )),
                },
                Err(e) => problems.push(invalid(
                    rule,
                    &format!("Invalid condition result value: {}.", e.message),
                )),
            }
        }
        if kind == Kind::Assertion {
            // Whatever goes wrong in a check block must not stop anything else.
            for problem in &mut problems.0 {
                problem.severity = syntax::Severity::Warning;
            }
        }
        self.report(problems);
        status
    }

    fn error_message(&self, rule: &CheckRule, scope: &ModuleScope<'_>) -> (String, Diagnostics) {
        let (value, mut problems) = evaluate(&rule.error_message, Context::new(scope));
        let generic = |problems: &mut Diagnostics, summary: &str, detail: &str, extra: Extra| {
            let mut diagnostic = Diagnostic::error(summary, detail).at(rule.error_message.range());
            diagnostic.extra = extra;
            problems.push(diagnostic);
        };
        if problems.has_errors() {
            return ("Failed to evaluate condition error message.".into(), problems);
        }
        let (value, marks) = value.unmark_deep();
        if marks.is_sensitive() || marks.is_ephemeral() {
            let what = if marks.is_sensitive() { "sensitive" } else { "ephemeral" };
            generic(
                &mut problems,
                &format!("Error message refers to {what} values"),
                &format!(
                    "The error expression used to explain this condition refers to {what} values, so it cannot be shown.\n\n\
                     You can correct this by removing references to {what} values, or by carefully using the nonsensitive() \
                     function if the expression will not reveal the sensitive data."
                ),
                Extra::CausedBySensitive,
            );
            return (
                format!("The error message included a {what} value, so it will not be displayed."),
                problems,
            );
        }
        match cty::convert(&value, &Type::String).as_ref().map(Value::as_str) {
            Ok(Some(text)) => (text.trim().to_owned(), problems),
            Ok(None) => ("The error message is not known yet, or null.".into(), problems),
            Err(e) => {
                let detail = format!("Unsuitable value for error message: {}.", e.message);
                generic(&mut problems, "Invalid error message", &detail, Extra::None);
                ("Failed to evaluate condition error message.".into(), problems)
            }
        }
    }
}

fn invalid(rule: &CheckRule, detail: &str) -> Diagnostic {
    Diagnostic::error("Invalid condition result", detail).at(rule.condition.range())
}
