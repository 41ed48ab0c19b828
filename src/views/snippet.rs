//! Source lines of diagnostics.

use std::cell::RefCell;
use std::sync::Arc;

use syntax::ast::Block;
use syntax::json::Node;
use syntax::{Diagnostic, Range, SourceMap};

/// Source lines of a diagnostic, with the range to highlight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// Header of the outermost block around the range: `resource "t" "n"`.
    pub context: Option<String>,
    /// Lines, without the last line break.
    pub code: String,
    /// Number of the first line, counted from 1.
    pub start_line: u32,
    /// Byte offset in `code` where the range begins.
    pub highlight_start: usize,
    /// Byte offset in `code` where the range ends.
    pub highlight_end: usize,
}

/// Returns the range to show, extended to at least one character; `None` if the diagnostic has no range.
#[must_use]
pub fn shown_range(diagnostic: &Diagnostic) -> Option<Range> {
    let mut subject = diagnostic.subject.clone()?;
    if subject.start.byte >= subject.end.byte {
        subject.end = subject.start;
        subject.end.byte = subject.end.byte.saturating_add(1);
        subject.end.column = subject.end.column.saturating_add(1);
    }
    Some(subject)
}

/// Returns the snippet of a diagnostic; `None` if it has no range, or the file's text is not known.
#[must_use]
pub fn snippet(diagnostic: &Diagnostic, sources: &SourceMap) -> Option<Snippet> {
    let subject = shown_range(diagnostic)?;
    let text: &Arc<str> = sources.get(&subject.file)?;
    let (mut start, mut end) = (subject.start.byte as usize, subject.end.byte as usize);
    if let Some(context) = &diagnostic.context
        && context.file == subject.file
    {
        start = start.min(context.start.byte as usize);
        end = end.max(context.end.byte as usize);
    }
    // The ranges may belong to another version of the file, or begin inside of a character, where slicing would
    // panic.
    let start = floor(text, start);
    let end = floor(text, end).max(start);
    let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
    let line_end = text[end..].find('\n').map_or(text.len(), |i| end + i);
    let line_end = line_end.max(line_start);
    let code = &text[line_start..line_end];
    let code = code.strip_suffix('\n').unwrap_or(code).to_owned();
    // The lines are counted back from the subject's line, which is known, instead of from the beginning of the
    // file.
    let lines_before = text[line_start..floor(text, subject.start.byte as usize).max(line_start)]
        .matches('\n')
        .count();
    let start_line = subject
        .start
        .line
        .saturating_sub(u32::try_from(lines_before).unwrap_or(0));
    let inside = |byte: u32| floor(text, byte as usize).clamp(line_start, line_end) - line_start;
    let highlight_start = inside(subject.start.byte);
    Some(Snippet {
        context: context(&subject, text),
        start_line,
        highlight_start,
        highlight_end: inside(subject.end.byte).max(highlight_start),
        code,
    })
}

/// Returns the nearest character boundary at or before an offset.
fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// Returns the header of the top-level block that contains the range, unless the range is the block's own beginning. For JSON,
/// returns the path of the enclosing object.
fn context(subject: &Range, text: &Arc<str>) -> Option<String> {
    LAST_READ.with_borrow_mut(|last| {
        if !last.as_ref().is_some_and(|read| Arc::ptr_eq(&read.text, text)) {
            *last = Some(Read {
                text: text.clone(),
                structure: Structure::parse(&subject.file, text),
            });
        }
        last.as_ref()?.structure.around(subject.start.byte)
    })
}

thread_local! {
    /// Cache of the last file. Diagnostics come sorted by range, and there may be thousands for one file, so it is parsed once
    /// for all of them.
    static LAST_READ: RefCell<Option<Read>> = const { RefCell::new(None) };
}

/// File that was parsed last.
struct Read {
    text: Arc<str>,
    structure: Structure,
}

enum Structure {
    Native(Headers),
    /// Root; `None` if the file cannot be parsed.
    Json(Option<Node>),
}

impl Structure {
    fn parse(file: &str, text: &str) -> Structure {
        match file.ends_with(".json") {
            true => Structure::Json(syntax::json::parse(file, text.as_bytes()).ok()),
            false => Structure::Native(Headers::read(file, text)),
        }
    }

    fn around(&self, start: u32) -> Option<String> {
        match self {
            // A range at the very beginning of a block refers to the block itself.
            Structure::Native(headers) => headers.around(start.checked_sub(1)?).map(str::to_owned),
            Structure::Json(root) => {
                let path = root.as_ref()?.path_at(start);
                (!path.is_empty()).then_some(path)
            }
        }
    }
}

/// Headers of a file's top-level blocks.
struct Headers {
    /// Start, end and header of each block, in the order of the file.
    blocks: Vec<(u32, u32, String)>,
}

impl Headers {
    fn read(file: &str, text: &str) -> Headers {
        let (body, _) = syntax::parse_file(file, text.as_bytes());
        let header = |block: &Block| {
            let mut out = block.ty.to_string();
            for label in &block.labels {
                out.push(' ');
                out.push_str(&addrs::text::quoted(&label.text));
            }
            (block.range.start.byte, block.range.end.byte, out)
        };
        let mut blocks: Vec<_> = body.blocks.iter().map(header).collect();
        // The blocks are sorted for the binary search in `around`.
        blocks.sort_by_key(|block| block.0);
        Headers { blocks }
    }

    /// Returns the header of the block that contains the byte; `None` outside of blocks.
    fn around(&self, byte: u32) -> Option<&str> {
        let after = self.blocks.partition_point(|(start, ..)| *start <= byte);
        let (_, end, header) = self.blocks.get(after.checked_sub(1)?)?;
        (byte < *end).then_some(header)
    }
}

#[cfg(test)]
mod tests {
    use syntax::Pos;

    use super::*;

    fn sources(text: &str) -> SourceMap {
        let mut map = SourceMap::default();
        map.insert("main.tf", text);
        map
    }

    #[test]
    fn json_has_the_path_to_the_object_around_the_place() {
        let text = r#"[{"resource": {"t": {"q": {"lifecycle": {"x": 1}, "p": [{"when": "never"}]}}}}, {"output": {"z": {}}, "a": 1}]"#;
        let structure = Structure::parse("main.tf.json", text);
        for (place, path) in [
            ("1}", "[0].resource.t.q.lifecycle"),
            ("never", "[0].resource.t.q.p[0]"),
            ("{}}", "[1].output.z"),
            ("1}]", "[1]"),
        ] {
            let start = u32::try_from(text.find(place).unwrap()).unwrap();
            assert_eq!(structure.around(start).as_deref(), Some(path), "{place}");
        }
        assert_eq!(structure.around(0), None);
        assert_eq!(Structure::parse("main.tf.json", "{").around(0), None);
    }

    fn at(text: &str, start: usize, end: usize) -> Range {
        let pos = |byte: usize| Pos {
            line: u32::try_from(text[..byte].matches('\n').count()).unwrap() + 1,
            column: 1,
            byte: u32::try_from(byte).unwrap(),
        };
        Range {
            file: "main.tf".into(),
            start: pos(start),
            end: pos(end),
        }
    }

    #[test]
    fn the_line_and_the_block_around_the_place_are_found() {
        let text = "a = 1\nresource \"t\" \"n\" {\n  x = y\n}\n";
        let place = text.find("y\n").unwrap();
        let found = snippet(
            &Diagnostic::error("", "").at(&at(text, place, place + 1)),
            &sources(text),
        )
        .unwrap();
        assert_eq!(
            found,
            Snippet {
                context: Some("resource \"t\" \"n\"".into()),
                code: "  x = y".into(),
                start_line: 3,
                highlight_start: 6,
                highlight_end: 7,
            }
        );
        let header = snippet(&Diagnostic::error("", "").at(&at(text, 6, 22)), &sources(text)).unwrap();
        assert_eq!((header.context, &*header.code), (None, "resource \"t\" \"n\" {"));
    }

    #[test]
    fn places_beyond_the_text_do_no_harm() {
        let mut range = at("é\n", 0, 0);
        range.start.byte = 1;
        range.end.byte = 99;
        let found = snippet(&Diagnostic::error("", "").at(&range), &sources("é\n")).unwrap();
        assert_eq!((found.highlight_start, &*found.code), (0, "é"));
    }
}
