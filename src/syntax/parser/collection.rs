//! Collections: tuples, objects and `for` expressions.

use std::sync::Arc;

use crate::ast::{Expr, For, ObjectItem, ObjectKey};
use crate::token::TokenKind;
use crate::{Diagnostic, Range};

use super::recovery::Resume;
use super::{Abort, Parsed, Parser};

const INVALID_FOR: &str = "Invalid 'for' expression";

impl Parser<'_> {
    pub(super) fn tuple(&mut self) -> Parsed<Expr> {
        let open = self.take();
        let before = self.set_newlines(false);
        let result = if self.at_word("for") {
            self.for_expression(open, TokenKind::CloseBracket)
        } else {
            self.tuple_items(open)
        };
        self.newlines = before;
        result
    }

    fn tuple_items(&mut self, open: usize) -> Parsed<Expr> {
        let mut items = Vec::new();
        while self.eat(TokenKind::CloseBracket).is_none() {
            let start = self.next();
            if let Err(Abort) = self.tuple_item(open, &mut items) {
                match self.skip_item(open, start, false) {
                    Resume::Lost => return Err(Abort),
                    Resume::Item => items.push(Expr::Invalid {
                        range: self.range_of(start),
                    }),
                }
            }
        }
        Ok(Expr::Tuple {
            items,
            open: self.range_of(open),
            range: self.since(open),
        })
    }

    /// Reads an element and the comma after it.
    fn tuple_item(&mut self, open: usize, items: &mut Vec<Expr>) -> Parsed<()> {
        let item = self.expression()?;
        items.push(item);
        match self.peek() {
            TokenKind::Comma => {
                self.take();
                Ok(())
            }
            TokenKind::CloseBracket => Ok(()),
            TokenKind::Eof => Err(self.unterminated(
                open,
                "Unterminated tuple constructor expression",
                "The file ends before this \"[\" is closed by \"]\". Check that every bracket before this point has \
                 its partner.",
            )),
            _ => Err(self.error_in(
                open,
                "Missing item separator",
                "Items between brackets are separated by commas; one is missing before this point.",
            )),
        }
    }

    /// Reports at the end of the file that a bracket was not closed.
    fn unterminated(&mut self, open: usize, summary: &str, detail: &str) -> Abort {
        let end = self.next();
        let problem = Diagnostic::error(summary, detail).at(&self.range_of(open));
        self.error_at(end, problem)
    }

    pub(super) fn object(&mut self) -> Parsed<Expr> {
        let open = self.take();
        // Line breaks are not significant before and inside of a `for`, but they are in an object.
        let before = self.set_newlines(false);
        let result = if self.at_word("for") {
            self.for_expression(open, TokenKind::CloseBrace)
        } else {
            self.newlines = true;
            self.object_items(open)
        };
        self.newlines = before;
        result
    }

    fn object_items(&mut self, open: usize) -> Parsed<Expr> {
        let mut items = Vec::new();
        loop {
            if self.eat(TokenKind::Newline).is_some() {
                continue;
            }
            if self.eat(TokenKind::CloseBrace).is_some() {
                break;
            }
            let start = self.next();
            if let Err(Abort) = self.object_item(open, &mut items)
                && let Resume::Lost = self.skip_item(open, start, true)
            {
                return Err(Abort);
            }
        }
        Ok(Expr::Object {
            items,
            open: self.range_of(open),
            range: self.since(open),
        })
    }

    /// Reads a key, a value, and the comma or line break after it.
    fn object_item(&mut self, open: usize, items: &mut Vec<ObjectItem>) -> Parsed<()> {
        let key_token = self.next();
        let key = self.expression()?;
        let key = self.object_key(key, key_token);
        if self.eat(TokenKind::Assign).is_none() && self.eat(TokenKind::Colon).is_none() {
            let separator = "Missing key/value separator";
            return Err(match self.peek() {
                TokenKind::Newline | TokenKind::Comma => self.error_in(
                    open,
                    "Missing attribute value",
                    "This key has no value. Write an equals sign and the value after it, on the same line.",
                ),
                TokenKind::Ident => self.error_in(
                    open,
                    separator,
                    "An equals sign is missing between key and value. A key with spaces or dots in it must stand in \
                     quotes.",
                ),
                _ => self.error_in(open, separator, "An equals sign is missing between key and value."),
            });
        }
        let value = self.expression()?;
        items.push(ObjectItem { key, value });
        match self.peek() {
            TokenKind::Comma | TokenKind::Newline => {
                self.take();
                Ok(())
            }
            TokenKind::CloseBrace => Ok(()),
            TokenKind::Eof => Err(self.unterminated(
                open,
                "Unterminated object constructor expression",
                "The file ends before this \"{\" is closed by \"}\". Check that every brace before this point has its \
                 partner.",
            )),
            _ => Err(self.error_in(
                open,
                "Missing attribute separator",
                "Attributes of an object are separated by line breaks or commas; neither stands here.",
            )),
        }
    }

    /// Converts an expression to a key. A bare name is its own text, even `true`, `false` or `null`.
    fn object_key(&self, key: Expr, token: usize) -> ObjectKey {
        let text = self.text_of(token);
        match &key {
            Expr::Traversal(traversal) if traversal.steps.is_empty() => ObjectKey::Bare {
                name: traversal.root.clone(),
                range: traversal.range.clone(),
            },
            Expr::Literal { range, .. } if matches!(text, "true" | "false" | "null") => ObjectKey::Bare {
                name: text.into(),
                range: range.clone(),
            },
            _ => ObjectKey::Expr(key),
        }
    }

    // ---- for --------------------------------------------------------------------------------------------------

    fn for_expression(&mut self, open: usize, closer: TokenKind) -> Parsed<Expr> {
        match self.for_inside(open, closer) {
            Ok(expr) => Ok(expr),
            Err(Abort) if self.skip_to_closer(open) => Ok(self.invalid(open)),
            Err(Abort) => Err(Abort),
        }
    }

    fn for_inside(&mut self, open: usize, closer: TokenKind) -> Parsed<Expr> {
        self.take();
        // Both kinds of brackets may contain each form; a wrong combination is reported at the end, with a message of
        // its own.
        let (key, value) = self.for_names(open, INVALID_FOR, "For expression")?;
        let collection = self.expression()?;
        if self.eat(TokenKind::Colon).is_none() {
            return Err(self.error_in(
                open,
                INVALID_FOR,
                "A colon is missing between the collection and the result of this 'for' expression.",
            ));
        }
        let mut result = self.expression()?;
        let mut result_key = None;
        if self.eat(TokenKind::FatArrow).is_some() {
            result_key = Some(std::mem::replace(&mut result, self.expression()?));
        }
        let ellipsis = self.eat(TokenKind::Ellipsis);
        let condition = if self.at_word("if") {
            self.take();
            Some(self.expression()?)
        } else {
            None
        };
        if self.eat(closer).is_none() {
            return Err(self.error_in(
                open,
                INVALID_FOR,
                "The 'for' expression is complete before this point and must be closed here.",
            ));
        }
        let range = self.since(open);
        if closer == TokenKind::CloseBracket {
            if let Some(key) = &result_key {
                let detail = "Between brackets, 'for' builds a tuple, whose elements have no keys. Use braces to \
                              build an object.";
                self.report(Diagnostic::error(INVALID_FOR, detail).at(key.range()).within(&range));
            }
            if let Some(ellipsis) = ellipsis {
                let detail = "\"...\" groups values by key, which only a 'for' in braces has.";
                self.report(
                    Diagnostic::error(INVALID_FOR, detail)
                        .at(&self.range_of(ellipsis))
                        .within(&range),
                );
            }
        } else if result_key.is_none() {
            let detail = "In braces, 'for' builds an object: write a key, \"=>\" and a value after the colon.";
            self.report(Diagnostic::error(INVALID_FOR, detail).at(result.range()).within(&range));
        }
        Ok(Expr::For(Box::new(For {
            key,
            value,
            collection,
            result_key,
            result,
            group: ellipsis.is_some(),
            condition,
            open: self.range_of(open),
            range,
        })))
    }

    /// Reads `k, v in` or `v in` of an expression or directive.
    pub(super) fn for_names(&mut self, open: usize, summary: &str, what: &str) -> Parsed<(Option<Arc<str>>, Arc<str>)> {
        let Some(first) = self.eat(TokenKind::Ident) else {
            return Err(self.error_in(open, summary, &format!("{what} requires variable name after 'for'.")));
        };
        let mut names = (None, self.text_of(first).into());
        if self.eat(TokenKind::Comma).is_some() {
            let Some(second) = self.eat(TokenKind::Ident) else {
                return Err(self.error_in(
                    open,
                    summary,
                    &format!("{what} requires value variable name after comma."),
                ));
            };
            names = (Some(names.1), self.text_of(second).into());
        }
        if !self.at_word("in") {
            // Terraform's wording differs between the two.
            let detail = if what == "For directive" {
                format!("{what} requires 'in' keyword after names.")
            } else {
                format!("{what} requires the 'in' keyword after its name declarations.")
            };
            return Err(self.error_in(open, summary, &detail));
        }
        self.take();
        Ok(names)
    }

    /// Range from the beginning of one token to the end of another.
    pub(super) fn between(&self, first: usize, last: usize) -> Range {
        self.range_of(first).to(&self.range_of(last))
    }
}
