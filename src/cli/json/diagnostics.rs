//! Diagnostics as JSON.

use serde_json::{Value as Json, json};
use syntax::{Diagnostic, Pos, Range, Severity, SourceMap};

use super::Object;

/// The document of a diagnostic, with the source lines it speaks of.
#[must_use]
pub fn diagnostic(diagnostic: &Diagnostic, sources: &SourceMap) -> Json {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    Object::default()
        .with("severity", severity)
        .with("summary", diagnostic.summary.clone())
        .with("detail", diagnostic.detail.clone())
        .with_some("address", diagnostic.address.clone())
        .with_some("range", diagnostic.subject.as_ref().map(range))
        .with_some("snippet", snippet(diagnostic, sources))
        .into()
}

/// The document that `validate -json` prints.
#[must_use]
pub fn validation(diagnostics: &syntax::Diagnostics, sources: &SourceMap) -> Json {
    let errors = diagnostics.iter().filter(|d| d.is_error()).count();
    json!({
        "format_version": "1.0",
        "valid": errors == 0,
        "error_count": errors,
        "warning_count": diagnostics.len() - errors,
        "diagnostics": diagnostics.iter().map(|d| diagnostic(d, sources)).collect::<Vec<_>>(),
    })
}

fn position(pos: Pos) -> Json {
    json!({"line": pos.line, "column": pos.column, "byte": pos.byte})
}

fn range(range: &Range) -> Json {
    // A place is at least one character wide, so that there is something to highlight.
    let mut end = range.end;
    if range.start == end {
        end.byte += 1;
        end.column += 1;
    }
    json!({"filename": &*range.file, "start": position(range.start), "end": position(end)})
}

/// The whole lines that a diagnostic's place touches, and which part of them the place is.
fn snippet(diagnostic: &Diagnostic, sources: &SourceMap) -> Option<Json> {
    let subject = diagnostic.subject.as_ref()?;
    let text = sources.get(&subject.file)?;
    let wide = match &diagnostic.context {
        Some(context) if context.file == subject.file => context,
        _ => subject,
    };
    let from = wide.start.byte.min(subject.start.byte) as usize;
    let to = (wide.end.byte.max(subject.end.byte) as usize).clamp(from, text.len());
    let start = text.get(..from)?.rfind('\n').map_or(0, |i| i + 1);
    let end = text.get(to..)?.find('\n').map_or(text.len(), |i| to + i);
    let code = text.get(start..end)?;
    let highlight = |byte: u32| (byte as usize).saturating_sub(start).min(code.len());
    let first = highlight(subject.start.byte);
    let mut last = highlight(subject.end.byte);
    if last == first && last < code.len() {
        last += 1;
    }
    let values: Vec<Json> = diagnostic
        .expression
        .iter()
        .flat_map(|e| &e.values)
        .map(|(traversal, statement)| json!({"traversal": traversal, "statement": statement}))
        .collect();
    let line = text[..start].matches('\n').count() + 1;
    let call = diagnostic.expression.as_ref().and_then(|e| e.function.as_ref());
    Some(
        Object::default()
            .with("context", enclosing_block(text, subject.start.byte as usize).map_or(Json::Null, Json::from))
            .with("code", code)
            .with("start_line", line)
            .with("highlight_start_offset", first)
            .with("highlight_end_offset", last)
            .with("values", values)
            .with_some("function_call", call.map(|name| json!({"called_as": name})))
            .into(),
    )
}

/// The header of the top-level block around a place: `resource "t" "n"`.
#[must_use]
pub fn enclosing_block(text: &str, at: usize) -> Option<String> {
    let (body, _) = syntax::parse_file("", text.as_bytes());
    let block = body.blocks.iter().find(|b| (b.range.start.byte as usize..b.range.end.byte as usize).contains(&at))?;
    let labels: String = block.labels.iter().map(|l| format!(" {}", addrs::module::quoted(&l.text))).collect();
    Some(format!("{}{labels}", block.ty))
}
