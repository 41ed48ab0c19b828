//! Variable files as values.

use hcl::eval::{Context, Evaluate};
use monoform_sdk::cty::{Number, Type, Value};

/// The variables that the text of a variable file sets.
pub(crate) fn decode(text: &str) -> Result<Value, String> {
    // The parser itself refuses what is nested too deep for its stack.
    let body = hcl::parse(text).map_err(|e| format!("invalid tfvars syntax: {e}"))?;
    let mut variables: Vec<(String, Value)> = Vec::new();
    for structure in body {
        let attribute = structure
            .into_attribute()
            .ok_or("invalid tfvars content: blocks are not allowed here")?;
        let name = attribute.key.to_string();
        // Without any variable or function, whatever refers to one fails.
        let value = attribute
            .expr
            .evaluate(&Context::new())
            .map_err(|e| format!("invalid expression for variable {name:?}: {e}"))?;
        let value = read(&value).map_err(|e| format!("invalid expression for variable {name:?}: {e}"))?;
        variables.push((name, value));
    }
    Ok(Value::object(variables))
}

fn read(value: &hcl::Value) -> Result<Value, String> {
    Ok(match value {
        hcl::Value::Null => Value::null(Type::Dynamic),
        hcl::Value::Bool(b) => Value::bool(*b),
        hcl::Value::Number(n) => {
            let text = n.to_string();
            Value::number(Number::parse(&text).ok_or_else(|| format!("{text} is no number"))?)
        }
        hcl::Value::String(s) => Value::string(s),
        hcl::Value::Array(items) => Value::tuple(items.iter().map(read).collect::<Result<_, _>>()?),
        hcl::Value::Object(items) => {
            let attributes: Result<Vec<_>, String> = items
                .iter()
                .map(|(name, item)| Ok((name.clone(), read(item)?)))
                .collect();
            Value::object(attributes?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_become_attributes() {
        let value = decode("a = 1 + 2\nb = [\"x\", null]\n\nc = { d = true }\ne = \"a-b-c-${1}\"\n").unwrap();
        assert_eq!(value.get("a"), Some(&3.into()));
        assert_eq!(
            value.get("b"),
            Some(&Value::tuple(vec!["x".into(), Value::null(Type::Dynamic)]))
        );
        assert_eq!(value.get("c").and_then(|c| c.get("d")), Some(&Value::bool(true)));
        assert_eq!(value.get("e"), Some(&"a-b-c-1".into()));
        assert_eq!(decode("").unwrap(), Value::empty_object());
    }

    #[test]
    fn everything_else_is_refused() {
        for (text, problem) in [
            ("a = ", "invalid tfvars syntax"),
            ("a {}", "invalid tfvars content"),
            ("a = 1\na = 2", "invalid tfvars syntax"),
            ("a = b", "invalid expression for variable \"a\""),
            ("a = f(1)", "invalid expression for variable \"a\""),
            (&format!("a = {}", "[".repeat(100_000)), "invalid tfvars syntax"),
            (&format!("a = {}1", "!".repeat(100_000)), "invalid tfvars syntax"),
            (&format!("a = {}1", "(".repeat(100_000)), "invalid tfvars syntax"),
        ] {
            let error = decode(text).unwrap_err();
            assert!(error.starts_with(problem), "{error}");
        }
    }
}
