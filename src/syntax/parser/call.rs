//! Function calls.

use crate::ast::{Call, Expr};
use crate::token::TokenKind;
use crate::{Diagnostic, Range};

use super::recovery::Resume;
use super::{Abort, Parsed, Parser};

#[derive(Default)]
struct Arguments {
    args: Vec<Expr>,
    expand_last: bool,
}

impl Parser<'_> {
    /// Reads a call of the function whose name begins with the token `first`.
    pub(super) fn call(&mut self, first: usize) -> Parsed<Expr> {
        let mut name = self.text_of(first).to_owned();
        while self.eat(TokenKind::DoubleColon).is_some() {
            let Some(part) = self.eat(TokenKind::Ident) else {
                return Err(self.error_in(
                    first,
                    "Missing function name",
                    "The name of a function is missing after \"::\".",
                ));
            };
            name.push_str("::");
            name.push_str(self.text_of(part));
        }
        let name_range = self.since(first);
        let Some(open) = self.eat(TokenKind::OpenParen) else {
            return Err(self.error_in(
                first,
                "Missing open parenthesis",
                "After the name of a function with a namespace comes \"(\", with its arguments.",
            ));
        };
        // Between parentheses, line breaks have no meaning.
        let before = self.set_newlines(false);
        let arguments = self.arguments(first, open);
        self.newlines = before;
        let arguments = arguments?;
        Ok(Expr::Call(Box::new(Call {
            name: name.into(),
            name_range,
            args: arguments.args,
            expand_last: arguments.expand_last,
            open: self.range_of(open),
            close: self.range_of(self.last),
            range: self.since(first),
        })))
    }

    /// Reads the arguments and the closing parenthesis.
    fn arguments(&mut self, name: usize, open: usize) -> Parsed<Arguments> {
        let mut arguments = Arguments::default();
        while self.eat(TokenKind::CloseParen).is_none() {
            let start = self.next();
            if let Err(Abort) = self.argument(name, open, &mut arguments) {
                match self.skip_item(open, start, false) {
                    Resume::Lost => return Err(Abort),
                    // A placeholder keeps the number of arguments correct, so that evaluation does not report a
                    // missing one.
                    Resume::Item => arguments.args.push(Expr::Invalid {
                        range: self.range_of(start),
                    }),
                }
            }
        }
        Ok(arguments)
    }

    /// Reads an argument and the comma after it.
    fn argument(&mut self, name: usize, open: usize, arguments: &mut Arguments) -> Parsed<()> {
        let value = self.expression()?;
        arguments.args.push(value);
        match self.peek() {
            TokenKind::Comma => {
                self.take();
                Ok(())
            }
            TokenKind::CloseParen => Ok(()),
            TokenKind::Ellipsis => {
                let ellipsis = self.take();
                arguments.expand_last = true;
                if self.peek() == TokenKind::CloseParen {
                    return Ok(());
                }
                let problem = Diagnostic::error(
                    "Missing closing parenthesis",
                    "\"...\" expands the last argument of a call, so only \")\" can follow it.",
                );
                let context = self.range_of(name).to(&self.range_of(ellipsis));
                Err(self.error_at(ellipsis, problem.at(&self.range_of(ellipsis)).within(&context)))
            }
            TokenKind::Eof => {
                let head: Range = self.range_of(name).to(&self.range_of(open));
                let problem = Diagnostic::error(
                    "Unterminated function call",
                    "The file ends before the arguments of this function are closed by \")\". Check that every \
                     parenthesis before this point has its partner.",
                );
                let end = self.next();
                Err(self.error_at(end, problem.at(&head)))
            }
            _ => {
                let opener = self.still_open(open);
                Err(self.error_in(
                    name,
                    "Missing argument separator",
                    &format!(
                        "Arguments of a function are separated by commas; one is missing before this point.{opener}"
                    ),
                ))
            }
        }
    }
}
