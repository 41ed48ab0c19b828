//! Schemas: what a block may contain, and how each attribute takes part in validation and planning.
//!
//! Authors write expressions made of [`required`], [`optional`], [`computed`] and [`block`] inside
//! [`model!`](crate::model!); [`Schema::of`] collects them. When a plugin starts to serve, each schema is compiled
//! once ([`Compiled`]), so that no call converts it again.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{ObjectType, Type, Value};

use crate::model::{Attr, Cty, Model, Set};
use crate::plan::Modifier;
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
    /// The schema that belongs to a model.
    #[must_use]
    pub fn of<M: Model>() -> Schema {
        Schema {
            version: 0,
            root: Block::of::<M>(),
            at_least_one_of: Vec::new(),
        }
    }

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
    /// The advice to those who still use it, if it is deprecated.
    pub deprecated: Option<&'static str>,
}

impl Block {
    /// The block that belongs to a model.
    #[must_use]
    pub fn of<M: Model>() -> Block {
        let mut block = Block::default();
        for member in M::members() {
            match member {
                Member::Attribute(attribute) => block.attributes.push(attribute),
                Member::Block(nested) => block.blocks.push(nested),
            }
        }
        block
    }

    /// Whether there is an attribute here or further in that has attributes of its own.
    pub(crate) fn has_nested_attributes(&self) -> bool {
        self.attributes.iter().any(|a| a.nested.is_some())
            || self.blocks.iter().any(|b| b.block.has_nested_attributes())
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

/// What stands after `=` in a model: turned into a member with the name, comment and type of its field.
pub trait IntoMember<T> {
    /// The member.
    fn into_member(self, name: &'static str, doc: &str) -> Member;
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

fn attribute() -> Attribute {
    Attribute {
        name: "",
        ty: Type::Dynamic,
        required: false,
        optional: false,
        computed: false,
        sensitive: false,
        write_only: false,
        deprecated: None,
        description: String::new(),
        default: None,
        validators: Vec::new(),
        modifiers: Vec::new(),
        nested: None,
    }
}

/// An attribute that the configuration must set.
#[must_use]
pub fn required() -> Attribute {
    Attribute {
        required: true,
        ..attribute()
    }
}

/// An attribute that the configuration may set.
#[must_use]
pub fn optional() -> Attribute {
    Attribute {
        optional: true,
        ..attribute()
    }
}

/// An attribute that the plugin sets.
#[must_use]
pub fn computed() -> Attribute {
    Attribute {
        computed: true,
        ..attribute()
    }
}

impl Attribute {
    /// The plugin may set it too, where the configuration does not.
    #[must_use]
    pub fn computed(mut self) -> Attribute {
        self.computed = true;
        self
    }

    /// Its value must not be shown.
    #[must_use]
    pub fn sensitive(mut self) -> Attribute {
        self.sensitive = true;
        self
    }

    /// It is read from the configuration only, never kept in plan or state.
    #[must_use]
    pub fn write_only(mut self) -> Attribute {
        self.write_only = true;
        self
    }

    /// It should not be used any more; the text says what to do instead.
    #[must_use]
    pub fn deprecated(mut self, advice: &'static str) -> Attribute {
        self.deprecated = Some(advice);
        self
    }

    /// The planned value where the configuration sets none. The attribute must be computed too.
    #[must_use]
    pub fn default(mut self, value: impl Cty) -> Attribute {
        self.default = Some(value.to_cty());
        self
    }

    /// Adds a rule for the configured value.
    #[must_use]
    pub fn validate(mut self, validator: Validator) -> Attribute {
        self.validators.push(validator);
        self
    }

    /// Adds a step to the planning of its value.
    #[must_use]
    pub fn modify(mut self, modifier: Modifier) -> Attribute {
        self.modifiers.push(modifier);
        self
    }

    /// A change means that the object is replaced.
    #[must_use]
    pub fn requires_replace(self) -> Attribute {
        self.modify(Modifier::RequiresReplace)
    }

    /// The value of before stays where nothing in the configuration sets it ("use state for unknown").
    #[must_use]
    pub fn keep(self) -> Attribute {
        self.modify(Modifier::Keep)
    }

    /// A map of strings: a real change of its content means that the object is replaced, but adding keys without a value
    /// does not. See [`Modifier::RequiresReplaceIfValuesChange`].
    #[must_use]
    pub fn requires_replace_if_values_change(self) -> Attribute {
        self.modify(Modifier::RequiresReplaceIfValuesChange)
    }
}

impl<T: Cty> IntoMember<T> for Attribute {
    fn into_member(mut self, name: &'static str, doc: &str) -> Member {
        self.name = name;
        self.ty = T::ty();
        self.description = comment(doc);
        Member::Attribute(self)
    }
}

/// An attribute whose value is an object, or a list, set or map of objects, with attributes that have a schema of their own:
/// they can be optional or computed, have defaults and rules. The field's type is `Attr<M>`, `Attr<Vec<M>>`, `Attr<Set<M>>`
/// or `Attr<BTreeMap<String, M>>` of another model `M`, which has attributes only.
///
/// Only protocol 6 has such attributes, so that a provider with one of them no longer speaks protocol 5. Where that matters,
/// blocks say almost the same.
#[must_use]
pub fn nested(attribute: Attribute) -> NestedAttribute {
    NestedAttribute(attribute)
}

/// An attribute with a schema of its own, before it has a name.
#[derive(Clone, Debug)]
pub struct NestedAttribute(Attribute);

impl NestedAttribute {
    fn build<M: Model, T: Cty>(mut self, name: &'static str, doc: &str, nesting: Nesting) -> Member {
        let block = Block::of::<M>();
        self.0.nested = Some(Box::new(Nested { block, nesting }));
        IntoMember::<T>::into_member(self.0, name, doc)
    }
}

impl<M: Model> IntoMember<Attr<M>> for NestedAttribute {
    fn into_member(self, name: &'static str, doc: &str) -> Member {
        self.build::<M, M>(name, doc, Nesting::Single)
    }
}

impl<M: Model> IntoMember<Attr<Vec<M>>> for NestedAttribute {
    fn into_member(self, name: &'static str, doc: &str) -> Member {
        self.build::<M, Vec<M>>(name, doc, Nesting::List)
    }
}

impl<M: Model> IntoMember<Attr<Set<M>>> for NestedAttribute {
    fn into_member(self, name: &'static str, doc: &str) -> Member {
        self.build::<M, Set<M>>(name, doc, Nesting::Set)
    }
}

impl<M: Model> IntoMember<Attr<BTreeMap<String, M>>> for NestedAttribute {
    fn into_member(self, name: &'static str, doc: &str) -> Member {
        self.build::<M, BTreeMap<String, M>>(name, doc, Nesting::Map)
    }
}

/// A comment as it is written in the source, as one paragraph of text.
fn comment(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
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
    /// How many there must be, as far as whoever calls the plugin is told; see [`BlockBuilder::min_items`].
    pub min_items: u32,
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

/// A nested block, before it has a name.
#[derive(Clone, Debug, Default)]
pub struct BlockBuilder {
    min_items: u32,
    validators: Vec<Validator>,
    modifiers: Vec<Modifier>,
}

/// A nested block.
#[must_use]
pub fn block() -> BlockBuilder {
    BlockBuilder::default()
}

impl BlockBuilder {
    /// Adds a rule for the blocks as a whole.
    #[must_use]
    pub fn validate(mut self, validator: Validator) -> BlockBuilder {
        self.validators.push(validator);
        self
    }

    /// The schema says that there must be so many, and the core checks it. Official providers of the old SDK do so; newer ones
    /// have a rule ([`Validator::Size`]).
    #[must_use]
    pub fn min_items(mut self, count: u32) -> BlockBuilder {
        self.min_items = count;
        self
    }

    /// Any change in these blocks means that the object is replaced.
    #[must_use]
    pub fn requires_replace(mut self) -> BlockBuilder {
        self.modifiers.push(Modifier::RequiresReplace);
        self
    }

    fn build<M: Model>(self, name: &'static str, doc: &str, nesting: Nesting) -> Member {
        let block = Block {
            description: comment(doc),
            ..Block::of::<M>()
        };
        Member::Block(NestedBlock {
            name,
            block,
            nesting,
            min_items: self.min_items,
            validators: self.validators,
            modifiers: self.modifiers,
        })
    }
}

impl<M: Model> IntoMember<Attr<M>> for BlockBuilder {
    fn into_member(self, name: &'static str, doc: &str) -> Member {
        self.build::<M>(name, doc, Nesting::Single)
    }
}

impl<M: Model> IntoMember<M> for BlockBuilder {
    fn into_member(self, name: &'static str, doc: &str) -> Member {
        self.build::<M>(name, doc, Nesting::Group)
    }
}

impl<M: Model> IntoMember<BTreeMap<String, M>> for BlockBuilder {
    fn into_member(self, name: &'static str, doc: &str) -> Member {
        self.build::<M>(name, doc, Nesting::Map)
    }
}

impl<M: Model> IntoMember<Attr<BTreeMap<String, M>>> for BlockBuilder {
    fn into_member(self, name: &'static str, doc: &str) -> Member {
        self.build::<M>(name, doc, Nesting::Map)
    }
}

impl<M: Model> IntoMember<Vec<M>> for BlockBuilder {
    fn into_member(self, name: &'static str, doc: &str) -> Member {
        self.build::<M>(name, doc, Nesting::List)
    }
}

impl<M: Model> IntoMember<Set<M>> for BlockBuilder {
    fn into_member(self, name: &'static str, doc: &str) -> Member {
        self.build::<M>(name, doc, Nesting::Set)
    }
}

impl<M: Model> IntoMember<Attr<Vec<M>>> for BlockBuilder {
    fn into_member(self, name: &'static str, doc: &str) -> Member {
        self.build::<M>(name, doc, Nesting::List)
    }
}

impl<M: Model> IntoMember<Attr<Set<M>>> for BlockBuilder {
    fn into_member(self, name: &'static str, doc: &str) -> Member {
        self.build::<M>(name, doc, Nesting::Set)
    }
}

/// A schema made ready for many calls: its object type, and its members in the order of that type's attributes.
#[derive(Debug)]
pub struct Compiled {
    /// The schema as declared.
    pub schema: Schema,
    /// The type of the objects it describes.
    pub ty: Type,
    /// The same type, as an object type.
    pub object: Arc<ObjectType>,
    /// The members of the outermost block.
    pub(crate) members: Vec<CompiledMember>,
}

#[derive(Debug)]
pub(crate) enum CompiledMember {
    Attribute(Attribute),
    /// An attribute with a schema of its own.
    Nested(Attribute, Nesting, Vec<CompiledMember>),
    Block(NestedBlock, Vec<CompiledMember>),
}

impl CompiledMember {
    pub fn name(&self) -> &'static str {
        match self {
            CompiledMember::Attribute(a) | CompiledMember::Nested(a, ..) => a.name,
            CompiledMember::Block(b, _) => b.name,
        }
    }

    /// The attribute, unless it is a block.
    pub fn attribute(&self) -> Option<&Attribute> {
        match self {
            CompiledMember::Attribute(a) | CompiledMember::Nested(a, ..) => Some(a),
            CompiledMember::Block(..) => None,
        }
    }

    pub fn modifiers(&self) -> &[Modifier] {
        match self {
            CompiledMember::Attribute(a) | CompiledMember::Nested(a, ..) => &a.modifiers,
            CompiledMember::Block(b, _) => &b.modifiers,
        }
    }

    pub fn validators(&self) -> &[Validator] {
        match self {
            CompiledMember::Attribute(a) | CompiledMember::Nested(a, ..) => &a.validators,
            CompiledMember::Block(b, _) => &b.validators,
        }
    }

    /// The members inside, if there are any.
    pub fn inside(&self) -> Option<(Nesting, &[CompiledMember])> {
        match self {
            CompiledMember::Attribute(_) => None,
            CompiledMember::Nested(_, nesting, members) => Some((*nesting, members)),
            CompiledMember::Block(b, members) => Some((b.nesting, members)),
        }
    }
}

impl Compiled {
    /// Makes a schema ready.
    #[must_use]
    pub fn new(schema: Schema) -> Compiled {
        let ty = schema.root.ty();
        let object = ty.as_object().cloned().unwrap_or_default();
        let members = compile(&schema.root);
        Compiled {
            schema,
            ty,
            object,
            members,
        }
    }
}

fn compile(block: &Block) -> Vec<CompiledMember> {
    let mut members: Vec<(&'static str, CompiledMember)> = Vec::new();
    for attribute in &block.attributes {
        let member = match &attribute.nested {
            None => CompiledMember::Attribute(attribute.clone()),
            Some(nested) => CompiledMember::Nested(attribute.clone(), nested.nesting, compile(&nested.block)),
        };
        members.push((attribute.name, member));
    }
    for nested in &block.blocks {
        members.push((
            nested.name,
            CompiledMember::Block(nested.clone(), compile(&nested.block)),
        ));
    }
    // The order of an object type's attributes.
    members.sort_by_key(|(name, _)| *name);
    members.into_iter().map(|(_, member)| member).collect()
}
