//! Parts of a configuration that syntax errors may have garbled. Nothing else is reported about them until the file can
//! be parsed.

use std::collections::BTreeSet;
use std::sync::Arc;

use syntax::ast::Body;
use syntax::{Diagnostics, Range};

/// An outermost block: its type, its range, and the names that it declares.
pub(crate) struct Header {
    pub ty: Arc<str>,
    pub range: Range,
    pub names: Vec<Arc<str>>,
}

/// Returns the types, ranges and names of the outermost blocks of a file.
pub(crate) fn headers(body: &Body) -> impl Iterator<Item = Header> {
    body.blocks.iter().map(|block| {
        let names = match &*block.ty {
            "locals" => block.body.attributes.iter().map(|a| a.name.clone()).collect(),
            // A `required_providers` block declares the local names of providers.
            "terraform" => {
                let inner = block.body.blocks.iter().filter(|b| &*b.ty == "required_providers");
                inner.flat_map(|b| &b.body.attributes).map(|a| a.name.clone()).collect()
            }
            _ => block.labels.iter().map(|l| l.text.clone()).collect(),
        };
        Header {
            ty: block.ty.clone(),
            range: block.range.clone(),
            names,
        }
    })
}

/// Adds the names that a text which cannot be parsed may declare: the word at the beginning of each line, and every
/// text in quotes.
pub(crate) fn names_in_text(text: &str, names: &mut BTreeSet<Arc<str>>) {
    for line in text.lines() {
        let line = line.trim_start();
        let end = line
            .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
            .unwrap_or(line.len());
        names.insert(line[..end].into());
        names.extend(line.split('"').skip(1).step_by(2).map(Arc::from));
    }
}

/// Returns the parts of blocks that syntax errors may have garbled:
///
/// - arguments and nested blocks with an error;
/// - the header of the enclosing block, at which errors about missing arguments are reported;
/// - the whole of a block that is not closed.
pub(crate) fn broken_parts(body: &Body, problems: &Diagnostics) -> Vec<Range> {
    let mut out: Vec<Range> = Vec::new();
    // The parser returns blocks in source order, so the last one that begins before the error is the one around it.
    for place in problems
        .iter()
        .filter(|d| d.is_error())
        .filter_map(|d| d.subject.as_ref())
    {
        let after = body.blocks.partition_point(|b| b.range.start <= place.start);
        let Some(block) = after.checked_sub(1).and_then(|at| body.blocks.get(at)) else {
            continue;
        };
        if place.start > block.range.end {
            continue;
        }
        // The block is not closed: the error points at its opening brace, and the end of the block is unknown.
        if place.start == block.open.start {
            out.push(block.range.clone());
            continue;
        }
        out.push(block.range.to(&block.open));
        if let Some(header) = out.last_mut() {
            header.end = block.open.end;
        }
        let attributes = block.body.attributes.iter().map(|a| &a.range);
        let mut items = attributes.chain(block.body.blocks.iter().map(|b| &b.range));
        out.extend(items.find(|item| surrounds(item, place)).cloned());
    }
    out
}

/// Returns true if a range begins inside of another one, or at its end.
pub(crate) fn surrounds(outer: &Range, inner: &Range) -> bool {
    outer.file == inner.file && outer.start <= inner.start && inner.start <= outer.end
}
