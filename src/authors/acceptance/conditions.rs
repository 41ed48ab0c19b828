//! Conditions of a step: expressions over the plan, the state and the outputs.

use std::sync::Arc;

use config::model::CheckRule;
use cty::{Marks, Type, Value};
use lang::eval::{Context, describe_value, evaluate, with_whole_expression};
use lang::scope::{EvaluationError, FunctionSettings, Reference, Scope};
use serde_json::Value as Json;
use syntax::{Diagnostic, Diagnostics};

use super::checks::{Objects, failed, has_true};

/// Scope of conditions: functions, but no references. The variables `state`, `plan` and `outputs` are in the evaluation context.
struct Known(FunctionSettings);

impl Scope for Known {
    fn lookup(&self, reference: &Reference) -> Result<Value, EvaluationError> {
        Err(Diagnostic::error(
            "Unknown reference",
            "Conditions refer to objects by \"state[ADDRESS]\" and \"plan[ADDRESS]\", and to outputs by \"outputs.NAME\".",
        )
        .at(&reference.range)
        .into())
    }

    fn functions(&self) -> Option<&FunctionSettings> {
        Some(&self.0)
    }
}

/// Values for the conditions of a step.
#[derive(Debug, Default)]
pub struct Conditions(Vec<(Arc<str>, Value)>);

impl Conditions {
    #[must_use]
    pub fn new(plan: &Objects, state: &Objects) -> Conditions {
        let values = |of: &Objects| {
            let objects = of.objects.iter();
            Value::object(objects.map(|(address, object)| (address.as_str(), value(&object.values, &object.sensitive))))
        };
        let outputs = state.outputs.iter();
        let outputs = outputs.map(|(name, (output, secret))| (name.as_str(), value(output, &Json::Bool(*secret))));
        Conditions(vec![
            ("state".into(), values(state)),
            ("plan".into(), values(plan)),
            ("outputs".into(), Value::object(outputs)),
        ])
    }

    /// Evaluates an assertion. Adds an error to `problems` if it does not hold or cannot be evaluated.
    pub fn check(&self, rule: &CheckRule, problems: &mut Diagnostics) {
        let scope = Known(FunctionSettings::default());
        let outer = Context::new(&scope);
        let context = outer.with_variables(&self.0);
        let (condition, found) = evaluate(&rule.condition, context);
        let (message, more) = evaluate(&rule.error_message, context);
        if found.has_errors() {
            problems.extend(found);
            return;
        }
        problems.extend(more);
        let (condition, _) = condition.unmark_deep();
        let at = rule.condition.range();
        match cty::convert(&condition, &Type::Bool)
            .ok()
            .and_then(|value| value.as_bool())
        {
            Some(true) => {}
            Some(false) => {
                let (message, marks) = message.unmark_deep();
                let message = match message.as_str() {
                    Some(text) if !marks.contains(Marks::SENSITIVE) => text.to_owned(),
                    _ => "The condition does not hold.".to_owned(),
                };
                problems.push(with_whole_expression(failed(message, at), &rule.condition, context));
            }
            None => problems.push(
                Diagnostic::error(
                    "Invalid condition result",
                    format!(
                        "The condition {}, where true or false is required.",
                        describe_value(&condition)
                    ),
                )
                .at(at),
            ),
        }
    }

    /// Evaluates an expression to a string; `None` if it has errors, or the result is null or unknown.
    pub fn text(&self, expr: &syntax::ast::Expr, problems: &mut Diagnostics) -> Option<String> {
        let scope = Known(FunctionSettings::default());
        let outer = Context::new(&scope);
        let (value, found) = lang::eval::evaluate_as(expr, &Type::String, outer.with_variables(&self.0));
        problems.extend(found);
        let (value, _) = value.unmark_deep();
        value.as_str().map(str::to_owned)
    }
}

/// Returns the value of a document. Attributes with sensitive parts are sensitive as a whole.
fn value(document: &Json, sensitive: &Json) -> Value {
    // A document that cannot be converted counts as null. That happens only with numbers that none of the programs writes.
    let value = cty::json::from_simple_json(document).unwrap_or_else(|_| Value::null(Type::Dynamic));
    if *sensitive == true {
        return value.with_marks(Marks::SENSITIVE);
    }
    let Some(entries) = value.entries() else {
        return value;
    };
    Value::object(entries.map(|(name, value)| match has_true(&sensitive[&**name]) {
        true => (name.clone(), value.clone().with_marks(Marks::SENSITIVE)),
        false => (name.clone(), value.clone()),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use syntax::Pos;

    use super::*;

    #[test]
    fn conditions_read_objects_and_hide_secrets() {
        let state = Objects::of_state(&json!({"values": {
            "outputs": {"size": {"value": 3, "sensitive": false}},
            "root_module": {"resources": [{
                "address": "zoo_pet.a", "mode": "managed",
                "values": {"name": "x", "secret": "hunter2"}, "sensitive_values": {"secret": true},
            }]},
        }}));
        let conditions = Conditions::new(&Objects::default(), &state);
        let expr = |text: &str| syntax::parser::parse_expression("test", text, Pos::default()).0;
        let check = |condition: &str| {
            let mut problems = Diagnostics::new();
            let rule = CheckRule {
                condition: expr(condition),
                error_message: expr("\"is ${state[\"zoo_pet.a\"].secret}\""),
                range: expr("0").range().clone(),
            };
            conditions.check(&rule, &mut problems);
            problems
                .iter()
                .map(|p| format!("{}: {}", p.summary, p.detail))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            check("upper(state[\"zoo_pet.a\"].name) == \"X\" && outputs.size == 3"),
            [""; 0]
        );
        assert_eq!(
            check("state[\"zoo_pet.a\"].secret == \"\""),
            ["Test assertion failed: The condition does not hold."]
        );
        assert!(check("zoo_pet.a.name == \"x\"")[0].contains("state[ADDRESS]"));
        assert!(check("outputs")[0].starts_with("Invalid condition result"));
        let id = conditions.text(&expr("state[\"zoo_pet.a\"].name"), &mut Diagnostics::new());
        assert_eq!(id.as_deref(), Some("x"));
    }
}
