//! Values as JSON: their content, and the documents of their unknown and sensitive parts.

use cty::{Kind, Type, Value};
use serde_json::{Map, Value as Json};

use super::Object;

/// Returns the content of a value; marks are ignored. Unknown parts are left out of objects and maps, and null in sequences.
/// Returns `None` if the value itself is unknown.
pub fn known_part(value: &Value) -> Option<Json> {
    match value.kind() {
        Kind::Unknown(_) => None,
        Kind::Null => Some(Json::Null),
        Kind::Seq(items) if !matches!(value.ty(), Type::Object(_)) => {
            Some(items.iter().map(|i| known_part(i).unwrap_or(Json::Null)).collect())
        }
        Kind::Seq(_) | Kind::Map(_) => Some(Json::Object(
            value
                .entries()
                .into_iter()
                .flatten()
                .filter_map(|(name, part)| Some((name.to_string(), known_part(part)?)))
                .collect(),
        )),
        _ => cty::json::to_simple_json(&value.clone().unmark_deep().0).ok(),
    }
}

/// Returns the document of a value's unknown parts: `true` for each, `false` elsewhere. `false` is left out of objects and maps.
pub fn unknown_parts(value: &Value) -> Json {
    match value.kind() {
        Kind::Unknown(_) => Json::Bool(true),
        Kind::Seq(items) if !matches!(value.ty(), Type::Object(_)) => items.iter().map(unknown_parts).collect(),
        Kind::Seq(_) | Kind::Map(_) => named_parts(value, unknown_parts),
        _ => Json::Bool(false),
    }
}

/// Returns the document of a value's sensitive parts, in the form of [`unknown_parts`]. For an unknown structure it has the
/// outermost level only.
pub fn sensitive_parts(value: &Value) -> Json {
    if value.marks().is_sensitive() {
        return Json::Bool(true);
    }
    match (value.kind(), value.ty()) {
        (Kind::Null, _) => Json::Bool(false),
        (Kind::Unknown(_), Type::List(_) | Type::Set(_) | Type::Tuple(_)) => Json::Array(Vec::new()),
        (Kind::Unknown(_), Type::Map(_) | Type::Object(_)) => Json::Object(Map::new()),
        (Kind::Seq(items), ty) if !matches!(ty, Type::Object(_)) => items.iter().map(sensitive_parts).collect(),
        (Kind::Seq(_) | Kind::Map(_), _) => named_parts(value, sensitive_parts),
        _ => Json::Bool(false),
    }
}

fn named_parts(value: &Value, part: fn(&Value) -> Json) -> Json {
    let parts = value
        .entries()
        .into_iter()
        .flatten()
        .map(|(name, inner)| (name, part(inner)));
    Json::Object(
        parts
            .filter(|(_, j)| *j != Json::Bool(false))
            .map(|(n, j)| (n.to_string(), j))
            .collect(),
    )
}

/// Returns a path as a list of names and indexes.
pub fn path(path: &cty::Path) -> Json {
    path.0
        .iter()
        .map(|step| match step {
            cty::Step::Attribute(name) => Json::from(&**name),
            cty::Step::Index(key) => known_part(key).unwrap_or(Json::Null),
        })
        .collect()
}

/// Returns an output value: its sensitivity, type and content.
pub fn output(value: &Value, sensitive: bool, value_first: bool) -> Json {
    let object = Object::default().with("sensitive", sensitive);
    if !value.is_wholly_known() {
        return object.into();
    }
    let (ty, content) = (
        cty::json::type_to_json(value.ty()),
        known_part(value).unwrap_or(Json::Null),
    );
    // The order of these two members differs between the documents.
    if value_first {
        object.with("value", content).with("type", ty).into()
    } else {
        object.with("type", ty).with("value", content).into()
    }
}

#[cfg(test)]
mod tests {
    use cty::Marks;
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_and_sensitive_paths_have_the_shape_of_the_value() {
        let value = Value::object([
            ("id", Value::unknown(Type::String)),
            ("name", Value::string("n")),
            ("secret", Value::string("s").with_marks(Marks::SENSITIVE)),
            (
                "list",
                Value::tuple(vec![Value::unknown(Type::Number), Value::string("x")]),
            ),
            (
                "map",
                Value::object([("a", Value::unknown(Type::Number)), ("b", Value::bool(true))]),
            ),
        ]);
        assert_eq!(
            known_part(&value),
            Some(json!({"list": [null, "x"], "map": {"b": true}, "name": "n", "secret": "s"}))
        );
        assert_eq!(
            unknown_parts(&value),
            json!({"id": true, "list": [true, false], "map": {"a": true}})
        );
        assert_eq!(
            sensitive_parts(&value),
            json!({"list": [false, false], "map": {}, "secret": true})
        );
    }
}
