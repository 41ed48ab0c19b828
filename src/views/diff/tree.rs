//! Result of a comparison: the action on each part of a value, ready to be rendered.

use cty::Value;

/// Action on one part of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Keep,
    Create,
    Update,
    Delete,
}

impl Act {
    /// Combines the action so far with that of another part.
    pub(super) fn with(self, next: Act) -> Act {
        match next {
            Act::Keep => self,
            next if next == self => self,
            _ => Act::Update,
        }
    }
}

/// Compared part of a value.
#[derive(Debug)]
pub(super) struct Node<'v> {
    pub(super) act: Act,
    /// True if the change requires replacement.
    pub(super) replace: bool,
    pub(super) body: Body<'v>,
}

#[derive(Debug)]
pub(super) enum Body<'v> {
    /// String, number, bool or null: before and after.
    Primitive(Option<&'v Value>, Option<&'v Value>),
    /// Ordered elements. With `context`, the elements next to a change are shown.
    List {
        items: Vec<Node<'v>>,
        context: bool,
    },
    /// Unordered elements.
    Set {
        items: Vec<Node<'v>>,
        nested: bool,
    },
    Map {
        items: Vec<(&'v str, Node<'v>)>,
        nested: bool,
    },
    Object {
        items: Vec<(&'v str, Node<'v>)>,
        nested: bool,
    },
    Block(Block<'v>),
    /// The new value is known after apply; contains the old value, if there is one.
    Unknown(Option<Box<Node<'v>>>),
    /// Sensitive value; the content, if it may be shown.
    Sensitive(Secret, Option<Box<Node<'v>>>),
    /// Sensitive block; the content, if it may be shown.
    SensitiveBlock(Secret, Option<Box<Node<'v>>>),
    /// Replacement by a value of another type.
    TypeChange(Box<Node<'v>>, Box<Node<'v>>),
    /// Sent to the provider, never stored.
    WriteOnly,
}

/// Properties of a sensitive value that are shown even if the value itself is hidden.
#[derive(Clone, Copy, Debug)]
pub(super) struct Secret {
    /// Action on the value itself.
    pub(super) inner: Act,
    /// True if the value was sensitive.
    pub(super) before: bool,
    /// True if the value will be sensitive.
    pub(super) after: bool,
}

#[derive(Debug, Default)]
pub(super) struct Block<'v> {
    /// Attributes, sorted by name.
    pub(super) attributes: Vec<(&'v str, Node<'v>)>,
    /// Nested blocks, sorted by type.
    pub(super) blocks: Vec<(&'v str, Blocks<'v>)>,
}

#[derive(Debug)]
pub(super) struct Blocks<'v> {
    /// Blocks, with their labels if blocks of this type have labels.
    pub(super) items: Vec<(Option<&'v str>, Node<'v>)>,
    /// True if a change of any of these blocks requires replacement.
    pub(super) replace: bool,
}
