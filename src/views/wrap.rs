//! Breaking lines between words.

use unicode_width::UnicodeWidthStr as _;

/// Breaks a paragraph into lines of at most this width, between words. Words that are longer stand alone. Lines that
/// begin with a blank are taken as laid out already, and stay as they are.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut out = Vec::new();
    for line in text.split('\n') {
        if width == 0 || line.starts_with(' ') || line.width() <= width {
            out.push(line.to_owned());
            continue;
        }
        let mut current = String::new();
        let mut used = 0;
        for word in line.split(' ') {
            let size = word.width();
            if used > 0 && used + 1 + size > width {
                out.push(std::mem::take(&mut current).trim_end().to_owned());
                used = 0;
            } else if used > 0 {
                current.push(' ');
                used += 1;
            }
            current.push_str(word);
            used += size;
        }
        out.push(current);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(
            wrap("aa bb cc\n  as it is, long\nlongerthanthat x", 5),
            ["aa bb", "cc", "  as it is, long", "longerthanthat", "x"]
        );
        assert_eq!(wrap("", 5), [""]);
    }
}
