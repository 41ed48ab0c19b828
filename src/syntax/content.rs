//! Separation of the content of a body into expected attributes and blocks, and the rest.

use crate::ast::{Attribute, Block, Body, Expr};
use crate::edit::Edit;
pub use crate::suggest::{Near, did_you_mean, hint, near, suggest};
use crate::{Diagnostic, Diagnostics, Range, json};

/// Expected content of a body, for blocks whose content the language itself fixes.
#[derive(Clone, Copy, Debug)]
pub struct BodySpec<'s> {
    /// Attributes: name, and true if it is required.
    pub attributes: &'s [(&'s str, bool)],
    /// Blocks: type, and the names of their labels.
    pub blocks: &'s [(&'s str, &'s [&'s str])],
}

/// Content of a body, separated into expected parts.
#[derive(Debug, Default)]
pub struct Content<'b> {
    /// Expected attributes, in source order.
    pub attributes: Vec<&'b Attribute>,
    /// Expected blocks with the right number of labels, in source order.
    pub blocks: Vec<&'b Block>,
    pub other_attributes: Vec<&'b Attribute>,
    pub other_blocks: Vec<&'b Block>,
}

impl<'b> Content<'b> {
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&'b Attribute> {
        self.attributes.iter().copied().find(|a| &*a.name == name)
    }

    pub fn blocks_of(&self, ty: &str) -> impl Iterator<Item = &'b Block> {
        self.blocks.iter().copied().filter(move |b| &*b.ty == ty)
    }
}

/// Turns properties of a JSON body that the spec lists as blocks into blocks.
#[must_use]
pub fn resolve(body: Body, spec: BodySpec<'_>, diagnostics: &mut Diagnostics) -> Body {
    let labels_of = |name: &str| {
        let found = spec.blocks.iter().find(|(ty, _)| *ty == name);
        found.map(|(_, labels)| *labels)
    };
    json::resolve(body, labels_of, diagnostics)
}

/// Sorts the content of a body into expected and other parts. Reports missing required attributes, wrong numbers of
/// labels and duplicate attributes, but nothing about the other parts.
pub fn partial<'b>(body: &'b Body, spec: BodySpec<'_>, diagnostics: &mut Diagnostics) -> Content<'b> {
    let mut content = Content::default();
    for attribute in &body.attributes {
        if spec.attributes.iter().any(|(name, _)| *name == &*attribute.name) {
            // Duplicates are checked in the JSON syntax only, because the parser has reported duplicates in the
            // native one.
            if let Some(first) = content.attribute(&attribute.name) {
                diagnostics.push(
                    Diagnostic::error(
                        "Duplicate argument",
                        format!(
                            "The argument \"{}\" already has a value, set at {}. Remove one of the two.",
                            attribute.name, first.range
                        ),
                    )
                    .at(&attribute.name_range)
                    .within(&attribute.range),
                );
                continue;
            }
            content.attributes.push(attribute);
        } else {
            content.other_attributes.push(attribute);
        }
    }
    for (name, required) in spec.attributes {
        if *required && content.attribute(name).is_none() {
            diagnostics.push(
                Diagnostic::error(
                    "Missing required argument",
                    format!("This block must set the argument \"{name}\", and it does not."),
                )
                .at(&body.end),
            );
        }
    }
    for block in &body.blocks {
        match spec.blocks.iter().find(|(ty, _)| *ty == &*block.ty) {
            None => content.other_blocks.push(block),
            Some((_, names)) => {
                if block.labels.len() > names.len() {
                    let extra = &block.labels[names.len()];
                    let detail = format!("A {} block has {}.", block.ty, labels(names));
                    diagnostics.push(
                        Diagnostic::error(format!("Extraneous label for {}", block.ty), detail)
                            .at(&extra.range)
                            .within(&block.header),
                    );
                } else if block.labels.len() < names.len() {
                    let missing = names[block.labels.len()];
                    diagnostics.push(
                        Diagnostic::error(
                            format!("Missing {missing} for {}", block.ty),
                            format!("A {} block has {}.", block.ty, labels(names)),
                        )
                        .at(&block.open)
                        .within(&block.header),
                    );
                } else {
                    content.blocks.push(block);
                }
            }
        }
    }
    content
}

/// Separates the content as [`partial`] does. Everything unexpected is an error, with the nearest expected name
/// suggested.
pub fn exact<'b>(body: &'b Body, spec: BodySpec<'_>, diagnostics: &mut Diagnostics) -> Content<'b> {
    let content = partial(body, spec, diagnostics);
    for attribute in &content.other_attributes {
        let name = &*attribute.name;
        if matches!(attribute.expr, Expr::Json(_)) {
            // Arguments that are already set are not suggested: a second one would be an error.
            let unused = |name: &str| content.attribute(name).is_none();
            let attributes = spec.attributes.iter().map(|(n, _)| *n).filter(|n| unused(n));
            let expected = attributes.chain(spec.blocks.iter().map(|(t, _)| *t));
            diagnostics.push(json::extraneous(attribute, expected));
            continue;
        }
        // The name exists in the other form (argument or block), which helps more than the nearest name.
        if spec.blocks.iter().any(|(ty, _)| *ty == name) {
            diagnostics.push(block_as_argument(attribute));
            continue;
        }
        let near = near(name, spec.attributes.iter().map(|(n, _)| *n));
        diagnostics.push(unsupported_argument(attribute, near.as_ref()));
    }
    for block in &content.other_blocks {
        let ty = &*block.ty;
        if spec.attributes.iter().any(|(n, _)| *n == ty) {
            diagnostics.push(argument_as_block(
                ty,
                &block.type_range,
                &block.open,
                block.labels.is_empty(),
            ));
            continue;
        }
        let near = near(ty, spec.blocks.iter().map(|(t, _)| *t));
        diagnostics.push(unsupported_block(ty, &block.type_range, near.as_ref()));
    }
    content
}

/// Builds the error for an unexpected argument, with the name that was probably meant.
#[must_use]
pub fn unsupported_argument(attribute: &Attribute, near: Option<&Near>) -> Diagnostic {
    let name = &*attribute.name;
    Diagnostic::error(
        "Unsupported argument",
        format!("An argument named \"{name}\" is not expected here.{}", hint(near)),
    )
    .at(&attribute.name_range)
    .misspelt(name, &attribute.name_range, near)
}

/// Builds the error for an argument that should be a block.
#[must_use]
pub fn block_as_argument(attribute: &Attribute) -> Diagnostic {
    let name = &*attribute.name;
    let problem = Diagnostic::error(
        "Unsupported argument",
        format!(
            "\"{name}\" is a block type here, not an argument: remove the equals sign and write its content in braces."
        ),
    )
    .at(&attribute.name_range);
    match &attribute.expr {
        // Only an object can be turned into a block by removing the equals sign.
        Expr::Object { range, .. } => {
            let before = Range {
                end: range.start,
                ..attribute.name_range.clone()
            };
            problem.mended_by(Edit::stretch(&before, format!("{name} ")))
        }
        _ => problem,
    }
}

/// Builds the error for an unexpected block type, with the one that was probably meant.
#[must_use]
pub fn unsupported_block(ty: &str, range: &Range, near: Option<&Near>) -> Diagnostic {
    Diagnostic::error(
        "Unsupported block type",
        format!("Blocks of type \"{ty}\" are not expected here.{}", hint(near)),
    )
    .at(range)
    .misspelt(ty, range, near)
}

/// Builds the error for a block that should be an argument; `open` is the range of its brace.
#[must_use]
pub fn argument_as_block(ty: &str, range: &Range, open: &Range, is_bare: bool) -> Diagnostic {
    let problem = Diagnostic::error(
        "Unsupported block type",
        format!("\"{ty}\" is an argument here, not a block type: put an equals sign between the name and the value."),
    )
    .at(range);
    let before = Range {
        end: open.start,
        ..range.clone()
    };
    // A block with labels cannot be written as a value, so there is no automatic correction.
    match is_bare {
        true => problem.mended_by(Edit::stretch(&before, format!("{ty} = "))),
        false => problem,
    }
}

/// Describes the labels of a block by number and name.
fn labels(names: &[&str]) -> String {
    match names {
        [] => "no labels".to_owned(),
        [name] => format!("one label, its {name}"),
        [first @ .., last] => format!("{} labels: {} and {last}", names.len(), first.join(", ")),
    }
}
