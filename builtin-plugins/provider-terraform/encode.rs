//! Encoding of values as text: as expressions, and as variable files (`.tfvars`).

use monoform_sdk::cty::Value;
use syntax::lexer::is_name;
use syntax::write;

use crate::is_mapping;

/// Writes an expression for a wholly known value.
pub(crate) fn expression(value: &Value) -> String {
    write::expression(value)
}

/// Reason why a value cannot be the content of a variable file.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum EncodeError {
    #[error("invalid value to encode: variables are the attributes of an object, and this is no object")]
    NoObject,
    #[error(
        "invalid variable name {0:?}: a name begins with a letter or an underscore, and goes on with letters, digits, \
         underscores and hyphens"
    )]
    Name(String),
}

/// Writes a variable file in which each attribute of the value becomes a variable.
pub(crate) fn tfvars(value: &Value) -> Result<String, EncodeError> {
    if !is_mapping(value) {
        return Err(EncodeError::NoObject);
    }
    let variables: Vec<_> = value.entries().into_iter().flatten().collect();
    if let Some((name, _)) = variables.iter().find(|(name, _)| !is_name(name)) {
        return Err(EncodeError::Name(name.to_string()));
    }
    Ok(write::attributes(
        variables.into_iter().map(|(name, value)| (&**name, value)),
    ))
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::json::from_simple_json;

    use super::*;

    fn value(json: &str) -> Value {
        from_simple_json(&serde_json::from_str(json).unwrap()).unwrap()
    }

    #[test]
    fn files_have_a_line_for_each_variable() {
        let text = tfvars(&value(r#"{"bool": true, "n": null, "_m": {"one": 1}, "name": "x"}"#)).unwrap();
        assert_eq!(text, "_m = {\n  one = 1\n}\nbool = true\nn    = null\nname = \"x\"\n");
        assert_eq!(tfvars(&Value::empty_object()).unwrap(), "");
        assert!(tfvars(&value(r#"{"a b": 1}"#)).is_err());
        assert!(tfvars(&value("[1]")).is_err());
    }
}
