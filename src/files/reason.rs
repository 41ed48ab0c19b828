//! Texts for the reasons of failed file operations and processes, to be used in messages.

use std::fmt::Display;
use std::io;

/// Returns the operating system's text for an error, without its number. It is part of a sentence: it begins with a lower-case letter
/// and has no full stop.
#[must_use]
pub fn io_reason(error: &io::Error) -> String {
    let text = error.to_string();
    // The `tempfile` crate appends the path of the temporary file, which means nothing to the user.
    let text = match text.rsplit_once(" at path \"") {
        Some((reason, path)) if path.ends_with('"') => reason,
        _ => &text,
    };
    // These messages of the standard library do not help a user.
    match text {
        "file name contained an unexpected NUL byte" => return "a path cannot have the character U+0000".to_owned(),
        "stream did not contain valid UTF-8" => return "it is not valid Unicode text".to_owned(),
        "failed to fill whole buffer" => return "it ends too early".to_owned(),
        _ => {}
    }
    plain(text)
}

/// Returns the reason of a JSON error from the parser's message, with the position if there is one. It is part of a sentence: it
/// begins with a lower-case letter and has no full stop.
#[must_use]
pub fn json_reason(message: impl Display) -> String {
    let message = message.to_string();
    let (what, place) = match message.rsplit_once(" at line ") {
        Some((what, place)) => (what, place.replacen(" column ", ", column ", 1)),
        None => (&*message, String::new()),
    };
    let reason = json_mistake(what);
    match place.is_empty() {
        true => reason,
        false => format!("line {}: {reason}", place.replacen(",,", ",", 1)),
    }
}

/// Returns the reason of a JSON error from a message without a position; see [`json_reason`].
#[must_use]
pub fn json_mistake(message: &str) -> String {
    let quoted = |text: &str| text.split('`').nth(1).unwrap_or_default().to_owned();
    // The parser reports these errors only as text, so the text is analyzed.
    let found = message
        .strip_prefix("invalid type: ")
        .or(message.strip_prefix("invalid value: "));
    if let Some((found, expected)) = found.and_then(|rest| rest.rsplit_once(", expected ")) {
        return match (expected_in_words(expected), found_in_words(found)) {
            (Some(expected), Some(found)) => format!("{expected} is expected here, and not {found}"),
            (Some(expected), None) => format!("{expected} is expected here"),
            (None, Some(found)) => format!("{found} is not expected here"),
            (None, None) => "the value is not of the expected type".to_owned(),
        };
    }
    if message.starts_with("EOF while parsing") {
        return "the text ends too early".to_owned();
    }
    let known = [
        (
            "missing field",
            format!("the property \"{}\" is missing", quoted(message)),
        ),
        (
            "unknown field",
            format!("the property \"{}\" is not expected here", quoted(message)),
        ),
        (
            "duplicate field",
            format!("the property \"{}\" is there twice", quoted(message)),
        ),
        (
            "unknown variant",
            format!("\"{}\" is not one of the possible values", quoted(message)),
        ),
        (
            "trailing characters",
            "there is more text after the end of the document".to_owned(),
        ),
        ("trailing comma", "a comma stands before a closing bracket".to_owned()),
        (
            "expected `,` or `}`",
            "a comma or the closing brace is missing".to_owned(),
        ),
        (
            "expected `,` or `]`",
            "a comma or the closing bracket is missing".to_owned(),
        ),
        (
            "expected `:`",
            "a colon is missing after the name of a property".to_owned(),
        ),
        (
            "key must be a string",
            "the name of a property is not in quotation marks".to_owned(),
        ),
        ("expected", "no value begins like this".to_owned()),
        (
            "control character",
            "a string has a control character that is not escaped".to_owned(),
        ),
        (
            "invalid escape",
            "a string has an escape that does not exist".to_owned(),
        ),
        ("invalid number", "a number is not complete".to_owned()),
        ("number out of range", "a number is too large".to_owned()),
        ("recursion limit", "it is nested too deeply".to_owned()),
    ];
    let found = known.into_iter().find(|(start, _)| message.starts_with(start));
    found.map_or_else(|| "it is not valid".to_owned(), |(_, reason)| reason)
}

fn expected_in_words(expected: &str) -> Option<&'static str> {
    Some(match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a string" | "a borrowed string" | "string" => "a string",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        text if text.starts_with("struct ") => "an object",
        _ => return None,
    })
}

fn found_in_words(found: &str) -> Option<String> {
    let value = found.split('`').nth(1);
    Some(match (found, value) {
        ("null", _) => "null".to_owned(),
        ("map", _) => "an object".to_owned(),
        ("sequence", _) => "a list".to_owned(),
        (text, Some(value)) if text.starts_with("boolean") => value.to_owned(),
        (text, Some(value)) if text.starts_with("integer") || text.starts_with("floating") => {
            format!("the number {value}")
        }
        (text, _) => format!("the string {}", text.strip_prefix("string ")?),
    })
}

/// Returns the text as a clause: without "(os error N)", with a lower-case first letter, without full stops at the end.
#[must_use]
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(" (os error ") {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        rest = after.split_once(')').map_or("", |(_, tail)| tail);
    }
    out.push_str(rest);
    out.truncate(out.trim_end_matches('.').len());
    let mut letters = out.chars();
    match (letters.next(), letters.next()) {
        // An abbreviation at the beginning, such as TLS, keeps its capital letters.
        (Some(first), Some(second)) if first.is_uppercase() && second.is_lowercase() => {
            let tail = out.get(first.len_utf8()..).unwrap_or_default();
            first.to_lowercase().chain(tail.chars()).collect()
        }
        _ => out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_json_are_not_those_of_the_library() {
        for (message, reason) in [
            (
                "invalid type: string \"x\", expected u64 at line 1 column 25",
                "line 1, column 25: a whole number that is not negative is expected here, and not the string \"x\"",
            ),
            (
                "invalid value: integer `-1`, expected u64 at line 1 column 24",
                "line 1, column 24: a whole number that is not negative is expected here, and not the number -1",
            ),
            (
                "invalid type: map, expected a sequence",
                "a list is expected here, and not an object",
            ),
            (
                "invalid type: null, expected struct File",
                "an object is expected here, and not null",
            ),
            (
                "missing field `key` at line 3 column 1",
                "line 3, column 1: the property \"key\" is missing",
            ),
            (
                "EOF while parsing a value at line 2 column 0",
                "line 2, column 0: the text ends too early",
            ),
            (
                "control character (\\u0000-\\u001F) found while parsing a string at line 1 column 2",
                "line 1, column 2: a string has a control character that is not escaped",
            ),
            (
                "expected `,` or `}` at line 1 column 9",
                "line 1, column 9: a comma or the closing brace is missing",
            ),
            (
                "expected ident at line 1 column 2",
                "line 1, column 2: no value begins like this",
            ),
            ("something of the library's", "it is not valid"),
        ] {
            assert_eq!(json_reason(message), reason);
        }
    }

    #[test]
    fn reasons_have_no_error_numbers_and_fit_into_a_sentence() {
        let reason = |code| io_reason(&io::Error::from_raw_os_error(code));
        assert_eq!(reason(2), "no such file or directory");
        assert_eq!(reason(13), "permission denied");
        let wrapped = io::Error::other("it cannot be read: No such file or directory (os error 2): more");
        assert_eq!(
            io_reason(&wrapped),
            "it cannot be read: No such file or directory: more"
        );
        let temporary = tempfile::NamedTempFile::new_in("/nonexistent").unwrap_err();
        assert_eq!(io_reason(&temporary), "no such file or directory");
        assert_eq!(io_reason(&io::Error::other("EOF while reading")), "EOF while reading");
        assert_eq!(plain("TLS is required."), "TLS is required");
        assert_eq!(plain("Access is denied."), "access is denied");
    }
}
