//! Conversion between values and JSON documents in the form of `jsonencode`, which does not record types.

use std::collections::BTreeMap;

use cty::json::Json;
use cty::{Kind, Number, Step, Type, Value};

use crate::model::ModelError;

/// Converts a value to JSON. Sets become arrays.
///
/// ```
/// use monoform_sdk::cty::Value;
/// use monoform_sdk::json::{from_json, to_json};
///
/// let value = Value::object([("name", "a".into()), ("sizes", Value::tuple(vec![Value::number(1)]))]);
/// let json = to_json(&value)?;
/// assert_eq!(json.to_string(), r#"{"name":"a","sizes":[1]}"#);
/// assert_eq!(from_json(&json)?, value);
/// # Ok::<(), monoform_sdk::model::ModelError>(())
/// ```
///
/// # Errors
/// A part of the value is unknown, or a number is infinite.
pub fn to_json(value: &Value) -> Result<Json, ModelError> {
    if !value.is_known() {
        return Err(ModelError {
            unknown: true,
            ..ModelError::new("a known value is required, but the value is unknown")
        });
    }
    Ok(match value.kind() {
        Kind::Bool(b) => Json::Bool(*b),
        Kind::String(s) => Json::String(s.to_string()),
        Kind::Number(n) if n.is_infinite() => return Err(ModelError::new("JSON has no infinite numbers")),
        Kind::Number(n) => Json::Number(n.to_string()),
        _ => match (value.as_seq(), value.entries(), value.ty()) {
            // Tested before sequences, because `as_seq` also returns the attributes of an object.
            (_, Some(entries), Type::Object(_) | Type::Map(_)) => {
                let mut members = BTreeMap::new();
                for (name, part) in entries {
                    let part = to_json(part).map_err(|e| e.under(Step::Attribute(name.clone())))?;
                    members.insert(name.to_string(), part);
                }
                Json::Object(members)
            }
            (Some(items), ..) => {
                let item = |(i, item)| to_json(item).map_err(|e| e.under(Step::Index(Value::number(i))));
                Json::Array(items.iter().enumerate().map(item).collect::<Result<_, _>>()?)
            }
            _ => Json::Null,
        },
    })
}

/// Converts JSON to a value, with the types that `jsondecode` gives it: arrays become tuples, and objects become objects. To read a
/// document as a value of a certain type, use [`Json::to_value`].
///
/// # Errors
/// A number is too large to be represented.
pub fn from_json(json: &Json) -> Result<Value, ModelError> {
    Ok(match json {
        Json::Null => Value::null(Type::Dynamic),
        Json::Bool(b) => Value::bool(*b),
        Json::String(s) => Value::string(s),
        Json::Number(digits) => match Number::parse(digits) {
            Some(number) => Value::number(number),
            None => return Err(ModelError::new(format!("{digits} is too large for a number"))),
        },
        Json::Array(items) => {
            let item = |(i, item)| from_json(item).map_err(|e| e.under(Step::Index(Value::number(i))));
            Value::tuple(items.iter().enumerate().map(item).collect::<Result<_, _>>()?)
        }
        Json::Object(members) => {
            let mut attributes = Vec::with_capacity(members.len());
            for (name, part) in members {
                let value = from_json(part).map_err(|e| e.under(Step::Attribute(name.as_str().into())))?;
                attributes.push((name.as_str(), value));
            }
            Value::object(attributes)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_json_and_back() {
        let text = r#"{"a":[1,2.5,"x",null,true],"b":{"c":{}}}"#;
        let value = from_json(&Json::parse(text.as_bytes()).unwrap()).unwrap();
        assert_eq!(to_json(&value).unwrap().to_string(), text);
        let map = Value::map(Type::Number, BTreeMap::from([("k".into(), Value::number(1))]));
        assert_eq!(to_json(&map).unwrap().to_string(), r#"{"k":1}"#);
        let set = Value::set(Type::String, vec!["b".into(), "a".into()]);
        assert_eq!(to_json(&set).unwrap().to_string(), r#"["a","b"]"#);
    }

    #[test]
    fn unknown_part_is_an_error_at_its_path() {
        let value = Value::object([("a", Value::tuple(vec![Value::unknown(Type::String)]))]);
        let error = to_json(&value).unwrap_err();
        assert_eq!((error.path.to_string().as_str(), error.unknown), (".a[0]", true));
        assert!(from_json(&Json::Number("1e9999999999".into())).is_err());
    }
}
