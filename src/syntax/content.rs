//! Reading a body against a list of expected attributes and blocks.

use crate::ast::{Attribute, Block, Body, Expr};
use crate::edit::Edit;
use crate::{Diagnostic, Diagnostics, Range, json};

/// What a body may contain, for the blocks whose content the language itself fixes.
#[derive(Clone, Copy, Debug)]
pub struct BodySpec<'s> {
    /// Attributes: name, and whether it must be there.
    pub attributes: &'s [(&'s str, bool)],
    /// Blocks: type, and the names of its labels.
    pub blocks: &'s [(&'s str, &'s [&'s str])],
}

/// What was found of what was expected.
#[derive(Debug, Default)]
pub struct Content<'b> {
    /// The expected attributes that are there, in source order.
    pub attributes: Vec<&'b Attribute>,
    /// The expected blocks that are there, in source order, with the right number of labels.
    pub blocks: Vec<&'b Block>,
    /// The attributes that are not expected.
    pub other_attributes: Vec<&'b Attribute>,
    /// The blocks that are not expected.
    pub other_blocks: Vec<&'b Block>,
}

impl<'b> Content<'b> {
    /// The attribute of this name.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&'b Attribute> {
        self.attributes.iter().copied().find(|a| &*a.name == name)
    }

    /// The blocks of this type.
    pub fn blocks_of(&self, ty: &str) -> impl Iterator<Item = &'b Block> {
        self.blocks.iter().copied().filter(move |b| &*b.ty == ty)
    }
}

/// Turns the properties of a body in the JSON syntax that the spec knows as blocks into blocks.
#[must_use]
pub fn resolve(body: Body, spec: BodySpec<'_>, diagnostics: &mut Diagnostics) -> Body {
    let labels_of = |name: &str| {
        let found = spec.blocks.iter().find(|(ty, _)| *ty == name);
        found.map(|(_, labels)| *labels)
    };
    json::resolve(body, labels_of, diagnostics)
}

/// Sorts the content of a body into what the spec expects and the rest. Reports missing required attributes and wrong
/// numbers of labels, nothing about the rest.
pub fn partial<'b>(body: &'b Body, spec: BodySpec<'_>, diagnostics: &mut Diagnostics) -> Content<'b> {
    let mut content = Content::default();
    for attribute in &body.attributes {
        if spec.attributes.iter().any(|(name, _)| *name == &*attribute.name) {
            // In the native syntax, the parser has reported it.
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

/// As [`partial`], and everything the spec does not expect is an error, with the nearest expected name suggested.
pub fn exact<'b>(body: &'b Body, spec: BodySpec<'_>, diagnostics: &mut Diagnostics) -> Content<'b> {
    let content = partial(body, spec, diagnostics);
    for attribute in &content.other_attributes {
        let name = &*attribute.name;
        if matches!(attribute.expr, Expr::Json(_)) {
            let unused = |name: &str| content.attribute(name).is_none();
            let attributes = spec.attributes.iter().map(|(n, _)| *n).filter(|n| unused(n));
            let expected = attributes.chain(spec.blocks.iter().map(|(t, _)| *t));
            diagnostics.push(json::extraneous(attribute, expected));
            continue;
        }
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

/// The error for an argument that is not expected, with the name that was probably meant.
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

/// The error for an argument that should be a block.
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

/// The error for a type of block that is not expected, with the one that was probably meant.
#[must_use]
pub fn unsupported_block(ty: &str, range: &Range, near: Option<&Near>) -> Diagnostic {
    Diagnostic::error(
        "Unsupported block type",
        format!("Blocks of type \"{ty}\" are not expected here.{}", hint(near)),
    )
    .at(range)
    .misspelt(ty, range, near)
}

/// The error for a block that should be an argument; `open` is its brace.
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
    match is_bare {
        true => problem.mended_by(Edit::stretch(&before, format!("{ty} = "))),
        false => problem,
    }
}

/// How many labels a block has, and what they are.
fn labels(names: &[&str]) -> String {
    match names {
        [] => "no labels".to_owned(),
        [name] => format!("one label, its {name}"),
        [first @ .., last] => format!("{} labels: {} and {last}", names.len(), first.join(", ")),
    }
}

/// ` Did you mean "x"?`, or nothing.
#[must_use]
pub fn did_you_mean(hint: Option<&str>) -> String {
    hint.map(|h| format!(" Did you mean \"{h}\"?")).unwrap_or_default()
}

/// The candidate nearest to what was written, if one is near enough to be a likely typing error.
pub fn suggest<'c>(misspelt: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    nearest(misspelt, candidates).map(|(name, _)| name)
}

/// The name nearest to a misspelt one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    /// The name.
    pub name: String,
    /// Whether no other name is near, and the difference is a slip of the keyboard.
    pub is_certain: bool,
}

impl Near {
    /// The change that puts this name in the place of the misspelt one in a stretch, if it is certain.
    #[must_use]
    pub fn edit(&self, misspelt: &str, range: &Range) -> Option<Edit> {
        self.is_certain.then(|| Edit::word(range, misspelt, &*self.name))
    }
}

/// As [`suggest`], with whether the name is certain enough to replace the misspelt one.
pub fn near<'c>(misspelt: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<Near> {
    nearest(misspelt, candidates).map(|(name, is_only)| Near {
        name: name.to_owned(),
        is_certain: is_only && is_slip(misspelt, name),
    })
}

/// ` Did you mean "x"?`, or nothing.
#[must_use]
pub fn hint(near: Option<&Near>) -> String {
    did_you_mean(near.map(|near| &*near.name))
}

/// The nearest candidate, and whether it is the only one that is near.
fn nearest<'c>(misspelt: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<(&'c str, bool)> {
    let length = misspelt.chars().count();
    let mut best: Option<(usize, &str, bool)> = None;
    for candidate in candidates {
        // What has the very name is not what was meant: something else is wrong with it.
        if candidate == misspelt {
            continue;
        }
        if candidate.chars().count().abs_diff(length) >= 3 {
            continue;
        }
        let distance = edit_distance(misspelt, candidate);
        best = match best {
            _ if distance >= 3 => best,
            None => Some((distance, candidate, true)),
            Some((_, name, _)) if name == candidate => best,
            Some((least, _, _)) if distance < least => Some((distance, candidate, false)),
            Some((least, name, _)) => Some((least, name, false)),
        };
    }
    best.map(|(_, name, is_only)| (name, is_only))
}

/// Whether two names differ by a slip of the keyboard: one change in each three characters at most, where two neighbours that
/// changed places are one change. Names that differ by their digits only are different names.
fn is_slip(misspelt: &str, name: &str) -> bool {
    let letters = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    if letters(misspelt) == letters(name) {
        return false;
    }
    let changes = match swaps_neighbours(misspelt, name) {
        true => 1,
        false => edit_distance(misspelt, name),
    };
    changes * 3 <= misspelt.chars().count()
}

/// Whether the names are the same but for two neighbours that changed places.
fn swaps_neighbours(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let differ: Vec<usize> = (0..a.len()).filter(|i| a.get(*i) != b.get(*i)).collect();
    match differ.as_slice() {
        [i, j] if a.len() == b.len() && i + 1 == *j => a.get(*i) == b.get(*j) && a.get(*j) == b.get(*i),
        _ => false,
    }
}

/// The number of insertions, deletions and replacements between two words.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let replace = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        assert_eq!(suggest("tpye", ["name", "type"]), Some("type"));
        assert_eq!(suggest("zzz", ["name", "type"]), None);
    }

    #[test]
    fn a_name_is_certain_only_if_it_is_alone_and_a_slip() {
        let certain = |misspelt, names: &[&'static str]| near(misspelt, names.iter().copied()).map(|n| n.is_certain);
        assert_eq!(certain("tpye", &["name", "type"]), Some(true));
        assert_eq!(certain("conten", &["content", "filename"]), Some(true));
        assert_eq!(certain("filename", &["content", "content"]), None);
        assert_eq!(certain("typ", &["type", "type"]), Some(true));
        // Two names are near, the change is half of the name, or another number is a name of its own.
        assert_eq!(certain("subnet", &["subnets", "subnet_a"]), Some(false));
        assert_eq!(certain("ip", &["id"]), Some(false));
        assert_eq!(certain("zone1", &["zone2"]), Some(false));
    }
}
