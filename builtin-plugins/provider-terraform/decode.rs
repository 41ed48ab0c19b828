//! Decoding of variable files (`.tfvars`) to values.

use lang::eval::{Context, evaluate};
use lang::scope::{EvaluationError, FunctionSettings, Reference, Scope};
use monoform_sdk::cty::Value;
use syntax::{Diagnostic, Diagnostics};

/// File name in error messages.
const FILE: &str = "<decode_tfvars argument>";

/// Evaluation environment without references or functions.
struct Constants;

impl Scope for Constants {
    fn lookup(&self, reference: &Reference) -> Result<Value, EvaluationError> {
        // Never called in practice, because `decode` refuses references before the evaluation.
        Err(
            Diagnostic::error("Variables not allowed", reference.subject.to_string())
                .at(&reference.range)
                .into(),
        )
    }

    fn functions(&self) -> Option<&FunctionSettings> {
        None
    }
}

/// Reason why a text is not a variable file.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("invalid tfvars syntax: {0}")]
    Syntax(String),
    #[error("invalid tfvars content: {0}: unexpected block; a variable file has no blocks, only values of variables")]
    Block(String),
    #[error(
        "invalid expression for variable {name:?}: {range}: Variables not allowed; a variable file holds constant values \
         and can refer to nothing"
    )]
    Reference { name: String, range: String },
    #[error("invalid expression for variable {name:?}: {error}")]
    Expression { name: String, error: String },
}

/// Returns the variables that a variable file sets.
pub(crate) fn decode(text: &str) -> Result<Value, DecodeError> {
    let (body, problems) = syntax::parse_file(FILE, text.as_bytes());
    if let Some(error) = first_error(&problems) {
        return Err(DecodeError::Syntax(error));
    }
    if let Some(block) = body.blocks.first() {
        return Err(DecodeError::Block(block.range.to_string()));
    }
    let mut variables: Vec<(String, Value)> = Vec::new();
    for attribute in &body.attributes {
        let name = attribute.name.to_string();
        if let Some(traversal) = lang::refs::traversals(&attribute.expr).first() {
            return Err(DecodeError::Reference {
                name,
                range: traversal.root_range.to_string(),
            });
        }
        let (value, problems) = evaluate(&attribute.expr, Context::new(&Constants));
        if let Some(error) = first_error(&problems) {
            return Err(DecodeError::Expression { name, error });
        }
        variables.push((name, value));
    }
    Ok(Value::object(variables))
}

fn first_error(problems: &Diagnostics) -> Option<String> {
    let problem = problems.iter().find(|d| d.is_error())?;
    let range = problem.subject.as_ref().map(|range| format!("{range}: "));
    let range = range.unwrap_or_default();
    Some(format!("{range}{}; {}", problem.summary, problem.detail))
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::Type;

    use super::*;

    #[test]
    fn variables_become_attributes() {
        let text = "a = 1 + 2\nb = [\"x\", null]\n\nc = { d = true }\ne = \"a-b-c-${1}\"\nf = [for x in [1] : x]\ng = <<E\ntext\nE\n";
        let value = decode(text).unwrap();
        assert_eq!(value.get("a"), Some(&3.into()));
        assert_eq!(
            value.get("b"),
            Some(&Value::tuple(vec!["x".into(), Value::null(Type::Dynamic)]))
        );
        assert_eq!(value.get("c").and_then(|c| c.get("d")), Some(&Value::bool(true)));
        assert_eq!(value.get("e"), Some(&"a-b-c-1".into()));
        assert_eq!(value.get("f"), Some(&Value::tuple(vec![1.into()])));
        assert_eq!(value.get("g"), Some(&"text\n".into()));
        assert_eq!(decode("").unwrap(), Value::empty_object());
    }

    #[test]
    fn everything_else_is_refused() {
        for (text, problem) in [
            ("a = ", "invalid tfvars syntax: <decode_tfvars argument>:1,"),
            ("a {}", "invalid tfvars content: <decode_tfvars argument>:1,"),
            ("a = 1\na = 2", "invalid tfvars syntax: <decode_tfvars argument>:2,"),
            (
                "a = b",
                "invalid expression for variable \"a\": <decode_tfvars argument>:1,5-6: Variables not allowed; ",
            ),
            (
                "a = f(1)",
                "invalid expression for variable \"a\": <decode_tfvars argument>:1,",
            ),
            (&format!("a = {}", "[".repeat(100_000)), "invalid tfvars syntax"),
            (&format!("a = {}1", "!".repeat(100_000)), "invalid "),
            (&format!("a = {}1", "(".repeat(100_000)), "invalid tfvars syntax"),
        ] {
            let error = decode(text).unwrap_err().to_string();
            assert!(error.starts_with(problem), "{error}");
        }
    }
}
