//! The lexer: splits text into tokens.
//!
//! The lexer keeps a stack of modes, because characters have other meanings in a string than outside: code, text
//! between quotes, the lines of a heredoc, a template without quotes, and the code of a sequence inside any of the last
//! three. It reports no errors: only the parser knows which token was expected.
//!
//! Some heuristics limit the effect of a missing quote or brace on the rest of the file. A line break in a quoted
//! string ends it, unless the next quote looks like a closing one. A quote directly after an operand, in a sequence of
//! a quoted string, closes that string: no expression can continue with a quote there. A sequence ends before a line
//! with which no expression can continue. None of these cases occurs in a valid text.

use std::sync::Arc;

use unicode_segmentation::UnicodeSegmentation;

use crate::Pos;
use crate::token::{Token, TokenKind, Tokens};

/// Splits the text of a configuration file, or of an expression, into tokens.
#[must_use]
pub fn lex<'t>(file: &Arc<str>, text: &'t str, base: Pos) -> Tokens<'t> {
    run(file, text, base, Mode::Code)
}

/// Splits a text that is a template as a whole, without quotes, into tokens.
#[must_use]
pub fn lex_template<'t>(file: &Arc<str>, text: &'t str, base: Pos) -> Tokens<'t> {
    run(file, text, base, Mode::Bare)
}

fn run<'t>(file: &Arc<str>, text: &'t str, base: Pos, mode: Mode) -> Tokens<'t> {
    let mut lexer = Lexer {
        text,
        bytes: text.as_bytes(),
        at: 0,
        pos: base,
        // Tokens, including blanks, are about four bytes long. This estimate avoids most reallocations.
        tokens: Vec::with_capacity(text.len() / 4 + 2),
        modes: vec![mode],
        previous: TokenKind::Newline,
        previous_is_keyword: false,
    };
    if mode == Mode::Code && base.byte == 0 && text.starts_with('\u{feff}') {
        // A byte order mark has three bytes and no column.
        lexer.tokens.push(Token {
            kind: TokenKind::Bom,
            start: base,
        });
        lexer.at = 3;
        lexer.pos.byte += 3;
    }
    lexer.all();
    let start = lexer.pos;
    lexer.tokens.push(Token {
        kind: TokenKind::Eof,
        start,
    });
    Tokens {
        file: file.clone(),
        text,
        base,
        list: lexer.tokens,
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// Arguments, blocks, expressions.
    Code,
    /// The code in `${…}` or `%{…}`, with the number of braces open in it.
    Sequence {
        braces: u32,
    },
    Quoted,
    /// Inside of a heredoc, with the byte range of its marker.
    Heredoc {
        marker: (usize, usize),
    },
    Bare,
}

struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    pos: Pos,
    tokens: Vec<Token>,
    modes: Vec<Mode>,
    /// Kind of the last token that is not a blank or a block comment.
    previous: TokenKind,
    /// True if that token was a name after which an operand may follow.
    previous_is_keyword: bool,
}

impl<'t> Lexer<'t> {
    fn all(&mut self) {
        while self.at < self.bytes.len() {
            match self.modes.last().copied() {
                Some(Mode::Quoted) => self.quoted(),
                Some(Mode::Heredoc { marker }) => self.heredoc(marker),
                Some(Mode::Bare) => self.bare(),
                Some(Mode::Code | Mode::Sequence { .. }) | None => self.code(),
            }
        }
    }

    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// Ends a token that is ASCII without line breaks.
    fn simple(&mut self, kind: TokenKind, end: usize) {
        let len = (end - self.at) as u32;
        self.tokens.push(Token { kind, start: self.pos });
        self.pos.byte += len;
        self.pos.column += len;
        self.at = end;
        if !matches!(kind, TokenKind::Blank) {
            self.previous = kind;
        }
    }

    /// Ends a token with exactly one line break, at its end.
    fn line(&mut self, kind: TokenKind, end: usize) {
        self.tokens.push(Token { kind, start: self.pos });
        self.pos.byte += (end - self.at) as u32;
        self.pos.line += 1;
        self.pos.column = 1;
        self.at = end;
        self.previous = kind;
    }

    /// Ends a token of any content.
    fn general(&mut self, kind: TokenKind, end: usize) {
        self.tokens.push(Token { kind, start: self.pos });
        self.pos = advance(self.pos, &self.text[self.at..end]);
        self.at = end;
        if kind != TokenKind::BlockComment {
            self.previous = kind;
        }
    }

    // ---- code -------------------------------------------------------------------------------------------------

    fn code(&mut self) {
        use TokenKind as T;
        let at = self.at;
        let next = self.byte(at + 1);
        match self.bytes[at] {
            b' ' | b'\t' => {
                let end = self.bytes[at..].iter().position(|b| !matches!(b, b' ' | b'\t'));
                self.simple(T::Blank, end.map_or(self.bytes.len(), |n| at + n));
            }
            b'\n' => self.code_newline(T::Newline, at + 1),
            b'\r' if next == b'\n' => self.code_newline(T::Newline, at + 2),
            b'#' => self.line_comment(),
            b'/' if next == b'/' => self.line_comment(),
            b'/' if next == b'*' => match self.text[at + 2..].find("*/") {
                Some(n) => self.general(T::BlockComment, at + 2 + n + 2),
                // HCL's grammar has no unclosed comment: the slash becomes an operator, at which the parser reports
                // the error.
                None => self.simple(T::Slash, at + 1),
            },
            b'/' => self.simple(T::Slash, at + 1),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.name(),
            b'0'..=b'9' => self.number(),
            b'"' => self.quote(),
            b'{' => self.open_brace(),
            b'}' => self.close_brace(),
            // The tilde is a strip marker only at the end of a sequence.
            b'~' if next == b'}' && self.modes.last() == Some(&Mode::Sequence { braces: 0 }) => {
                self.close_sequence(at + 2);
            }
            b'[' => self.simple(T::OpenBracket, at + 1),
            b']' => self.simple(T::CloseBracket, at + 1),
            b'(' => self.simple(T::OpenParen, at + 1),
            b')' => self.simple(T::CloseParen, at + 1),
            b'.' if next == b'.' && self.byte(at + 2) == b'.' => self.simple(T::Ellipsis, at + 3),
            b'.' => self.simple(T::Dot, at + 1),
            b',' => self.simple(T::Comma, at + 1),
            b':' if next == b':' => self.simple(T::DoubleColon, at + 2),
            b':' => self.simple(T::Colon, at + 1),
            b'?' => self.simple(T::Question, at + 1),
            b'=' if next == b'=' => self.simple(T::Equal, at + 2),
            b'=' if next == b'>' => self.simple(T::FatArrow, at + 2),
            b'=' => self.simple(T::Assign, at + 1),
            b'+' => self.simple(T::Plus, at + 1),
            b'-' => self.simple(T::Minus, at + 1),
            // The operator is lexed as one token, so that the parser can name the function that replaces this
            // operator.
            b'*' if next == b'*' => self.simple(T::Invalid, at + 2),
            b'*' => self.simple(T::Star, at + 1),
            b'%' => self.simple(T::Percent, at + 1),
            b'!' if next == b'=' => self.simple(T::NotEqual, at + 2),
            b'!' => self.simple(T::Not, at + 1),
            b'<' if next == b'=' => self.simple(T::LessOrEqual, at + 2),
            b'<' if next == b'<' => match self.heredoc_opening() {
                Some((marker, end)) => {
                    self.modes.push(Mode::Heredoc { marker });
                    self.line(T::OpenHeredoc, end);
                }
                None => self.simple(T::Less, at + 1),
            },
            b'<' => self.simple(T::Less, at + 1),
            b'>' if next == b'=' => self.simple(T::GreaterOrEqual, at + 2),
            b'>' => self.simple(T::Greater, at + 1),
            b'&' if next == b'&' => self.simple(T::And, at + 2),
            b'|' if next == b'|' => self.simple(T::Or, at + 2),
            byte if byte.is_ascii() => self.simple(T::Invalid, at + 1),
            _ => {
                let c = self.text[at..].chars().next().unwrap_or_default();
                if unicode_ident::is_xid_start(c) {
                    self.name();
                } else {
                    // The whole grapheme cluster is taken, so that the error points at one visible character.
                    let len = self.text[at..].graphemes(true).next().map_or(c.len_utf8(), str::len);
                    self.general(T::Invalid, at + len);
                }
            }
        }
    }

    fn open_brace(&mut self) {
        if let Some(Mode::Sequence { braces }) = self.modes.last_mut() {
            *braces += 1;
        }
        self.simple(TokenKind::OpenBrace, self.at + 1);
    }

    fn close_brace(&mut self) {
        match self.modes.last_mut() {
            Some(Mode::Sequence { braces: 0 }) => self.close_sequence(self.at + 1),
            Some(Mode::Sequence { braces }) => {
                *braces -= 1;
                self.simple(TokenKind::CloseBrace, self.at + 1);
            }
            _ => self.simple(TokenKind::CloseBrace, self.at + 1),
        }
    }

    /// Ends a line of code. In a sequence, the next line may show that the sequence was never closed.
    fn code_newline(&mut self, kind: TokenKind, end: usize) {
        self.line(kind, end);
        if let [.., outer, Mode::Sequence { braces }] = self.modes.as_slice() {
            let lost = match outer {
                Mode::Quoted => *braces == 0 && self.begins_item(end),
                Mode::Heredoc { marker } => self.is_marker_line(end, *marker).is_some(),
                _ => false,
            };
            if lost {
                self.modes.pop();
                self.leave_strings();
            }
        }
    }

    /// Leaves the quoted strings around this position, as if they had been closed.
    fn leave_strings(&mut self) {
        while self.modes.contains(&Mode::Quoted) {
            self.modes.pop();
        }
        if self.modes.is_empty() {
            self.modes.push(Mode::Code);
        }
    }

    /// Returns true if `name =`, `name {` or `name "` begins here. No line within an expression begins like this.
    fn begins_item(&self, at: usize) -> bool {
        let blanks = |at: usize| {
            self.bytes[at..]
                .iter()
                .take_while(|b| matches!(b, b' ' | b'\t'))
                .count()
        };
        let start = at + blanks(at);
        let Some(end) = name_end(self.text, start) else {
            return false;
        };
        let next = end + blanks(end);
        match self.byte(next) {
            b'=' => !matches!(self.byte(next + 1), b'=' | b'>'),
            b'{' | b'"' => !is_keyword(&self.text[start..end]),
            _ => false,
        }
    }

    /// Returns the end of the line that begins here, if it contains a heredoc's marker and nothing else.
    fn is_marker_line(&self, at: usize, marker: (usize, usize)) -> Option<usize> {
        let len = self.bytes[at..].iter().position(|b| *b == b'\n')?;
        let line = &self.text[at..at + len];
        if line.trim() != &self.text[marker.0..marker.1] {
            return None;
        }
        Some(if line.ends_with('\r') { at + len - 1 } else { at + len })
    }

    fn line_comment(&mut self) {
        match self.bytes[self.at..].iter().position(|b| *b == b'\n') {
            Some(n) => self.code_newline(TokenKind::LineComment, self.at + n + 1),
            None => self.general(TokenKind::LineComment, self.bytes.len()),
        }
    }

    fn name(&mut self) {
        let end = name_end(self.text, self.at).unwrap_or(self.at + 1);
        let name = &self.text[self.at..end];
        self.previous_is_keyword = is_keyword(name);
        if name.is_ascii() {
            self.simple(TokenKind::Ident, end);
        } else {
            self.general(TokenKind::Ident, end);
        }
    }

    /// Reads digits, dots and exponents in any order, but no dot at the end. So `1.2.3` is one (invalid) number,
    /// `a.0.1` does not contain two legacy indexes, and `1...` is a number and an ellipsis.
    fn number(&mut self) {
        let mut at = self.at + 1;
        let mut end = at;
        loop {
            match self.byte(at) {
                b'0'..=b'9' => at += 1,
                b'e' | b'E' if self.byte(at + 1).is_ascii_digit() => at += 2,
                b'e' | b'E' if matches!(self.byte(at + 1), b'+' | b'-') && self.byte(at + 2).is_ascii_digit() => {
                    at += 3
                }
                b'.' => {
                    at += 1;
                    continue;
                }
                _ => break,
            }
            end = at;
        }
        self.simple(TokenKind::Number, end);
    }

    fn close_sequence(&mut self, end: usize) {
        self.modes.pop();
        self.simple(TokenKind::CloseSequence, end);
    }

    fn quote(&mut self) {
        // After an operand, a quote can only end the string around the sequence.
        let in_quoted = self.modes.len() >= 2 && self.modes[self.modes.len() - 2] == Mode::Quoted;
        if in_quoted && matches!(self.modes.last(), Some(Mode::Sequence { .. })) && self.after_operand() {
            self.modes.truncate(self.modes.len() - 2);
            self.simple(TokenKind::CloseQuote, self.at + 1);
        } else {
            self.modes.push(Mode::Quoted);
            self.simple(TokenKind::OpenQuote, self.at + 1);
        }
    }

    fn after_operand(&self) -> bool {
        use TokenKind::{CloseBrace, CloseBracket, CloseParen, CloseQuote, Ident, Number};
        match self.previous {
            Ident => !self.previous_is_keyword,
            Number | CloseBrace | CloseBracket | CloseParen | CloseQuote => true,
            _ => false,
        }
    }

    /// Reads `<<MARKER` and a line break. Returns the byte range of the marker and the end of the line break; `None`
    /// if no heredoc begins here.
    fn heredoc_opening(&self) -> Option<((usize, usize), usize)> {
        let start = self.at + if self.byte(self.at + 2) == b'-' { 3 } else { 2 };
        let end = name_end(self.text, start)?;
        let line_break = line_break(self.bytes, end)?;
        Some(((start, end), end + line_break))
    }

    // ---- text -------------------------------------------------------------------------------------------------

    /// Takes the opening of a sequence, if there is one here.
    fn sequence(&mut self) -> bool {
        let kind = match self.byte(self.at) {
            b'$' => TokenKind::OpenInterpolation,
            b'%' => TokenKind::OpenDirective,
            _ => return false,
        };
        if self.byte(self.at + 1) != b'{' {
            return false;
        }
        let len = if self.byte(self.at + 2) == b'~' { 3 } else { 2 };
        self.simple(kind, self.at + len);
        self.modes.push(Mode::Sequence { braces: 0 });
        true
    }

    /// Returns the end of a run of `$` or `%`, and true if it opens a sequence.
    fn introducers(&self, at: usize) -> (usize, bool) {
        let byte = self.bytes[at];
        let run = self.bytes[at..].iter().take_while(|b| **b == byte).count();
        match (run, self.byte(at + run)) {
            (1, b'{') => (at, true),
            // Two or more signs before a brace are an escape, and the brace is text.
            (_, b'{') => (at + run + 1, false),
            _ => (at + run, false),
        }
    }

    fn quoted(&mut self) {
        if self.sequence() {
            return;
        }
        match self.bytes[self.at] {
            b'"' => {
                self.modes.pop();
                return self.simple(TokenKind::CloseQuote, self.at + 1);
            }
            b'\n' | b'\r' => return self.newline_in_quotes(),
            _ => {}
        }
        let mut at = self.at;
        while at < self.bytes.len() {
            match self.bytes[at] {
                b'"' | b'\n' | b'\r' => break,
                // The character after a backslash cannot end the string; the parser checks if the escape is valid.
                b'\\' if !matches!(self.byte(at + 1), b'\n' | b'\r') => {
                    at += 1;
                    at += self.text[at..].chars().next().map_or(0, char::len_utf8);
                }
                b'$' | b'%' => match self.introducers(at) {
                    (end, true) => {
                        at = end;
                        break;
                    }
                    (end, false) => at = end,
                },
                _ => at += 1,
            }
        }
        self.general(TokenKind::QuotedText, at);
    }

    /// Decides at a line break between quotes if the string continues, or if its closing quote was forgotten.
    fn newline_in_quotes(&mut self) {
        let len = line_break(self.bytes, self.at).unwrap_or(1);
        let end = self.at + len;
        if self.next_quote_closes(end) {
            if len == 1 && self.bytes[self.at] == b'\r' {
                return self.simple(TokenKind::QuotedNewline, end);
            }
            return self.line(TokenKind::QuotedNewline, end);
        }
        self.leave_strings();
        // The line break is not consumed, because the mode outside of the string determines its meaning.
    }

    /// Returns true if the next quote looks like a closing one: nothing before it in its line could precede a string.
    /// Only the next 2000 bytes are searched.
    fn next_quote_closes(&self, from: usize) -> bool {
        let rest = &self.bytes[from..];
        // The search is limited, because each line break in a string repeats it, which would take quadratic time.
        let Some(quote) = rest.iter().take(2000).position(|b| *b == b'"') else {
            return false;
        };
        let line_start = rest[..quote].iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
        let lead = rest[line_start..quote].trim_ascii_end();
        match lead.last() {
            None => false,
            Some(b'=' | b'(' | b'[' | b'{' | b',' | b':' | b'?' | b'&' | b'|' | b'<' | b'>' | b'+' | b'!') => false,
            // A name, a blank and a quote begin a block, as in `type "label"`.
            Some(_) => {
                lead.len() == quote - line_start
                    || !lead
                        .trim_ascii_start()
                        .iter()
                        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
            }
        }
    }

    fn heredoc(&mut self, marker: (usize, usize)) {
        if self.sequence() {
            return;
        }
        let at = self.at;
        // After a sequence over several lines, the line of a heredoc may continue in the middle. The marker counts only
        // at column 1.
        let start_of_line = self.pos.column == 1;
        if start_of_line && let Some(end) = self.is_marker_line(at, marker) {
            self.modes.pop();
            return self.general(TokenKind::CloseHeredoc, end);
        }
        self.text_line();
    }

    fn bare(&mut self) {
        if !self.sequence() {
            self.text_line();
        }
    }

    /// Takes text up to a sequence or the end of the line.
    fn text_line(&mut self) {
        let heredoc = matches!(self.modes.last(), Some(Mode::Heredoc { .. }));
        let mut at = self.at;
        while at < self.bytes.len() {
            match self.bytes[at] {
                b'\n' => {
                    return self.line(TokenKind::Text, at + 1);
                }
                // A carriage return alone is not a line break; in a heredoc it is invalid.
                b'\r' if heredoc && self.byte(at + 1) != b'\n' => {
                    if at == self.at {
                        return self.simple(TokenKind::Invalid, at + 1);
                    }
                    break;
                }
                b'$' | b'%' => match self.introducers(at) {
                    (end, true) => {
                        at = end;
                        break;
                    }
                    (end, false) => at = end,
                },
                _ => at += 1,
            }
        }
        self.general(TokenKind::Text, at);
    }
}

/// Returns the length of the line break at a byte; `None` if there is none.
fn line_break(bytes: &[u8], at: usize) -> Option<usize> {
    match (bytes.get(at), bytes.get(at + 1)) {
        (Some(b'\n'), _) => Some(1),
        (Some(b'\r'), Some(b'\n')) => Some(2),
        _ => None,
    }
}

/// Returns the end of the name that begins at a byte; `None` if there is none.
fn name_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = start;
    match bytes.get(at)? {
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => at += 1,
        byte if byte.is_ascii() => return None,
        _ => {
            let c = text[at..].chars().next().filter(|c| unicode_ident::is_xid_start(*c))?;
            at += c.len_utf8();
        }
    }
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => at += 1,
            byte if byte.is_ascii() => break,
            _ => match text[at..].chars().next().filter(|c| unicode_ident::is_xid_continue(*c)) {
                Some(c) => at += c.len_utf8(),
                None => break,
            },
        }
    }
    Some(at)
}

/// Returns the position after a text that begins at `pos`.
#[must_use]
pub fn advance(mut pos: Pos, text: &str) -> Pos {
    pos.byte += text.len() as u32;
    // Almost all tokens are ASCII without line breaks, and need no search for grapheme clusters.
    if text.is_ascii() && !text.contains('\n') {
        pos.column += text.len() as u32;
        return pos;
    }
    for cluster in text.graphemes(true) {
        if cluster == "\n" || cluster == "\r\n" {
            pos.line += 1;
            pos.column = 1;
        } else {
            pos.column += 1;
        }
    }
    pos
}

/// Returns true for words that an operand may follow.
fn is_keyword(name: &str) -> bool {
    matches!(name, "if" | "in" | "for")
}

/// Returns true if a text is a single name.
#[must_use]
pub fn is_name(text: &str) -> bool {
    name_end(text, 0) == Some(text.len())
}
