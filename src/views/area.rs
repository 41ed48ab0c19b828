//! The live area: lines at the bottom of a terminal that are redrawn while an operation runs.
//!
//! The cursor rests at the beginning of the area's first line. Therefore one sequence erases the area whatever it shows, even
//! after the terminal was resized and has wrapped the lines again. Text that is written afterwards replaces the area, so that it
//! scrolls above the next drawing.

use std::sync::atomic::{AtomicBool, Ordering};

use unicode_width::UnicodeWidthChar as _;

use crate::style::Style;
use crate::terminal::shown;

/// Control sequence that erases the area, and everything below it.
pub const ERASE: &str = "\r\x1b[J";

/// True while the terminal shows the area of this process. Read by [`close`], which may run on any thread.
static ON_SCREEN: AtomicBool = AtomicBool::new(false);
/// True once the process is ending, so that nothing is drawn any more.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub width: usize,
    pub height: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Text. Control characters in it have no effect.
    pub text: String,
    /// True if the line is about all of the work, not about a part.
    pub heading: bool,
}

impl Line {
    /// Returns a line about all of the work.
    #[must_use]
    pub fn heading(text: impl Into<String>) -> Line {
        Line {
            text: text.into(),
            heading: true,
        }
    }

    /// Returns a line about a part of the work.
    #[must_use]
    pub fn part(text: impl Into<String>) -> Line {
        Line {
            text: text.into(),
            heading: false,
        }
    }
}

/// Returns the bytes that draw these lines in place of what the area shows.
#[must_use]
pub fn drawing(lines: &[Line], size: Size, style: Style) -> String {
    // One line of the terminal stays free, so that the last permanent line is visible.
    let lines = &lines[..lines.len().min(size.height.saturating_sub(1).max(1))];
    // If the terminal has become narrower since its size was read, lines are cut at its edge (DECAWM off) instead of wrapped: the
    // cursor goes back up by the number of lines.
    let mut out = String::from("\r\x1b[?7l");
    for (i, line) in lines.iter().enumerate() {
        if i > 0 {
            out.push_str("\x1b[K\r\n");
        }
        // The last column stays free, because some terminals wrap a line that fills it.
        let text = cut(&line.text, size.width.saturating_sub(1));
        let painted = match line.heading {
            true => style.bold(text),
            false => style.dim(text),
        };
        out.push_str(&shown(&painted));
    }
    // The area may have had more lines before, which are erased.
    out.push_str("\x1b[J");
    if lines.len() > 1 {
        out.push_str(&format!("\x1b[{}A", lines.len() - 1));
    }
    out.push_str("\x1b[?7h\r");
    out
}

/// Cuts a text to one line of at most so many columns.
#[must_use]
pub fn cut(text: &str, width: usize) -> String {
    let text: String = shown(text)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    // Wide characters take two columns, and combining ones take none.
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

/// Records whether the terminal shows the area.
pub fn on_screen(is: bool) {
    ON_SCREEN.store(is, Ordering::SeqCst);
}

/// Returns true once [`close`] was called: the area must not be drawn any more.
#[must_use]
pub fn is_closed() -> bool {
    CLOSED.load(Ordering::SeqCst)
}

/// Erases the area for good; can be called from any thread. Used before a message that bypasses the [`Ui`](crate::ui::Ui), and
/// before the process ends while other threads run.
pub fn close() {
    CLOSED.store(true, Ordering::SeqCst);
    if ON_SCREEN.swap(false, Ordering::SeqCst) {
        // The sequence is written directly, because another thread may hold the lock of the stream.
        system::console::write_at_once(ERASE.as_bytes());
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
        // Each character takes two columns; half of one cannot be drawn.
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
