//! Quoted text with escapes for non-printable characters.

use crate::printable::TURNS;

/// Formats text like Go's `%q`: in double quotes, with escapes for non-printable characters.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if is_printable(c) => out.push(c),
            c => match u32::from(c) {
                code @ 0..=0x7f => out.push_str(&format!("\\x{code:02x}")),
                code @ 0x80..=0xffff => out.push_str(&format!("\\u{code:04x}")),
                code => out.push_str(&format!("\\U{code:08x}")),
            },
        }
    }
    out.push('"');
    out
}

/// Returns true if a character is visible, by the rules of Go's `strconv.IsPrint`: no control character, no whitespace except the
/// ASCII space, no private use, and assigned.
#[must_use]
pub fn is_printable(c: char) -> bool {
    let code = u32::from(c);
    TURNS.partition_point(|turn| *turn <= code) % 2 == 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invisible_characters_are_escaped() {
        for (text, expected) in [
            ("a\"b\\\n\u{1}é\u{7f}", r#""a\"b\\\n\x01é\x7f""#),
            ("\u{7}\u{8}\u{c}\r\t\u{b}", r#""\a\b\f\r\t\v""#),
            ("x\u{a0}y\u{200b}z\u{85} \u{2028}", r#""x\u00a0y\u200bz\u0085 \u2028""#),
            ("\u{e0001}日${a}", r#""\U000e0001日${a}""#),
            // The last assigned character of its block, an unassigned character, and one that is newer than the
            // table.
            ("\u{377}\u{378}\u{1c89}", "\"\u{377}\\u0378\\u1c89\""),
            (
                "\u{1fae8}\u{1fae9}\u{2a6df}\u{2a6e0}",
                "\"\u{1fae8}\\U0001fae9\u{2a6df}\\U0002a6e0\"",
            ),
            (
                "\u{e0100}\u{e01f0}\u{f0000}\u{10ffff}",
                "\"\u{e0100}\\U000e01f0\\U000f0000\\U0010ffff\"",
            ),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }

    proptest! {
        #[test]
        fn quoted_text_is_one_printable_line(text in any::<String>()) {
            let quoted = quoted(&text);
            prop_assert!(quoted.chars().all(is_printable));
            prop_assert!(quoted.starts_with('"') && quoted.ends_with('"') && quoted.len() >= 2);
        }
    }
}
