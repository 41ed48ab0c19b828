//! The JSON syntax of the configuration language.
//!
//! Only a schema determines which properties of a JSON document are arguments and which are blocks. So every property
//! of a body is an [`Attribute`] at first, whose expression is an [`Expr::Json`]; [`resolve`] turns those that are
//! blocks into blocks. In the same way, only its use determines if a string is a template, a reference or plain text.
//! So a [`JsonExpr`] holds the [`Node`], and returns it as text or, for evaluation, as an expression.
//!
//! [`parse`] reads a document, [`parse_file`] a configuration file.

mod node;
mod parser;

use std::sync::Arc;

use cty::Value;

use crate::ast::{Attribute, Block, Body, Expr, JsonExpr, Label, ObjectItem, ObjectKey, Template, TemplatePart};
use crate::{Diagnostic, Diagnostics, Range, parse_expression, parse_template};

pub use node::{Kind, Member, Node};
pub use parser::parse;

use node::{after, duplicates};

// ---- expressions ------------------------------------------------------------------------------------------------------

/// Wraps a value as an expression that is parsed on first use.
fn deferred(node: Node) -> Expr {
    Expr::Json(Arc::new(JsonExpr::new(node, expression)))
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

/// Parses the text of a string as an expression, for arguments that take an expression without quotes in the native
/// syntax. `None` if the value is not a string.
#[must_use]
pub fn unquoted(node: &Node) -> Option<(Expr, Diagnostics)> {
    let range = &node.range;
    node.text().map(|text| parse_expression(&range.file, text, range.start))
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
        // HCL treats null as no block.
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
                unpacking.level(json.node(), labels, &mut Vec::new());
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
