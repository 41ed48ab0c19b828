//! Values as text: expressions, and variable files made of them.

use monoform_sdk::cty::Value;
use syntax::lexer::is_name;
use syntax::write;

use crate::is_mapping;

/// The text of an expression for a wholly known value.
pub(crate) fn expression(value: &Value) -> String {
    write::expression(value)
}

/// The text of a variable file that sets a variable for each attribute.
pub(crate) fn tfvars(value: &Value) -> Result<String, String> {
    if !is_mapping(value) {
        return Err(
            "invalid value to encode: variables are the attributes of an object, and this is no object".to_owned(),
        );
    }
    let variables: Vec<_> = value.entries().into_iter().flatten().collect();
    if let Some((name, _)) = variables.iter().find(|(name, _)| !is_name(name)) {
        return Err(format!(
            "invalid variable name {name:?}: a name begins with a letter or an underscore, and goes on with letters, digits, \
             underscores and hyphens"
        ));
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
