//! Text that is being written, with or without colours.

use crate::terminal::SGR;

pub(super) struct Text {
    pub(super) out: String,
    /// True if colours are written.
    pub(super) colour: bool,
}

/// Colours and attributes.
#[derive(Clone, Copy)]
pub(super) enum Ink {
    Reset,
    Bold,
    Red,
    Green,
    Yellow,
    Cyan,
    Grey,
}

impl Text {
    pub(super) fn new(colour: bool) -> Text {
        Text {
            out: String::new(),
            colour,
        }
    }

    pub(super) fn push(&mut self, text: &str) -> &mut Text {
        self.out.push_str(text);
        self
    }

    /// Switches to this ink.
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

    /// Appends text in this ink, then resets.
    pub(super) fn inked(&mut self, ink: Ink, text: &str) -> &mut Text {
        self.ink(ink).push(text).ink(Ink::Reset)
    }

    /// Appends text in this ink and resets twice, as Terraform does for the parts of a coloured change.
    pub(super) fn inner(&mut self, ink: Ink, text: &str) -> &mut Text {
        self.inked(ink, text).ink(Ink::Reset)
    }

    pub(super) fn blanks(&mut self, count: usize) -> &mut Text {
        self.out.extend(std::iter::repeat_n(' ', count));
        self
    }

    /// Appends the indentation of a level.
    pub(super) fn indent(&mut self, level: usize) -> &mut Text {
        self.blanks(level * 4)
    }
}
