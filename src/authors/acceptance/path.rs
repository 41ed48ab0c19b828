//! Paths of values in objects.

use serde_json::Value as Json;
use syntax::Pos;
use syntax::ast::TraversalStep;

/// Path of a value in an object, such as `tags["a"]` or `rule[0].port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuePath {
    /// Text of the path, as the test writes it.
    pub text: String,
    pub keys: Vec<PathKey>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathKey {
    Name(String),
    Index(usize),
}

impl ValuePath {
    /// Parses a path. Returns `None` if the text is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<ValuePath> {
        let traversal = syntax::parser::parse_traversal("path", text, Pos::default()).ok()?;
        let mut keys = vec![PathKey::Name(traversal.root.to_string())];
        for step in &traversal.steps {
            keys.push(match step {
                TraversalStep::Attribute { name, .. } => PathKey::Name(name.to_string()),
                TraversalStep::Index { key, .. } => match key.as_str() {
                    Some(name) => PathKey::Name(name.to_owned()),
                    None => PathKey::Index(key.as_number()?.to_string().parse().ok()?),
                },
                TraversalStep::Splat { .. } => return None,
            });
        }
        Some(ValuePath {
            text: text.to_owned(),
            keys,
        })
    }

    /// Returns the part of a document at the path; `None` if the document has no such
    /// part.
    #[must_use]
    pub fn of<'j>(&self, document: &'j Json) -> Option<&'j Json> {
        self.keys.iter().try_fold(document, |at, key| match key {
            PathKey::Name(name) => at.get(name),
            PathKey::Index(index) => at.get(index),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_values() {
        let document = serde_json::json!({"rule": [{"port": 1}], "tags": {"a.b": "x"}});
        for (path, value) in [
            ("rule[0].port", Some(serde_json::json!(1))),
            ("tags[\"a.b\"]", Some(serde_json::json!("x"))),
            ("rule[1]", None),
            ("none", None),
        ] {
            assert_eq!(ValuePath::parse(path).unwrap().of(&document).cloned(), value, "{path}");
        }
        assert_eq!(ValuePath::parse("a[*]"), None);
    }
}
