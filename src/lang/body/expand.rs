//! Blocks and dynamic blocks, expanded to one entry for each resulting block.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Marks, Type, Value};
use syntax::ast::{Attribute, Block, Body, Label};
use syntax::content::{self, Content};
use syntax::{Diagnostic, Range};

use super::{Decoder, takes_blocks};
use crate::eval::{Context, evaluate, with_expression};
use crate::resolve::DYNAMIC;
use schema::{BlockSchema, Nesting};

/// A block of the result, written as such or made by a dynamic block.
pub(super) struct Expanded<'b> {
    pub(super) ty: Arc<str>,
    /// Label, if blocks of this type form a map.
    pub(super) key: Option<Arc<str>>,
    pub(super) body: &'b Body,
    /// Iterator variables in scope in the content.
    variables: Vec<(Arc<str>, Value)>,
    /// Marks of the collection that a dynamic block iterates over.
    pub(super) marks: Marks,
    /// True if the number of blocks is unknown.
    pub(super) unknown: bool,
    /// Range of the header.
    pub(super) range: &'b Range,
}

impl Expanded<'_> {
    /// Names of the iterator variables.
    pub(super) fn iterators(&self) -> impl Iterator<Item = &Arc<str>> {
        self.variables.iter().map(|(name, _)| name)
    }

    pub(super) fn in_context<T>(&self, context: &Context<'_>, f: impl FnOnce(&Context<'_>) -> T) -> T {
        if self.variables.is_empty() {
            f(context)
        } else {
            f(&context.with_variables(&self.variables))
        }
    }
}

impl Decoder {
    /// Expands the blocks of a body, by type, in source order.
    pub(super) fn expand<'b>(
        &mut self,
        body: &'b Body,
        schema: &BlockSchema,
        context: &Context<'_>,
    ) -> BTreeMap<Arc<str>, Vec<Expanded<'b>>> {
        let mut out: BTreeMap<Arc<str>, Vec<Expanded<'b>>> = BTreeMap::new();
        for block in &body.blocks {
            // A schema may have a block type of this name; then it is no dynamic block.
            if &*block.ty == "dynamic" && !schema.blocks.contains_key("dynamic") {
                let made = self.dynamic(block, schema, context);
                if let Some(first) = made.first() {
                    out.entry(first.ty.clone()).or_default().extend(made);
                }
                continue;
            }
            let Some(labelled) = self.labelled(&block.ty, &block.type_range, Some(block), schema) else {
                continue;
            };
            let key = match (labelled, block.labels.as_slice()) {
                (true, [label]) => Some(label.text.clone()),
                (false, []) => None,
                (_, labels) => {
                    let problem = match (labelled, labels) {
                        (true, []) => Diagnostic::error(
                            format!("Missing key for {}", block.ty),
                            format!("All {} blocks must have 1 labels (key).", block.ty),
                        )
                        .at(&block.open),
                        (true, [_, extra, ..]) => Diagnostic::error(
                            format!("Extraneous label for {}", block.ty),
                            format!("Only 1 labels (key) are expected for {} blocks.", block.ty),
                        )
                        .at(&extra.range),
                        (_, labels) => Diagnostic::error(
                            format!("Extraneous label for {}", block.ty),
                            format!("No labels are expected for {} blocks.", block.ty),
                        )
                        .at(labels.first().map_or(&block.header, |l| &l.range)),
                    };
                    self.diagnostics.push(problem.within(&block.header));
                    continue;
                }
            };
            out.entry(block.ty.clone()).or_default().push(Expanded {
                ty: block.ty.clone(),
                key,
                body: &block.body,
                variables: Vec::new(),
                marks: Marks::NONE,
                unknown: false,
                range: &block.header,
            });
        }
        out
    }

    /// Returns true if blocks of this type have a label; `None` for a type that the schema does not know, which is
    /// reported. `block` is `None` for the type of a dynamic block.
    fn labelled(&mut self, ty: &str, range: &Range, block: Option<&Block>, schema: &BlockSchema) -> Option<bool> {
        if let Some(nested) = schema.blocks.get(ty) {
            return Some(nested.nesting == Nesting::Map);
        }
        if schema.attributes.get(ty).is_some_and(takes_blocks) {
            return Some(false);
        }
        self.unsupported_block(ty, range, block, schema);
        None
    }

    fn dynamic<'b>(&mut self, block: &'b Block, schema: &BlockSchema, context: &Context<'_>) -> Vec<Expanded<'b>> {
        let Some(label) = self.dynamic_label(block) else {
            return Vec::new();
        };
        let Some(labelled) = self.labelled(&label.text, &label.range, None, schema) else {
            return Vec::new();
        };
        let before = self.diagnostics.len();
        let parts = content::exact(&block.body, DYNAMIC, &mut self.diagnostics);
        let Some(content) = self.dynamic_content(block, &parts) else {
            return Vec::new();
        };
        let Some(iterator) = self.dynamic_iterator(label, &parts) else {
            return Vec::new();
        };
        let Some(for_each) = parts.attribute("for_each") else {
            return Vec::new();
        };
        // After a reported error, evaluating for_each would only add consequences.
        if self.diagnostics.len() > before {
            return Vec::new();
        }
        let labels = parts.attribute("labels");
        let made = |key: Value, value: Value, marks: Marks, unknown: bool| Expanded {
            ty: label.text.clone(),
            key: None,
            body: &content.body,
            variables: vec![(iterator.clone(), Value::object([("key", key), ("value", value)]))],
            marks,
            unknown,
            range: &block.header,
        };
        let mut out: Vec<Expanded<'b>> = match self.for_each(for_each, context) {
            None => return Vec::new(),
            // One block stands for the unknown number, so that the names in its content are checked.
            Some(ForEach::Unknown(marks)) => vec![made(Value::dynamic(), Value::dynamic(), marks, true)],
            Some(ForEach::Elements(elements, marks)) => {
                elements.into_iter().map(|(k, v)| made(k, v, marks, false)).collect()
            }
        };
        if labelled {
            out.retain_mut(|one| match self.label(labels, one, block, context) {
                Some(Some(key)) => {
                    one.key = Some(key);
                    true
                }
                Some(None) => {
                    one.unknown = true;
                    true
                }
                None => false,
            });
        } else if let Some(labels) = labels {
            self.diagnostics.push(
                Diagnostic::error(
                    "Extraneous dynamic block label",
                    format!("Blocks of type \"{}\" require 0 label(s).", label.text),
                )
                .at(labels.expr.range()),
            );
        }
        out
    }

    /// Returns the label of a dynamic block: the type of the blocks that it makes.
    fn dynamic_label<'b>(&mut self, block: &'b Block) -> Option<&'b Label> {
        match block.labels.as_slice() {
            [label] => Some(label),
            [] => {
                self.diagnostics.push(
                    Diagnostic::error(
                        "Missing type for dynamic",
                        "All dynamic blocks must have 1 labels (type).",
                    )
                    .at(&block.open)
                    .within(&block.header),
                );
                None
            }
            [_, extra, ..] => {
                self.diagnostics.push(
                    Diagnostic::error(
                        "Extraneous label for dynamic",
                        "Only 1 labels (type) are expected for dynamic blocks.",
                    )
                    .at(&extra.range)
                    .within(&block.header),
                );
                None
            }
        }
    }

    fn dynamic_content<'b>(&mut self, block: &'b Block, parts: &Content<'b>) -> Option<&'b Block> {
        let contents: Vec<&Block> = parts.blocks_of("content").collect();
        match contents.as_slice() {
            [one] => Some(*one),
            [] => {
                self.diagnostics.push(
                    Diagnostic::error("Missing dynamic content block", "A \"content\" block is required.")
                        .at(&block.body.end),
                );
                None
            }
            [_, second, ..] => {
                self.diagnostics.push(
                    Diagnostic::error(
                        "Extraneous dynamic content block",
                        "A dynamic block has one content block; this is another. Remove one of them.",
                    )
                    .at(&second.header),
                );
                None
            }
        }
    }

    /// Returns the name that the element has inside the content block.
    fn dynamic_iterator(&mut self, label: &Label, parts: &Content<'_>) -> Option<Arc<str>> {
        match parts.attribute("iterator") {
            None => Some(label.text.clone()),
            Some(attribute) => match attribute.expr.as_keyword() {
                Some(name) => Some(name.into()),
                None => {
                    self.diagnostics.push(
                        Diagnostic::error(
                            "Invalid expression",
                            "The iterator is a plain name, without quotes: inside the content block, the element has \
                             this name.",
                        )
                        .at(attribute.expr.range()),
                    );
                    None
                }
            },
        }
    }

    /// Evaluates the collection that a dynamic block repeats over.
    fn for_each(&mut self, attribute: &Attribute, context: &Context<'_>) -> Option<ForEach> {
        let (value, problems) = evaluate(&attribute.expr, *context);
        let failed = problems.has_errors();
        self.diagnostics.extend(problems);
        if failed {
            return None;
        }
        let (value, marks) = value.unmark();
        let problem = if value.is_null() {
            "for_each needs a collection, and this value is null.".to_owned()
        } else if value.ty().is_primitive() {
            format!(
                "for_each needs a collection, and this is a {} value.",
                value.ty().friendly_name()
            )
        } else {
            return Some(match elements(&value) {
                Some(elements) => ForEach::Elements(elements, marks),
                None => ForEach::Unknown(marks),
            });
        };
        let problem = Diagnostic::error("Invalid dynamic for_each value", problem).at(attribute.expr.range());
        self.diagnostics
            .push(with_expression(problem, &attribute.expr, *context));
        None
    }

    /// Evaluates the label of a block that a dynamic block makes. The inner `None` is a label that is not known yet.
    fn label(
        &mut self,
        labels: Option<&Attribute>,
        one: &Expanded<'_>,
        block: &Block,
        context: &Context<'_>,
    ) -> Option<Option<Arc<str>>> {
        let Some(labels) = labels else {
            self.diagnostics.push(
                Diagnostic::error(
                    "Insufficient dynamic block labels",
                    format!("Blocks of type \"{}\" require 1 label(s).", one.ty),
                )
                .at(&block.header),
            );
            return None;
        };
        let (value, problems) = one.in_context(context, |inner| evaluate(&labels.expr, *inner));
        let failed = problems.has_errors();
        self.diagnostics.extend(problems);
        if failed {
            return None;
        }
        let invalid = |detail: &str| Diagnostic::error("Invalid dynamic block label", detail).at(labels.expr.range());
        // Labels become keys of a map, and keys have no marks.
        let (value, marks) = value.unmark_deep();
        if !marks.is_empty() {
            self.diagnostics.push(invalid(
                "This value is sensitive or ephemeral, and so cannot be used as a block label.",
            ));
            return None;
        }
        if !value.is_wholly_known() {
            return Some(None);
        }
        match cty::convert(&value, &Type::list(Type::String))
            .ok()
            .as_ref()
            .and_then(Value::as_seq)
        {
            Some([label]) if !label.is_null() => Some(label.as_arc_str().cloned()),
            Some([_]) => {
                self.diagnostics.push(invalid("A label of a block cannot be null."));
                None
            }
            _ => {
                self.diagnostics
                    .push(invalid("A list of exactly one string is required."));
                None
            }
        }
    }
}

enum ForEach {
    Unknown(Marks),
    Elements(Vec<(Value, Value)>, Marks),
}

/// Returns keys and elements of a known collection or structure.
fn elements(value: &Value) -> Option<Vec<(Value, Value)>> {
    if let Some(items) = value.as_seq() {
        // Unknown elements of a set become separate blocks, as in HCL, though they may turn out to be equal.
        let set = matches!(value.ty(), Type::Set(_));
        let key = |i: usize, v: &Value| if set { v.clone() } else { Value::number(i) };
        return Some(items.iter().enumerate().map(|(i, v)| (key(i, v), v.clone())).collect());
    }
    Some(
        value
            .entries()?
            .map(|(k, v)| (Value::shared_string(k.clone()), v.clone()))
            .collect(),
    )
}
