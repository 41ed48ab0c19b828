//! Colours and other attributes of text.

use crate::terminal::SGR;

/// Attributes of text; disabled if `on` is false.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    pub on: bool,
}

impl Style {
    pub const PLAIN: Style = Style { on: false };

    fn paint(self, code: &str, text: impl std::fmt::Display) -> String {
        if self.on {
            format!("{SGR}{code}m{text}{SGR}0m")
        } else {
            text.to_string()
        }
    }

    pub fn bold(self, text: impl std::fmt::Display) -> String {
        self.paint("1", text)
    }

    pub fn underline(self, text: impl std::fmt::Display) -> String {
        self.paint("4", text)
    }

    pub fn red(self, text: impl std::fmt::Display) -> String {
        self.paint("31", text)
    }

    pub fn green(self, text: impl std::fmt::Display) -> String {
        self.paint("32", text)
    }

    pub fn yellow(self, text: impl std::fmt::Display) -> String {
        self.paint("33", text)
    }

    pub fn light(self, text: impl std::fmt::Display) -> String {
        self.paint("37", text)
    }

    pub fn dim(self, text: impl std::fmt::Display) -> String {
        self.paint("90", text)
    }

    pub fn good(self, text: impl std::fmt::Display) -> String {
        self.paint("1;32", text)
    }

    pub fn bad(self, text: impl std::fmt::Display) -> String {
        self.paint("1;31", text)
    }
}
