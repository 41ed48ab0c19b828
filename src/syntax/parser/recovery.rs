//! Going on after an error.
//!
//! What stands in brackets can be stepped over as a whole, if it is known where the brackets close. That is worked out
//! once, for the whole text, when the first error is found: a closing bracket closes the nearest open one of its kind,
//! except that one at the beginning of a line prefers, for a brace, an opening brace whose line is indented alike. Brackets
//! that this leaves open were forgotten to be closed; recovery treats them as if they were not there.

use crate::token::{TokenKind, Tokens};

use super::Parser;

/// Which token closes which.
pub(super) struct Brackets {
    closers: Vec<u32>,
}

const OPEN: u32 = u32::MAX;

impl Brackets {
    fn new(tokens: &Tokens<'_>) -> Brackets {
        let mut closers = vec![OPEN; tokens.list.len()];
        // The openers so far: token, what closes it, and the indentation of its line.
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
                        Some(near) if stack[near].2 > token.start.column => stack
                            .iter()
                            .rposition(|entry| fits(entry) && entry.2 == token.start.column)
                            .or(nearest),
                        _ => nearest,
                    }
                } else {
                    nearest
                };
                // A bracket or parenthesis does not reach out of braces or of a string to be closed.
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

/// Where a stretch of items was left after an error.
pub(super) enum Resume {
    /// At an item, or at the end of the stretch.
    Item,
    /// Nowhere: the stretch has no known end.
    Lost,
}

impl Parser<'_> {
    /// Which token closes this one, as far as that is clear.
    fn closer_of(&mut self, opener: usize) -> Option<usize> {
        let tokens = self.tokens;
        self.brackets
            .get_or_insert_with(|| Brackets::new(tokens))
            .closer(opener)
    }

    /// The last opening bracket from this one on that nothing closes. One that is forgotten to be closed takes away the
    /// brackets that close those around it.
    pub(super) fn last_unclosed(&mut self, from: usize) -> Option<usize> {
        (from..self.tokens.list.len())
            .rev()
            .find(|i| self.tokens.kind(*i).is_opener() && self.closer_of(*i).is_none())
    }

    /// Goes to the end of the line of a token, over what it encloses.
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

    /// The token after this one, over what it encloses.
    fn step(&mut self, index: usize) -> usize {
        if self.tokens.kind(index).is_opener() {
            self.closer_of(index).map_or(index + 1, |closer| closer + 1)
        } else {
            index + 1
        }
    }

    /// Goes behind the bracket that closes `opener`, if it is known.
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

    /// Goes on after an error in the item of an object, a tuple or a call that began at `item`: behind the
    /// separator that ends it, and over what does not look like another; or to the closing bracket.
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

    /// The first token from here on that is no trivia; line breaks are trivia too if so wished.
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

    /// `key =` or `key :`.
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

    /// Goes on after an error in the item of a body that began at `item`: behind the line that ends it and to the next
    /// that looks like an item; or to the brace that closes the body.
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

    /// Whether a brace may be the one that closes the body with this item: the last thing in its line, or in the item's.
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

    /// `name =`, or `name`, labels and `{`, of which the brace may be missing after a quoted label; or the end of a body.
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

    /// Goes to the next line, after an error in the header of a block that began with the token `name`, if what follows
    /// looks as if only the opening brace were missing.
    pub(super) fn skip_to_headless_body(&mut self, name: usize) -> bool {
        let mut index = self.at.max(name);
        while !self.tokens.ends_line(index) {
            if matches!(self.tokens.kind(index), TokenKind::Eof | TokenKind::OpenBrace) {
                return false;
            }
            index += 1;
        }
        let first = self.solid(index, true);
        // Several words without quotes are rather a sentence that lost its comment sign.
        let words = (name + 1..index)
            .filter(|i| self.tokens.kind(*i) == TokenKind::Ident)
            .count();
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
