//! Tokens of registries and other hosts.

use std::fmt;

/// A token, which `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    #[must_use]
    pub fn new(text: impl Into<String>) -> Token {
        Token(text.into())
    }

    /// Creates a token from text without surrounding whitespace, such as the content of a file; `None` if it has
    /// characters that cannot be sent.
    #[must_use]
    pub fn sendable(text: &str) -> Option<Token> {
        let text = text.trim();
        let sendable = text.bytes().all(|byte| byte >= b' ' && byte != 0x7f);
        sendable.then(|| Token::new(text))
    }

    /// Returns the text, to be sent to the token's host and nowhere else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}
