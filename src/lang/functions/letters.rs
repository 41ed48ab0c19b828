//! Characters: grapheme clusters, case, and printable characters.
//!
//! All functions follow Unicode 15.0, the version of Go's and Terraform's libraries. With a later one, the length of
//! a text in an Indic script would differ, and with it the results of `substr`.

use std::sync::LazyLock;

use regex::Regex;
use unicode_segmentation::UnicodeSegmentation;

/// Splits a text into grapheme clusters.
///
/// Later versions of Unicode keep the consonants of an Indic conjunct together; in Unicode 15.0, each is a cluster.
pub(super) fn clusters(text: &str) -> Vec<&str> {
    // Fast path for ASCII, in which only "\r\n" is a cluster of several characters.
    if text.is_ascii() && !text.contains('\r') {
        return text.split_inclusive(|_| true).collect();
    }
    let mut out = Vec::new();
    for cluster in text.graphemes(true) {
        let mut begin = 0;
        let mut after_mark = false;
        for (at, c) in cluster.char_indices() {
            if after_mark && is_separate_letter(c) {
                out.push(&cluster[begin..at]);
                begin = at;
            }
            after_mark =
                c == '\u{200d}' || c == '\u{200c}' || (!c.is_ascii() && MARK.is_match(c.encode_utf8(&mut [0; 4])));
        }
        out.push(&cluster[begin..]);
    }
    out
}

/// Number of grapheme clusters in a text.
pub(super) fn count(text: &str) -> usize {
    if text.is_ascii() && !text.contains('\r') {
        text.len()
    } else {
        clusters(text).len()
    }
}

/// Returns true if a letter after a mark begins a new cluster: all letters except ASCII, Hangul Jamo, and the vowels
/// SARA AM of Thai and AM of Lao.
fn is_separate_letter(c: char) -> bool {
    let joins = matches!(u32::from(c), 0x1100..=0x11ff | 0xa960..=0xa97f | 0xd7b0..=0xd7ff | 0xe33 | 0xeb3);
    !joins && !c.is_ascii() && LETTER.is_match(c.encode_utf8(&mut [0; 4]))
}

/// Compiles a pattern of this module.
#[expect(
    clippy::unwrap_used,
    reason = "the patterns are constants of this module, and each has a test"
)]
fn constant(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

static MARK: LazyLock<Regex> = LazyLock::new(|| constant(r"\p{M}"));
static LETTER: LazyLock<Regex> = LazyLock::new(|| constant(r"\p{Lo}"));
static SHOWN: LazyLock<Regex> = LazyLock::new(|| constant(r"[[\p{L}\p{M}\p{N}\p{P}\p{S}]&&\p{Age:15.0}]"));

/// Returns true if a character is displayed unescaped: letters, marks, digits, punctuation and symbols, and the plain
/// space. False for controls, other spaces, private use and unassigned code points.
#[must_use]
pub fn is_shown(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    SHOWN.is_match(c.encode_utf8(&mut [0; 4]))
}

/// Returns `to` if both letters exist in Unicode 15.0, otherwise `from`.
fn mapped(from: char, to: char) -> char {
    if from == to || from.is_ascii() || (is_shown(from) && is_shown(to)) {
        to
    } else {
        from
    }
}

/// Returns the upper case of a letter if that is a single letter, otherwise the title case of some Greek letters, or
/// the letter itself.
pub(super) fn upper(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(u), None) => mapped(c, u),
        // These are Greek letters with an iota below. Their upper case has two letters, but their title case
        // has one.
        _ => match u32::from(c) {
            code @ (0x1f80..=0x1f87 | 0x1f90..=0x1f97 | 0x1fa0..=0x1fa7) => char::from_u32(code + 8).unwrap_or(c),
            0x1fb3 => '\u{1fbc}',
            0x1fc3 => '\u{1fcc}',
            0x1ff3 => '\u{1ffc}',
            _ => c,
        },
    }
}

/// Returns the lower case of a letter.
pub(super) fn lower(c: char) -> char {
    mapped(c, c.to_lowercase().next().unwrap_or(c))
}

/// Returns the title case of a letter: upper case, except for digraphs, and for Georgian, which has none.
pub(super) fn title(c: char) -> char {
    match c {
        '\u{1c4}'..='\u{1c6}' => '\u{1c5}',
        '\u{1c7}'..='\u{1c9}' => '\u{1c8}',
        '\u{1ca}'..='\u{1cc}' => '\u{1cb}',
        '\u{1f1}'..='\u{1f3}' => '\u{1f2}',
        '\u{10d0}'..='\u{10fa}' | '\u{10fd}'..='\u{10ff}' => c,
        c => upper(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consonants_of_a_conjunct_are_counted_each() {
        assert_eq!(clusters("क्षि"), ["क्", "षि"]);
        assert_eq!(
            clusters("e\u{301}\r\n각กำ👨\u{200d}👩x"),
            ["e\u{301}", "\r\n", "각", "กำ", "👨\u{200d}👩", "x"]
        );
        assert_eq!(clusters("ab"), ["a", "b"]);
        assert!(clusters("").is_empty());
    }

    #[test]
    fn unassigned_code_points_are_escaped() {
        assert!("aé日😀\u{301}€ ".chars().all(is_shown));
        for c in [
            '\n',
            '\u{a0}',
            '\u{ad}',
            '\u{378}',
            '\u{ffff}',
            '\u{e000}',
            '\u{a7cb}',
            '\u{1fae9}',
            '\u{2028}',
        ] {
            assert!(!is_shown(c), "{:x}", u32::from(c));
        }
    }

    #[test]
    fn title_case_is_not_always_upper_case() {
        assert_eq!((title('ǆ'), upper('ǆ'), title('ა'), upper('ᾳ')), ('ǅ', 'Ǆ', 'ა', 'ᾼ'));
    }
}
