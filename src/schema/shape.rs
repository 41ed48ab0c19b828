//! Schema data and implied types.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::types::{ObjectAttribute, ObjectType};
use cty::{Type, Value};

use crate::{Derived, IdentitySchema};

/// The shape of a block: attributes and nested block types by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockSchema {
    pub attributes: BTreeMap<Arc<str>, AttributeSchema>,
    pub blocks: BTreeMap<Arc<str>, NestedBlock>,
    pub description: Description,
    /// True if using the block causes a warning.
    pub deprecated: bool,
    /// Advice on the replacement of a deprecated block; often empty.
    pub deprecation_message: String,
    /// True if the provider may set blocks of this type if the configuration has none (protocol 6). Never true for the outermost block.
    pub computed: bool,
    /// Cache of derived values; [`Derived::default`] in a new block. After the first use of the block, it must not be changed; a clone may
    /// be.
    pub derived: Derived,
}

/// An attribute of a block or nested object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttributeSchema {
    pub ty: AttributeType,
    /// True if the configuration must set the attribute.
    pub required: bool,
    /// True if the configuration may set the attribute.
    pub optional: bool,
    /// True if the provider may set the attribute if the configuration does not.
    pub computed: bool,
    /// True if the value must not be displayed.
    pub sensitive: bool,
    /// True if the provider receives the value, but no state or plan stores it.
    pub write_only: bool,
    /// True if using the attribute causes a warning.
    pub deprecated: bool,
    /// Advice on the replacement of a deprecated attribute; often empty.
    pub deprecation_message: String,
    pub description: Description,
}

/// The type of an attribute: a plain type, or objects whose attributes have schemas (protocol 6).
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeType {
    Plain(Type),
    /// Objects whose attributes have schemas.
    Nested(NestedObject),
}

impl Default for AttributeType {
    fn default() -> AttributeType {
        AttributeType::Plain(Type::Dynamic)
    }
}

/// The nested object type of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedObject {
    pub attributes: BTreeMap<Arc<str>, AttributeSchema>,
    /// The kind of collection; never [`Nesting::Group`].
    pub nesting: Nesting,
}

/// A nested block type.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedBlock {
    /// The schema of each block.
    pub block: BlockSchema,
    /// The kind of collection that the blocks form.
    pub nesting: Nesting,
    /// The minimum number of blocks; 0 for no limit.
    pub min_items: u64,
    /// The maximum number of blocks; 0 for no limit.
    pub max_items: u64,
}

/// The value that nested blocks or objects form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// One object, or null.
    Single,
    /// One object, never null.
    Group,
    List,
    Set,
    /// A map of objects with the block's label as key.
    Map,
}

impl Nesting {
    /// Returns true for one object instead of a collection.
    #[must_use]
    pub fn is_single(self) -> bool {
        matches!(self, Nesting::Single | Nesting::Group)
    }
}

/// A description in plain text or Markdown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    pub text: String,
    pub markdown: bool,
}

/// A schema with its version, such as that of a resource type, a data source or a provider configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// The schema version of stored objects.
    pub version: u64,
    pub block: Arc<BlockSchema>,
    /// The type of an object, cached.
    pub ty: ImpliedType,
    pub has_computed_blocks: bool,
    /// The schema of a managed resource type's identities, if its objects have them.
    pub identity: Option<Arc<IdentitySchema>>,
    /// Pairs of attributes. The second repeats the value of the first, so it is sensitive if the first is.
    pub repeats: Vec<(Arc<str>, Arc<str>)>,
}

/// The implied type of a schema; dereferences to the object type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImpliedType(pub Arc<ObjectType>);

impl Schema {
    #[must_use]
    pub fn new(version: u64, block: BlockSchema) -> Schema {
        let ty = ImpliedType(block.implied_object());
        Schema {
            version,
            has_computed_blocks: block.has_computed_blocks(),
            block: Arc::new(block),
            ty,
            identity: None,
            repeats: Vec::new(),
        }
    }

    #[must_use]
    pub fn implied_type(&self) -> Type {
        Type::Object(self.ty.0.clone())
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

    /// Returns the object for a block without arguments: attributes are null, collections of nested blocks are empty, and blocks with
    /// [`Nesting::Group`] are objects with null attributes.
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
                    // If the type of the blocks contains `any`, the collection is an object or a tuple, because a map or list has a single
                    // element type.
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

    /// Returns true if the block, one of its attributes or a nested block is deprecated.
    #[must_use]
    pub fn contains_deprecated(&self) -> bool {
        self.deprecated
            || self.attributes.values().any(AttributeSchema::contains_deprecated)
            || self.blocks.values().any(|b| b.block.contains_deprecated())
    }
}

impl AttributeSchema {
    #[must_use]
    pub fn implied_type(&self) -> Type {
        match &self.ty {
            // Optional attributes matter only in conversions: a value always has all attributes.
            AttributeType::Plain(ty) => ty.without_optional(),
            AttributeType::Nested(nested) => nested.implied_type(),
        }
    }

    /// Returns true if this or a nested attribute is sensitive.
    #[must_use]
    pub fn contains_sensitive(&self) -> bool {
        self.sensitive
            || match &self.ty {
                AttributeType::Plain(_) => false,
                AttributeType::Nested(n) => n.attributes.values().any(AttributeSchema::contains_sensitive),
            }
    }

    /// Returns true if this or a nested attribute is deprecated.
    #[must_use]
    pub fn contains_deprecated(&self) -> bool {
        self.deprecated
            || match &self.ty {
                AttributeType::Plain(_) => false,
                AttributeType::Nested(n) => n.attributes.values().any(AttributeSchema::contains_deprecated),
            }
    }
}

impl NestedObject {
    #[must_use]
    pub fn object_type(&self) -> Type {
        Type::object(self.attributes.iter().map(|(name, a)| (name.clone(), a.implied_type())))
    }

    #[must_use]
    pub fn implied_type(&self) -> Type {
        let object = self.object_type();
        match self.nesting {
            Nesting::Single | Nesting::Group => object,
            Nesting::List => Type::list(object),
            Nesting::Set => Type::set(object),
            Nesting::Map => Type::map(object),
        }
    }
}

impl NestedBlock {
    /// Returns the type of the value that all blocks of this type form. If the type of a block contains `any`, the elements of a list or
    /// map may have different types: the type is then `any`, and the value a tuple or an object.
    #[must_use]
    pub fn implied_type(&self) -> Type {
        let object = self.block.implied_type();
        match self.nesting {
            Nesting::Single | Nesting::Group => object,
            Nesting::List | Nesting::Map if object.has_dynamic() => Type::Dynamic,
            Nesting::List => Type::list(object),
            Nesting::Set => Type::set(object),
            Nesting::Map => Type::map(object),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
