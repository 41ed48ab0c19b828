//! Text for terminals: colours, and protection from control characters.
//!
//! Values, diagnostics, names and the output of plugins and provisioners may contain control characters. A terminal would
//! execute them: clear the screen, change its title, overwrite earlier output. Therefore our own texts contain no control
//! characters for colours. The views write [`SGR`] where a sequence begins. [`shown`], which all text for people passes when it
//! is written, turns it into the terminal's sequence and makes every other control character visible. Output for programs does
//! not pass it.

use std::borrow::Cow;

/// Placeholder for the beginning of a sequence that sets a colour or another attribute; the code and `m` follow. It is a Unicode
/// noncharacter. If a text contains it nevertheless, it can set a colour and nothing else.
pub const SGR: char = '\u{fdd0}';

/// Codes that are allowed in a sequence.
const CODES: &[&str] = &["0", "1", "4", "31", "32", "33", "36", "37", "90", "1;31", "1;32"];

/// Converts a text for the terminal: [`SGR`] sequences become control sequences, and control characters are escaped.
#[must_use]
pub fn shown(text: &str) -> Cow<'_, str> {
    // Most texts have no such characters, and need no copy.
    let Some(first) = text.find(acts) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut next = Some(first);
    while let Some(at) = next {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let mut chars = rest.chars();
        let found = chars.next().unwrap_or_default();
        let behind = chars.as_str();
        rest = behind;
        match found {
            SGR => {
                let code = behind
                    .split_once('m')
                    .map(|(code, _)| code)
                    .filter(|c| CODES.contains(c));
                match code {
                    Some(code) => {
                        out.push_str("\x1b[");
                        out.push_str(code);
                        out.push('m');
                        rest = &behind[code.len() + 1..];
                    }
                    None => visible(found, &mut out),
                }
            }
            // A carriage return before a line break is harmless.
            '\r' if behind.starts_with('\n') => out.push('\r'),
            found => visible(found, &mut out),
        }
        next = rest.find(acts);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns true if a character has an effect on a terminal, or on the order in which characters are displayed (bidirectional
/// overrides).
fn acts(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        SGR => true,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

/// Appends a control character in escaped form, as in quoted strings.
/// Returns a text without its styles.
pub(crate) fn unstyled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(SGR) {
        out.push_str(&rest[..at]);
        let behind = &rest[at + SGR.len_utf8()..];
        let code = behind.split_once('m').map(|(code, _)| code);
        let code = code.filter(|code| CODES.contains(code));
        rest = &behind[code.map_or(0, |code| code.len() + 1)..];
    }
    out.push_str(rest);
    out
}

fn visible(c: char, out: &mut String) {
    match c {
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0b' => out.push_str("\\v"),
        '\x0c' => out.push_str("\\f"),
        '\r' => out.push_str("\\r"),
        c if u32::from(c) < 0x80 => out.push_str(&format!("\\x{:02x}", u32::from(c))),
        c => out.push_str(&format!("\\u{:04x}", u32::from(c))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(shown("a\x1b[31mred\x07\x08\r\x7f"), "a\\x1b[31mred\\a\\b\\r\\x7f");
        assert_eq!(
            shown("\u{9b}2J \u{202e}x\u{2069} \u{85}"),
            "\\u009b2J \\u202ex\\u2069 \\u0085"
        );
    }

    #[test]
    fn lines_tabs_and_letters_stay_and_cost_no_copy() {
        let text = "é\tx\r\ny\n日本 \u{200f}";
        assert_eq!(shown(text), text);
        assert!(matches!(shown("é\tx\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn sequences_of_ours_become_the_terminals_and_no_others() {
        assert_eq!(
            shown(&format!("{SGR}1;31mError{SGR}0m {SGR}8m {SGR}")),
            "\x1b[1;31mError\x1b[0m \\ufdd08m \\ufdd0"
        );
    }
}
