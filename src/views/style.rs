//! Colours and other attributes of text.

use crate::terminal::SGR;

/// Colours and other attributes of text, or none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether there are any.
    pub on: bool,
}

impl Style {
    /// Plain text.
    pub const PLAIN: Style = Style { on: false };

    fn paint(self, code: &str, text: impl std::fmt::Display) -> String {
        if self.on {
            format!("{SGR}{code}m{text}{SGR}0m")
        } else {
            text.to_string()
        }
    }

    /// Bold.
    pub fn bold(self, text: impl std::fmt::Display) -> String {
        self.paint("1", text)
    }

    /// Underlined.
    pub fn underline(self, text: impl std::fmt::Display) -> String {
        self.paint("4", text)
    }

    /// Red.
    pub fn red(self, text: impl std::fmt::Display) -> String {
        self.paint("31", text)
    }

    /// Green.
    pub fn green(self, text: impl std::fmt::Display) -> String {
        self.paint("32", text)
    }

    /// Yellow.
    pub fn yellow(self, text: impl std::fmt::Display) -> String {
        self.paint("33", text)
    }

    /// Light grey.
    pub fn light(self, text: impl std::fmt::Display) -> String {
        self.paint("37", text)
    }

    /// Grey.
    pub fn dim(self, text: impl std::fmt::Display) -> String {
        self.paint("90", text)
    }

    /// Bold and green.
    pub fn good(self, text: impl std::fmt::Display) -> String {
        self.paint("1;32", text)
    }

    /// Bold and red.
    pub fn bad(self, text: impl std::fmt::Display) -> String {
        self.paint("1;31", text)
    }
}
