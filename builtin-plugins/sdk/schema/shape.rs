//! Data structures of a schema.

use cty::{Type, Value};

use crate::modifier::Modifier;
use crate::type_rules::TypeRules;
use crate::validate::{Group, GroupRule, Validator};

/// The schema of a provider, of one of its types (such as a resource, an action or a state store), or of a provisioner.
#[derive(Clone, Debug)]
pub struct Schema {
    /// Schema version of states, raised when older states must be upgraded.
    pub version: i64,
    /// Attributes and blocks of the outermost level.
    pub root: Block,
    /// Groups of attributes of which at least one must be set.
    pub at_least_one_of: Vec<Vec<&'static str>>,
    /// Other rules about groups of attributes.
    pub groups: Vec<Group>,
}

impl Schema {
    /// Sets the schema version of states.
    #[must_use]
    pub fn version(mut self, version: i64) -> Schema {
        self.version = version;
        self
    }

    /// Sets the description of the outermost block.
    #[must_use]
    pub fn describe(mut self, text: &str) -> Schema {
        self.root.description = text.to_owned();
        self
    }

    /// Marks all descriptions as plain text, including those of nested blocks and attributes.
    #[must_use]
    pub fn plain(mut self) -> Schema {
        self.root.make_plain();
        self
    }

    /// Marks the whole type as deprecated. The advice for users says what to use instead.
    #[must_use]
    pub fn deprecated(mut self, advice: &'static str) -> Schema {
        self.root.deprecated = Some(advice);
        self
    }

    /// Adds the rule that at least one of these attributes must be set.
    #[must_use]
    pub fn at_least_one_of(mut self, names: &[&'static str]) -> Schema {
        self.at_least_one_of.push(names.to_vec());
        self
    }
}

impl Schema {
    /// Adds the rule that exactly one of these attributes must be set. They are named by path expressions from the outermost block: see
    /// [`validate`](crate::validate).
    #[must_use]
    pub fn exactly_one_of(self, paths: &[&'static str]) -> Schema {
        self.group(GroupRule::ExactlyOneOf, paths)
    }

    /// Adds the rule that at most one of these attributes can be set.
    #[must_use]
    pub fn conflicting(self, paths: &[&'static str]) -> Schema {
        self.group(GroupRule::Conflicting, paths)
    }

    /// Adds the rule that either all of these attributes must be set, or none of them.
    #[must_use]
    pub fn required_together(self, paths: &[&'static str]) -> Schema {
        self.group(GroupRule::RequiredTogether, paths)
    }

    fn group(mut self, rule: GroupRule, paths: &[&'static str]) -> Schema {
        let paths = paths.to_vec();
        self.groups.push(Group { rule, paths });
        self
    }
}

/// The content of a block.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Attributes of the block itself.
    pub attributes: Vec<Attribute>,
    /// Blocks inside this block.
    pub blocks: Vec<NestedBlock>,
    /// Description for users, empty if there is none.
    pub description: String,
    /// The markup of the description.
    pub text: Text,
    /// Advice for users of the block, if it is deprecated.
    pub deprecated: Option<&'static str>,
}

/// Markup of descriptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Text {
    /// Markdown, as in Rust doc comments.
    #[default]
    Markdown,
    /// Plain text, in which no character is markup.
    Plain,
}

impl Block {
    fn make_plain(&mut self) {
        self.text = Text::Plain;
        for attribute in &mut self.attributes {
            attribute.text = Text::Plain;
            if let Some(nested) = &mut attribute.nested {
                nested.block.make_plain();
            }
        }
        self.blocks.iter_mut().for_each(|nested| nested.block.make_plain());
    }

    /// Returns true if an attribute at any depth has nested attributes.
    pub(crate) fn has_nested_attributes(&self) -> bool {
        self.attributes.iter().any(|a| a.nested.is_some())
            || self.blocks.iter().any(|b| b.block.has_nested_attributes())
    }

    /// Returns true if there are computed blocks at any depth.
    pub(crate) fn has_computed_blocks(&self) -> bool {
        self.blocks.iter().any(|b| b.computed || b.block.has_computed_blocks())
    }

    /// Returns the object type of the block.
    #[must_use]
    pub fn ty(&self) -> Type {
        let attributes = self.attributes.iter().map(|a| (a.name, a.ty.clone()));
        // The object type has both attributes and blocks, so a name must not be used twice.
        let blocks = self.blocks.iter().map(|b| (b.name, b.ty()));
        Type::object(attributes.chain(blocks))
    }
}

/// An attribute or a nested block of a model.
#[derive(Clone, Debug)]
pub enum Member {
    /// An attribute.
    Attribute(Attribute),
    /// A nested block.
    Block(NestedBlock),
}

impl Member {
    /// Returns the name in the configuration.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Member::Attribute(a) => a.name,
            Member::Block(b) => b.name,
        }
    }

    /// Returns true if the value must not be shown: the attribute is sensitive or write-only.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        matches!(self, Member::Attribute(a) if a.sensitive || a.write_only)
    }
}

/// An attribute.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// The name in the configuration.
    pub name: &'static str,
    /// The type of the value.
    pub ty: Type,
    /// True if the configuration must set the attribute.
    pub required: bool,
    /// True if the configuration may set the attribute.
    pub optional: bool,
    /// True if the plugin may set the attribute.
    pub computed: bool,
    /// True if hosts must hide the value in their output.
    pub sensitive: bool,
    /// True if the value is read from the configuration only, and never stored in plan or state.
    pub write_only: bool,
    /// Advice for users of the attribute, if it is deprecated.
    pub deprecated: Option<&'static str>,
    /// Description for users, empty if there is none.
    pub description: String,
    /// The markup of the description.
    pub text: Text,
    /// Planned value if the configuration sets none.
    pub default: Option<Value>,
    /// Rules for the configured value.
    pub validators: Vec<Validator>,
    /// Modifiers of the planned value, in this order.
    pub modifiers: Vec<Modifier>,
    /// Nested attributes, if the attribute has a schema of its own: see [`nested`](super::nested).
    pub nested: Option<Box<Nested>>,
    /// Rules of the attribute's Rust type.
    pub rules: TypeRules,
}

/// Schema of nested attributes.
#[derive(Clone, Debug)]
pub struct Nested {
    /// Block that holds the nested attributes; its `blocks` list is always empty.
    pub block: Block,
    /// The number of objects, and the collection that they form.
    pub nesting: Nesting,
}

/// A block inside a block.
#[derive(Clone, Debug)]
pub struct NestedBlock {
    /// The name in the configuration.
    pub name: &'static str,
    /// Attributes and blocks inside.
    pub block: Block,
    /// The number of blocks, and the collection that they form.
    pub nesting: Nesting,
    /// Minimum number of blocks, which the host checks; see [`BlockBuilder::min_items`](super::BlockBuilder::min_items).
    pub min_items: u32,
    /// Maximum number of blocks, which the host checks; 0 for no limit. See [`BlockBuilder::max_items`](super::BlockBuilder::max_items).
    pub max_items: u32,
    /// True if the plugin may set the blocks when the configuration has none; see
    /// [`BlockBuilder::computed`](super::BlockBuilder::computed).
    pub computed: bool,
    /// Rules for the blocks as a whole, such as their number.
    pub validators: Vec<Validator>,
    /// Modifiers of the planned value as a whole, in this order.
    pub modifiers: Vec<Modifier>,
}

/// Collection that nested blocks of one name form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// At most one: an object or null. The field is an `Attr<M>`.
    Single,
    /// Always one; an omitted block counts as an empty block. The field is an `M`.
    Group,
    /// Any number, in order: a list. The field is a `Vec<M>`, or an `Attr<Vec<M>>` if the number of blocks may be unknown (a `dynamic`
    /// block).
    List,
    /// Any number, without order: a set. The field is a `Set<M>` or an `Attr<Set<M>>`.
    Set,
    /// Any number, each with a label: a map. The field is a `BTreeMap<String, M>` or an `Attr<BTreeMap<String, M>>`.
    Map,
}

impl NestedBlock {
    /// Returns the type of the value that the blocks of this name form.
    #[must_use]
    pub fn ty(&self) -> Type {
        let element = self.block.ty();
        match self.nesting {
            Nesting::Single | Nesting::Group => element,
            // Elements with an attribute of the dynamic type may have different types, which only a tuple or an object can hold.
            Nesting::List | Nesting::Map if element.has_dynamic() => Type::Dynamic,
            Nesting::List => Type::list(element),
            Nesting::Set => Type::set(element),
            Nesting::Map => Type::map(element),
        }
    }
}
