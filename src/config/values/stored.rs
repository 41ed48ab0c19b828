//! Values of variables that a workspace of HCP Terraform stores for its own runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Type, Value};
use syntax::Diagnostic;

use super::{CollectedValues, Content, Given, ValueSource, VariableValue, evaluate};
use crate::model::{Module, Variable};
use crate::parse;

/// A value that a workspace stores.
#[derive(Clone, PartialEq, Eq)]
pub enum StoredValue {
    Text(String),
    /// An expression without references.
    Expression(String),
    /// A sensitive value, which the server does not return.
    Secret {
        /// True if the value is text, false if it is an expression.
        is_text: bool,
    },
}

/// Prints no value: it may be a secret.
impl std::fmt::Debug for StoredValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            StoredValue::Text(_) => "Text(…)",
            StoredValue::Expression(_) => "Expression(…)",
            StoredValue::Secret { .. } => "Secret",
        })
    }
}

/// Sets the variables that are not set otherwise to the values that a workspace stores. A value that the server does
/// not return is unknown, with a warning.
pub fn complete(module: &Module, stored: &BTreeMap<String, StoredValue>, collected: &mut CollectedValues) {
    for variable in module.variables.values() {
        let is_set = |value: &VariableValue| value.source != ValueSource::Default;
        if collected.values.get(&variable.name).is_some_and(is_set) {
            continue;
        }
        let Some(stored) = stored.get(&*variable.name) else {
            continue;
        };
        collected.missing.retain(|name| *name != variable.name);
        if let Some(value) = value(variable, stored, collected) {
            collected.values.insert(variable.name.clone(), value);
        }
    }
}

fn value(variable: &Variable, stored: &StoredValue, out: &mut CollectedValues) -> Option<VariableValue> {
    let name = &variable.name;
    let content = match stored {
        StoredValue::Text(text) => Content::Text(text.clone()),
        StoredValue::Expression(text) => {
            let file: Arc<str> = format!("<value for var.{name}>").into();
            let (expr, problems) = parse::expression(text, &file);
            if problems.has_errors() {
                out.diagnostics.push(invalid(name));
                return None;
            }
            Content::Expr(expr)
        }
        StoredValue::Secret { is_text } => {
            out.diagnostics.push(Diagnostic::warning(
                format!("Value for var.{name} unavailable"),
                format!(
                    "The workspace keeps the value of \"{name}\" as a secret, and passes it to its own runs only. This command \
                     runs \
                     here, so the value is not known; set it with -var where it is needed."
                ),
            ));
            let ty = variable.value_type();
            let unknown = match *is_text && ty == Type::Dynamic {
                true => Value::unknown(Type::String),
                false => Value::unknown(ty),
            };
            return Some(VariableValue {
                value: unknown,
                given: None,
                source: ValueSource::Workspace,
            });
        }
    };
    let (source, errors) = (ValueSource::Workspace, out.diagnostics.0.len());
    if let Content::Text(text) = content {
        // The text is converted like a value, and never parsed as an expression, because the workspace declares
        // it as text.
        let given = Given {
            content: Content::Value(Value::string(&text), variable.range.clone()),
            source,
        };
        return evaluate(variable, &given, out);
    }
    let found = evaluate(variable, &Given { content, source }, out);
    let is_error = |d: &Diagnostic| d.is_error();
    if found.is_none() && out.diagnostics.0.iter().skip(errors).any(is_error) {
        // These diagnostics are replaced by one without a range, because the user has no file with the text of the
        // expression.
        out.diagnostics.0.truncate(errors);
        out.diagnostics.push(invalid(name));
    }
    found
}

fn invalid(name: &str) -> Diagnostic {
    Diagnostic::error(
        format!("Invalid expression for var.{name}"),
        format!(
            "The workspace has an expression for \"{name}\" that is none, or does not fit the variable. It must be a literal \
             value, without references and calls."
        ),
    )
}
