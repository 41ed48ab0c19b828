//! Decoding of tokens' text: escapes, encodings, invalid characters.

use std::borrow::Cow;

use crate::{Diagnostic, Range, lexer};

use super::Parser;

/// Decodes a file, and returns the offsets of bytes that are not UTF-8. Each is replaced by one byte, so that all
/// others keep their positions.
pub(super) fn decode_utf8(bytes: &[u8]) -> (Cow<'_, str>, Vec<usize>) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return (Cow::Borrowed(text), Vec::new());
    }
    let mut text = String::with_capacity(bytes.len());
    let mut bad = Vec::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for _ in chunk.invalid() {
            bad.push(text.len());
            text.push('\u{1a}');
        }
    }
    (Cow::Owned(text), bad)
}

/// Builds the error for a token that is not part of the language.
pub(super) fn invalid_token(text: &str) -> Diagnostic {
    let bitwise = |hint: &str| {
        Diagnostic::error(
            "Unsupported operator",
            format!("Bitwise operators are not supported.{hint}"),
        )
    };
    match text {
        "&" => bitwise(" Did you mean boolean AND (\"&&\")?"),
        "|" => bitwise(" Did you mean boolean OR (\"||\")?"),
        "~" => bitwise(" Did you mean boolean NOT (\"!\")?"),
        "^" => bitwise(""),
        "**" => Diagnostic::error(
            "Unsupported operator",
            "There is no operator \"**\". Use the function pow to raise a number to a power.",
        ),
        "'" => Diagnostic::error(
            "Invalid character",
            "Strings are written in double quotes (\"), not in single ones.",
        ),
        "`" => Diagnostic::error(
            "Invalid character",
            "\"`\" has no meaning here. Write a text of several lines as a heredoc, which begins with \"<<EOT\".",
        ),
        ";" => Diagnostic::error(
            "Invalid character",
            "\";\" has no meaning here. Arguments and blocks are separated by line breaks, items of a collection by \
             commas.",
        ),
        "“" | "”" | "„" | "‘" | "’" => Diagnostic::error(
            "Invalid character",
            "This is a typographic quotation mark, as word processors and web pages insert it. Replace it with the \
             plain mark of its kind, \" or '.",
        ),
        "\r" => Diagnostic::error(
            "Invalid character",
            "A carriage return is not valid here, unless a line feed follows it. Save the file with the line breaks that your \
             system uses today.",
        ),
        "\u{a0}" => Diagnostic::error(
            "Invalid character",
            "A no-break space is not valid here. It is often introduced when code is copied from a document or a web page; \
             replace it with an ordinary space.",
        ),
        _ => Diagnostic::error("Invalid character", "This character is not used within the language."),
    }
}

impl Parser<'_> {
    /// Returns the text of a token between quotes, unescaped. Invalid escapes are reported and left as they are.
    pub(super) fn unescape_quoted(&mut self, token: usize) -> String {
        let raw = self.text_of(token);
        // Most texts have no escapes, and are returned at once.
        if !raw.contains(['\\', '$', '%']) {
            return raw.to_owned();
        }
        let mut text = String::with_capacity(raw.len());
        let mut rest = raw;
        while let Some(special) = rest.find(['\\', '$', '%']) {
            text.push_str(&rest[..special]);
            rest = &rest[special..];
            let used = if rest.starts_with('\\') {
                match escape(rest) {
                    Ok((c, used)) => {
                        text.push(c);
                        used
                    }
                    Err((used, detail)) => {
                        let offset = raw.len() - rest.len();
                        self.bad_escape(token, offset, used, &detail);
                        text.push_str(&rest[..used]);
                        used
                    }
                }
            } else {
                introducers(rest, &mut text)
            };
            rest = &rest[used..];
        }
        text.push_str(rest);
        text
    }

    fn bad_escape(&mut self, token: usize, offset: usize, len: usize, detail: &str) {
        let raw = self.text_of(token);
        let start = lexer::advance(self.tokens.start(token), &raw[..offset]);
        let end = lexer::advance(start, &raw[offset..offset + len]);
        let range = Range {
            file: self.tokens.file.clone(),
            start,
            end,
        };
        self.report(
            Diagnostic::error("Invalid escape sequence", detail)
                .at(&range)
                .within(&self.range_of(token)),
        );
    }
}

/// Returns the text of a token of a heredoc or of a template without quotes, unescaped.
pub(super) fn unescape_plain(raw: &str) -> Cow<'_, str> {
    if !raw.contains("${") && !raw.contains("%{") {
        return Cow::Borrowed(raw);
    }
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(special) = rest.find(['$', '%']) {
        text.push_str(&rest[..special]);
        rest = &rest[special..];
        let used = introducers(rest, &mut text);
        rest = &rest[used..];
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// Copies a run of `$` or `%`, and returns its length. Before a brace, one of the signs is the escape.
fn introducers(rest: &str, text: &mut String) -> usize {
    let first = rest.as_bytes().first().copied().unwrap_or_default();
    let run = rest.bytes().take_while(|b| *b == first).count();
    let escaped = run >= 2 && rest.as_bytes().get(run) == Some(&b'{');
    text.push_str(&rest[..if escaped { run - 1 } else { run }]);
    run
}

/// Decodes the escape at the beginning of a text: the character and the length of the escape, or the length of the
/// wrong text and a description.
fn escape(text: &str) -> Result<(char, usize), (usize, String)> {
    let Some(selector) = text[1..].chars().next() else {
        return Err((
            1,
            "A backslash begins an escape sequence, and nothing follows it here. To write a backslash, double it."
                .into(),
        ));
    };
    let (digits, words) = match selector {
        'n' => return Ok(('\n', 2)),
        'r' => return Ok(('\r', 2)),
        't' => return Ok(('\t', 2)),
        '"' => return Ok(('"', 2)),
        '\\' => return Ok(('\\', 2)),
        'u' => (4, "four"),
        'U' => (8, "eight"),
        other => {
            return Err((
                1 + other.len_utf8(),
                format!(
                    "\"\\{other}\" is no escape sequence. Known are \\n, \\r, \\t, \\\", \\\\, \\uNNNN and \
                         \\UNNNNNNNN; to write a backslash, double it."
                ),
            ));
        }
    };
    let digits_found = text[2..].bytes().take(digits).take_while(u8::is_ascii_hexdigit).count();
    if digits_found < digits {
        let detail = format!("The \\{selector} escape sequence must be followed by {words} hexadecimal digits.");
        return Err((2 + digits_found, detail));
    }
    let end = 2 + digits;
    let code = u32::from_str_radix(&text[2..end], 16).unwrap_or(u32::MAX);
    match char::from_u32(code) {
        Some(c) => Ok((c, end)),
        // A surrogate, or a number beyond the last character of Unicode.
        None => Err((end, format!("Cannot encode character U+{code:04x} in UTF-8."))),
    }
}
