//! Expressions of the configuration in plan documents: constant values, and references.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::Referenceable;
use lang::body::{decode_body, written_as_blocks};
use lang::eval::{Context, evaluate};
use lang::refs::{reference, references_in_body, traversals};
use lang::scope::{Constant, Reference};
use schema::{AttributeSchema, BlockSchema, Nesting};
use serde_json::{Map, Value as Json};
use syntax::Diagnostics;
use syntax::ast::{Body, Expr, TraversalStep};

use super::Object;
use super::values::known_part;

/// Returns the expressions of a body: one for each attribute, and an object or a list of objects for each type of nested block.
pub(super) fn body_expressions(body: &Body, schema: &BlockSchema) -> Json {
    let mut out = Map::new();
    // Problems are dropped: planning has reported them.
    let body = &*lang::body::resolve(body, schema, &mut Diagnostics::new());
    for attribute in &body.attributes {
        if schema.attributes.contains_key(&attribute.name) {
            out.insert(attribute.name.to_string(), expression(&attribute.expr));
        }
    }
    for (name, attribute) in &schema.attributes {
        if let Some(written) = attribute_of_blocks(body, name, attribute) {
            out.insert(name.to_string(), written);
        }
    }
    for (name, nested) in &schema.blocks {
        let blocks: Vec<Json> = body
            .blocks
            .iter()
            .filter(|b| b.ty == *name)
            .map(|b| body_expressions(&b.body, &nested.block))
            .collect();
        if blocks.is_empty() {
            continue;
        }
        let document = match nested.nesting {
            Nesting::Single | Nesting::Group => blocks.into_iter().next().unwrap_or(Json::Null),
            Nesting::List | Nesting::Set => Json::Array(blocks),
            Nesting::Map => {
                let labelled = body
                    .blocks
                    .iter()
                    .filter(|b| b.ty == *name)
                    .zip(blocks)
                    .filter_map(|(b, document)| Some((b.labels.first()?.text.to_string(), document)));
                Json::Object(labelled.collect())
            }
        };
        out.insert(name.to_string(), document);
    }
    Json::Object(out)
}

/// Returns the expression of an attribute that the schema defines as a list or set of objects and the configuration writes as
/// blocks; `None` if there are no such blocks.
fn attribute_of_blocks(body: &Body, name: &Arc<str>, attribute: &AttributeSchema) -> Option<Json> {
    let block = written_as_blocks(attribute)?;
    let blocks: Vec<_> = body.blocks.iter().filter(|b| b.ty == *name).cloned().collect();
    if blocks.is_empty() {
        return None;
    }
    let found = blocks
        .iter()
        .flat_map(|b| references_in_body(&b.body, &block).0)
        .flat_map(|reference| prefixes(&reference));
    let names: Vec<String> = found.collect();
    if !names.is_empty() {
        return Some(Object::default().with_content("references", names).into());
    }
    let alone = Body {
        attributes: Vec::new(),
        blocks,
        ..body.clone()
    };
    let schema = BlockSchema {
        attributes: BTreeMap::from([(name.clone(), attribute.clone())]),
        ..BlockSchema::default()
    };
    // Blocks without references are constant, and the document contains the values of constants.
    let (value, problems) = decode_body(&alone, &schema, Context::new(&Constant));
    match value.get(name) {
        Some(value) if problems.is_empty() && value.is_wholly_known() => {
            Some(Object::default().with_some("constant_value", known_part(value)).into())
        }
        // An expression that is neither a constant nor a reference is an empty object in the document.
        _ => Some(Json::Object(Map::new())),
    }
}

/// Returns an expression: its value if it is constant, otherwise its references. In JSON syntax it has both the literal value,
/// with templates as text, and the references.
pub(super) fn expression(expr: &Expr) -> Json {
    let found = traversals(expr);
    let written = match expr {
        Expr::Json(json) => known_part(&json.node().literal()),
        _ => None,
    };
    if found.is_empty() {
        let (value, diagnostics) = evaluate(expr, Context::new(&Constant));
        if diagnostics.is_empty() && value.is_wholly_known() {
            return Object::default().with_some("constant_value", known_part(&value)).into();
        }
        // As in Terraform, an expression that needs more than constants, such as a function, is an empty object.
        return Json::Object(Map::new());
    }
    let references = found.into_iter().filter_map(|traversal| reference(traversal).ok());
    let names: Vec<String> = references.flat_map(|reference| prefixes(&reference)).collect();
    Object::default()
        .with_some("constant_value", written)
        .with_content("references", names)
        .into()
}

/// Returns the names under which a document lists a reference: the complete one, followed by each shorter form, as in
/// Terraform.
fn prefixes(reference: &Reference) -> Vec<String> {
    let subject = reference.subject.to_string();
    let mut text = subject.clone();
    let mut longer = Vec::new();
    for step in &reference.remaining {
        match step {
            TraversalStep::Attribute { name, .. } => text.push_str(&format!(".{name}")),
            TraversalStep::Index { key, .. } => match (key.as_str(), key.as_number()) {
                (Some(s), _) => text.push_str(&format!("[{}]", addrs::text::quoted(s))),
                (_, Some(n)) => text.push_str(&format!("[{n}]")),
                // Only the steps before the first dynamic key can be written.
                _ => break,
            },
            TraversalStep::Splat { .. } => break,
        }
        longer.push(text.clone());
    }
    longer.reverse();
    longer.push(subject);
    match &reference.subject {
        Referenceable::ResourceInstance(instance) => longer.push(instance.resource.to_string()),
        Referenceable::ModuleOutput(name, key, _) => longer.push(format!("module.{name}{key}")),
        _ => {}
    }
    longer
}
