//! The live area: lines at the bottom of a terminal that are replaced as long as something runs.
//!
//! The cursor rests at the beginning of the area's first line. So one and the same sequence erases the area whatever it
//! shows, even after the terminal was resized and has broken its lines anew; and what is written afterwards is where the
//! area was, so that it scrolls above the next drawing.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use unicode_width::UnicodeWidthChar as _;

use crate::style::Style;
use crate::terminal::shown;

/// Takes the area away, and everything below it.
pub const ERASE: &str = "\r\x1b[J";

/// Whether the terminal shows the area of this process: for an end that comes from elsewhere.
static ON_SCREEN: AtomicBool = AtomicBool::new(false);
/// Whether this process ends, so that nothing is drawn any more.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// How many columns and rows a terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

/// A line of the area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it says. Control characters in it have no effect.
    pub text: String,
    /// Whether it is one of those that tell about all of the work.
    pub heading: bool,
}

impl Line {
    /// A line about all of the work.
    #[must_use]
    pub fn heading(text: impl Into<String>) -> Line {
        Line {
            text: text.into(),
            heading: true,
        }
    }

    /// A line about a part of it.
    #[must_use]
    pub fn part(text: impl Into<String>) -> Line {
        Line {
            text: text.into(),
            heading: false,
        }
    }
}

/// The bytes that draw these lines in place of what the area shows.
#[must_use]
pub fn drawing(lines: &[Line], size: Size, style: Style) -> String {
    // A line of the terminal stays free, so that the last permanent line is seen.
    let lines = &lines[..lines.len().min(size.height.saturating_sub(1).max(1))];
    // Where the terminal has become narrower since its size was asked for, lines end at its edge (DECAWM) instead of being broken: the
    // way back up is counted in lines.
    let mut out = String::from("\r\x1b[?7l");
    for (i, line) in lines.iter().enumerate() {
        if i > 0 {
            out.push_str("\x1b[K\r\n");
        }
        // The last column stays free, so that no terminal breaks the line.
        let text = cut(&line.text, size.width.saturating_sub(1));
        let painted = match line.heading {
            true => style.bold(text),
            false => style.dim(text),
        };
        out.push_str(&shown(&painted));
    }
    out.push_str("\x1b[J");
    if lines.len() > 1 {
        out.push_str(&format!("\x1b[{}A", lines.len() - 1));
    }
    out.push_str("\x1b[?7h\r");
    out
}

/// The text on one line of at most so many columns.
#[must_use]
pub fn cut(text: &str, width: usize) -> String {
    let text: String = shown(text)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let (mut columns, mut fits) = (0, 0);
    for (at, c) in text.char_indices() {
        columns += c.width().unwrap_or(0);
        // A line that was cut ends with a mark of one column.
        if columns < width {
            fits = at + c.len_utf8();
        }
        if columns > width {
            return match width {
                0 => String::new(),
                _ => format!("{}…", &text[..fits]),
            };
        }
    }
    text
}

/// The terminal shows the area from now on, or does not.
pub fn on_screen(is: bool) {
    ON_SCREEN.store(is, Ordering::SeqCst);
}

/// Whether nothing is to be drawn any more.
#[must_use]
pub fn is_closed() -> bool {
    CLOSED.load(Ordering::SeqCst)
}

/// Erases the area for good, from any thread: before a message that does not go the usual way, and before the process ends
/// while other threads run. Takes no lock.
pub fn close() {
    CLOSED.store(true, Ordering::SeqCst);
    if ON_SCREEN.swap(false, Ordering::SeqCst) {
        // Nothing is left to do where the terminal is gone.
        let _ = rustix::io::write(io::stdout(), ERASE.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { width: 20, height: 10 };

    #[test]
    fn the_cursor_is_at_the_beginning_of_the_first_line_after_a_drawing() {
        let lines = [Line::heading("one"), Line::part("two"), Line::part("three")];
        assert_eq!(
            drawing(&lines, SIZE, Style::PLAIN),
            "\r\x1b[?7lone\x1b[K\r\ntwo\x1b[K\r\nthree\x1b[J\x1b[2A\x1b[?7h\r"
        );
        assert_eq!(
            drawing(&lines[..1], SIZE, Style::PLAIN),
            "\r\x1b[?7lone\x1b[J\x1b[?7h\r"
        );
        assert_eq!(
            drawing(&lines[..2], SIZE, Style { on: true }),
            "\r\x1b[?7l\x1b[1mone\x1b[0m\x1b[K\r\n\x1b[90mtwo\x1b[0m\x1b[J\x1b[1A\x1b[?7h\r"
        );
    }

    #[test]
    fn no_more_lines_than_the_terminal_has_rows() {
        let lines: Vec<Line> = (0..20).map(|i| Line::part(i.to_string())).collect();
        let rows = |height| {
            drawing(&lines, Size { height, ..SIZE }, Style::PLAIN)
                .matches('\n')
                .count()
                + 1
        };
        assert_eq!([0, 1, 2, 5].map(rows), [1, 1, 1, 4]);
    }

    #[test]
    fn a_line_is_cut_by_columns_and_has_no_control_characters() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
        // Each of these takes two columns; half of one is not shown.
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語x", 6), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abc", 1), "…");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(cut("a\nb\tc\x1b[2J", 30), "a b c\\x1b[2J");
        let drawn = drawing(&[Line::part("a\x1b[2J\r\nb")], SIZE, Style { on: true });
        assert_eq!(drawn, "\r\x1b[?7l\x1b[90ma\\x1b[2J  b\x1b[0m\x1b[J\x1b[?7h\r");
    }
}
