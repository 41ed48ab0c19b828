//! Error recovery.
//!
//! Text in brackets can be skipped as a whole, if it is known where the brackets close. At the first error, this is
//! computed once for the whole text. A closing bracket matches the nearest open one of its kind. Only a brace at the
//! beginning of a line prefers an opening brace whose line has the same indentation. Brackets that stay open were not
//! closed by the author; recovery ignores them.

use crate::token::{TokenKind, Tokens};

use super::Parser;

/// Index of the closing token of each opening token.
pub(super) struct Brackets {
    closers: Vec<u32>,
}

const OPEN: u32 = u32::MAX;

impl Brackets {
    fn new(tokens: &Tokens<'_>) -> Brackets {
        let mut closers = vec![OPEN; tokens.list.len()];
        // The stack has the brackets that are open so far: the token, kind of its closing token, and
        // indentation of its line.
        let mut stack: Vec<(usize, TokenKind, u32)> = Vec::new();
        let mut indent = 1;
        let mut line_begins = true;
        for (index, token) in tokens.list.iter().enumerate() {
            if matches!(token.kind, TokenKind::Newline | TokenKind::LineComment) {
                line_begins = true;
                continue;
            }
            if token.kind == TokenKind::Blank {
                continue;
            }
            let first = std::mem::replace(&mut line_begins, false);
            if first {
                indent = token.start.column;
            }
            if let Some(closer) = token.kind.closer() {
                stack.push((index, closer, indent));
            } else if token.kind.is_closer() {
                let fits = |entry: &(usize, TokenKind, u32)| entry.1 == token.kind;
                let nearest = stack.iter().rposition(fits);
                let chosen = if first && token.kind == TokenKind::CloseBrace {
                    match nearest {
                        // The nearest opening brace is further to the right, so it was probably not closed, and this
                        // brace belongs to an outer one.
                        Some(near) if stack[near].2 > token.start.column => stack
                            .iter()
                            .rposition(|entry| fits(entry) && entry.2 == token.start.column)
                            .or(nearest),
                        _ => nearest,
                    }
                } else {
                    nearest
                };
                // Brackets and parentheses do not match across braces or the ends of strings.
                let chosen = chosen.filter(|&at| {
                    matches!(
                        token.kind,
                        TokenKind::CloseBrace | TokenKind::CloseQuote | TokenKind::CloseHeredoc
                    ) || stack[at + 1..]
                        .iter()
                        .all(|(_, closer, _)| *closer != TokenKind::CloseBrace)
                });
                if let Some(at) = chosen {
                    closers[stack[at].0] = index as u32;
                    stack.truncate(at);
                }
            }
        }
        Brackets { closers }
    }

    fn closer(&self, opener: usize) -> Option<usize> {
        self.closers.get(opener).filter(|c| **c != OPEN).map(|c| *c as usize)
    }
}

/// Position after an error was skipped.
pub(super) enum Resume {
    /// At the next item, or at the end of the list.
    Item,
    /// Unknown, because the list has no known end.
    Lost,
}

impl Parser<'_> {
    /// Returns the token that closes this one, if that is clear.
    fn closer_of(&mut self, opener: usize) -> Option<usize> {
        let tokens = self.tokens;
        self.brackets
            .get_or_insert_with(|| Brackets::new(tokens))
            .closer(opener)
    }

    /// Returns the last opening bracket at or after `from` that nothing closes: the likely place of a forgotten closing
    /// bracket.
    pub(super) fn last_unclosed(&mut self, from: usize) -> Option<usize> {
        (from..self.tokens.list.len())
            .rev()
            .find(|i| self.tokens.kind(*i).is_opener() && self.closer_of(*i).is_none())
    }

    /// Skips to the end of a token's line, over the content of brackets.
    pub(super) fn skip_line(&mut self, token: usize) {
        let mut index = token;
        loop {
            match self.tokens.kind(index) {
                TokenKind::Eof | TokenKind::CloseBrace => break,
                TokenKind::Newline | TokenKind::LineComment if self.tokens.ends_line(index) => break,
                _ => index = self.step(index),
            }
        }
        self.at = index;
    }

    /// Returns the token after this one, or after the bracket that it opens.
    fn step(&mut self, index: usize) -> usize {
        if self.tokens.kind(index).is_opener() {
            self.closer_of(index).map_or(index + 1, |closer| closer + 1)
        } else {
            index + 1
        }
    }

    /// Skips to the token after the bracket that closes `opener`, if it is known.
    pub(super) fn skip_to_closer(&mut self, opener: usize) -> bool {
        match self.closer_of(opener) {
            Some(closer) => {
                self.last = closer;
                self.at = closer + 1;
                true
            }
            None => false,
        }
    }

    /// Continues after an error in an item of an object, tuple or call; `item` is the item's first token. Skips the
    /// separator that ends the item and, in an object, text that does not look like an item. Without a further item,
    /// stops at the closing bracket.
    pub(super) fn skip_item(&mut self, opener: usize, item: usize, object: bool) -> Resume {
        let Some(closer) = self.closer_of(opener) else {
            return Resume::Lost;
        };
        if self.too_many_errors() {
            self.at = closer;
            return Resume::Item;
        }
        let mut index = item;
        loop {
            while index < closer && !self.separates(index, object) {
                index = self.step(index);
            }
            if index >= closer {
                self.at = closer;
                return Resume::Item;
            }
            index += 1;
            self.at = index;
            // In tuples and calls any expression is an item; in objects a key with its separator is recognizable.
            if !object || self.looks_like_object_item(index) {
                return Resume::Item;
            }
        }
    }

    fn separates(&self, index: usize, object: bool) -> bool {
        match self.tokens.kind(index) {
            TokenKind::Comma => true,
            TokenKind::Newline | TokenKind::LineComment => object && self.tokens.ends_line(index),
            _ => false,
        }
    }

    /// Returns the first significant token from here on; if `newlines` is true, line breaks are skipped, too.
    fn solid(&self, mut index: usize, newlines: bool) -> usize {
        loop {
            match self.tokens.kind(index) {
                TokenKind::Blank | TokenKind::BlockComment | TokenKind::Bom => {}
                TokenKind::Newline | TokenKind::LineComment if newlines => {}
                _ => return index,
            }
            index += 1;
        }
    }

    /// Returns true if `key =` or `key :` is next.
    fn looks_like_object_item(&mut self, index: usize) -> bool {
        let first = self.solid(index, true);
        let after = match self.tokens.kind(first) {
            TokenKind::Ident | TokenKind::Number => first + 1,
            TokenKind::OpenQuote | TokenKind::OpenParen => self.step(first),
            _ => return false,
        };
        let after = self.solid(after, false);
        matches!(self.tokens.kind(after), TokenKind::Assign | TokenKind::Colon)
    }

    /// Continues after an error in an item of a body, at the next line that looks like an item, or at the brace that
    /// closes the body. `item` is the first token of the item with the error.
    pub(super) fn skip_body_item(&mut self, item: usize) {
        let mut index = item;
        loop {
            loop {
                match self.tokens.kind(index) {
                    TokenKind::Eof => {
                        self.at = index;
                        return;
                    }
                    TokenKind::CloseBrace if index > item && self.ends_body(item, index) => {
                        self.at = index;
                        return;
                    }
                    TokenKind::Newline | TokenKind::LineComment if self.tokens.ends_line(index) => break,
                    _ => index = self.step(index),
                }
            }
            index += 1;
            self.at = index;
            if self.looks_like_body_item(index) {
                return;
            }
        }
    }

    /// Returns true if a brace may close the body that contains this item: the brace is the last token in its line, or
    /// the first token in the line of the item.
    fn ends_body(&self, item: usize, brace: usize) -> bool {
        let mut after = self.solid(brace + 1, false);
        while self.tokens.kind(after) == TokenKind::CloseBrace {
            after = self.solid(after + 1, false);
        }
        matches!(
            self.tokens.kind(after),
            TokenKind::Newline | TokenKind::LineComment | TokenKind::Eof
        ) || self.tokens.start(item).line == self.tokens.start(brace).line && self.first_of_line(brace)
    }

    fn first_of_line(&self, token: usize) -> bool {
        let mut index = token;
        while index > 0 && self.tokens.kind(index - 1) == TokenKind::Blank {
            index -= 1;
        }
        index == 0 || self.tokens.ends_line(index - 1)
    }

    /// Returns true if an item of a body or the end of a body begins here. An item is `name =`, or a name, labels and
    /// `{`; after a quoted label, the brace may be missing.
    fn looks_like_body_item(&mut self, index: usize) -> bool {
        let first = self.solid(index, true);
        match self.tokens.kind(first) {
            TokenKind::Ident => {}
            kind => return matches!(kind, TokenKind::CloseBrace | TokenKind::Eof),
        }
        let mut after = self.solid(first + 1, false);
        if self.tokens.kind(after) == TokenKind::Assign {
            return true;
        }
        loop {
            match self.tokens.kind(after) {
                TokenKind::OpenBrace => return true,
                TokenKind::Ident => after += 1,
                TokenKind::OpenQuote if self.closer_of(after).is_some() => return true,
                _ => return false,
            }
            after = self.solid(after, false);
        }
    }

    /// Skips to the next line if only the opening brace of a block seems to be missing: an error was found in the
    /// header that began with the token `name`. Returns true if it skipped.
    pub(super) fn skip_to_headless_body(&mut self, name: usize) -> bool {
        let mut index = self.at.max(name);
        while !self.tokens.ends_line(index) {
            if matches!(self.tokens.kind(index), TokenKind::Eof | TokenKind::OpenBrace) {
                return false;
            }
            index += 1;
        }
        let first = self.solid(index, true);
        // Several unquoted words are more likely a sentence without its comment sign.
        let words = (name + 1..index)
            .filter(|i| self.tokens.kind(*i) == TokenKind::Ident)
            .count();
        // The indentation shows whether the following lines are the block's content.
        let (column, outer) = (self.tokens.start(first).column, self.tokens.start(name).column);
        let inside = match self.tokens.kind(first) {
            TokenKind::Ident => words <= 2 && column > outer && self.looks_like_body_item(first),
            TokenKind::CloseBrace => column == outer,
            _ => false,
        };
        if inside {
            self.last = index;
            self.at = index + 1;
        }
        inside
    }
}
