//! Schemas: what a block may contain, and how each attribute takes part in validation and planning.
//!
//! Authors write expressions made of [`required`], [`optional`], [`computed`] and [`block`] inside
//! [`model!`](crate::model!); [`Schema::of`] collects them. When a plugin starts to serve, each schema is compiled
//! once ([`Compiled`]), so that no call converts it again. A schema that cannot work (a default of the wrong type, a rule
//! about an attribute that is not there) is refused then, with all that is wrong and where.

mod compiled;
mod problems;

use std::collections::BTreeMap;

use cty::{Type, Value};

pub use self::compiled::Compiled;
pub(crate) use self::compiled::CompiledMember;
pub(crate) use self::problems::{Use, of_function, of_schema};
use crate::model::{Any, Attr, Cty, Model, Set};
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
    /// The block that belongs to a model.
    #[must_use]
    pub fn of<M: Model>() -> Block {
        let mut block = Block {
            description: comment(M::description()),
            ..Block::default()
        };
        for member in M::members() {
            match member {
                Member::Attribute(attribute) => block.attributes.push(attribute),
                Member::Block(nested) => block.blocks.push(nested),
            }
        }
        block
    }

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
///
/// An attribute can be null or unknown, so its field is an [`Attr`] (or [`Any`]); anything else is refused by the compiler:
///
/// ```compile_fail,E0277
/// use monoform_sdk::Model;
/// use monoform_sdk::schema::optional;
///
/// #[derive(Clone, Default, Model)]
/// struct Shelf {
///     /// What stands on it.
///     #[member(optional())]
///     books: Vec<String>,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a field of type `{T}` cannot be declared by `{Self}`",
    note = "an attribute (`required()`, `optional()`, `computed()`) is an `Attr<_>` or an `Any`: it can be null or unknown",
    note = "an attribute with attributes (`nested(…)`) is an `Attr` of a model, or of a `Vec`, `Set` or `BTreeMap<String, _>` of one",
    note = "nested blocks (`block()`) are a model `M`, or `Attr<M>`, `Vec<M>`, `Set<M>`, `BTreeMap<String, M>`, or an `Attr` of those"
)]
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
        text: Text::Markdown,
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

    /// Its description is plain text.
    #[must_use]
    pub fn plain(mut self) -> Attribute {
        self.text = Text::Plain;
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

impl Attribute {
    fn build<T: Cty>(mut self, name: &'static str, doc: &str) -> Member {
        self.name = name;
        self.ty = T::ty();
        self.description = comment(doc);
        Member::Attribute(self)
    }
}

impl<T: Cty> IntoMember<Attr<T>> for Attribute {
    fn into_member(self, name: &'static str, doc: &str) -> Member {
        self.build::<T>(name, doc)
    }
}

impl IntoMember<Any> for Attribute {
    fn into_member(self, name: &'static str, doc: &str) -> Member {
        self.build::<Any>(name, doc)
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
        self.0.build::<T>(name, doc)
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

/// A comment of the source as a description. Lines of one paragraph are joined; paragraphs, and lines that mean something by
/// themselves in Markdown (items of lists, headings, rows of tables, quotations, code between fences), stay apart.
fn comment(doc: &str) -> String {
    let mut out = String::new();
    let (mut fenced, mut new_paragraph, mut ended) = (false, false, false);
    for line in doc.lines() {
        let line = line.strip_prefix(' ').unwrap_or(line).trim_end();
        let text = line.trim_start();
        if text.is_empty() && !fenced {
            new_paragraph = true;
            continue;
        }
        let fence = text.starts_with("```");
        let alone = fenced || fence;
        if !out.is_empty() {
            out.push_str(match () {
                () if new_paragraph => "\n\n",
                () if alone || ended || begins_line(text) => "\n",
                () => " ",
            });
        }
        out.push_str(if fenced { line } else { text });
        fenced ^= fence;
        ended = alone || text.starts_with('#') || text.starts_with('|');
        new_paragraph = false;
    }
    out
}

/// Whether a line of Markdown is not the continuation of the one before it.
fn begins_line(text: &str) -> bool {
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    ["- ", "* ", "+ ", "> ", "# ", "## ", "### ", "|"]
        .iter()
        .any(|mark| text.starts_with(mark))
        || (number.len() < text.len() && number.starts_with(". "))
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
        let mut block = Block::of::<M>();
        if !doc.trim().is_empty() {
            block.description = comment(doc);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model;

    #[test]
    fn comments_keep_paragraphs_lists_and_code() {
        let doc = " One line\n and the next.\n\n Steps:\n - first,\n   which goes on\n - second\n ```\n a\n   b\n ```\n After.\n";
        assert_eq!(
            comment(doc),
            "One line and the next.\n\nSteps:\n- first, which goes on\n- second\n```\na\n  b\n```\nAfter."
        );
    }

    model! {
        /// What a part is.
        pub struct Part {
            pub name: Attr<String> = required(),
        }
    }

    model! {
        /// A whole.
        ///
        /// It has parts.
        pub struct Whole {
            pub first: Vec<Part> = block(),
            /// The others.
            pub second: Vec<Part> = block(),
        }
    }

    #[test]
    fn the_comment_on_a_struct_describes_the_block() {
        let schema = Schema::of::<Whole>();
        assert_eq!(schema.root.description, "A whole.\n\nIt has parts.");
        let blocks = &schema.root.blocks;
        assert_eq!(
            blocks[0].block.description, "What a part is.",
            "unless the member says more"
        );
        assert_eq!(blocks[1].block.description, "The others.");
        assert_eq!(blocks[1].block.text, Text::Markdown);
        assert_eq!(schema.plain().root.blocks[1].block.attributes[0].text, Text::Plain);
    }
}
