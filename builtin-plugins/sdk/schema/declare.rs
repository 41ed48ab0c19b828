//! Declaration of members: [`required`], [`optional`], [`computed`], [`nested`] and [`block`], and the influence
//! of a field's type on each.

use std::collections::BTreeMap;

use cty::Type;

use super::shape::{Attribute, Block, Member, Nested, NestedBlock, Nesting, Schema, Text};
use crate::model::{Any, Attr, Cty, Model, Set};
use crate::modifier::{Change, Modifier};
use crate::type_rules::TypeRules;
use crate::validate::Validator;

impl Schema {
    /// Returns the schema of a model.
    #[must_use]
    pub fn of<M: Model>() -> Schema {
        Schema {
            version: 0,
            root: Block::of::<M>(),
            at_least_one_of: Vec::new(),
            groups: Vec::new(),
        }
    }
}

impl Block {
    /// Returns the block of a model.
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
}

/// A declaration after `=` in a model. With the name, the doc comment and the type of the field, it becomes a member.
///
/// An attribute can be null or unknown, so its field is an [`Attr`] (or [`Any`]). The compiler refuses any other type:
///
/// ```compile_fail,E0277
/// use monoform_sdk::Model;
/// use monoform_sdk::schema::optional;
///
/// #[derive(Clone, Default, Model)]
/// struct Shelf {
///     /// Titles of the books.
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
    /// Converts the declaration to a member, with the name and doc comment of the field.
    fn into_member(self, name: &'static str, doc: &str) -> Member;
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
        rules: TypeRules::default(),
    }
}

/// Declares an attribute that the configuration must set.
///
/// ```
/// use monoform_sdk::schema::{block, computed, nested, optional, required};
/// use monoform_sdk::{Attr, Set, Validator, model};
///
/// model! {
///     pub struct Rule {
///         pub port: Attr<i64> = required().validate(Validator::AtLeast(1)),
///     }
/// }
///
/// model! {
///     pub struct Network {
///         // Set by the configuration; another value replaces the object.
///         pub name: Attr<String> = required().requires_replace(),
///         // Set by the configuration, or by the provider.
///         pub size: Attr<i64> = optional().computed().default(16i64),
///         // Set by the provider, and kept while the object exists.
///         pub id: Attr<String> = computed().keep(),
///         // Read from the configuration, and never stored.
///         pub password: Attr<String> = optional().write_only().sensitive(),
///         // An attribute with attributes, and blocks.
///         pub rules: Attr<Vec<Rule>> = nested(optional()),
///         pub rule: Set<Rule> = block(),
///     }
/// }
/// # let _ = Network::default();
/// ```
#[must_use]
pub fn required() -> Attribute {
    Attribute {
        required: true,
        ..attribute()
    }
}

/// Declares an attribute that the configuration may set.
#[must_use]
pub fn optional() -> Attribute {
    Attribute {
        optional: true,
        ..attribute()
    }
}

/// Declares an attribute that only the plugin sets.
#[must_use]
pub fn computed() -> Attribute {
    Attribute {
        computed: true,
        ..attribute()
    }
}

impl Attribute {
    /// Lets the plugin set the attribute if the configuration does not.
    #[must_use]
    pub fn computed(mut self) -> Attribute {
        self.computed = true;
        self
    }

    /// Marks the attribute as sensitive: hosts hide its value in their output.
    #[must_use]
    pub fn sensitive(mut self) -> Attribute {
        self.sensitive = true;
        self
    }

    /// Makes the attribute write-only: read from the configuration, never stored in plan or state.
    #[must_use]
    pub fn write_only(mut self) -> Attribute {
        self.write_only = true;
        self
    }

    /// Marks the description as plain text instead of Markdown.
    #[must_use]
    pub fn plain(mut self) -> Attribute {
        self.text = Text::Plain;
        self
    }

    /// Marks the attribute as deprecated. The advice for users says what to use instead.
    #[must_use]
    pub fn deprecated(mut self, advice: &'static str) -> Attribute {
        self.deprecated = Some(advice);
        self
    }

    /// Sets the planned value for a configuration that does not set the attribute. The attribute must also be computed, except in data
    /// sources and in resources that are [lenient](crate::Resource::LENIENT).
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

    /// Adds a modifier of the planned value.
    #[must_use]
    pub fn modify(mut self, modifier: Modifier) -> Attribute {
        self.modifiers.push(modifier);
        self
    }

    /// Replaces the object if the attribute changes.
    #[must_use]
    pub fn requires_replace(self) -> Attribute {
        self.modify(Modifier::RequiresReplace)
    }

    /// Keeps the prior value if the configuration does not set one ("use state for unknown").
    #[must_use]
    pub fn keep(self) -> Attribute {
        self.modify(Modifier::Keep)
    }

    /// Keeps the prior value as [`Attribute::keep`] does, unless it is null: see [`Modifier::KeepNonNull`].
    #[must_use]
    pub fn keep_non_null(self) -> Attribute {
        self.modify(Modifier::KeepNonNull)
    }

    /// Replaces the object if the attribute changes and the configuration sets it. A change of a computed value does not count.
    #[must_use]
    pub fn requires_replace_if_configured(self) -> Attribute {
        self.modify(Modifier::RequiresReplaceIfConfigured)
    }

    /// Replaces the object if the attribute changes and a condition holds.
    ///
    /// ```
    /// use monoform_sdk::schema::optional;
    /// use monoform_sdk::{Attr, Model};
    ///
    /// #[derive(Clone, Default, Model)]
    /// pub struct Disk {
    ///     /// A disk can grow in place.
    ///     #[member(optional().requires_replace_if(|size| match (size.prior.and_then(|p| p.as_number()), size.planned.as_number()) {
    ///         (Some(prior), Some(planned)) => planned < prior,
    ///         _ => true,
    ///     }))]
    ///     pub size: Attr<i64>,
    /// }
    /// ```
    #[must_use]
    pub fn requires_replace_if(self, condition: impl Fn(&Change<'_>) -> bool + Send + Sync + 'static) -> Attribute {
        self.modify(Modifier::requires_replace_if(condition))
    }

    /// Replaces the object if the content of a map of strings changes. New keys with a null value do not count: see
    /// [`Modifier::RequiresReplaceIfValuesChange`].
    #[must_use]
    pub fn requires_replace_if_values_change(self) -> Attribute {
        self.modify(Modifier::RequiresReplaceIfValuesChange)
    }
}

impl Attribute {
    fn build<T: Cty>(mut self, name: &'static str, doc: &str) -> Member {
        self.name = name;
        self.ty = T::ty();
        // The rules of nested attributes are on the attributes inside.
        if self.nested.is_none() {
            self.rules = T::rules();
        }
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

/// Declares an attribute with nested attributes: its value is an object, or a list, set or map of objects. The attributes inside have a
/// schema of their own, and so can be optional or computed, and have defaults and rules. The field's type is `Attr<M>`, `Attr<Vec<M>>`,
/// `Attr<Set<M>>` or `Attr<BTreeMap<String, M>>` of another model `M`, which must have no blocks.
///
/// Only protocol 6 has nested attributes, so a provider that uses them no longer supports protocol 5. If hosts need protocol 5, use blocks
/// instead.
#[must_use]
pub fn nested(attribute: Attribute) -> NestedAttribute {
    NestedAttribute(attribute)
}

/// An attribute with nested attributes, before it gets its name from a field.
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

/// Converts a doc comment to a description. Lines of one paragraph are joined. Paragraphs stay separate, and so do lines that are
/// significant in Markdown: items of lists, headings, rows of tables, quotations, and code between fences.
fn comment(doc: &str) -> String {
    let mut out = String::new();
    let (mut fenced, mut new_paragraph, mut ended) = (false, false, false);
    for line in doc.lines() {
        // The compiler keeps the space after the three slashes.
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
        // Code keeps its indentation.
        out.push_str(if fenced { line } else { text });
        fenced ^= fence;
        ended = alone || text.starts_with('#') || text.starts_with('|');
        new_paragraph = false;
    }
    out
}

/// Returns true if a line of Markdown does not continue the one before it.
fn begins_line(text: &str) -> bool {
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    ["- ", "* ", "+ ", "> ", "# ", "## ", "### ", "|"]
        .iter()
        .any(|mark| text.starts_with(mark))
        || (number.len() < text.len() && number.starts_with(". "))
}

/// Declaration of nested blocks, before they get their name from a field.
#[derive(Clone, Debug, Default)]
pub struct BlockBuilder {
    min_items: u32,
    max_items: u32,
    computed: bool,
    validators: Vec<Validator>,
    modifiers: Vec<Modifier>,
}

/// Declares nested blocks. The type of the field determines how many there may be.
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

    /// Sets the minimum number of blocks in the schema, which the host checks. Official providers written with the old Go SDK do so. Newer
    /// providers use a rule ([`Validator::Size`]) instead.
    #[must_use]
    pub fn min_items(mut self, count: u32) -> BlockBuilder {
        self.min_items = count;
        self
    }

    /// Sets the maximum number of blocks in the schema, which the host checks, like [`min_items`](BlockBuilder::min_items). With these two
    /// methods, a provider that moves from the old Go SDK can keep its schema.
    #[must_use]
    pub fn max_items(mut self, count: u32) -> BlockBuilder {
        self.max_items = count;
        self
    }

    /// Lets the plugin set the blocks if the configuration has none: they are unknown in the plan of a new object. All of their members
    /// must be computed, too. This needs protocol 6 and a host that supports it, such as Terraform 1.16. Other hosts see no blocks, as if
    /// the configuration left them out.
    #[must_use]
    pub fn computed(mut self) -> ComputedBlock {
        self.computed = true;
        ComputedBlock(self)
    }

    /// Replaces the object if these blocks change in any way.
    #[must_use]
    pub fn requires_replace(self) -> BlockBuilder {
        self.modify(Modifier::RequiresReplace)
    }

    /// Adds a modifier of the planned blocks as a whole.
    #[must_use]
    pub fn modify(mut self, modifier: Modifier) -> BlockBuilder {
        self.modifiers.push(modifier);
        self
    }

    fn build<M: Model>(self, name: &'static str, doc: &str, nesting: Nesting) -> Member {
        let mut block = Block::of::<M>();
        // The comment on the field is more specific: the struct may be used by several fields.
        if !doc.trim().is_empty() {
            block.description = comment(doc);
        }
        Member::Block(NestedBlock {
            name,
            block,
            nesting,
            min_items: self.min_items,
            max_items: self.max_items,
            computed: self.computed,
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

/// Nested blocks that the plugin may set. The field is an `Attr`, because the blocks can be unknown. See [`BlockBuilder::computed`].
#[derive(Clone, Debug)]
pub struct ComputedBlock(BlockBuilder);

impl<M: Model> IntoMember<Attr<M>> for ComputedBlock {
    fn into_member(self, name: &'static str, doc: &str) -> Member {
        self.0.build::<M>(name, doc, Nesting::Single)
    }
}

impl<M: Model> IntoMember<Attr<Vec<M>>> for ComputedBlock {
    fn into_member(self, name: &'static str, doc: &str) -> Member {
        self.0.build::<M>(name, doc, Nesting::List)
    }
}

impl<M: Model> IntoMember<Attr<Set<M>>> for ComputedBlock {
    fn into_member(self, name: &'static str, doc: &str) -> Member {
        self.0.build::<M>(name, doc, Nesting::Set)
    }
}

impl<M: Model> IntoMember<Attr<BTreeMap<String, M>>> for ComputedBlock {
    fn into_member(self, name: &'static str, doc: &str) -> Member {
        self.0.build::<M>(name, doc, Nesting::Map)
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
        /// A part.
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
        assert_eq!(blocks[0].block.description, "A part.", "unless the member says more");
        assert_eq!(blocks[1].block.description, "The others.");
        assert_eq!(blocks[1].block.text, Text::Markdown);
        assert_eq!(schema.plain().root.blocks[1].block.attributes[0].text, Text::Plain);
    }
}
