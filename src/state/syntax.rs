//! JSON parsing with positions in errors.

use serde::Deserialize;

use crate::FormatError;

/// Parses JSON.
///
/// # Errors
/// The text is not JSON of the expected form.
pub(crate) fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, FormatError> {
    serde_json::from_str(text).map_err(|e| {
        let message = e.to_string();
        let message = match e.classify() {
            serde_json::error::Category::Eof => "the text ends too early, as if the file were cut off".to_owned(),
            // The library appends the position to the message. It is removed, because the error has separate fields for it.
            _ => files::json_mistake(message.rsplit_once(" at line ").map_or(message.as_str(), |(m, _)| m)),
        };
        FormatError::Syntax {
            line: e.line().max(1),
            column: e.column().max(1),
            message,
        }
    })
}

/// Returns the line and column, counted from 1, of the byte after a text.
pub(crate) fn position(before: &[u8]) -> (usize, usize) {
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|b| **b != b'\n').count() + 1;
    (line, column)
}
