//! Cache of values derived from a block schema, computed on first use. Objects are decoded, merged and marked by the
//! thousand with one schema, and schemas of large providers have hundreds of attributes at several depths.

use std::sync::{Arc, OnceLock};

use cty::types::{ObjectAttribute, ObjectType};
use cty::{Type, Value};

use crate::{AttributeSchema, AttributeType, BlockSchema, Nesting};

/// Derived values of one block schema. A clone is empty, so that the cloned schema may be changed.
#[derive(Default)]
pub struct Derived {
    object: OnceLock<Arc<ObjectType>>,
    empty: OnceLock<Value>,
    sensitive: OnceLock<bool>,
    write_only: OnceLock<bool>,
}

impl std::fmt::Debug for Derived {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Derived")
    }
}

impl Clone for Derived {
    fn clone(&self) -> Derived {
        Derived::default()
    }
}

impl PartialEq for Derived {
    /// Always true: the cache follows from the schema's content.
    fn eq(&self, _: &Derived) -> bool {
        true
    }
}

impl BlockSchema {
    /// Returns the type of the block's object: one attribute for each attribute and each nested block type.
    #[must_use]
    pub fn implied_object(&self) -> Arc<ObjectType> {
        let compute = || {
            let attributes = self.attributes.iter().map(|(name, a)| (name.clone(), a.implied_type()));
            let blocks = self.blocks.iter().map(|(name, b)| (name.clone(), b.implied_type()));
            Arc::new(ObjectType::new(attributes.chain(blocks).map(|(name, ty)| {
                ObjectAttribute {
                    name,
                    ty,
                    optional: false,
                }
            })))
        };
        self.derived.object.get_or_init(compute).clone()
    }

    #[must_use]
    pub fn implied_type(&self) -> Type {
        Type::Object(self.implied_object())
    }

    /// Returns the object of a block without arguments: null attributes, empty collections of blocks, group blocks with
    /// their attributes.
    #[must_use]
    pub fn empty_object(&self) -> Value {
        let compute = || {
            let ty = self.implied_object();
            let values = ty.attributes().iter().map(|part| match self.blocks.get(&part.name) {
                None => Value::null(part.ty.clone()),
                Some(nested) => match (nested.nesting, &part.ty) {
                    (Nesting::Single, ty) => Value::null(ty.clone()),
                    (Nesting::Group, _) => nested.block.empty_object(),
                    (_, Type::List(e)) => Value::list((**e).clone(), Vec::new()),
                    (_, Type::Set(e)) => Value::set((**e).clone(), Vec::new()),
                    (_, Type::Map(e)) => Value::map((**e).clone(), Default::default()),
                    // Blocks with an `any` in them form objects and tuples, for a map or list has one element type.
                    (Nesting::Map, _) => Value::empty_object(),
                    _ => Value::empty_tuple(),
                },
            });
            Value::object_of(&ty, values.collect())
        };
        self.derived.empty.get_or_init(compute).clone()
    }

    /// Returns true if any attribute of the block or of nested blocks is sensitive.
    #[must_use]
    pub fn contains_sensitive(&self) -> bool {
        *self.derived.sensitive.get_or_init(|| {
            self.attributes.values().any(AttributeSchema::contains_sensitive)
                || self.blocks.values().any(|b| b.block.contains_sensitive())
        })
    }

    /// Returns true if any attribute of the block or of nested blocks is write-only.
    #[must_use]
    pub fn contains_write_only(&self) -> bool {
        fn attribute(a: &AttributeSchema) -> bool {
            a.write_only
                || match &a.ty {
                    AttributeType::Plain(_) => false,
                    AttributeType::Nested(n) => n.attributes.values().any(attribute),
                }
        }
        *self.derived.write_only.get_or_init(|| {
            self.attributes.values().any(attribute) || self.blocks.values().any(|b| b.block.contains_write_only())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NestedBlock;

    #[test]
    fn a_copy_that_is_changed_has_the_type_of_its_own_content() {
        let mut inner = BlockSchema::default();
        inner.attributes.insert(
            "port".into(),
            AttributeSchema {
                ty: AttributeType::Plain(Type::Number),
                sensitive: true,
                ..AttributeSchema::default()
            },
        );
        let before = BlockSchema::default();
        assert_eq!((before.implied_object().len(), before.contains_sensitive()), (0, false));
        let mut after = before.clone();
        for (name, nesting) in [
            ("one", Nesting::Single),
            ("group", Nesting::Group),
            ("list", Nesting::List),
        ] {
            let block = NestedBlock {
                block: inner.clone(),
                nesting,
                min_items: 0,
                max_items: 0,
            };
            after.blocks.insert(name.into(), block);
        }
        assert!(after.contains_sensitive() && !after.contains_write_only());
        let empty = after.empty_object();
        assert_eq!(*empty.ty(), after.implied_type());
        assert!(empty.get("one").is_some_and(Value::is_null));
        assert!(empty.get("group").is_some_and(Value::is_present));
        assert_eq!(empty.get("list").and_then(Value::as_seq).map(<[_]>::len), Some(0));
        assert_eq!(before.empty_object(), Value::empty_object());
    }
}
