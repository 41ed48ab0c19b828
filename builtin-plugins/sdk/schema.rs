//! Schemas: what a block may contain, and how each attribute takes part in validation and planning.
//!
//! Authors write expressions made of [`required`], [`optional`], [`computed`] and [`block`] inside
//! [`model!`](crate::model!); [`Schema::of`] collects them. When a plugin starts to serve, each schema is compiled
//! once ([`Compiled`]), so that no call converts it again. A schema that cannot work (a default of the wrong type, a rule
//! about an attribute that is not there) is refused then, with all that is wrong and where.

mod compiled;
mod declare;
mod problems;

use cty::{Type, Value};

pub use self::compiled::Compiled;
pub(crate) use self::compiled::CompiledMember;
pub use self::declare::{
    BlockBuilder, ComputedBlock, IntoMember, NestedAttribute, block, computed, nested, optional, required,
};
pub(crate) use self::problems::{Use, of_function, of_schema};
use crate::modifier::Modifier;
use crate::validate::Validator;

/// The schema of a provider, resource, data source, ephemeral resource or provisioner.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The version of the state's form; it rises when an older state must be upgraded.
    pub version: i64,
    /// The attributes and blocks.
    pub root: Block,
    /// Of each of these groups, at least one attribute must be set.
    pub at_least_one_of: Vec<Vec<&'static str>>,
}

impl Schema {
    /// The same schema with this version.
    #[must_use]
    pub fn version(mut self, version: i64) -> Schema {
        self.version = version;
        self
    }

    /// The same schema with this description.
    #[must_use]
    pub fn describe(mut self, text: &str) -> Schema {
        self.root.description = text.to_owned();
        self
    }

    /// The same schema, whose descriptions are plain text, all of them: of blocks and attributes inside, too.
    #[must_use]
    pub fn plain(mut self) -> Schema {
        self.root.make_plain();
        self
    }

    /// The same schema, marked as deprecated with this advice.
    #[must_use]
    pub fn deprecated(mut self, advice: &'static str) -> Schema {
        self.root.deprecated = Some(advice);
        self
    }

    /// The same schema with the rule that at least one of these attributes must be set.
    #[must_use]
    pub fn at_least_one_of(mut self, names: &[&'static str]) -> Schema {
        self.at_least_one_of.push(names.to_vec());
        self
    }
}

/// The content of a block.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Attributes.
    pub attributes: Vec<Attribute>,
    /// Nested blocks.
    pub blocks: Vec<NestedBlock>,
    /// What it is for.
    pub description: String,
    /// How that text is written.
    pub text: Text,
    /// The advice to those who still use it, if it is deprecated.
    pub deprecated: Option<&'static str>,
}

/// How descriptions are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Text {
    /// As Markdown, as comments in Rust are.
    #[default]
    Markdown,
    /// As plain text.
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

    /// Whether there is an attribute here or further in that has attributes of its own.
    pub(crate) fn has_nested_attributes(&self) -> bool {
        self.attributes.iter().any(|a| a.nested.is_some())
            || self.blocks.iter().any(|b| b.block.has_nested_attributes())
    }

    /// Whether there are computed blocks here or further in.
    pub(crate) fn has_computed_blocks(&self) -> bool {
        self.blocks.iter().any(|b| b.computed || b.block.has_computed_blocks())
    }

    /// The type of objects that this block's content becomes.
    #[must_use]
    pub fn ty(&self) -> Type {
        let attributes = self.attributes.iter().map(|a| (a.name, a.ty.clone()));
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
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Member::Attribute(a) => a.name,
            Member::Block(b) => b.name,
        }
    }

    /// Whether its value must not be shown.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        matches!(self, Member::Attribute(a) if a.sensitive || a.write_only)
    }
}

/// An attribute.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// The name.
    pub name: &'static str,
    /// The type.
    pub ty: Type,
    /// The configuration must set it.
    pub required: bool,
    /// The configuration may set it.
    pub optional: bool,
    /// The plugin may set it.
    pub computed: bool,
    /// Its value must not be shown.
    pub sensitive: bool,
    /// It is read from the configuration only, never kept in plan or state.
    pub write_only: bool,
    /// The advice to those who still use it, if it is deprecated.
    pub deprecated: Option<&'static str>,
    /// What it is for.
    pub description: String,
    /// How that text is written.
    pub text: Text,
    /// The planned value where the configuration sets none.
    pub default: Option<Value>,
    /// Rules for the configured value.
    pub validators: Vec<Validator>,
    /// What happens to the planned value, in this order.
    pub modifiers: Vec<Modifier>,
    /// The attributes inside, if it has a schema of its own: see [`nested`].
    pub nested: Option<Box<Nested>>,
}

/// The schema inside an attribute.
#[derive(Clone, Debug)]
pub struct Nested {
    /// The attributes; there are no blocks in attributes.
    pub block: Block,
    /// How many objects there are, and what they become.
    pub nesting: Nesting,
}

/// A block inside a block.
#[derive(Clone, Debug)]
pub struct NestedBlock {
    /// The name.
    pub name: &'static str,
    /// The content.
    pub block: Block,
    /// How many there may be, and what they become.
    pub nesting: Nesting,
    /// How many there must be, according to the schema that the host reads; see [`BlockBuilder::min_items`].
    pub min_items: u32,
    /// How many there may be, in the same way; 0 for any number. See [`BlockBuilder::max_items`].
    pub max_items: u32,
    /// The plugin may say which blocks there are, where the configuration has none; see [`BlockBuilder::computed`].
    pub computed: bool,
    /// Rules for the blocks as a whole: how many, and with what.
    pub validators: Vec<Validator>,
    /// What happens to the planned value as a whole, in this order.
    pub modifiers: Vec<Modifier>,
}

/// How nested blocks of one name form one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// At most one: an object or null. The field is an `Attr<M>`.
    Single,
    /// Always one, as if it were there with nothing in it where it is left out. The field is an `M`.
    Group,
    /// Any number, in order: a list. The field is a `Vec<M>`, or an `Attr<Vec<M>>` where a configuration may not know yet
    /// how many (a `dynamic` block).
    List,
    /// Any number, without order: a set. The field is a `Set<M>` or an `Attr<Set<M>>`.
    Set,
    /// Any number, each with a label of its own: a map. The field is a `BTreeMap<String, M>` or an `Attr` of that.
    Map,
}

impl NestedBlock {
    /// The type of the value that the blocks of this name form.
    #[must_use]
    pub fn ty(&self) -> Type {
        let element = self.block.ty();
        match self.nesting {
            Nesting::Single | Nesting::Group => element,
            Nesting::List | Nesting::Map if element.has_dynamic() => Type::Dynamic,
            Nesting::List => Type::list(element),
            Nesting::Set => Type::set(element),
            Nesting::Map => Type::map(element),
        }
    }
}
