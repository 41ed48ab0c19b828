//! The parser: builds the tree from tokens.
//!
//! Recursive descent, with a file for each area: [`body`] (arguments and blocks), [`expr`] (operators, traversals, terms), [`collection`]
//! (tuples, objects, `for`), [`call`], [`template`], [`text`] (escapes).
//!
//! A function that meets an error reports it and returns [`Abort`]; its position in the token list is undefined then. A caller that can
//! resynchronise catches it (see [`recovery`]); the others propagate it with `?`. Recovery costs nothing in a text without errors.
//!
//! Three rules prevent duplicate reports of one mistake:
//!
//! - An error at or before the furthest position of an earlier error is not reported.
//! - Until the next item begins, an error on the line of the last error, or at a closing bracket, is not reported.
//! - After an error, the next token is read as an item only if it looks like the beginning of one.

mod body;
mod call;
mod collection;
mod expr;
mod hints;
mod recovery;
mod template;
mod text;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use cty::{Number, Value};

use crate::ast::{Body, Expr, Traversal};
use crate::lexer;
use crate::token::{TokenKind, Tokens};
use crate::{Diagnostic, Diagnostics, Edit, Pos, Range};

/// Depth limit of nested blocks and expressions. Far more than configurations have, and small enough for a thread's
/// usual stack.
pub const MAX_DEPTH: usize = 200;

/// Limit on the operators of an expression, or the indexes of a traversal, without parentheses. The parser reads them in a loop, but the
/// tree of `a + b + c + …` is as deep as it has operators, and functions that walk a tree recursively must not overflow the stack.
pub const MAX_CHAIN: usize = 4000;

/// Number of errors after which a file is not read further.
const MAX_ERRORS: usize = 100;

/// Marker that an error was reported, and that the parser's position is somewhere inside the invalid text.
struct Abort;

type Parsed<T> = Result<T, Abort>;

/// Parses a configuration file, or a file of variable values: arguments and blocks.
#[must_use]
pub fn parse_file(name: &str, bytes: &[u8]) -> (Arc<Body>, Diagnostics) {
    match read_file(name, bytes, |_, body, problems| (Arc::new(body), problems)) {
        Ok(parsed) => parsed,
        Err(problem) => (Arc::new(Body::empty(&Range::synthetic(name))), (problem).into()),
    }
}

/// Parses a configuration file, and passes its tokens, tree and problems to `make`.
pub(crate) fn read_file<T>(
    name: &str,
    bytes: &[u8],
    make: impl FnOnce(&Tokens<'_>, Body, Diagnostics) -> T,
) -> Result<T, Diagnostic> {
    let file: Arc<str> = name.into();
    check_size(name, bytes)?;
    let (text, bad_bytes) = text::decode_utf8(bytes);
    let tokens = lexer::lex(&file, &text, Pos::default());
    let mut parser = Parser::new(&tokens, true);
    // All invalid bytes are reported by one error. In comments they are harmless.
    let _ = bad_bytes.into_iter().any(|at| parser.bad_encoding(at));
    let body = parser.file_body();
    let problems = parser.finish();
    Ok(make(&tokens, body, problems))
}

/// Reports files that are too large for positions of 32 bits.
pub(crate) fn check_size(name: &str, bytes: &[u8]) -> Result<(), Diagnostic> {
    match u32::try_from(bytes.len()) {
        Ok(_) => Ok(()),
        Err(_) => Err(
            Diagnostic::error("File too large", "A configuration file must be smaller than 4 GiB.")
                .at(&Range::synthetic(name)),
        ),
    }
}

/// Parses an expression. Line breaks have no meaning in it, as between parentheses.
#[must_use]
pub fn parse_expression(name: &str, text: &str, start: Pos) -> (Expr, Diagnostics) {
    let tokens = lexer::lex(&name.into(), text, start);
    let mut parser = Parser::new(&tokens, false);
    let parsed = parser.expression().and_then(|expr| match parser.peek() {
        TokenKind::Eof => Ok(expr),
        _ => Err(parser.error(
            "Extra characters after expression",
            "The expression is complete before this point; remove what follows it.",
        )),
    });
    let expr = parsed.unwrap_or_else(|Abort| parser.invalid(0));
    (expr, parser.finish())
}

/// Parses a text that is a template as a whole, like a string without its quotes. Backslashes have no meaning in it.
#[must_use]
pub fn parse_template(name: &str, text: &str, start: Pos) -> (Expr, Diagnostics) {
    let tokens = lexer::lex_template(&name.into(), text, start);
    let mut parser = Parser::new(&tokens, false);
    let expr = parser.bare_template().unwrap_or_else(|Abort| parser.invalid(0));
    (expr, parser.finish())
}

/// Parses a traversal that is the whole text: a name and static steps, including splats.
///
/// # Errors
/// All problems of the text.
pub fn parse_traversal(name: &str, text: &str, start: Pos) -> Result<Traversal, Diagnostics> {
    let tokens = lexer::lex(&name.into(), text, start);
    let mut parser = Parser::new(&tokens, false);
    match parser.lone_traversal() {
        Ok(traversal) if parser.diagnostics.is_empty() => Ok(traversal),
        _ => Err(parser.finish()),
    }
}

struct Parser<'t> {
    tokens: &'t Tokens<'t>,
    /// Index of the next token, which may be trivia.
    at: usize,
    /// Index of the last token that was taken.
    last: usize,
    /// True where line breaks are significant.
    newlines: bool,
    depth: usize,
    diagnostics: Vec<Diagnostic>,
    /// Index of the furthest token at which an error was found.
    furthest_error: Option<usize>,
    /// True if blocks are nested too deeply. The structure of the remaining text can then only be guessed, so nothing after that is
    /// reported.
    too_deep: bool,
    /// Set by an error, and cleared by the next block without errors that begins in the first column. While it is set, a closing brace
    /// without an opening one is not reported: the recovery may have skipped the opening one.
    in_doubt: bool,
    /// Column at which the item of the innermost body begins.
    item_column: u32,
    /// Line of the last error and column of its item, until another item begins at that column or left of it.
    doubt: Option<(u32, u32)>,
    /// Matching brackets, computed at the first error.
    brackets: Option<recovery::Brackets>,
}

impl<'t> Parser<'t> {
    fn new(tokens: &'t Tokens<'t>, newlines: bool) -> Parser<'t> {
        Parser {
            tokens,
            at: 0,
            last: 0,
            newlines,
            depth: 0,
            diagnostics: Vec::new(),
            furthest_error: None,
            too_deep: false,
            in_doubt: false,
            item_column: 1,
            doubt: None,
            brackets: None,
        }
    }

    /// Returns the problems in the order in which they were found. That is nearly the order of the text, but a missing
    /// brace at the end comes last.
    fn finish(mut self) -> Diagnostics {
        // Recovery may read the same text again and find the same problem, which is reported once.
        self.diagnostics
            .dedup_by(|b, a| a.summary == b.summary && a.subject == b.subject);
        Diagnostics(self.diagnostics)
    }

    // ---- tokens -----------------------------------------------------------------------------------------------

    /// Returns the index of the next significant token.
    fn next(&self) -> usize {
        let mut index = self.at;
        loop {
            match self.tokens.kind(index) {
                TokenKind::Blank | TokenKind::BlockComment | TokenKind::Bom => {}
                TokenKind::Newline if !self.newlines => {}
                // A comment at the end of a line counts as the line break.
                TokenKind::LineComment if !self.newlines || !self.tokens.ends_line(index) => {}
                _ => return index,
            }
            index += 1;
        }
    }

    /// Returns the kind of the next token. A comment up to the end of its line counts as a line break.
    fn peek(&self) -> TokenKind {
        match self.tokens.kind(self.next()) {
            TokenKind::LineComment => TokenKind::Newline,
            kind => kind,
        }
    }

    /// Takes the next token.
    fn take(&mut self) -> usize {
        // Eof is never passed, so that `next` always finds a token.
        let index = self.next();
        self.last = index;
        self.at = if self.tokens.kind(index) == TokenKind::Eof {
            index
        } else {
            index + 1
        };
        index
    }

    fn eat(&mut self, kind: TokenKind) -> Option<usize> {
        (self.peek() == kind).then(|| self.take())
    }

    fn at_word(&self, word: &str) -> bool {
        let next = self.next();
        self.tokens.kind(next) == TokenKind::Ident && self.tokens.text(next) == word
    }

    fn text_of(&self, index: usize) -> &'t str {
        self.tokens.text(index)
    }

    fn range_of(&self, index: usize) -> Range {
        self.tokens.range(index)
    }

    /// Range from the beginning of a token to the end of the last token taken.
    fn since(&self, first: usize) -> Range {
        Range {
            file: self.tokens.file.clone(),
            start: self.tokens.start(first),
            end: self.tokens.end(self.last),
        }
    }

    /// Range from the beginning of `from` to the end of the last token taken.
    fn extend(&self, from: &Range) -> Range {
        Range {
            file: from.file.clone(),
            start: from.start,
            end: self.tokens.end(self.last),
        }
    }

    fn invalid(&self, first: usize) -> Expr {
        Expr::Invalid {
            range: self.since(first),
        }
    }

    // ---- modes ------------------------------------------------------------------------------------------------

    /// Sets if line breaks are significant from here on, and returns the previous setting, which the caller restores.
    fn set_newlines(&mut self, newlines: bool) -> bool {
        std::mem::replace(&mut self.newlines, newlines)
    }

    /// Enters a part of the grammar that can contain itself. On success, [`Parser::leave`] must follow.
    // Neither this function nor `set_newlines` takes a closure, because a closure would need stack at each
    // level.
    fn enter(&mut self) -> Parsed<()> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error(
                "Nesting too deep",
                &format!("Blocks and expressions may stand inside each other up to {MAX_DEPTH} levels deep."),
            ));
        }
        self.depth += 1;
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    // ---- errors -----------------------------------------------------------------------------------------------

    /// Reports an error at the next token.
    fn error(&mut self, summary: &str, detail: &str) -> Abort {
        let next = self.next();
        self.error_at(next, Diagnostic::error(summary, detail).at(&self.range_of(next)))
    }

    /// Reports an error at the next token, in a construct that began with the token `first`.
    fn error_in(&mut self, first: usize, summary: &str, detail: &str) -> Abort {
        let next = self.next();
        let context = self.range_of(first).to(&self.range_of(next));
        let opener = self.still_open(first);
        self.error_at(
            next,
            Diagnostic::error(summary, format!("{detail}{opener}"))
                .at(&self.range_of(next))
                .within(&context),
        )
    }

    /// Describes the bracket that is still open at the next token, if it is in an earlier line: a forgotten closing
    /// bracket is noticed lines later.
    fn still_open(&self, opener: usize) -> String {
        let bracket = matches!(
            self.tokens.kind(opener),
            TokenKind::OpenBrace | TokenKind::OpenBracket | TokenKind::OpenParen | TokenKind::OpenInterpolation
        );
        if bracket && self.tokens.start(opener).line < self.tokens.start(self.next()).line {
            let (text, place) = (self.text_of(opener), self.range_of(opener));
            format!(" The \"{text}\" that is still open here is at {place}.")
        } else {
            String::new()
        }
    }

    /// Reports an error at a token. An invalid token is reported as such, whatever was expected in its place.
    fn error_at(&mut self, token: usize, diagnostic: Diagnostic) -> Abort {
        // Recovery may return to text that has been reported already.
        if !self.too_deep && self.furthest_error.is_none_or(|furthest| furthest < token) {
            self.furthest_error = Some(token);
            // An error on the line of another one, or at a closing bracket after one, is likely a consequence.
            let line = self.tokens.start(token).line;
            let again = self
                .doubt
                .is_some_and(|(l, _)| l == line || self.tokens.kind(token).is_closer());
            self.doubt = Some((line, self.item_column));
            if again {
                return Abort;
            }
            let diagnostic = match self.tokens.kind(token) {
                TokenKind::Invalid => {
                    let mut invalid = text::invalid_token(self.text_of(token)).at(&self.range_of(token));
                    invalid.edit = hints::mend_quotes(self.tokens, token);
                    invalid
                }
                _ => match hints::for_token(self.tokens, token) {
                    Some(hint) => {
                        let mut hinted = diagnostic;
                        hinted.detail = format!("{} {hint}", hinted.detail);
                        hinted
                    }
                    None => diagnostic,
                },
            };
            self.diagnostics.push(diagnostic);
        }
        Abort
    }

    /// Reports an error with the edit that corrects it. If the error is suppressed, so is the edit.
    fn mended_by(&mut self, edit: Option<Edit>, report: impl FnOnce(&mut Self) -> Abort) -> Abort {
        let before = self.diagnostics.len();
        let abort = report(self);
        if let Some(reported) = self.diagnostics.get_mut(before)
            && reported.edit.is_none()
        {
            reported.edit = edit;
        }
        abort
    }

    /// Reports a problem after which parsing continues.
    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn too_many_errors(&self) -> bool {
        self.too_deep || self.diagnostics.len() >= MAX_ERRORS
    }

    /// Reports a byte that is not UTF-8, unless it is in a comment. Returns true if it was reported.
    fn bad_encoding(&mut self, at: usize) -> bool {
        let token = self
            .tokens
            .list
            .partition_point(|t| t.start.byte as usize <= at)
            .saturating_sub(1);
        if matches!(
            self.tokens.kind(token),
            TokenKind::LineComment | TokenKind::BlockComment
        ) {
            return false;
        }
        let start = self.tokens.start(token);
        let text = self.text_of(token);
        let start = lexer::advance(start, text.get(..at - start.byte as usize).unwrap_or_default());
        let end = Pos {
            column: start.column + 1,
            byte: start.byte + 1,
            ..start
        };
        let range = Range {
            file: self.tokens.file.clone(),
            start,
            end,
        };
        self.report(
            Diagnostic::error(
                "Invalid character encoding",
                "The file is not valid UTF-8 from here on. Save it with the encoding UTF-8.",
            )
            .at(&range),
        );
        true
    }

    /// Reads the value of a number token.
    fn number(&mut self, token: usize) -> Parsed<Value> {
        match Number::parse(self.text_of(token)) {
            Some(number) => Ok(Value::number(number)),
            None => {
                let range = self.range_of(token);
                let problem = Diagnostic::error(
                    "Invalid number literal",
                    "This is not a number in decimal notation, such as 12, 0.5 or 1e3.",
                );
                Err(self.error_at(token, problem.at(&range)))
            }
        }
    }
}
