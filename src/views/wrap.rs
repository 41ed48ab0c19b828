//! Wrapping of text at the width of the terminal.

use unicode_width::UnicodeWidthStr as _;

/// Wraps a paragraph at this width, between words. Longer words get a line of their own. Lines that begin with a blank are not
/// wrapped.
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

/// Wraps text at this width, and joins the lines.
#[must_use]
pub fn wrapped(text: &str, width: usize) -> String {
    wrap(text, width).join("\n")
}

/// Wraps an explanation at this width, each line indented by two blanks. Lines that begin with a blank are not wrapped.
#[must_use]
pub fn indented(text: &str, width: usize) -> String {
    let lines = wrap(text, width.clamp(40, 80) - 2);
    let lines = lines.iter().map(|line| match line.is_empty() {
        true => String::new(),
        false => format!("  {line}"),
    });
    lines.collect::<Vec<_>>().join("\n")
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

    #[test]
    fn explanations_fit_every_width_and_are_indented() {
        let text = format!(
            "{}\n\nThe last line.",
            "some words of an explanation ".repeat(12).trim_end()
        );
        for width in [40, 80, 140] {
            let shown = indented(&text, width);
            let fits = |line: &str| line.is_empty() || (line.starts_with("  ") && line.len() <= width.min(80));
            assert!(shown.lines().all(fits), "{shown}");
            assert!(shown.ends_with("\n\n  The last line."), "{shown}");
        }
    }
}
