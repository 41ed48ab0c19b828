//! The JSON syntax of the configuration language.
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
    /// Returns the value of the document as it stands: strings are text, not templates.
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

    /// Finds a property whose name was used before in its object for a value of another type, anywhere in the document.
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

    /// Finds a second property with one name, anywhere in the document.
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

    /// Path to the innermost object or array that contains a byte of the file:
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

    /// Range for "missing …" messages: the closing brace of an object.
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

/// Returns the position after a character of one byte.
fn after(pos: Pos) -> Pos {
    Pos {
        column: pos.column + 1,
        byte: pos.byte + 1,
        ..pos
    }
}

/// Returns the properties whose names occurred before, with the range of the earlier one.
fn duplicates(members: &[Member]) -> impl Iterator<Item = (&Member, &Range)> {
    let mut seen: HashMap<&str, &Range> = HashMap::with_capacity(members.len());
    members
        .iter()
        .filter_map(move |m| seen.insert(&m.name, &m.name_range).map(|first| (m, first)))
}

// ---- expressions ------------------------------------------------------------------------------------------------------

/// A value of a document in place of an expression. Its meaning as an expression is computed on first use.
pub struct JsonExpr {
    node: Node,
    made: OnceLock<(Expr, Diagnostics)>,
}

impl JsonExpr {
    /// Returns the value as written.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the value as an expression: strings are templates. Elements of arrays and objects are such expressions
    /// again.
    #[must_use]
    pub fn expr(&self) -> &Expr {
        &self.made().0
    }

    /// Problems of the value as an expression.
    #[must_use]
    pub fn problems(&self) -> &Diagnostics {
        &self.made().1
    }

    /// Returns the text of a string.
    #[must_use]
    pub fn text(&self) -> Option<&Arc<str>> {
        match &self.node.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    /// Parses the text of a string as an expression, for arguments that take an expression without quotes in the native
    /// syntax.
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

/// Wraps a value as an expression that is parsed on first use.
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
        // Only text with a sequence needs the template parser.
        Kind::String(text) if text.contains("${") || text.contains("%{") => {
            // The text begins after the quote.
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

/// Parses a configuration file. Its properties are attributes until they are [resolved](resolve).
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

/// Reads a value as a body.
fn body(node: &Node, diagnostics: &mut Diagnostics) -> Body {
    let found = members(node, None, diagnostics);
    // A property "//" is a comment.
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

/// Returns the properties of an object, or of all objects in an array: those of a body, or one level of labels.
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
        // HCL reads null as no block at all.
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

/// Turns the properties of a body that are blocks into blocks. `labels_of` returns the names of labels for a block
/// type, `None` for other names. A native body stays as it is.
#[must_use]
pub fn resolve<'s>(
    body: Body,
    labels_of: impl Fn(&str) -> Option<&'s [&'s str]>,
    diagnostics: &mut Diagnostics,
) -> Body {
    let is_block = |a: &Attribute| matches!(a.expr, Expr::Json(_)) && labels_of(&a.name).is_some();
    // Most bodies have no blocks, and need no copy.
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
    /// Reads one level of labels, or the content of blocks if no labels are left.
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

/// Builds the error for a property of a body that is neither an argument nor a block.
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
