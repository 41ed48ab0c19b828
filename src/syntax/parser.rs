//! From tokens to tree.
//!
//! The grammar is read by plain recursive descent, an area a file: [`body`] (arguments and blocks), [`expr`] (operators,
//! traversals, terms), [`collection`] (tuples, objects, `for`), [`call`], [`template`], [`text`] (escapes).
//!
//! A function that meets an error reports it and returns [`Abort`]; its position in the token list is undefined then. A
//! caller that can resynchronise catches it (see [`recovery`]); the others propagate it with `?`. Recovery costs
//! nothing in a text without errors.
//!
//! Some rules prevent duplicate reports of one mistake. An error at or before the furthest position of an earlier error
//! is not reported; nor is, until the next item, an error in the same line or about a closing bracket; and after an
//! error the next token must look like the beginning of an item to be read as one.

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

/// How deep things may stand inside each other. Far more than configurations have, and small enough for a thread's
/// usual stack.
pub const MAX_DEPTH: usize = 200;

/// How many operators an expression may have, or indexes a traversal, without parentheses. They are read in a loop, but
/// the tree of `a + b + c + …` is as deep as it has operators, and every reader of it must be able to walk down.
pub const MAX_CHAIN: usize = 4000;

/// After so many errors a file is not read further.
const MAX_ERRORS: usize = 100;

/// An error was reported, and the parser stands somewhere inside of what it could not understand.
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

/// Parses a configuration file, and makes something of its tokens, its tree and its problems.
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
    // One report is enough for all of them; in comments they are harmless.
    let _ = bad_bytes.into_iter().any(|at| parser.bad_encoding(at));
    let body = parser.file_body();
    let problems = parser.finish();
    Ok(make(&tokens, body, problems))
}

/// Positions have 32 bits.
pub(crate) fn check_size(name: &str, bytes: &[u8]) -> Result<(), Diagnostic> {
    match u32::try_from(bytes.len()) {
        Ok(_) => Ok(()),
        Err(_) => Err(
            Diagnostic::error("File too large", "A configuration file must be smaller than 4 GiB.")
                .at(&Range::synthetic(name)),
        ),
    }
}

/// Parses an expression. Line breaks mean nothing in it, as between parentheses.
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

/// Parses a text that is a template as a whole, like a string without its quotes. Backslashes mean nothing in it.
#[must_use]
pub fn parse_template(name: &str, text: &str, start: Pos) -> (Expr, Diagnostics) {
    let tokens = lexer::lex_template(&name.into(), text, start);
    let mut parser = Parser::new(&tokens, false);
    let expr = parser.bare_template().unwrap_or_else(|Abort| parser.invalid(0));
    (expr, parser.finish())
}

/// Parses a traversal that stands by itself: a name and steps, splats among them, nothing that must be evaluated.
///
/// # Errors
/// What is wrong with it.
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
    /// The next token, which may be trivia.
    at: usize,
    /// The last token that was taken.
    last: usize,
    /// Whether line breaks mean something here.
    newlines: bool,
    depth: usize,
    diagnostics: Vec<Diagnostic>,
    /// The furthest token at which something was found wrong.
    furthest_error: Option<usize>,
    /// Whether an error was found and no whole block since, so that braces may not be what they seem.
    in_doubt: bool,
    /// The column at which the item of the innermost body begins.
    item_column: u32,
    /// The line of the last error and the column of its item, until another item begins there.
    doubt: Option<(u32, u32)>,
    /// Which token closes which, from the first error on.
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
            in_doubt: false,
            item_column: 1,
            doubt: None,
            brackets: None,
        }
    }

    /// The problems, in the order in which they were found: that is nearly the order of the text, but a brace that is
    /// missing at the end comes last.
    fn finish(mut self) -> Diagnostics {
        self.diagnostics
            .dedup_by(|b, a| a.summary == b.summary && a.subject == b.subject);
        Diagnostics(self.diagnostics)
    }

    // ---- tokens -----------------------------------------------------------------------------------------------

    /// The index of the next token that means something here.
    fn next(&self) -> usize {
        let mut index = self.at;
        loop {
            match self.tokens.kind(index) {
                TokenKind::Blank | TokenKind::BlockComment | TokenKind::Bom => {}
                TokenKind::Newline if !self.newlines => {}
                TokenKind::LineComment if !self.newlines || !self.tokens.ends_line(index) => {}
                _ => return index,
            }
            index += 1;
        }
    }

    /// The kind of the next token; a comment that takes up the rest of a line is the line break it holds.
    fn peek(&self) -> TokenKind {
        match self.tokens.kind(self.next()) {
            TokenKind::LineComment => TokenKind::Newline,
            kind => kind,
        }
    }

    /// Takes the next token.
    fn take(&mut self) -> usize {
        let index = self.next();
        self.last = index;
        self.at = if self.tokens.kind(index) == TokenKind::Eof {
            index
        } else {
            index + 1
        };
        index
    }

    /// Takes the next token if it is of this kind.
    fn eat(&mut self, kind: TokenKind) -> Option<usize> {
        (self.peek() == kind).then(|| self.take())
    }

    /// Whether the next token is this word.
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

    /// From the beginning of a token to the end of the last one taken.
    fn since(&self, first: usize) -> Range {
        Range {
            file: self.tokens.file.clone(),
            start: self.tokens.start(first),
            end: self.tokens.end(self.last),
        }
    }

    /// From the beginning of something to the end of the last token taken.
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

    /// Sets whether line breaks are significant from here on, and returns the setting before, for the caller to restore.
    fn set_newlines(&mut self, newlines: bool) -> bool {
        std::mem::replace(&mut self.newlines, newlines)
    }

    /// Begins a part of the grammar that can contain itself. If it may begin, [`Parser::leave`] must end it.
    ///
    /// These two are no wrapper around a closure, nor are those that change what line breaks mean, because each closure
    /// costs stack at each level.
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

    /// Reports that the next token is wrong.
    fn error(&mut self, summary: &str, detail: &str) -> Abort {
        let next = self.next();
        self.error_at(next, Diagnostic::error(summary, detail).at(&self.range_of(next)))
    }

    /// Reports that the next token is wrong in something that began with the token `first`.
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

    /// Where the bracket stands that is still open at the next token, if not in its line: if it was forgotten to be
    /// closed, it is missed lines later.
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

    /// Reports something that was found at this token. If that is no part of the language, it is what is wrong.
    fn error_at(&mut self, token: usize, diagnostic: Diagnostic) -> Abort {
        if self.furthest_error.is_none_or(|furthest| furthest < token) {
            self.furthest_error = Some(token);
            // In the line of another error, or where a bracket closes after one, it is likely the same error again.
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

    /// Reports an error with the edit that mends it, unless it is one that is not shown.
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

    /// Reports something after which the parser continues.
    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn too_many_errors(&self) -> bool {
        self.diagnostics.len() >= MAX_ERRORS
    }

    /// Reports a byte that is no text, unless it stands in a comment.
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

    /// The value of a number token.
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
