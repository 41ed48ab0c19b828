//! Text in the syntax of the configuration language.

use gotext::quote::is_printable;

/// Formats text as a quoted string without templates. Non-printable characters are escaped.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // A doubled `$` or `%` before a brace is a literal character, and begins no template.
            '$' | '%' if chars.peek() == Some(&'{') => out.extend([c, c]),
            c if !is_printable(c) => match u32::from(c) {
                code @ 0..=0xffff => out.push_str(&format!("\\u{code:04x}")),
                code => out.push_str(&format!("\\U{code:08x}")),
            },
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_and_invisible_characters_are_escaped() {
        for (text, expected) in [
            ("a\"b\\\n", r#""a\"b\\\n""#),
            ("${a} %{b} $ %", r#""$${a} %%{b} $ %""#),
            ("x\u{a0}y\u{200b}z\u{85}", r#""x\u00a0y\u200bz\u0085""#),
            ("\u{e0001}é日", r#""\U000e0001é日""#),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
