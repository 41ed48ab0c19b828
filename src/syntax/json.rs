//! The JSON syntax of the language.
//!
//! A JSON document does not say which of its properties are arguments and which are blocks: only a schema does.
//! So every property of a body is an [`Attribute`] at first, whose expression is an [`Expr::Json`];
//! [`resolve`] turns those that are blocks into blocks. Nor does a string say whether it is a template, a reference or
//! plain text: a [`JsonExpr`] holds the [`Node`], and returns it as text or, for evaluation, as an expression.
//!
//! [`parse`] reads a document, [`parse_file`] a configuration file.

mod parser;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use cty::{Number, Type, Value};

use crate::ast::{Attribute, Block, Body, Expr, Label, ObjectItem, ObjectKey, Template, TemplatePart};
use crate::{Diagnostic, Diagnostics, Pos, Range, parse_expression, parse_template};

pub use parser::parse;

/// A part of a document. Copies share its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Where it stands.
    pub range: Range,
}

/// What a part is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    Number(Number),
    /// Text, escapes resolved.
    String(Arc<str>),
    /// The elements.
    Array(Arc<[Node]>),
    /// The properties in the order of the source, duplicates included.
    Object(Arc<[Member]>),
}

/// A property of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub name: Arc<str>,
    /// Where the name stands.
    pub name_range: Range,
    pub value: Node,
}

/// A key as all text of the language is.
fn normalized(name: &Arc<str>) -> Arc<str> {
    Value::string(name)
        .as_arc_str()
        .cloned()
        .unwrap_or_else(|| name.clone())
}

impl Node {
    /// The value of the document as it stands: strings are text, not templates.
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

    /// A property whose name was used before in its object for a value of another type, anywhere in the document.
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

    /// A second property of one name, anywhere in the document.
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

    /// The path to the innermost object or array that contains a byte of the file: `resource.terraform_data.a.lifecycle[0]`. It is
    /// empty for the document itself.
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

    /// The bracket that opens it, or the whole of what has none.
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

    /// The place for "missing …" messages.
    fn missing_range(&self) -> Range {
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

/// The position after a character of one byte.
fn after(pos: Pos) -> Pos {
    Pos {
        column: pos.column + 1,
        byte: pos.byte + 1,
        ..pos
    }
}

/// The properties whose names were there before, and where.
fn duplicates(members: &[Member]) -> impl Iterator<Item = (&Member, &Range)> {
    let mut seen: HashMap<&str, &Range> = HashMap::with_capacity(members.len());
    members
        .iter()
        .filter_map(move |m| seen.insert(&m.name, &m.name_range).map(|first| (m, first)))
}

// ---- expressions ------------------------------------------------------------------------------------------------------

/// A value of a document where an expression is meant.
pub struct JsonExpr {
    node: Node,
    made: OnceLock<(Expr, Diagnostics)>,
}

impl JsonExpr {
    /// What is written.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// What it means as an expression: strings are templates. The parts of objects and arrays are such expressions again.
    #[must_use]
    pub fn expr(&self) -> &Expr {
        &self.made().0
    }

    /// What is wrong with it as an expression.
    #[must_use]
    pub fn problems(&self) -> &Diagnostics {
        &self.made().1
    }

    /// The text of a string.
    #[must_use]
    pub fn text(&self) -> Option<&Arc<str>> {
        match &self.node.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    /// The expression that the text of a string is, where one is meant that would not be in quotes in the native syntax.
    #[must_use]
    pub fn unquoted(&self) -> Option<(Expr, Diagnostics)> {
        let range = &self.node.range;
        self.text().map(|text| parse_expression(&range.file, text, range.start))
    }

    fn made(&self) -> &(Expr, Diagnostics) {
        self.made.get_or_init(|| expression(&self.node))
    }
}

impl fmt::Debug for JsonExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node.fmt(f)
    }
}

impl PartialEq for JsonExpr {
    fn eq(&self, other: &JsonExpr) -> bool {
        self.node == other.node
    }
}

/// A value of a document as an expression.
fn deferred(node: Node) -> Expr {
    Expr::Json(Arc::new(JsonExpr {
        node,
        made: OnceLock::new(),
    }))
}

fn expression(node: &Node) -> (Expr, Diagnostics) {
    let range = node.range.clone();
    let expr = match &node.kind {
        Kind::Null | Kind::Bool(_) | Kind::Number(_) => Expr::Literal {
            value: node.literal(),
            range,
        },
        Kind::String(text) if text.contains("${") || text.contains("%{") => {
            let (expr, problems) = parse_template(&range.file, text, after(range.start));
            let expr = if problems.has_errors() {
                Expr::Invalid { range }
            } else {
                expr
            };
            return (expr, problems);
        }
        Kind::String(text) => {
            let literal = Value::string(text).as_arc_str().cloned();
            let part = TemplatePart::Literal {
                text: literal.unwrap_or_else(|| text.clone()),
                range: range.clone(),
            };
            Expr::Template(Template {
                parts: if text.is_empty() { Vec::new() } else { vec![part] },
                heredoc: false,
                range,
            })
        }
        Kind::Array(items) => Expr::Tuple {
            items: items.iter().cloned().map(deferred).collect(),
            open: node.start_range(),
            range,
        },
        Kind::Object(members) => {
            let problems = duplicates(members).map(|(member, first)| {
                Diagnostic::error(
                    "Duplicate object attribute",
                    format!("An attribute named \"{}\" was already defined at {first}.", member.name),
                )
                .at(&member.name_range)
            });
            let problems: Diagnostics = problems.collect();
            let items = members.iter().map(|member| ObjectItem {
                key: ObjectKey::Expr(deferred(Node {
                    kind: Kind::String(member.name.clone()),
                    range: member.name_range.clone(),
                })),
                value: deferred(member.value.clone()),
            });
            let expr = Expr::Object {
                items: items.collect(),
                open: node.start_range(),
                range,
            };
            return (expr, problems);
        }
    };
    (expr, Diagnostics::new())
}

// ---- bodies -----------------------------------------------------------------------------------------------------------

/// Parses a configuration file. Its properties are to be [resolved](resolve).
#[must_use]
pub fn parse_file(name: &str, bytes: &[u8]) -> (Arc<Body>, Diagnostics) {
    let mut problems = Diagnostics::new();
    let body = match parse(name, bytes) {
        Ok(node) if matches!(node.kind, Kind::Object(_) | Kind::Array(_)) => body(&node, &mut problems),
        Ok(node) => {
            problems.push(
                Diagnostic::error(
                    "Root value must be object",
                    "A configuration file in JSON is an object, or an array of objects.",
                )
                .at(&node.start_range()),
            );
            Body::empty(&node.range)
        }
        Err(problem) => {
            problems.push(problem);
            Body::empty(&Range::synthetic(name))
        }
    };
    (Arc::new(body), problems)
}

/// A value as a body.
fn body(node: &Node, diagnostics: &mut Diagnostics) -> Body {
    let found = members(node, None, diagnostics);
    let attributes = found.into_iter().filter(|m| &*m.name != "//").map(|member| Attribute {
        name: member.name.clone(),
        name_range: member.name_range.clone(),
        range: member.name_range.to(&member.value.range),
        expr: deferred(member.value.clone()),
    });
    Body {
        attributes: attributes.collect(),
        blocks: Vec::new(),
        range: node.range.clone(),
        end: node.missing_range(),
    }
}

/// The properties of an object, or of the objects in an array: those of a body, or the values of a label.
fn members<'n>(node: &'n Node, label: Option<&str>, diagnostics: &mut Diagnostics) -> Vec<&'n Member> {
    let purpose = label.map_or_else(
        || "to define arguments and child blocks".to_owned(),
        |label| format!("to specify {label} labels for this block"),
    );
    let wrong = |what: &str, at: &Node| {
        Diagnostic::error(
            "Incorrect JSON value type",
            format!("{what} is required here, {purpose}."),
        )
        .at(&at.start_range())
    };
    match &node.kind {
        Kind::Null => Vec::new(),
        Kind::Object(members) => members.iter().collect(),
        Kind::Array(items) => {
            let mut out = Vec::new();
            for item in items.iter() {
                match &item.kind {
                    Kind::Object(members) => out.extend(members.iter()),
                    _ => diagnostics.push(wrong("A JSON object", item)),
                }
            }
            out
        }
        _ => {
            diagnostics.push(wrong("A JSON object, or a JSON array that holds only objects,", node));
            Vec::new()
        }
    }
}

/// Turns the properties of a body that are blocks into blocks. `labels_of` returns, for a name, which labels blocks of
/// that type have, if it is the type of a block. A native body stays as it is.
#[must_use]
pub fn resolve<'s>(
    body: Body,
    labels_of: impl Fn(&str) -> Option<&'s [&'s str]>,
    diagnostics: &mut Diagnostics,
) -> Body {
    let is_block = |a: &Attribute| matches!(a.expr, Expr::Json(_)) && labels_of(&a.name).is_some();
    if !body.attributes.iter().any(is_block) {
        return body;
    }
    let mut out = Body {
        attributes: Vec::with_capacity(body.attributes.len()),
        ..body
    };
    for attribute in body.attributes {
        match (&attribute.expr, labels_of(&attribute.name)) {
            (Expr::Json(json), Some(labels)) => {
                let mut unpacking = Unpacking {
                    ty: &attribute,
                    blocks: &mut out.blocks,
                    diagnostics,
                };
                unpacking.level(&json.node, labels, &mut Vec::new());
            }
            _ => out.attributes.push(attribute),
        }
    }
    out
}

struct Unpacking<'u> {
    ty: &'u Attribute,
    blocks: &'u mut Vec<Block>,
    diagnostics: &'u mut Diagnostics,
}

impl Unpacking<'_> {
    /// One level of labels, or the content of blocks.
    fn level(&mut self, node: &Node, left: &[&str], labels: &mut Vec<Label>) {
        if let Some((label, left)) = left.split_first() {
            let found = members(node, Some(label), self.diagnostics);
            if found.is_empty() {
                self.diagnostics.push(
                    Diagnostic::error(
                        "Missing block label",
                        format!(
                            "Each {} block needs a {label}: write the block's content as the value of a property \
                             whose name is that label.",
                            self.ty.name
                        ),
                    )
                    .at(&node.start_range()),
                );
            }
            for member in found {
                labels.push(Label {
                    text: member.name.clone(),
                    range: member.name_range.clone(),
                });
                self.level(&member.value, left, labels);
                labels.pop();
            }
            return;
        }
        match &node.kind {
            Kind::Null => {}
            Kind::Object(_) => self.block(node, node, labels),
            Kind::Array(items) => items.iter().for_each(|item| self.block(item, node, labels)),
            _ => self.diagnostics.push(
                Diagnostic::error(
                    "Incorrect JSON value type",
                    format!(
                        "\"{}\" is a block type: its value in JSON is an object, for one block, or an array of \
                         objects, for several.",
                        self.ty.name
                    ),
                )
                .at(&node.start_range()),
            ),
        }
    }

    fn block(&mut self, node: &Node, whole: &Node, labels: &[Label]) {
        let header = whole.start_range();
        self.blocks.push(Block {
            ty: self.ty.name.clone(),
            type_range: self.ty.name_range.clone(),
            labels: labels.to_vec(),
            body: body(node, self.diagnostics),
            open: header.clone(),
            header,
            range: node.range.clone(),
        });
    }
}

/// What to say about a property of a body that is neither an argument nor a block of it.
#[must_use]
pub fn extraneous<'c>(attribute: &Attribute, expected: impl IntoIterator<Item = &'c str>) -> Diagnostic {
    let near = crate::suggest::near(&attribute.name, expected);
    let hint = crate::suggest::hint(near.as_ref());
    Diagnostic::error(
        "Extraneous JSON object property",
        format!("No argument or block type is named \"{}\".{hint}", attribute.name),
    )
    .at(&attribute.name_range)
    .within(&attribute.range)
    .misspelt(&attribute.name, &attribute.name_range, near.as_ref())
}

#[cfg(test)]
mod tests;
