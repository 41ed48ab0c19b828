//! The canonical form of a configuration file, as `fmt` writes it.
//!
//! The formatter works on the tokens that the parser read, so that comments, blank lines and every spelling are
//! preserved. It replaces a few old spellings by those of today (this file), sets the number of blanks before each
//! token ([`layout`]), and writes the tokens out again. A file with errors has no canonical form, because the intention
//! of its author is unknown.

mod layout;

use gotext::quote::is_printable;
use std::borrow::Cow;

use cty::Value;

use crate::ast::{Attribute, Block, Body};
use crate::token::{TokenKind, Tokens};
use crate::{Diagnostics, Range, parser};

/// Returns a file in its canonical form.
///
/// # Errors
/// The file is not valid.
pub fn format_file(name: &str, bytes: &[u8]) -> Result<Vec<u8>, Diagnostics> {
    let formatted = parser::read_file(name, bytes, |tokens, body, problems| {
        if problems.has_errors() {
            return Err(problems);
        }
        let mut edits = Edits {
            tokens,
            list: Vec::new(),
        };
        edits.body(&body, None);
        let mut pieces = edits.apply();
        layout::set_spaces(&mut pieces);
        Ok(write(&pieces, bytes))
    });
    formatted.unwrap_or_else(|problem| Err((problem).into()))
}

/// A token for the output, with its spacing.
struct Piece<'t> {
    kind: TokenKind,
    text: Cow<'t, str>,
    /// Byte offset in the file; `None` for a token that the formatter made. Comments need not be valid UTF-8, so the
    /// file's bytes are written, not `text`.
    at: Option<usize>,
    /// Number of blanks before the token.
    spaces: usize,
}

impl<'t> Piece<'t> {
    fn made(kind: TokenKind, text: impl Into<Cow<'t, str>>) -> Piece<'t> {
        Piece {
            kind,
            text: text.into(),
            at: None,
            spaces: 0,
        }
    }
}

fn write(pieces: &[Piece<'_>], source: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(source.len() + source.len() / 8);
    for piece in pieces {
        out.resize(out.len() + piece.spaces, b' ');
        let original = piece.at.and_then(|at| source.get(at..at + piece.text.len()));
        out.extend_from_slice(original.unwrap_or(piece.text.as_bytes()));
    }
    out
}

/// A replacement of some tokens.
struct Edit<'t> {
    from: usize,
    /// Exclusive.
    to: usize,
    by: Vec<Piece<'t>>,
}

struct Edits<'e, 't> {
    tokens: &'e Tokens<'t>,
    list: Vec<Edit<'t>>,
}

impl<'t> Edits<'_, 't> {
    /// Returns the indexes of the first token in a range and of the first one after it.
    fn span(&self, range: &Range) -> (usize, usize) {
        let first_from = |byte: u32| self.tokens.list.partition_point(|t| t.start.byte < byte);
        (first_from(range.start.byte), first_from(range.end.byte))
    }

    /// Returns the tokens from one index up to, but not including, another, without blanks.
    fn pieces(&self, from: usize, to: usize) -> Vec<Piece<'t>> {
        let visible = (from..to).filter(|i| !is_blank(self.tokens.kind(*i)));
        visible
            .map(|index| Piece {
                kind: self.tokens.kind(index),
                text: Cow::Borrowed(self.tokens.text(index)),
                at: Some(self.tokens.start(index).byte as usize),
                spaces: 0,
            })
            .collect()
    }

    /// Collects the edits of a body. `block` is `None` for the body of a file, the type of the block for the body of a
    /// top-level block, and empty for deeper ones.
    fn body(&mut self, body: &Body, block: Option<&str>) {
        for attribute in &body.attributes {
            if block == Some("variable") && &*attribute.name == "type" {
                self.type_constraint(attribute);
            } else {
                self.lone_interpolation(attribute);
            }
        }
        for nested in &body.blocks {
            self.labels(nested);
            // A block named `variable` declares one only at the top of the file.
            self.body(&nested.body, Some(if block.is_none() { &*nested.ty } else { "" }));
        }
    }

    /// Writes labels in quotes, and removes comments between them.
    fn labels(&mut self, block: &Block) {
        let Some(last) = block.labels.last() else { return };
        let mut by = Vec::with_capacity(3 * block.labels.len());
        for label in &block.labels {
            by.push(Piece::made(TokenKind::OpenQuote, "\""));
            by.push(Piece::made(TokenKind::QuotedText, escape(&label.text)));
            by.push(Piece::made(TokenKind::CloseQuote, "\""));
        }
        let from = self.span(&block.type_range).1;
        let to = self.span(&last.range).1;
        self.list.push(Edit { from, to, by });
    }

    /// Rewrites the type of a variable: types in quotes, as in Terraform 0.11, and collections without element type.
    fn type_constraint(&mut self, attribute: &Attribute) {
        let (from, to) = self.span(attribute.expr.range());
        let pieces = self.pieces(from, to);
        let (name, element) = match pieces.as_slice() {
            [word] if word.kind == TokenKind::Ident => match &*word.text {
                ty @ ("list" | "map" | "set") => (ty.to_owned(), Some("any")),
                _ => return,
            },
            [open, text, _] if open.kind == TokenKind::OpenQuote => match &*text.text {
                "string" => ("string".to_owned(), None),
                // Terraform 0.11 had lists and maps of strings only.
                ty @ ("list" | "map") => (ty.to_owned(), Some("string")),
                _ => return,
            },
            _ => return,
        };
        let mut by = vec![Piece::made(TokenKind::Ident, name)];
        if let Some(element) = element {
            by.push(Piece::made(TokenKind::OpenParen, "("));
            by.push(Piece::made(TokenKind::Ident, element));
            by.push(Piece::made(TokenKind::CloseParen, ")"));
        }
        self.list.push(Edit { from, to, by });
    }

    /// Rewrites `"${x}"` as `x`, if it is the whole value of an argument.
    fn lone_interpolation(&mut self, attribute: &Attribute) {
        let (from, to) = self.span(attribute.expr.range());
        if self.tokens.kind(from) != TokenKind::OpenQuote || self.tokens.kind(from + 1) != TokenKind::OpenInterpolation
        {
            return;
        }
        let mut pieces = self.pieces(from, to);
        let ends = [pieces.pop(), pieces.pop()].map(|p| p.map(|p| p.kind));
        if ends != [Some(TokenKind::CloseQuote), Some(TokenKind::CloseSequence)] {
            return;
        }
        let mut inside: Vec<Piece<'t>> = pieces.drain(2.min(pieces.len())..).collect();
        let mut quotes = 0usize;
        // The interpolation must extend from the first quote to the last one. Strings nested in it are skipped, and
        // text before or after it ends the search.
        for piece in &inside {
            match piece.kind {
                TokenKind::OpenQuote => quotes += 1,
                TokenKind::CloseQuote => quotes = quotes.saturating_sub(1),
                // Text follows the sequence, or a second sequence does.
                TokenKind::OpenInterpolation | TokenKind::CloseSequence | TokenKind::QuotedText if quotes == 0 => {
                    return;
                }
                _ => {}
            }
        }
        let is_newline = |p: &Piece<'_>| p.kind == TokenKind::Newline;
        while inside.last().is_some_and(&is_newline) {
            inside.pop();
        }
        let lead = inside.iter().take_while(|p| is_newline(p)).count();
        inside.drain(..lead);
        let in_parens = matches!(
            (inside.first(), inside.last()),
            (Some(first), Some(last)) if first.kind == TokenKind::OpenParen && last.kind == TokenKind::CloseParen
        );
        // Outside of a string, an expression ends with its line unless it is in parentheses.
        let ends_line = |p: &Piece<'_>| p.kind == TokenKind::LineComment || is_newline(p);
        if inside.iter().any(ends_line) && !in_parens {
            inside.insert(0, Piece::made(TokenKind::OpenParen, "("));
            inside.push(Piece::made(TokenKind::CloseParen, ")"));
        }
        self.list.push(Edit { from, to, by: inside });
    }

    /// Carries out the edits, and returns all tokens without blanks.
    fn apply(mut self) -> Vec<Piece<'t>> {
        self.list.sort_by_key(|edit| edit.from);
        let mut out = Vec::with_capacity(self.tokens.list.len());
        let mut at = 0;
        let end = self.tokens.list.len();
        for edit in std::mem::take(&mut self.list) {
            out.append(&mut self.pieces(at, edit.from));
            out.extend(edit.by);
            at = edit.to;
        }
        out.append(&mut self.pieces(at, end));
        // Blanks before the end of the file belong to no line; Terraform keeps them.
        if let Some(last) = out.last_mut().filter(|p| p.kind == TokenKind::Eof) {
            let blanks = (0..end.saturating_sub(1))
                .rev()
                .take_while(|i| is_blank(self.tokens.kind(*i)));
            last.spaces = blanks.map(|i| self.tokens.text(i).len()).sum();
        }
        out
    }
}

fn is_blank(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::Blank | TokenKind::Bom)
}

/// Escapes a text for use between quotes.
fn escape(text: &str) -> String {
    // Terraform's formatter builds labels from values, which normalizes them to NFC.
    let normal = Value::string(text);
    let text = normal.as_str().unwrap_or(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            // A doubled sign is plain text; alone, it would open a template sequence.
            '$' | '%' => {
                out.push(c);
                if rest.as_str().starts_with('{') {
                    out.push(c);
                }
            }
            c if is_printable(c) => out.push(c),
            c if u32::from(c) <= 0xffff => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out
}

#[cfg(test)]
mod tests;
