//! What became of each part of a value: the result of a comparison, ready to be written.

use cty::Value;

/// What happens to one part of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Nothing.
    Keep,
    /// It appears.
    Create,
    /// It changes.
    Update,
    /// It goes away.
    Delete,
}

impl Act {
    /// What happens to the whole if this happens to it so far and `next` to one more part.
    pub(super) fn with(self, next: Act) -> Act {
        match next {
            Act::Keep => self,
            next if next == self => self,
            _ => Act::Update,
        }
    }
}

/// One part of a value, compared.
#[derive(Debug)]
pub(super) struct Node<'v> {
    /// What happens to it.
    pub(super) act: Act,
    /// Whether that requires replacement.
    pub(super) replace: bool,
    /// What it is.
    pub(super) body: Body<'v>,
}

/// What a compared part is.
#[derive(Debug)]
pub(super) enum Body<'v> {
    /// A string, number, bool or null.
    Primitive(Option<&'v Value>, Option<&'v Value>),
    /// Elements in order. With context, the elements next to a change are shown.
    List { items: Vec<Node<'v>>, context: bool },
    /// Elements without order.
    Set { items: Vec<Node<'v>>, nested: bool },
    /// Elements by key.
    Map {
        items: Vec<(&'v str, Node<'v>)>,
        nested: bool,
    },
    /// Attributes by name.
    Object {
        items: Vec<(&'v str, Node<'v>)>,
        nested: bool,
    },
    /// The content of a block.
    Block(Block<'v>),
    /// To be known after apply; what it replaces, if there is something.
    Unknown(Option<Box<Node<'v>>>),
    /// Not to be shown, unless there is what to show.
    Sensitive(Secret, Option<Box<Node<'v>>>),
    /// A block not to be shown, likewise.
    SensitiveBlock(Secret, Option<Box<Node<'v>>>),
    /// Something of another type took its place.
    TypeChange(Box<Node<'v>>, Box<Node<'v>>),
    /// Given to the provider, never stored.
    WriteOnly,
}

/// What is known of a sensitive value without showing it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Secret {
    /// What happens to the value itself.
    pub(super) inner: Act,
    /// Whether it was sensitive.
    pub(super) before: bool,
    /// Whether it will be.
    pub(super) after: bool,
}

/// The content of a block, compared.
#[derive(Debug, Default)]
pub(super) struct Block<'v> {
    /// The attributes, sorted.
    pub(super) attributes: Vec<(&'v str, Node<'v>)>,
    /// The nested blocks, sorted by type.
    pub(super) blocks: Vec<(&'v str, Blocks<'v>)>,
}

/// The nested blocks of one type.
#[derive(Debug)]
pub(super) struct Blocks<'v> {
    /// Each block, with its label if blocks of this type have labels.
    pub(super) items: Vec<(Option<&'v str>, Node<'v>)>,
    /// Whether the change of any of them requires replacement.
    pub(super) replace: bool,
}
