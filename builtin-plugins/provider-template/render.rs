//! Rendering of templates of the configuration language.

use std::collections::BTreeMap;
use std::sync::Arc;

use lang::eval::{Context, evaluate_as};
use lang::scope::{EvaluationError, FunctionSettings, Reference, Scope};
use monoform_sdk::cty::{Type, Value};
use syntax::{Diagnostic, Diagnostics, Pos};

/// Evaluation environment that has functions but no references.
struct Nothing(FunctionSettings);

impl Scope for Nothing {
    fn lookup(&self, reference: &Reference) -> Result<Value, EvaluationError> {
        Err(unknown(&reference.subject.to_string()).at(&reference.range).into())
    }

    fn functions(&self) -> Option<&FunctionSettings> {
        Some(&self.0)
    }
}

fn unknown(name: &str) -> Diagnostic {
    Diagnostic::error(
        "Unknown variable",
        format!("There is no variable named \"{name}\". What a template refers to is given in vars."),
    )
}

/// Reason why a template cannot be rendered, in whole sentences.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum RenderError {
    #[error("{}", sentences(.0))]
    Template(Diagnostics),
    #[error("the result of the template is null or not known, which no text can be.")]
    NoText,
}

/// Renders a template, which can refer to these variables only.
pub(crate) fn render(template: &str, variables: &BTreeMap<String, String>) -> Result<String, RenderError> {
    let (template, problems) = syntax::parse_template("<template_file>", template, Pos::default());
    if problems.has_errors() {
        return Err(RenderError::Template(problems));
    }
    // References are checked before the evaluation, so that unknown names are also reported in branches that are not taken.
    let missing = lang::refs::traversals(&template)
        .into_iter()
        .filter(|t| !variables.contains_key(&*t.root));
    let missing = missing.map(|t| unknown(&t.root).at(&t.root_range)).collect::<Vec<_>>();
    if !missing.is_empty() {
        return Err(RenderError::Template(Diagnostics(missing)));
    }
    let variables: Vec<(Arc<str>, Value)> = variables
        .iter()
        .map(|(k, v)| (k.as_str().into(), Value::string(v)))
        .collect();
    let nothing = Nothing(FunctionSettings::default());
    let context = Context::new(&nothing);
    let (value, problems) = evaluate_as(&template, &Type::String, context.with_variables(&variables));
    if problems.has_errors() {
        return Err(RenderError::Template(problems));
    }
    let text = value.as_str().map(str::to_owned);
    text.ok_or(RenderError::NoText)
}

/// Joins the errors, each with its location.
fn sentences(problems: &Diagnostics) -> String {
    let one = |d: &Diagnostic| match &d.subject {
        Some(range) => format!("{range}: {}; {}", d.summary, d.detail),
        None => format!("{}; {}", d.summary, d.detail),
    };
    problems
        .iter()
        .filter(|d| d.is_error())
        .map(one)
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_text_in_the_language() {
        let variables = [("name", "you"), ("n", "3"), ("list", "a,b"), ("not an identifier", "x")];
        let variables = variables.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        for (template, expected) in [
            ("", ""),
            ("Hi ${name}, ${upper(name)} $${name}", "Hi you, YOU ${name}"),
            ("${n + 1}", "4"),
            ("${n}", "3"),
            ("${n == \"3\"}", "true"),
            ("%{ for x in split(\",\", list) ~}\n<${x}>%{ endfor }", "<a><b>"),
        ] {
            assert_eq!(render(template, &variables).as_deref(), Ok(expected), "{template}");
        }
        for (template, expected) in [
            (
                "${missing} ${var.x}",
                "<template_file>:1,3-10: Unknown variable; There is no variable named \"missing\"",
            ),
            ("${name", "<template_file>:1,"),
            ("${split(\",\", list)}", "Invalid expression value: string required"),
            ("${nosuch(name)}", "nosuch"),
        ] {
            let problem = render(template, &variables).unwrap_err().to_string();
            assert!(problem.contains(expected), "{template}: {problem}");
        }
    }
}
