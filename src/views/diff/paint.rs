//! Text with or without colours.

use crate::terminal::SGR;

/// A text in the making.
pub(super) struct Text {
    /// What is written so far.
    pub(super) out: String,
    /// Whether colours are wanted.
    pub(super) colour: bool,
}

/// The colours and attributes in use.
#[derive(Clone, Copy)]
pub(super) enum Ink {
    /// Back to plain text.
    Reset,
    Bold,
    Red,
    Green,
    Yellow,
    Cyan,
    Grey,
}

impl Text {
    /// Nothing yet.
    pub(super) fn new(colour: bool) -> Text {
        Text {
            out: String::new(),
            colour,
        }
    }

    /// More text.
    pub(super) fn push(&mut self, text: &str) -> &mut Text {
        self.out.push_str(text);
        self
    }

    /// From here on in this ink.
    pub(super) fn ink(&mut self, ink: Ink) -> &mut Text {
        if self.colour {
            self.out.push(SGR);
            self.out.push_str(match ink {
                Ink::Reset => "0m",
                Ink::Bold => "1m",
                Ink::Red => "31m",
                Ink::Green => "32m",
                Ink::Yellow => "33m",
                Ink::Cyan => "36m",
                Ink::Grey => "90m",
            });
        }
        self
    }

    /// This much in this ink, then plain.
    pub(super) fn inked(&mut self, ink: Ink, text: &str) -> &mut Text {
        self.ink(ink).push(text).ink(Ink::Reset)
    }

    /// The same, and plain once more: the parts of a change are coloured one inside the other.
    pub(super) fn inner(&mut self, ink: Ink, text: &str) -> &mut Text {
        self.inked(ink, text).ink(Ink::Reset)
    }

    /// Blanks.
    pub(super) fn blanks(&mut self, count: usize) -> &mut Text {
        self.out.extend(std::iter::repeat_n(' ', count));
        self
    }

    /// The beginning of a line at this level.
    pub(super) fn indent(&mut self, level: usize) -> &mut Text {
        self.blanks(level * 4)
    }
}
