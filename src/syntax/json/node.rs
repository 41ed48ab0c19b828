//! Values of a JSON document, with their ranges.

use std::collections::HashMap;
use std::sync::Arc;

use cty::{Number, Type, Value};

use crate::{Diagnostic, Pos, Range};

/// A value of a document. Copies share its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub kind: Kind,
    pub range: Range,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    /// Text with escapes resolved.
    String(Arc<str>),
    Array(Arc<[Node]>),
    /// Properties in source order, duplicates included.
    Object(Arc<[Member]>),
}

/// A property of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub name: Arc<str>,
    pub name_range: Range,
    pub value: Node,
}

/// Normalizes a key to Unicode's NFC, as all strings of the language.
fn normalized(name: &Arc<str>) -> Arc<str> {
    Value::string(name)
        .as_arc_str()
        .cloned()
        .unwrap_or_else(|| name.clone())
}

impl Node {
    /// Returns this JSON value as a value of the language: strings are text, not templates.
    #[must_use]
    pub fn literal(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::null(Type::Dynamic),
            Kind::Bool(b) => Value::bool(*b),
            Kind::Number(number) => Value::number(number.clone()),
            Kind::String(text) => Value::string(text),
            Kind::Array(items) => Value::tuple(items.iter().map(Node::literal).collect()),
            Kind::Object(members) => Value::object(members.iter().map(|m| (normalized(&m.name), m.value.literal()))),
        }
    }

    /// Returns the name of the first property, at any depth, that occurs earlier in the same object with a value of
    /// another type.
    #[must_use]
    pub fn conflicting_property(&self) -> Option<&str> {
        match &self.kind {
            Kind::Object(members) => {
                let mut earlier: HashMap<Arc<str>, &Node> = HashMap::new();
                members.iter().find_map(|m| {
                    if let Some(inner) = m.value.conflicting_property() {
                        return Some(inner);
                    }
                    let other = earlier.insert(normalized(&m.name), &m.value);
                    let conflicts = other.is_some_and(|other| other.literal().ty() != m.value.literal().ty());
                    conflicts.then_some(&*m.name)
                })
            }
            Kind::Array(items) => items.iter().find_map(Node::conflicting_property),
            _ => None,
        }
    }

    /// Returns the error about a property, at any depth, whose name occurs twice in its object; `None` if there is
    /// none.
    #[must_use]
    pub fn duplicate(&self) -> Option<Diagnostic> {
        match &self.kind {
            Kind::Object(members) => {
                let own = duplicates(members).next().map(|(member, first)| {
                    Diagnostic::error(
                        "Duplicate attribute definition",
                        format!(
                            "The argument \"{}\" already has a value, set at {first}. Remove one of the two.",
                            member.name
                        ),
                    )
                    .at(&member.name_range)
                });
                own.or_else(|| members.iter().find_map(|m| m.value.duplicate()))
            }
            Kind::Array(items) => items.iter().find_map(Node::duplicate),
            _ => None,
        }
    }

    /// Returns the path to the innermost object or array that contains a byte of the file:
    /// `resource.terraform_data.a.lifecycle[0]`. Empty for the document itself.
    #[must_use]
    pub fn path_at(&self, byte: u32) -> String {
        let contains = |node: &&Node| {
            let nested = matches!(node.kind, Kind::Object(_) | Kind::Array(_));
            nested && (node.range.start.byte..node.range.end.byte).contains(&byte)
        };
        let mut path = String::new();
        let mut at = self;
        loop {
            let inner = match &at.kind {
                Kind::Object(members) => members.iter().find(|m| contains(&&m.value)).map(|member| {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(&member.name);
                    &member.value
                }),
                Kind::Array(items) => items
                    .iter()
                    .enumerate()
                    .find(|(_, item)| contains(item))
                    .map(|(i, item)| {
                        path.push_str(&format!("[{i}]"));
                        item
                    }),
                _ => None,
            };
            match inner {
                Some(inner) => at = inner,
                None => return path,
            }
        }
    }

    /// Returns the text of a string.
    #[must_use]
    pub fn text(&self) -> Option<&Arc<str>> {
        match &self.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    /// Range of the opening bracket, or of the whole value if it has none.
    #[must_use]
    pub fn start_range(&self) -> Range {
        match &self.kind {
            Kind::Array(_) | Kind::Object(_) => Range {
                end: after(self.range.start),
                ..self.range.clone()
            },
            _ => self.range.clone(),
        }
    }

    /// Returns the range for "missing …" messages: the closing brace of an object, or the opening bracket of an array.
    pub(super) fn missing_range(&self) -> Range {
        match &self.kind {
            Kind::Object(_) => Range {
                start: Pos {
                    column: self.range.end.column.saturating_sub(1),
                    byte: self.range.end.byte.saturating_sub(1),
                    ..self.range.end
                },
                ..self.range.clone()
            },
            _ => self.start_range(),
        }
    }
}

/// Returns the position after a character of one byte.
pub(super) fn after(pos: Pos) -> Pos {
    Pos {
        column: pos.column + 1,
        byte: pos.byte + 1,
        ..pos
    }
}

/// Returns the properties whose names occurred before, with the range of the earlier one.
pub(super) fn duplicates(members: &[Member]) -> impl Iterator<Item = (&Member, &Range)> {
    let mut seen: HashMap<&str, &Range> = HashMap::with_capacity(members.len());
    members
        .iter()
        .filter_map(move |m| seen.insert(&m.name, &m.name_range).map(|first| (m, first)))
}
