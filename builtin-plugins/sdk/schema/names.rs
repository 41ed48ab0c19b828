//! Schemas that are made at run time.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use cty::Type;

use super::shape::{Attribute, Block, Member, Schema};

/// Names that were made at run time. Each name is stored once, and never freed, because the names in a schema have the type `&'static str`.
static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Returns a name that lives as long as the process, for members whose names are known at run time only.
#[must_use]
pub fn intern(name: &str) -> &'static str {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match names.get(name) {
        Some(known) => known,
        None => {
            let new: &'static str = Box::leak(name.into());
            names.insert(new);
            new
        }
    }
}

impl Attribute {
    /// Creates a member of a schema that is built at run time: see [`Record`](crate::Record).
    #[must_use]
    pub fn named(mut self, name: &str, ty: Type, description: &str) -> Member {
        self.name = intern(name);
        self.ty = ty;
        self.description = description.to_owned();
        Member::Attribute(self)
    }
}

impl Schema {
    /// Creates a schema of members that are known at run time only: see [`Record`](crate::Record).
    #[must_use]
    pub fn of_members(members: impl IntoIterator<Item = Member>) -> Schema {
        let mut root = Block::default();
        for member in members {
            match member {
                Member::Attribute(attribute) => root.attributes.push(attribute),
                Member::Block(block) => root.blocks.push(block),
            }
        }
        Schema {
            version: 0,
            root,
            at_least_one_of: Vec::new(),
            groups: Vec::new(),
        }
    }
}
