//! The data of schemas, and the types they imply.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::Type;
use cty::types::ObjectType;

use crate::{Derived, IdentitySchema};

/// The shape of a block: attributes and nested blocks by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockSchema {
    pub attributes: BTreeMap<Arc<str>, AttributeSchema>,
    /// The nested block types.
    pub blocks: BTreeMap<Arc<str>, NestedBlock>,
    pub description: Description,
    /// Whether using the block should be warned about.
    pub deprecated: bool,
    /// What to use instead, if it is deprecated; often empty.
    pub deprecation_message: String,
    /// Where the configuration has no block of this type, the provider may set them (protocol 6). Never for the
    /// outermost block.
    pub computed: bool,
    /// What follows from the rest; [`Derived::default`] in a new block. Once it has been asked for, a block is not changed
    /// any more, only a copy of it.
    pub derived: Derived,
}

/// One attribute of a block or nested object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttributeSchema {
    /// What values it takes.
    pub ty: AttributeType,
    /// It must be set.
    pub required: bool,
    /// It may be set.
    pub optional: bool,
    /// The provider sets it where the configuration does not.
    pub computed: bool,
    /// Its value must not be shown.
    pub sensitive: bool,
    /// Its value is sent to the provider and never stored.
    pub write_only: bool,
    /// Whether using it should be warned about.
    pub deprecated: bool,
    /// What to use instead, if it is deprecated; often empty.
    pub deprecation_message: String,
    pub description: Description,
}

/// The type of an attribute: a plain type, or an object with a schema of its own (protocol 6).
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeType {
    /// A plain type.
    Plain(Type),
    /// Objects whose attributes have schemas.
    Nested(NestedObject),
}

impl Default for AttributeType {
    fn default() -> AttributeType {
        AttributeType::Plain(Type::Dynamic)
    }
}

/// An attribute's nested object type.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedObject {
    /// The attributes of each object.
    pub attributes: BTreeMap<Arc<str>, AttributeSchema>,
    /// One object or a collection of them; never [`Nesting::Group`].
    pub nesting: Nesting,
}

/// A nested block type.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedBlock {
    /// The content of each block.
    pub block: BlockSchema,
    /// How many there may be, and what they form.
    pub nesting: Nesting,
    /// At least so many; 0 for no limit.
    pub min_items: u64,
    /// At most so many; 0 for no limit.
    pub max_items: u64,
}

/// What nested blocks or objects form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// One object, or null.
    Single,
    /// One object, never null.
    Group,
    /// A list of objects.
    List,
    /// A set of objects.
    Set,
    /// A map of objects, by the block's label.
    Map,
}

impl Nesting {
    /// Whether there is one object, not a collection of them.
    #[must_use]
    pub fn is_single(self) -> bool {
        matches!(self, Nesting::Single | Nesting::Group)
    }
}

/// A description, plain or Markdown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    pub text: String,
    /// Whether it is Markdown.
    pub markdown: bool,
}

/// A schema with its version: of a resource type, data source, provider configuration…
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// The version of stored objects.
    pub version: u64,
    /// The shape.
    pub block: Arc<BlockSchema>,
    /// The type of an object of this shape, computed once.
    pub ty: ImpliedType,
    /// Whether there are computed blocks in it.
    pub has_computed_blocks: bool,
    /// The schema of the identities of a managed resource type, if its objects have them.
    pub identity: Option<Arc<IdentitySchema>>,
    /// Pairs of attributes of which the second repeats the value of the first: what is sensitive in one is so in the other.
    pub repeats: Vec<(Arc<str>, Arc<str>)>,
}

/// The implied type of a schema; dereferences to the object type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImpliedType(pub Arc<ObjectType>);

impl Schema {
    /// A schema of this shape.
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

    /// The type of an object of this shape.
    #[must_use]
    pub fn implied_type(&self) -> Type {
        Type::Object(self.ty.0.clone())
    }
}

impl BlockSchema {
    /// Whether the block, or anything in it, is deprecated.
    #[must_use]
    pub fn contains_deprecated(&self) -> bool {
        self.deprecated
            || self.attributes.values().any(AttributeSchema::contains_deprecated)
            || self.blocks.values().any(|b| b.block.contains_deprecated())
    }
}

impl AttributeSchema {
    /// The type of the attribute's value.
    #[must_use]
    pub fn implied_type(&self) -> Type {
        match &self.ty {
            AttributeType::Plain(ty) => ty.without_optional(),
            AttributeType::Nested(nested) => nested.implied_type(),
        }
    }

    /// Whether this or a nested attribute is sensitive.
    #[must_use]
    pub fn contains_sensitive(&self) -> bool {
        self.sensitive
            || match &self.ty {
                AttributeType::Plain(_) => false,
                AttributeType::Nested(n) => n.attributes.values().any(AttributeSchema::contains_sensitive),
            }
    }

    /// Whether this or a nested attribute is deprecated.
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

    /// The type of the attribute's value.
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
    /// The type of the value all blocks of this type form. Where the blocks contain an `any`, a list or map of them
    /// cannot have one element type: then it is `any` itself (a tuple or an object).
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
