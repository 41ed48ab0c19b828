//! The difference between two values, as people read it.
//!
//! [`build`] compares: it makes a tree of [`Diff`]s, each with an action and what it is about. [`render`] writes the tree
//! down. Where a schema says what a value is, it is followed: attributes, nested blocks, maps, lists, sets. Where it says
//! only "anything", values are compared by the shape they have, as JSON would be.

pub mod build;
pub mod render;
mod sequence;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;

use cty::Value;

/// What happens to a part of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// It comes.
    Create,
    /// It changes.
    Update,
    /// It goes.
    Delete,
}

impl Change {
    /// What happens to a whole one of whose parts this happens, when that happens to the others.
    #[must_use]
    pub fn and(self, other: Change) -> Change {
        if self == other { self } else { Change::Update }
    }
}

/// The difference in one part of a value.
#[derive(Clone, Debug)]
pub struct Diff {
    /// What happens to it.
    pub change: Change,
    /// Whether this asks for a new object.
    pub replace: bool,
    /// What it is about.
    pub kind: Kind,
}

/// What a difference is about.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Text, a number, a truth value, or null; `None` where there is nothing.
    Primitive(Option<Value>, Option<Value>),
    /// The value will be known after apply; what it is now, if it is anything.
    Unknown(Option<Box<Diff>>),
    /// The content must not be shown.
    Sensitive {
        /// Whether it must not be shown as it is.
        before: bool,
        /// Whether it must not be shown as it will be.
        after: bool,
        /// Whether the content stays the same.
        same: bool,
        /// Whether this is a block.
        block: bool,
    },
    /// One kind of value becomes another.
    TypeChange(Box<Diff>, Box<Diff>),
    /// Attributes by name.
    Object(BTreeMap<String, Diff>),
    /// Elements by key.
    Map(BTreeMap<String, Diff>),
    /// Elements in order; the flag says whether neighbours of changes are shown.
    List(Vec<Diff>, bool),
    /// Elements without order.
    Set(Vec<Diff>),
    /// A block: attributes, and nested blocks by type.
    Block(BTreeMap<String, Diff>, BTreeMap<String, Blocks>),
}

/// The nested blocks of one type.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// The blocks, with their label where they form a map.
    pub items: Vec<(Option<String>, Diff)>,
}
