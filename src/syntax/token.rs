//! Tokens: the pieces of a text, blanks and comments included.
//!
//! Nothing is lost: the tokens of a text lie end to end, each byte belongs to exactly one of them, and the list ends with
//! [`TokenKind::Eof`], which is empty. The parser steps over trivia; the formatter needs it.

use std::sync::Arc;

use crate::{Pos, Range};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// Byte order mark at the beginning of a file.
    Bom,
    /// Run of blanks and tabs.
    Blank,
    Newline,
    /// `# …` or `// …`, together with the line break that ends it, if there is one.
    LineComment,
    BlockComment,
    Ident,
    /// A number. Its text may have more dots than a valid number.
    Number,
    /// Quote that opens a string.
    OpenQuote,
    /// Quote that closes a string.
    CloseQuote,
    /// Text between quotes, with its escapes.
    QuotedText,
    /// Line break between quotes, an error, if the string seems to continue after it.
    QuotedNewline,
    /// `<<MARKER` or `<<-MARKER` and the line break.
    OpenHeredoc,
    /// The line that closes a heredoc, without its line break.
    CloseHeredoc,
    /// Text of a heredoc or of a template without quotes: a line, or the part of a line before or after a sequence.
    Text,
    /// `${`, or `${~` with a strip marker.
    OpenInterpolation,
    /// `%{`, or `%{~` with a strip marker.
    OpenDirective,
    /// `}` or `~}` where it ends an interpolation or a directive.
    CloseSequence,
    OpenBrace,
    CloseBrace,
    OpenBracket,
    CloseBracket,
    OpenParen,
    CloseParen,
    Dot,
    Ellipsis,
    Comma,
    Colon,
    DoubleColon,
    Question,
    FatArrow,
    Assign,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
    Not,
    /// A character, or a pair, without meaning in the language.
    Invalid,
    Eof,
}

impl TokenKind {
    /// Returns true if the token opens a bracket, a string, a heredoc or a template sequence, which another token must
    /// close.
    #[must_use]
    pub fn is_opener(self) -> bool {
        use TokenKind::{OpenBrace, OpenBracket, OpenDirective, OpenHeredoc, OpenInterpolation, OpenParen, OpenQuote};
        matches!(
            self,
            OpenBrace | OpenBracket | OpenParen | OpenQuote | OpenHeredoc | OpenInterpolation | OpenDirective
        )
    }

    /// Returns true if the token is a closing one, such as a bracket or a quote.
    #[must_use]
    pub fn is_closer(self) -> bool {
        use TokenKind::{CloseBrace, CloseBracket, CloseHeredoc, CloseParen, CloseQuote, CloseSequence};
        matches!(
            self,
            CloseBrace | CloseBracket | CloseParen | CloseQuote | CloseHeredoc | CloseSequence
        )
    }

    /// Returns the kind of the token that closes this one; `None` if this is not an opening token.
    #[must_use]
    pub fn closer(self) -> Option<TokenKind> {
        match self {
            TokenKind::OpenBrace => Some(TokenKind::CloseBrace),
            TokenKind::OpenBracket => Some(TokenKind::CloseBracket),
            TokenKind::OpenParen => Some(TokenKind::CloseParen),
            TokenKind::OpenQuote => Some(TokenKind::CloseQuote),
            TokenKind::OpenHeredoc => Some(TokenKind::CloseHeredoc),
            TokenKind::OpenInterpolation | TokenKind::OpenDirective => Some(TokenKind::CloseSequence),
            _ => None,
        }
    }
}

/// A token. To keep it small, it stores only its start: it ends where the next token begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    pub start: Pos,
}

/// All tokens of a text.
#[derive(Clone, Debug)]
pub struct Tokens<'t> {
    pub file: Arc<str>,
    pub text: &'t str,
    /// Position of the text's first byte, which is not the beginning of the file if the text is a part of it.
    pub base: Pos,
    /// Tokens, the last of which is [`TokenKind::Eof`].
    pub list: Vec<Token>,
}

impl<'t> Tokens<'t> {
    /// Returns the kind of a token; [`TokenKind::Eof`] past the end.
    #[must_use]
    pub fn kind(&self, index: usize) -> TokenKind {
        self.list.get(index).map_or(TokenKind::Eof, |t| t.kind)
    }

    #[must_use]
    pub fn start(&self, index: usize) -> Pos {
        self.list.get(index).or(self.list.last()).map_or(self.base, |t| t.start)
    }

    #[must_use]
    pub fn end(&self, index: usize) -> Pos {
        self.start(index + 1)
    }

    #[must_use]
    pub fn text(&self, index: usize) -> &'t str {
        let base = self.base.byte;
        let from = (self.start(index).byte - base) as usize;
        let to = (self.end(index).byte - base) as usize;
        self.text.get(from..to).unwrap_or_default()
    }

    #[must_use]
    pub fn range(&self, index: usize) -> Range {
        Range {
            file: self.file.clone(),
            start: self.start(index),
            end: self.end(index),
        }
    }

    /// Returns true if this token ends its line: a line break, or a comment that includes one.
    #[must_use]
    pub fn ends_line(&self, index: usize) -> bool {
        match self.kind(index) {
            TokenKind::Newline => true,
            TokenKind::LineComment => self.text(index).ends_with('\n'),
            _ => false,
        }
    }
}
