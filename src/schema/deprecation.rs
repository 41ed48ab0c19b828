//! Deprecations of a schema as marks on objects.

use cty::{Kind, Marks, Path, Step, Type, Value};

use crate::{AttributeSchema, AttributeType, BlockSchema, Nesting};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Marks the deprecated parts of an object: the whole object, attributes, and nested blocks. `origin` is the address of the object, which
/// the marks contain. Without deprecations in the schema, the object is returned unchanged.
#[must_use]
pub fn mark_deprecated(schema: &BlockSchema, object: Value, origin: &str) -> Value {
    // Most schemas have no deprecations, so walking their objects would be useless work.
    if !schema.contains_deprecated() {
        return object;
    }
    let mut marker = Marker {
        origin,
        path: Path::root(),
        found: Vec::new(),
    };
    marker.block(schema, &object);
    let object = object.mark_paths(&marker.found);
    match schema.deprecated {
        true => {
            let or = || "The provider has deprecated this resource; its documentation says what to use instead.".into();
            object.with_marks(Marks::deprecated(message(&schema.deprecation_message, or), origin))
        }
        false => object,
    }
}

fn message(given: &str, or: impl FnOnce() -> String) -> String {
    if given.is_empty() { or() } else { given.to_owned() }
}

struct Marker<'o> {
    origin: &'o str,
    path: Path,
    found: Vec<(Path, Marks)>,
}

impl Marker<'_> {
    fn block(&mut self, schema: &BlockSchema, object: &Value) {
        for (name, value) in parts(object) {
            self.path.0.push(Step::Attribute(name.clone()));
            if let Some(attribute) = schema.attributes.get(name) {
                self.attribute(attribute, value);
            } else if let Some(nested) = schema.blocks.get(name) {
                if nested.block.deprecated {
                    self.mark("block", &nested.block.deprecation_message);
                }
                self.each(nested.nesting, value, &mut |this, object| {
                    this.block(&nested.block, object)
                });
            }
            self.path.0.pop();
        }
    }

    fn attribute(&mut self, schema: &AttributeSchema, value: &Value) {
        if schema.deprecated {
            self.mark("attribute", &schema.deprecation_message);
        }
        if let AttributeType::Nested(nested) = &schema.ty {
            self.each(nested.nesting, value, &mut |this, object| {
                this.nested(&nested.attributes, object)
            });
        }
    }

    fn nested(&mut self, attributes: &BTreeMap<Arc<str>, AttributeSchema>, object: &Value) {
        for (name, value) in parts(object) {
            if let Some(attribute) = attributes.get(name) {
                self.path.0.push(Step::Attribute(name.clone()));
                self.attribute(attribute, value);
                self.path.0.pop();
            }
        }
    }

    /// Visits one object, or each object of a collection.
    fn each(&mut self, nesting: Nesting, value: &Value, visit: &mut dyn FnMut(&mut Self, &Value)) {
        if nesting.is_single() {
            return visit(self, value);
        }
        if let (Kind::Seq(items), Type::List(_) | Type::Set(_) | Type::Tuple(_)) = (value.kind(), value.ty()) {
            let is_set = matches!(value.ty(), Type::Set(_));
            for (i, item) in items.iter().enumerate() {
                // The key of a set's element is the element itself.
                let key = if is_set { item.clone() } else { Value::number(i) };
                self.path.0.push(Step::Index(key));
                visit(self, item);
                self.path.0.pop();
            }
            return;
        }
        // Maps, and objects: a map whose element type contains `any` has an object type.
        for (key, item) in value.entries().into_iter().flatten() {
            self.path.0.push(Step::Index(Value::shared_string(key.clone())));
            visit(self, item);
            self.path.0.pop();
        }
    }

    fn mark(&mut self, what: &str, given: &str) {
        let path = self.path.to_string();
        let or = || {
            let name = path.trim_start_matches('.');
            format!("The provider has deprecated the {what} \"{name}\"; its documentation says what to use instead.")
        };
        let mark = Marks::deprecated(message(given, or), format!("{}{path}", self.origin));
        self.found.push((self.path.clone(), mark));
    }
}

/// Returns the attributes of a known object.
fn parts(object: &Value) -> impl Iterator<Item = (&Arc<str>, &Value)> {
    let is_object = matches!(object.ty(), Type::Object(_));
    object.entries().filter(|_| is_object).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NestedBlock;

    fn attribute(deprecated: Option<&str>) -> AttributeSchema {
        AttributeSchema {
            ty: AttributeType::Plain(Type::String),
            deprecated: deprecated.is_some(),
            deprecation_message: deprecated.unwrap_or_default().to_owned(),
            ..AttributeSchema::default()
        }
    }

    #[test]
    fn attributes_and_blocks_are_marked_with_their_places() {
        let inner = BlockSchema {
            attributes: [("old".into(), attribute(Some(""))), ("new".into(), attribute(None))].into(),
            deprecated: true,
            deprecation_message: "no blocks".into(),
            ..BlockSchema::default()
        };
        let schema = BlockSchema {
            attributes: [("name".into(), attribute(Some("use title")))].into(),
            blocks: [(
                "part".into(),
                NestedBlock {
                    block: inner.clone(),
                    nesting: Nesting::List,
                    min_items: 0,
                    max_items: 0,
                },
            )]
            .into(),
            ..BlockSchema::default()
        };
        let part = Value::object([("new", Value::string("n")), ("old", Value::string("o"))]);
        let object = Value::object([
            ("name", Value::string("x")),
            ("part", Value::list(inner.implied_type(), vec![part])),
        ]);
        let (_, found) = mark_deprecated(&schema, object, "t.a").without_deprecations();
        let found: Vec<String> = found
            .iter()
            .map(|(path, d)| format!("{path}: {} ({})", d.message, d.origin))
            .collect();
        assert_eq!(
            found,
            [
                ".name: use title (t.a.name)",
                ".part: no blocks (t.a.part)",
                ".part[0].old: The provider has deprecated the attribute \"part[0].old\"; its documentation says what to use \
                 instead. (t.a.part[0].old)",
            ]
        );
        let plain = BlockSchema::default();
        assert!(
            !mark_deprecated(&plain, Value::empty_object(), "t.a")
                .deep_marks()
                .is_deprecated()
        );
        let whole = BlockSchema {
            deprecated: true,
            ..BlockSchema::default()
        };
        assert!(mark_deprecated(&whole, Value::dynamic(), "t.a").marks().is_deprecated());
    }
}
