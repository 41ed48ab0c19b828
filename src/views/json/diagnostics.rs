//! Diagnostics as JSON.

use cty::Type;
use cty::json::type_to_json;
use serde_json::{Value as Json, json};
use syntax::diag::{CalledFunction, Comparison};
use syntax::{Diagnostic, Pos, Range, Severity, SourceMap};

use super::Object;
use crate::snippet;

/// Returns the document of a diagnostic, with its source lines.
#[must_use]
pub fn diagnostic(diagnostic: &Diagnostic, sources: &SourceMap) -> Json {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    Object::default()
        .with("severity", severity)
        .with("summary", &*diagnostic.summary)
        .with("detail", &*diagnostic.detail)
        .with_some("address", diagnostic.address.clone())
        .with_some("range", snippet::shown_range(diagnostic).as_ref().map(range))
        .with_some("snippet", snippet(diagnostic, sources))
        .with_some("deprecation_origin_description", diagnostic.deprecation_origin.clone())
        .into()
}

/// Returns the documents of several diagnostics.
#[must_use]
pub fn list(diagnostics: &syntax::Diagnostics, sources: &SourceMap) -> Vec<Json> {
    diagnostics.iter().map(|d| diagnostic(d, sources)).collect()
}

/// Returns the document of `validate -json`.
#[must_use]
pub fn validation(diagnostics: &syntax::Diagnostics, sources: &SourceMap) -> Json {
    let errors = diagnostics.iter().filter(|d| d.is_error()).count();
    json!({
        "format_version": "1.0",
        "valid": errors == 0,
        "error_count": errors,
        "warning_count": diagnostics.len() - errors,
        "diagnostics": list(diagnostics, sources),
    })
}

fn position(pos: Pos) -> Json {
    json!({"line": pos.line, "column": pos.column, "byte": pos.byte})
}

fn range(range: &Range) -> Json {
    json!({"filename": &*range.file, "start": position(range.start), "end": position(range.end)})
}

/// Returns the source lines of a diagnostic's range, with the offsets to highlight;
/// `None` if it has no range, or the file's text is not known.
fn snippet(diagnostic: &Diagnostic, sources: &SourceMap) -> Option<Json> {
    let found = snippet::snippet(diagnostic, sources)?;
    let values: Vec<Json> = diagnostic
        .expression
        .iter()
        .flat_map(|e| &e.values)
        .map(|(traversal, statement)| json!({"traversal": traversal, "statement": statement}))
        .collect();
    let call = diagnostic.expression.as_ref().and_then(|e| e.function.as_ref());
    Some(
        Object::default()
            // The member always exists: it is null if no block surrounds the range.
            .with("context", found.context.map_or(Json::Null, Json::from))
            .with("code", found.code)
            .with("start_line", found.start_line)
            .with("highlight_start_offset", found.highlight_start)
            .with("highlight_end_offset", found.highlight_end)
            .with("values", values)
            .with_some("function_call", call.map(called))
            .with_some(
                "test_assertion_expr",
                diagnostic
                    .expression
                    .as_ref()
                    .and_then(|e| e.comparison.as_ref())
                    .map(sides),
            )
            .into(),
    )
}

/// Returns the sides of a comparison that failed in a test.
fn sides(comparison: &Comparison) -> Json {
    let warning = if comparison.types_differ {
        "LHS and RHS values are of different types"
    } else {
        ""
    };
    Object::default()
        .with("lhs", comparison.left.clone())
        .with("rhs", comparison.right.clone())
        .with("warning", warning)
        .with("show_verbose", comparison.in_full)
        .into()
}

fn called(function: &CalledFunction) -> Json {
    let parameter = |(name, ty): &(String, Type)| json!({"name": name, "type": type_to_json(ty)});
    let parameters: Vec<Json> = function.parameters.iter().map(parameter).collect();
    let signature = Object::default()
        .with("name", function.name.clone())
        .with("params", parameters)
        .with_some("variadic_param", function.variadic.as_ref().map(parameter))
        .with("return_type", type_to_json(&function.returns));
    json!({"called_as": function.called_as, "signature": Json::from(signature)})
}
