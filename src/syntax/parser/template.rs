//! Templates: text with interpolations and directives, in quotes, in heredocs, or as a whole text.
//!
//! A template is first read as a flat list of pieces. Strip markers and heredoc indentation apply to the pieces as they
//! are in the source, line by line; only then are directives matched with their ends to form a tree.

mod parts;

use std::mem::take;
use std::sync::Arc;

use unicode_segmentation::UnicodeSegmentation;

use crate::ast::{Expr, Template, TemplatePart};
use crate::token::TokenKind;
use crate::{Diagnostic, Range};

use super::{Abort, MAX_DEPTH, Parsed, Parser, text};
use parts::{Directive, DirectiveKind, Parts};

const MULTI_LINE: &str = "Invalid multi-line string";
const MULTI_LINE_DETAIL: &str = "A string in quotes ends on the line where it begins. For a line break in it write \
                                 \\n, or write the whole as a heredoc (<<EOT).";

enum Piece {
    /// Text of one line at most, so that a strip marker removes one line break at most.
    Text {
        text: String,
        range: Range,
    },
    Value(Expr),
    If {
        condition: Expr,
        range: Range,
    },
    For {
        key: Option<Arc<str>>,
        value: Arc<str>,
        collection: Expr,
        range: Range,
    },
    Else(Range),
    EndIf(Range),
    EndFor(Range),
    /// A sequence that could not be parsed.
    Invalid,
}

/// Pieces so far, with the state of strip markers.
#[derive(Default)]
struct Pieces {
    list: Vec<Piece>,
    /// True if the last sequence ended with a strip marker and nothing followed it yet.
    strip_next: bool,
}

impl Pieces {
    fn text(&mut self, text: String, range: Range) {
        let text = if take(&mut self.strip_next) {
            text.trim_start().to_owned()
        } else {
            text
        };
        self.list.push(Piece::Text { text, range });
    }

    /// Handles the opening of a sequence: a strip marker removes the blanks before it.
    fn open(&mut self, token_text: &str) {
        self.strip_next = false;
        if token_text.ends_with('~')
            && let Some(Piece::Text { text, .. }) = self.list.last_mut()
        {
            text.truncate(text.trim_end().len());
        }
    }
}

impl Parser<'_> {
    // ---- strings without sequences ----------------------------------------------------------------------------

    /// Reads the rest of a quoted string that cannot have sequences: the label of a block, an index of a lone
    /// traversal.
    pub(super) fn plain_string(&mut self, open: usize) -> Parsed<String> {
        let mut text = String::new();
        loop {
            match self.peek() {
                TokenKind::QuotedText => {
                    let token = self.take();
                    text.push_str(&self.unescape_quoted(token));
                }
                TokenKind::CloseQuote => {
                    self.take();
                    return Ok(text);
                }
                TokenKind::OpenInterpolation | TokenKind::OpenDirective => {
                    let sign = if self.peek() == TokenKind::OpenDirective {
                        '%'
                    } else {
                        '$'
                    };
                    let detail = format!(
                        "This string must be constant, so it cannot contain \"{sign}{{\". To mean these characters \
                         themselves, write \"{sign}{sign}{{\"."
                    );
                    self.error_in(open, "Invalid string literal", &detail);
                    let sequence = self.take();
                    if !self.skip_to_closer(sequence) {
                        return Err(Abort);
                    }
                    // A placeholder keeps the label different from that of another block, so that no duplicate is
                    // reported.
                    text.push(sign);
                    text.push_str("{ ... }");
                }
                _ => return Err(self.unclosed_quotes(open, "Unterminated string literal")),
            }
        }
    }

    /// Reports a quoted string that does not end in its line, or not at all.
    fn unclosed_quotes(&mut self, open: usize, summary: &str) -> Abort {
        let mut next = self.at;
        while matches!(self.tokens.kind(next), TokenKind::Blank) {
            next += 1;
        }
        let (summary, detail) = match self.tokens.kind(next) {
            TokenKind::Newline | TokenKind::LineComment | TokenKind::QuotedNewline => (MULTI_LINE, MULTI_LINE_DETAIL),
            _ => (summary, "No closing marker was found for the string."),
        };
        let context = self.between(open, next);
        self.error_at(
            next,
            Diagnostic::error(summary, detail)
                .at(&self.range_of(next))
                .within(&context),
        )
    }

    // ---- the three forms --------------------------------------------------------------------------------------

    pub(super) fn quoted_template(&mut self) -> Parsed<Expr> {
        let open = self.take();
        // This is a fast path, because nearly every string is plain text.
        if self.tokens.kind(open + 1) == TokenKind::QuotedText && self.tokens.kind(open + 2) == TokenKind::CloseQuote {
            let token = self.take();
            let text = self.unescape_quoted(token);
            self.take();
            let parts = vec![TemplatePart::Literal {
                text: text.into(),
                range: self.range_of(token),
            }];
            return Ok(Expr::Template(Template {
                parts,
                heredoc: false,
                range: self.since(open),
            }));
        }
        let pieces = self.pieces(open, TokenKind::CloseQuote)?;
        self.template(pieces, open, false)
    }

    pub(super) fn heredoc_template(&mut self) -> Parsed<Expr> {
        let open = self.take();
        let mut pieces = self.pieces(open, TokenKind::CloseHeredoc)?;
        // Only `<<-` removes indentation.
        if self.text_of(open).starts_with("<<-") {
            unindent(&mut pieces);
        }
        self.template(pieces, open, true)
    }

    pub(super) fn bare_template(&mut self) -> Parsed<Expr> {
        let pieces = self.pieces(0, TokenKind::Eof)?;
        if self.tokens.list.len() == 1 {
            return Ok(Expr::Template(Template {
                parts: Vec::new(),
                heredoc: false,
                range: self.range_of(0),
            }));
        }
        self.template(pieces, 0, false)
    }

    /// Builds the expression of a template whose last token was just taken.
    fn template(&mut self, mut pieces: Vec<Piece>, open: usize, heredoc: bool) -> Parsed<Expr> {
        let range = self.since(open);
        // A template of one interpolation has the type of its value, as in HCL.
        if let [Piece::Value(_)] = pieces.as_slice()
            && let Some(Piece::Value(inner)) = pieces.pop()
        {
            return Ok(Expr::Wrap {
                inner: Box::new(inner),
                range,
            });
        }
        let end = self.range_of(self.last);
        let parts = self.tree(pieces, &end)?;
        Ok(Expr::Template(Template { parts, heredoc, range }))
    }

    // ---- pieces -----------------------------------------------------------------------------------------------

    /// Reads the pieces up to the token that ends the template, and that token.
    fn pieces(&mut self, open: usize, end: TokenKind) -> Parsed<Vec<Piece>> {
        let mut pieces = Pieces::default();
        loop {
            // Trivia is not skipped, because blanks between pieces are text.
            let kind = self.tokens.kind(self.at);
            if kind == end {
                self.take();
                return Ok(pieces.list);
            }
            match kind {
                TokenKind::QuotedText => {
                    let token = self.take();
                    let text = self.unescape_quoted(token);
                    pieces.text(text, self.range_of(token));
                }
                TokenKind::Text => {
                    let token = self.take();
                    let text = text::unescape_plain(self.text_of(token)).into_owned();
                    pieces.text(text, self.range_of(token));
                }
                TokenKind::QuotedNewline => {
                    self.unclosed_quotes(open, "Unterminated template string");
                    self.take();
                }
                TokenKind::OpenInterpolation | TokenKind::OpenDirective => {
                    let sequence = self.take();
                    pieces.open(self.text_of(sequence));
                    let before = self.set_newlines(false);
                    let piece = match kind {
                        TokenKind::OpenInterpolation => self.interpolation(sequence, end),
                        _ => self.directive(sequence),
                    };
                    self.newlines = before;
                    match piece {
                        Ok(piece) => {
                            // The closing token of the sequence was taken last.
                            pieces.strip_next = self.text_of(self.last).starts_with('~');
                            pieces.list.push(piece);
                        }
                        Err(Abort) if self.skip_to_closer(sequence) => {
                            let piece = self.broken_sequence(sequence, kind);
                            pieces.list.push(piece);
                        }
                        Err(Abort) => return Err(Abort),
                    }
                }
                TokenKind::Invalid => {
                    let token = self.take();
                    let problem = text::invalid_token(self.text_of(token)).at(&self.range_of(token));
                    self.error_at(token, problem);
                }
                _ if end == TokenKind::CloseHeredoc => {
                    let marker = self.text_of(open).trim_start_matches(['<', '-']).trim_end();
                    let detail = format!(
                        "No closing marker was found for the string. The heredoc that begins in line {} must end with a line \
                         that holds nothing but {marker}, followed by a line break.",
                        self.tokens.start(open).line
                    );
                    return Err(self.error_in(open, "Unterminated template string", &detail));
                }
                _ => return Err(self.unclosed_quotes(open, "Unterminated template string")),
            }
        }
    }

    fn interpolation(&mut self, open: usize, end: TokenKind) -> Parsed<Piece> {
        let expr = self.expression()?;
        if self.eat(TokenKind::CloseSequence).is_some() {
            return Ok(Piece::Value(expr));
        }
        let unclosed = "Unclosed template interpolation sequence";
        let extra = "Extra characters after interpolation expression";
        let next = self.next();
        let whole = self.range_of(open);
        Err(match self.peek() {
            TokenKind::Eof => {
                let problem = Diagnostic::error(
                    unclosed,
                    "The file ends before this interpolation is closed by \"}\". Check the brackets and quotes of the \
                     expression in it.",
                );
                self.error_at(next, problem.at(&whole))
            }
            TokenKind::Colon => self.error_in(
                open,
                extra,
                "A colon cannot stand here in an interpolation. If this is meant for another language, such as a \
                 shell's \"${name:-default}\", write \"$${\" in place of \"${\".",
            ),
            TokenKind::CloseQuote | TokenKind::OpenQuote if end == TokenKind::CloseQuote => {
                let problem = Diagnostic::error(
                    unclosed,
                    "The string ends before this interpolation is closed by \"}\". Check the brackets and quotes of \
                     the expression in it.",
                );
                self.error_at(next, problem.at(&whole))
            }
            _ => self.error_in(
                open,
                extra,
                "The expression is complete before this point, and \"}\" should follow it. If the sequence is meant \
                 for another language, such as a shell, write \"$${\" in place of \"${\".",
            ),
        })
    }

    fn directive(&mut self, open: usize) -> Parsed<Piece> {
        let Some(keyword) = self.eat(TokenKind::Ident) else {
            return Err(self.error_in(
                open,
                "Invalid template directive",
                "After \"%{\" comes one of the keywords if, else, endif, for and endfor.",
            ));
        };
        let word = self.text_of(keyword);
        let piece = match word {
            "if" => {
                let condition = self.expression()?;
                self.end_directive(open, word)?;
                return Ok(Piece::If {
                    condition,
                    range: self.since(open),
                });
            }
            "for" => {
                let (key, value) = self.for_names(open, "Invalid 'for' directive", "For directive")?;
                let collection = self.expression()?;
                self.end_directive(open, word)?;
                return Ok(Piece::For {
                    key,
                    value,
                    collection,
                    range: self.since(open),
                });
            }
            "else" => Piece::Else,
            "endif" => Piece::EndIf,
            "endfor" => Piece::EndFor,
            _ => {
                let hint = crate::suggest::suggest(word, ["if", "for", "else", "endif", "endfor"]);
                let detail = format!(
                    "\"{word}\" is not a valid template control keyword.{}",
                    crate::suggest::did_you_mean(hint)
                );
                let problem = Diagnostic::error("Invalid template control keyword", detail);
                let context = self.between(open, keyword);
                return Err(self.error_at(keyword, problem.at(&self.range_of(keyword)).within(&context)));
            }
        };
        self.end_directive(open, word)?;
        Ok(piece(self.since(open)))
    }

    /// Returns a placeholder for a sequence that could not be parsed. An `if` needs its `endif`, whatever its condition
    /// is.
    fn broken_sequence(&self, open: usize, kind: TokenKind) -> Piece {
        let words = (open + 1..self.last).find(|i| self.tokens.kind(*i) != TokenKind::Blank);
        let range = self.since(open);
        match words {
            Some(word) if kind == TokenKind::OpenDirective && self.text_of(word) == "if" => Piece::If {
                condition: Expr::Invalid { range: range.clone() },
                range,
            },
            _ => Piece::Invalid,
        }
    }

    fn end_directive(&mut self, open: usize, word: &str) -> Parsed<()> {
        if self.eat(TokenKind::CloseSequence).is_some() {
            return Ok(());
        }
        Err(self.error_in(
            open,
            &format!("Extra characters in {word} marker"),
            "The directive is complete before this point, and \"}\" should follow it.",
        ))
    }

    // ---- the tree ---------------------------------------------------------------------------------------------

    fn tree(&mut self, pieces: Vec<Piece>, end: &Range) -> Parsed<Vec<TemplatePart>> {
        let mut open: Vec<Directive> = Vec::new();
        let mut parts = Parts::default();
        // If a directive could not be parsed, its counterparts would be reported as well.
        let broken = pieces.iter().any(|p| matches!(p, Piece::Invalid));
        for piece in pieces {
            match piece {
                Piece::Text { text, range } => parts.text(&text, range),
                Piece::Value(expr) => parts.push(TemplatePart::Interpolation(expr)),
                Piece::Invalid => {}
                Piece::If { condition, range } => open.push(Directive {
                    kind: DirectiveKind::If { condition, yes: None },
                    outer: take(&mut parts),
                    range,
                }),
                Piece::For {
                    key,
                    value,
                    collection,
                    range,
                } => open.push(Directive {
                    kind: DirectiveKind::For { key, value, collection },
                    outer: take(&mut parts),
                    range,
                }),
                Piece::Else(range) => match open.last_mut() {
                    Some(Directive {
                        kind: DirectiveKind::If { yes: yes @ None, .. },
                        ..
                    }) => *yes = Some(take(&mut parts).finish()),
                    other => return self.unbalanced(broken, "else", &range, other.as_deref()),
                },
                Piece::EndIf(range) => match open.pop() {
                    Some(Directive {
                        kind: DirectiveKind::If { condition, yes },
                        outer,
                        range: begin,
                    }) => {
                        parts.close_if(outer, condition, yes, begin.to(&range));
                    }
                    other => return self.unbalanced(broken, "endif", &range, other.as_ref()),
                },
                Piece::EndFor(range) => match open.pop() {
                    Some(Directive {
                        kind: DirectiveKind::For { key, value, collection },
                        outer,
                        range: begin,
                    }) => {
                        let body = std::mem::replace(&mut parts, outer).finish();
                        parts.push(TemplatePart::For {
                            key,
                            value,
                            collection,
                            body,
                            range: begin.to(&range),
                        });
                    }
                    other => return self.unbalanced(broken, "endfor", &range, other.as_ref()),
                },
            }
            if open.len() + self.depth > MAX_DEPTH {
                return Err(self.error(
                    "Nesting too deep",
                    &format!("Template directives may stand inside each other up to {MAX_DEPTH} levels deep."),
                ));
            }
        }
        match open.pop() {
            Some(directive) => {
                if !broken {
                    self.report_open(&directive, end);
                }
                Ok(Vec::new())
            }
            None => Ok(parts.finish()),
        }
    }

    /// Reports a directive that is open at the end of the template.
    fn report_open(&mut self, directive: &Directive, end: &Range) {
        let (word, closing) = match &directive.kind {
            DirectiveKind::If { .. } => ("if", "endif"),
            DirectiveKind::For { .. } => ("for", "endfor"),
        };
        let range = &directive.range;
        let detail = format!("The {word} directive at {range} is missing its corresponding {closing} directive.");
        self.report(
            Diagnostic::error("Unexpected end of template", detail)
                .at(end)
                .within(&range.to(end)),
        );
    }

    /// Reports a directive that does not belong to the innermost open one.
    fn unbalanced(
        &mut self,
        broken: bool,
        word: &str,
        at: &Range,
        open: Option<&Directive>,
    ) -> Parsed<Vec<TemplatePart>> {
        let detail = match open {
            None => "No directive is open here that it could belong to.".to_owned(),
            Some(Directive {
                kind: DirectiveKind::If { .. },
                range,
                ..
            }) if word == "else" => {
                format!("The \"if\" at {range} already has an \"else\".")
            }
            Some(Directive {
                kind: DirectiveKind::If { .. },
                range,
                ..
            }) => {
                format!("The \"if\" at {range} must be closed by \"endif\" first.")
            }
            Some(_) if word == "else" => "A \"for\" directive has no \"else\".".to_owned(),
            Some(Directive { range, .. }) => {
                format!("The \"for\" at {range} must be closed by \"endfor\" first.")
            }
        };
        if !broken {
            self.report(Diagnostic::error(format!("Unexpected {word} directive"), detail).at(at));
        }
        Ok(Vec::new())
    }
}

/// Removes the indentation that all lines share. Blank lines are ignored and keep their indentation. If a strip marker
/// removed a line break, the text after the marker belongs to the line before, and is ignored, too.
fn unindent(pieces: &mut [Piece]) {
    let mut line_begins = true;
    let mut smallest = usize::MAX;
    let mut lines = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let text = match piece {
            Piece::Text { text, .. } => Some(text),
            _ => None,
        };
        if std::mem::replace(&mut line_begins, text.is_some_and(|t| t.ends_with('\n'))) {
            let Some(text) = text else {
                // The line begins with a sequence, so there is no common indentation.
                smallest = 0;
                continue;
            };
            let rest = text.trim_start();
            if rest.is_empty() && text.ends_with('\n') {
                continue;
            }
            smallest = smallest.min(text[..text.len() - rest.len()].graphemes(true).count());
            lines.push(index);
        }
    }
    for index in lines {
        if let Some(Piece::Text { text, .. }) = pieces.get_mut(index) {
            let cut: usize = text.graphemes(true).take(smallest).map(str::len).sum();
            text.drain(..cut);
        }
    }
}
