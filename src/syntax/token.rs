//! Tokens: the pieces a text is cut into, blanks and comments included.
//!
//! Nothing is lost: the tokens of a text lie end to end, each byte belongs to exactly one of them, and the list ends with
//! [`TokenKind::Eof`], which is empty. The parser steps over trivia; the formatter needs it.

use std::sync::Arc;

use crate::{Pos, Range};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// The byte order mark at the beginning of a file.
    Bom,
    /// Blanks and tabs.
    Blank,
    /// A line break.
    Newline,
    /// `# …` or `// …`, together with the line break that ends it, if there is one.
    LineComment,
    /// `/* … */`.
    BlockComment,
    /// A name.
    Ident,
    /// A number. The text may hold more dots than a number can have.
    Number,
    /// The quote that opens a string.
    OpenQuote,
    /// The quote that closes a string.
    CloseQuote,
    /// Text between quotes, escapes unresolved.
    QuotedText,
    /// A line break between quotes, which is an error, where the string seems to go on after it.
    QuotedNewline,
    /// `<<MARKER` or `<<-MARKER` and the line break.
    OpenHeredoc,
    /// The line that closes a heredoc, without its line break.
    CloseHeredoc,
    /// Text of a heredoc or of a template without quotes: a line, or the part of it beside a sequence.
    Text,
    /// `${` or `${~`.
    OpenInterpolation,
    /// `%{` or `%{~`.
    OpenDirective,
    /// `}` or `~}` where it ends an interpolation or a directive.
    CloseSequence,
    /// `{`
    OpenBrace,
    /// `}`
    CloseBrace,
    /// `[`
    OpenBracket,
    /// `]`
    CloseBracket,
    /// `(`
    OpenParen,
    /// `)`
    CloseParen,
    /// `.`
    Dot,
    /// `...`
    Ellipsis,
    /// `,`
    Comma,
    /// `:`
    Colon,
    /// `::`
    DoubleColon,
    /// `?`
    Question,
    /// `=>`
    FatArrow,
    /// `=`
    Assign,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `%`
    Percent,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `!`
    Not,
    /// A character, or a pair, that means nothing here.
    Invalid,
    /// The end.
    Eof,
}

impl TokenKind {
    /// Whether this opens something that another token must close.
    #[must_use]
    pub fn is_opener(self) -> bool {
        use TokenKind::{OpenBrace, OpenBracket, OpenDirective, OpenHeredoc, OpenInterpolation, OpenParen, OpenQuote};
        matches!(
            self,
            OpenBrace | OpenBracket | OpenParen | OpenQuote | OpenHeredoc | OpenInterpolation | OpenDirective
        )
    }

    /// Whether this closes something.
    #[must_use]
    pub fn is_closer(self) -> bool {
        use TokenKind::{CloseBrace, CloseBracket, CloseHeredoc, CloseParen, CloseQuote, CloseSequence};
        matches!(
            self,
            CloseBrace | CloseBracket | CloseParen | CloseQuote | CloseHeredoc | CloseSequence
        )
    }

    /// What closes this.
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

/// A token. It ends where the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it begins.
    pub start: Pos,
}

/// The tokens of a text.
#[derive(Clone, Debug)]
pub struct Tokens<'t> {
    /// The name of the file.
    pub file: Arc<str>,
    /// The whole text.
    pub text: &'t str,
    /// The place of the text's first byte, which is not the beginning of the file if the text is a part of it.
    pub base: Pos,
    /// The tokens, of which the last is [`TokenKind::Eof`].
    pub list: Vec<Token>,
}

impl<'t> Tokens<'t> {
    /// The kind of a token; past the end it is the last one's.
    #[must_use]
    pub fn kind(&self, index: usize) -> TokenKind {
        self.list.get(index).map_or(TokenKind::Eof, |t| t.kind)
    }

    /// Where a token begins.
    #[must_use]
    pub fn start(&self, index: usize) -> Pos {
        self.list.get(index).or(self.list.last()).map_or(self.base, |t| t.start)
    }

    /// Where a token ends.
    #[must_use]
    pub fn end(&self, index: usize) -> Pos {
        self.start(index + 1)
    }

    /// The text of a token.
    #[must_use]
    pub fn text(&self, index: usize) -> &'t str {
        let base = self.base.byte;
        let from = (self.start(index).byte - base) as usize;
        let to = (self.end(index).byte - base) as usize;
        self.text.get(from..to).unwrap_or_default()
    }

    /// The range of a token.
    #[must_use]
    pub fn range(&self, index: usize) -> Range {
        Range {
            file: self.file.clone(),
            start: self.start(index),
            end: self.end(index),
        }
    }

    /// Whether this token ends its line: a line break, or a comment that has swallowed one.
    #[must_use]
    pub fn ends_line(&self, index: usize) -> bool {
        match self.kind(index) {
            TokenKind::Newline => true,
            TokenKind::LineComment => self.text(index).ends_with('\n'),
            _ => false,
        }
    }
}
